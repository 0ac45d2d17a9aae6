"""Estimate: a number with its interval, or the reason why it has none."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from holue.evaluation.columns import BoolArray, FloatArray
from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.evaluation.intervals.intervals import Bootstrapped
from holue.evaluation.metrics.calibration_error import reliability_diagram
from holue.evaluation.metrics.undefined import UndefinedMetricWarning

BINS = 15
"""Bins of the expected calibration error (Guo et al., 2017)."""


@dataclass(frozen=True)
class Estimate:
    """``value`` with ``low`` and ``high`` of its interval; each is None where undefined, and ``reason`` says why.

    >>> Estimate(0.5, 0.25, 0.75).document()
    {'value': 0.5, 'low': 0.25, 'high': 0.75}
    >>> Estimate.undefined("there are no errors").document()
    {'value': None, 'low': None, 'high': None, 'reason': 'there are no errors'}
    """

    value: float | None
    low: float | None
    high: float | None
    reason: str | None = None

    @classmethod
    def of(cls, number: Bootstrapped, level: float, reason: str | None = None) -> Estimate:
        """Percentile interval of a bootstrapped number; ``reason`` is why its value is NaN, where that is known."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UndefinedMetricWarning)
            interval = number.interval(level)
        said = str(caught[0].message) if caught else None
        return cls(_finite(number.estimate), _finite(interval.low), _finite(interval.high), reason or said)

    @classmethod
    def undefined(cls, reason: str) -> Estimate:
        """No value, for this reason."""
        return cls(None, None, None, reason)

    def document(self) -> dict[str, float | str | None]:
        """Plain values for JSON."""
        numbers: dict[str, float | str | None] = {"value": self.value, "low": self.low, "high": self.high}
        return numbers if self.reason is None else {**numbers, "reason": self.reason}


def bootstrap_calibration_error(
    probability: FloatArray, *, correct: BoolArray, resamples: SubjectBootstrap
) -> Bootstrapped:
    """Expected calibration error over bins of equal width, on all probes and on each resample of subjects.

    ``ECE = (1/n) Σ_b |Σ_{i in b} (correct_i − p_i)|``: the inner sums add over subjects, so all resamples are one product.

    >>> resamples = SubjectBootstrap.draw([1, 2, 3, 4], n_resamples=50, rng=0)
    >>> p, correct = np.array([0.1, 0.2, 0.9, 0.8]), np.array([False, False, True, False])
    >>> round(bootstrap_calibration_error(p, correct=correct, resamples=resamples).estimate, 12)
    0.3
    """
    estimate = reliability_diagram(probability, correct=correct, bins=BINS).expected_error
    place = np.searchsorted(np.linspace(0, 1, BINS + 1)[1:-1], probability, side="left")
    cell = resamples.cluster * BINS + place
    gap = np.bincount(cell, correct - probability, minlength=resamples.n_subjects * BINS)
    size = np.bincount(resamples.cluster, minlength=resamples.n_subjects)
    times = resamples.times_drawn.astype(np.float64)
    replicates = np.abs(times @ gap.reshape(-1, BINS)).sum(axis=1) / (times @ size)
    return Bootstrapped("expected calibration error", estimate, replicates, resamples)


def rounded(value: float) -> float:
    """Ten digits: more than any resample settles.

    >>> rounded(1 / 3)
    0.3333333333
    """
    return float(f"{value:.10g}")


def _finite(value: float) -> float | None:
    return rounded(value) if math.isfinite(value) else None
