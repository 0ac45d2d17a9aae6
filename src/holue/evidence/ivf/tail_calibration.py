"""TailCalibration: how far the expected mass of unread lists was from the true one, for left-out rows of the gallery.

Rows of the gallery, as they are and blurred, stand in for probes. At a small sharpness the logarithm of true over
expected mass gives a bias, which is corrected for, and a spread, which is the standard error of the correction. At a
large one, where the mass is that of the few highest scores, it is divided by the sharpness: that is by how much the
highest unread score was misjudged, which hardly depends on the sharpness any more, and its quantiles are kept. Between
the learned sharpnesses all is interpolated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from holue.gallery.embeddings import Float64Array

QUANTILE, NORMAL_QUANTILE = 0.99, 2.576
"""A spread is the 99 % quantile of the deviations over that of a normal one: outliers count."""
ENDS = (0.5, 0.00135, 0.99865)
"""Quantiles of the misjudged score: for the estimate, and where a normal one would be three standard errors below and above."""


@dataclass(frozen=True, eq=False)
class TailCalibration:
    """What was learned at g ascending small sharpnesses and at e large ones."""

    sharpness: Float64Array  # (g,)
    table: Float64Array  # (4, g): bias and spread of the log-mass, bias and spread of the mean score
    large_sharpness: Float64Array  # (e,)
    shifts: Float64Array  # (3, e): quantiles ENDS of the misjudged score
    mean_shifts: Float64Array  # (3, e): and of the misjudged mean score

    @classmethod
    def unknown(cls) -> Self:
        """Before anything was learned: the expectation counts for nothing beside a sample."""
        nothing = np.array([[0.0], [1e3], [0.0], [1e3]])
        anything = np.array([[0.0], [-1.0], [1.0]])
        return cls(np.array([1.0]), nothing, np.array([1.0]), anything, anything)

    @classmethod
    def learn(
        cls,
        sharpness: Float64Array,
        large_sharpness: Float64Array,
        log_ratio: Float64Array,
        mean_difference: Float64Array,
    ) -> Self:
        """From the true values against the expected ones of n left-out rows (n, g + e)."""
        small = len(sharpness)
        rows = []
        for off in (log_ratio[:, :small], mean_difference[:, :small]):
            bias = np.median(off, axis=0)
            rows += [bias, np.quantile(np.abs(off - bias), QUANTILE, axis=0) / NORMAL_QUANTILE]
        shifts = np.quantile(log_ratio[:, small:] / large_sharpness, ENDS, axis=0)
        mean_shifts = np.quantile(mean_difference[:, small:], ENDS, axis=0)
        return cls(sharpness, np.array(rows), large_sharpness, shifts, mean_shifts)

    def at(self, sharpness: float) -> tuple[float, float, float, float]:
        """Bias and spread of the log-mass, bias and spread of the mean score; at sharpness 0 nothing is off."""
        if sharpness not in self._known:
            bias, spread, mean_bias, mean_spread = self._curves(min(sharpness, self.sharpness[-1])).tolist()
            self._known[sharpness] = bias, spread, mean_bias, mean_spread
        return self._known[sharpness]

    @cached_property
    def _known(self) -> dict[float, tuple[float, float, float, float]]:
        """What was asked before: one probe is answered in the time of some interpolations."""
        return {}

    @cached_property
    def _curves(self) -> Callable[[float], Float64Array]:
        """The table between the learned sharpnesses. It bends: straight lines were off by a standard error at K = 10⁷."""
        from scipy.interpolate import PchipInterpolator

        grid, table = np.concatenate([[0.0], self.sharpness]), np.hstack([np.zeros((4, 1)), self.table])
        curves: Callable[[float], Float64Array] = PchipInterpolator(grid, table, axis=1)
        return curves

    def beyond(self, sharpness: Float64Array) -> tuple[Float64Array, Float64Array]:
        """By how much the highest unread score and the unread mean score are misjudged, (m, 3) each at the quantiles ``ENDS``."""
        places, at = np.log(self.large_sharpness), np.log(sharpness)
        shifts, mean_shifts = (
            np.stack([np.interp(at, places, row) for row in table], axis=1) for table in (self.shifts, self.mean_shifts)
        )
        return shifts, mean_shifts
