"""Precision: how far evidence may be from the exact evidence of the same subjects.

A compressed gallery gives *certified bounds*: no exact value lies farther away. A sampled gallery gives *standard errors*. Both
are zero where a number is exact, up to the rounding of the product. Evidence is written ``L̂`` (log-mass) and ``M̂`` (mean score)
where it may be off, ``L`` and ``M`` where exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

Float64Array = npt.NDArray[np.float64]

EVERY_PLACE = -2.0
"""Below every cosine: where the whole top is that of an exact scan."""


@dataclass(frozen=True, eq=False)
class Precision:
    """Bounds and standard errors of the evidence about n probes at m sharpnesses."""

    log_mass_bound: Float64Array  # (n, m) |L̂ − L| is at most this
    mean_score_bound: Float64Array  # (n, m) |M̂ − M| is at most this
    log_mass_error: Float64Array  # (n, m) standard error of an estimated L̂
    mean_score_error: Float64Array  # (n, m) standard error of an estimated M̂
    score_bound: Float64Array  # (n,) |ŝ − s| of any score that was not computed exactly is at most this
    top_from: Float64Array = field(default_factory=lambda: np.array(EVERY_PLACE))
    """(n,) who scores above this is among the top as in an exact scan; lower places may be somebody else's."""

    missed: Float64Array = field(default_factory=lambda: np.array(0.0))
    """(n,) the share of mates at the threshold that an index does not find, as measured; NaN where no threshold was named."""

    def __post_init__(self) -> None:
        for name in ("top_from", "missed"):
            value = getattr(self, name)
            if value.ndim == 0:
                object.__setattr__(self, name, np.full(len(self.score_bound), value))

    @classmethod
    def exact(cls, n_probes: int, n_sharpness: int) -> Precision:
        """Nothing is off.

        >>> Precision.exact(1, 2).log_mass_bound
        array([[0., 0.]])
        """
        zero = np.zeros((n_probes, n_sharpness))
        return cls(zero, zero, zero, zero, np.zeros(n_probes))

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Precision:
        """The precision of the evidence about some of the probes."""
        return Precision(*(getattr(self, field.name)[rows] for field in fields(self)))

    def columns(self, columns: slice) -> Precision:
        """The precision at some of the sharpnesses."""
        values = (getattr(self, field.name) for field in fields(self))
        return Precision(*(value[:, columns] if value.ndim == 2 else value for value in values))


def concatenate_precision(
    parts: Sequence[Precision | None], sizes: Sequence[int], n_sharpness: int
) -> Precision | None:
    """Precision of batches of probes, one after another; those without any are exact."""
    if all(part is None for part in parts):
        return None
    given = [part or Precision.exact(size, n_sharpness) for part, size in zip(parts, sizes)]
    return Precision(*(np.concatenate([getattr(part, field.name) for part in given]) for field in fields(Precision)))


def merge_precision(
    left: Precision | None,
    right: Precision | None,
    log_odds: Float64Array,
    mean_difference: Float64Array,
) -> Precision | None:
    """Precision of two parts taken together.

    ``log_odds = L̂₁ − L̂₂`` is infinite where one part is empty; ``mean_difference = M̂₁ − M̂₂``. With the left part's share
    ``w = 1/(1 + e^{L₂−L₁})`` we have ``L = ln(e^{L₁} + e^{L₂})`` and ``M = w M₁ + (1−w) M₂``, and so:

    - ``L`` grows with both log-masses: it is at most ``ln(e^{L̂₁+b₁} + e^{L̂₂+b₂})``, which is ``L̂ + ln(ŵ e^{b₁} + (1−ŵ) e^{b₂})``.
      It is convex, so it falls below ``L̂`` by no more. That is never above the larger bound, and the same in any order.
    - The true log-odds are within ``b₁ + b₂``, which gives the range of ``w``. With any ``w`` in it,
      ``|M̂ − M| ≤ w m₁ + (1−w) m₂ + |ŵ − w| |M̂₁ − M̂₂|``.
    - Standard errors are to first order, for parts estimated independently: ``√(ŵ² σ₁² + (1−ŵ)² σ₂²)`` for the log-mass. In the
      mean score a part's two errors are taken to pull the same way, since one sample gave both.
    """
    if left is None and right is None:
        return None
    n, m = log_odds.shape
    left, right = left or Precision.exact(n, m), right or Precision.exact(n, m)
    share = expit(log_odds)
    reach = np.where(np.isfinite(log_odds), left.log_mass_bound + right.log_mass_bound, 0.0)
    least, most = expit(log_odds - reach), expit(log_odds + reach)
    moved = np.maximum(most - share, share - least)
    apart = np.abs(mean_difference)
    inner = np.maximum(*(w * left.mean_score_bound + (1 - w) * right.mean_score_bound for w in (least, most)))
    pull = share * (1 - share) * apart
    return Precision(
        _log_of_mean_exp(left.log_mass_bound, right.log_mass_bound, log_odds),
        inner + moved * apart,
        np.hypot(share * left.log_mass_error, (1 - share) * right.log_mass_error),
        np.hypot(
            share * left.mean_score_error + pull * left.log_mass_error,
            (1 - share) * right.mean_score_error + pull * right.log_mass_error,
        ),
        np.maximum(left.score_bound, right.score_bound),
        np.maximum(left.top_from, right.top_from),
        np.maximum(left.missed, right.missed),  # a mate is in one of them
    )


def _log_of_mean_exp(left: Float64Array, right: Float64Array, log_odds: Float64Array) -> Float64Array:
    """``ln(w e^{b₁} + (1−w) e^{b₂})``, held between the two so that equal bounds, above all zeros, stay what they are."""
    log_share, log_rest = -np.logaddexp(0.0, -log_odds), -np.logaddexp(0.0, log_odds)
    mean = np.logaddexp(left + log_share, right + log_rest)
    return np.clip(mean, np.minimum(left, right), np.maximum(left, right))
