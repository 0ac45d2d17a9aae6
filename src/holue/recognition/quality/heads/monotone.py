"""MonotoneHead: a probability as a smooth function that only rises with each feature.

Each feature ``x_j`` is cut at knots ``t_q`` (quantiles of the validation probes, unless given) into ramps, and with ``w ≥ 0``

    h_{jq}(x) = clip((x_j − t_q) / (t_{q+1} − t_q), 0, 1)
    logit P = b + Σ w h_{jq} + Σ w h_{jq} h_{kr} + Σ w (h_{jq} + h_{kr} − h_{jq} h_{kr})

rises with every feature, since each term does, and still has interactions of both kinds ("good only if both are", "good if
either is"). Beyond the validation probes it stays level, so that it does not extrapolate. The weights maximise the
likelihood less an L2 penalty, a convex problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from holue.errors import NotCalibratedError
from holue.gallery.embeddings import Float64Array

RAMPS = 3
CLOSE, FLAT, STEPS = 1e-13, 1e-8, 15_000
"""How near to the optimum the weights go: the last gain, the slope that is left, and the most steps. The optimum is unique.
Further away from it, rounding decides where the optimiser stops: other processors, which round differently, would give
qualities that differ in the fourth digit."""


def quantile_knots(values: Float64Array, ramps: int = RAMPS) -> Float64Array:
    """The ends of ``ramps`` ramps that hold equally many values each; equal ends fall together.

    >>> quantile_knots(np.arange(7.0)).tolist()
    [0.0, 2.0, 4.0, 6.0]
    """
    return np.unique(np.quantile(values, np.linspace(0, 1, ramps + 1)))


class MonotoneHead:
    """P(yes) from m features, each oriented so that more is better.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(500, 2))
    >>> head = MonotoneHead()
    >>> head.fit(x, rng.random(500) < expit(2 * x[:, 0]))
    >>> low, high = head(np.array([[-1.0, 0.0], [1.0, 0.0]]))
    >>> bool(low < 0.4 and high > 0.6)
    True
    """

    knots: Sequence[Float64Array] = ()  # ascending, for each feature
    weights: Float64Array | None = None  # intercept first

    def __init__(self, *, penalty: float = 1.0) -> None:
        self.penalty = penalty

    @property
    def is_fitted(self) -> bool:
        """Whether it has learned its weights."""
        return self.weights is not None

    def fit(
        self,
        features: Float64Array,
        target: npt.NDArray[np.bool_],
        *,
        knots: Sequence[Float64Array] | None = None,
        start: Float64Array | None = None,
    ) -> None:
        """Fit the weights on features (n, m) and what came true; all yes or all no is a constant.

        ``start`` are weights to start from, such as those of similar features: the problem is convex, and it only saves time.
        """
        self.knots = [quantile_knots(column) for column in features.T] if knots is None else list(knots)
        basis = self._basis(features)
        n, yes = len(basis), target.astype(np.float64)
        if start is None:
            start = np.zeros(1 + basis.shape[1])
            start[0] = np.log((yes.sum() + 1) / (n - yes.sum() + 1))

        def loss(w: Float64Array) -> tuple[float, Float64Array]:
            logit, best, worst = w[0] + basis @ w[1:], w.sum(), w[0]
            value = np.logaddexp(0, logit).sum() - logit @ yes + 0.5 * self.penalty * w[1:] @ w[1:]
            # One imagined "no" among the best and one "yes" among the worst: certainty nobody measured is not claimed.
            value += np.logaddexp(0, best) + np.logaddexp(0, -worst)
            residual = expit(logit) - yes
            slope = np.concatenate([[residual.sum() - expit(-worst)], basis.T @ residual + self.penalty * w[1:]])
            return float(value), slope + expit(best)

        bounds = [(None, None)] + [(0.0, None)] * basis.shape[1]
        found = minimize(
            loss, start, jac=True, method="L-BFGS-B", bounds=bounds,
            options={"ftol": CLOSE, "gtol": FLAT, "maxiter": STEPS, "maxfun": 3 * STEPS},
        )  # fmt: skip
        self.weights = np.asarray(found.x)
        np.maximum(
            self.weights[1:], 0.0, out=self.weights[1:]
        )  # the optimiser's last step may round a weight below its bound

    def __call__(self, features: Float64Array) -> Float64Array:
        """P(yes) (n,)."""
        if self.weights is None:
            raise NotCalibratedError("this quality is learned from validation probes: call calibrate first")
        return np.asarray(expit(self.weights[0] + self._basis(features) @ self.weights[1:]))

    def state(self, prefix: str) -> dict[str, Float64Array]:
        """The fitted numbers, their names begun with ``prefix``."""
        if self.weights is None:
            return {}
        knots = {f"{prefix}_knots_{j}": values for j, values in enumerate(self.knots)}
        return {**knots, f"{prefix}_weights": self.weights}

    def restore(self, state: Mapping[str, Float64Array], prefix: str) -> None:
        """Take back what :meth:`state` gave."""
        names = sorted(name for name in state if name.startswith(f"{prefix}_knots_"))
        knots, weights = [state[name] for name in names], state.get(f"{prefix}_weights")
        for name, values in zip(names, knots):
            if values.ndim != 1 or not len(values) or not np.isfinite(values).all() or (np.diff(values) <= 0).any():
                raise ValueError(f"{name} must hold finite numbers that rise, got shape {values.shape}")
        if weights is not None:
            ramps = [max(len(values) - 1, 1) for values in knots]
            size = 1 + sum(ramps) + 2 * sum(one * other for one, other in combinations(ramps, 2))
            if not knots or weights.shape != (size,) or not np.isfinite(weights).all():
                raise ValueError(f"{prefix}_weights must be {size} finite numbers, got shape {weights.shape}")
            if (weights[1:] < 0).any():
                raise ValueError(f"{prefix}_weights must not be negative, or the head would fall")
        self.knots, self.weights = knots, weights

    def _basis(self, features: Float64Array) -> Float64Array:
        n = len(features)
        ramps = [_ramps(column, knots) for column, knots in zip(features.T, self.knots, strict=True)]
        columns = list(ramps)
        for one, other in combinations(ramps, 2):
            both = (one[:, :, None] * other[:, None, :]).reshape(n, -1)
            either = (one[:, :, None] + other[:, None, :]).reshape(n, -1) - both
            columns += [both, either]
        return np.concatenate(columns, axis=1)


def _ramps(values: Float64Array, knots: Float64Array) -> Float64Array:
    """From 0 to 1 between each knot and the next (n, knots − 1); of a single knot one step (n, 1)."""
    if len(knots) == 1:
        return np.asarray(values[:, None] >= knots, dtype=np.float64)
    low, high = knots[:-1], knots[1:]
    return np.minimum(np.maximum((values[:, None] - low) / (high - low), 0.0), 1.0)
