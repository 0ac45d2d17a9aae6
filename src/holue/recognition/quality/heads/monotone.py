"""MonotoneHead: P(correct) as a smooth function that only rises with each feature.

Each feature ``x_j`` is cut at quantiles ``t_q`` of the validation probes into ramps, and with weights ``w ≥ 0``

    h_{jq}(x) = clip((x_j − t_q) / (t_{q+1} − t_q), 0, 1)
    logit P = b + Σ w h_{jq} + Σ w h_{jq} h_{kr} + Σ w (h_{jq} + h_{kr} − h_{jq} h_{kr})

rises with every feature, since each term does, and still has interactions of both kinds ("good only if both are", "good if
either is"). Beyond the validation probes it stays level, so that it does not extrapolate. The weights maximise the
likelihood less an L2 penalty, a convex problem.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from holue.errors import NotCalibratedError
from holue.gallery.embeddings import Float64Array

RAMPS = 3


class MonotoneHead:
    """P(correct) from m features, each oriented so that more is better.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 2))
    >>> head = MonotoneHead()
    >>> head.fit(x, rng.random(500) < expit(2 * x[:, 0]))
    >>> low, high = head(np.array([[-1.0, 0.0], [1.0, 0.0]]))
    >>> bool(low < 0.4 and high > 0.6)
    True
    """

    knots: Float64Array | None = None  # (m, RAMPS + 1)
    weights: Float64Array | None = None  # intercept first

    def __init__(self, *, penalty: float = 1.0) -> None:
        self.penalty = penalty

    def fit(self, features: Float64Array, correct: npt.NDArray[np.bool_]) -> None:
        """Fit the weights on features (n, m) and whether each answer was right; all right or all wrong is a constant."""
        self.knots = np.quantile(features, np.linspace(0, 1, RAMPS + 1), axis=0).T
        basis = self._basis(features)
        n, target = len(basis), correct.astype(np.float64)
        start = np.log((target.sum() + 1) / (n - target.sum() + 1))

        def loss(w: Float64Array) -> tuple[float, Float64Array]:
            logit, best, worst = w[0] + basis @ w[1:], w.sum(), w[0]
            value = np.logaddexp(0, logit).sum() - logit @ target + 0.5 * self.penalty * w[1:] @ w[1:]
            # One imagined wrong answer among the best and one right among the worst: certainty nobody measured is not claimed.
            value += np.logaddexp(0, best) + np.logaddexp(0, -worst)
            residual = expit(logit) - target
            slope = np.concatenate([[residual.sum() - expit(-worst)], basis.T @ residual + self.penalty * w[1:]])
            return float(value), slope + expit(best)

        bounds = [(None, None)] + [(0.0, None)] * basis.shape[1]
        found = minimize(
            loss, np.concatenate([[start], np.zeros(basis.shape[1])]), jac=True, method="L-BFGS-B", bounds=bounds
        )
        self.weights = np.asarray(found.x)

    def __call__(self, features: Float64Array) -> Float64Array:
        """P(correct) (n,)."""
        if self.weights is None:
            raise NotCalibratedError("this quality is learned from validation probes: call calibrate first")
        return np.asarray(expit(self.weights[0] + self._basis(features) @ self.weights[1:]))

    def state(self, prefix: str) -> dict[str, Float64Array]:
        """The fitted numbers, their names begun with ``prefix``."""
        if self.knots is None or self.weights is None:
            return {}
        return {f"{prefix}_knots": self.knots, f"{prefix}_weights": self.weights}

    def restore(self, state: Mapping[str, Float64Array], prefix: str) -> None:
        """Take back what :meth:`state` gave."""
        knots, weights = state[f"{prefix}_knots"], state[f"{prefix}_weights"]
        m, pairs = len(knots), len(knots) * (len(knots) - 1) // 2
        if knots.shape != (m, RAMPS + 1) or not np.isfinite(knots).all() or (np.diff(knots, axis=1) < 0).any():
            raise ValueError(
                f"{prefix}_knots must rise along rows of {RAMPS + 1} finite numbers, got shape {knots.shape}"
            )
        if weights.shape != (1 + m * RAMPS + 2 * pairs * RAMPS**2,) or not np.isfinite(weights).all():
            raise ValueError(f"{prefix}_weights must be finite and fit {m} features, got shape {weights.shape}")
        if (weights[1:] < 0).any():
            raise ValueError(f"{prefix}_weights must not be negative, or the head would fall")
        self.knots, self.weights = knots, weights

    def _basis(self, features: Float64Array) -> Float64Array:
        assert self.knots is not None
        low, high = self.knots[:, :-1], self.knots[:, 1:]
        width = np.where(high > low, high - low, 1.0)
        ramps = np.clip((features[:, :, None] - low) / width, 0, 1)
        ramps = np.where(high > low, ramps, features[:, :, None] >= high)
        n, m = features.shape
        columns = [ramps.reshape(n, m * RAMPS)]
        for j, k in combinations(range(m), 2):
            both = (ramps[:, j, :, None] * ramps[:, k, None, :]).reshape(n, RAMPS**2)
            either = (ramps[:, j, :, None] + ramps[:, k, None, :]).reshape(n, RAMPS**2) - both
            columns += [both, either]
        return np.concatenate(columns, axis=1)
