"""UnitsNeeded: how many units like those seen would certify a target, with the range that the errors seen leave open."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaincinv

from holue.gallery.embeddings import Float64Array
from holue.recognition.risk.decisions import Decisions
from holue.recognition.risk.error_curve import ErrorCurve
from holue.recognition.risk.fixed_sequence import (
    candidate_thresholds,
    chosen_test,
    starting_weights,
    units_tolerating,
)

LIKELY, RESAMPLES = 0.8, 100
"""The probability with which the units asked for shall certify the target, and the sets drawn to estimate it."""

COPIES = 4
"""Times that the units seen are copied with errors drawn anew, so that a larger set does not repeat a few lucky draws."""

RANGE = 0.8
"""The share of sets whose range shall hold the right number."""

LARGEST_SCALE = 1000.0


@dataclass(frozen=True)
class UnitsNeeded:
    """The estimate, and the numbers at the ends of the range; None where over 1000 times as many would not do."""

    units: int | None
    low: int | None
    high: int | None


def units_needed(decisions: Decisions, levels: Float64Array, target: float, confidence: float) -> UnitsNeeded:
    """The fewest units like these that certify the target with probability ``LIKELY``.

    Errors are drawn from the curve fitted to all errors seen, always with the same random numbers, so that the answer is the
    same for the same set. The curve's risk among the answers of the strictest start is known as well as a Poisson count of k
    errors knows it: the range multiplies it by the quantiles of Gamma(k)/k.

    >>> rng = np.random.default_rng(0)
    >>> seen = Decisions(rng.random(250), rng.random(250) < 0.002, np.arange(250))
    >>> found = units_needed(seen, np.linspace(0, 1, 100), target=0.01, confidence=0.95)
    >>> 299 <= found.low <= found.units < 3000
    True
    """
    curve = ErrorCurve.of(decisions, levels)
    estimate = _fewest(decisions, curve, levels, target, confidence, 1.0)
    thresholds, kept = candidate_thresholds(levels)
    asked = max(estimate or 0, decisions.n_units)
    weights = starting_weights(chosen_test(decisions), kept, asked, target, confidence)
    strict = decisions.quality >= thresholds[int(np.argmax(weights > 0))]
    errors = curve.errors_behind(strict if strict.any() else np.ones(len(decisions), dtype=bool))
    tail = (1 - RANGE) / 2
    low, high = (float(gammaincinv(errors, share)) / errors for share in (tail, 1 - tail))
    return UnitsNeeded(
        estimate,
        _fewest(decisions, curve, levels, target, confidence, low),
        None if estimate is None else _fewest(decisions, curve, levels, target, confidence, high),
    )


def _fewest(
    decisions: Decisions, curve: ErrorCurve, levels: Float64Array, target: float, confidence: float, factor: float
) -> int | None:
    test, n = chosen_test(decisions), decisions.n_units
    thresholds, kept = candidate_thresholds(levels)
    rng = np.random.default_rng(0)
    copies = Decisions(
        np.tile(decisions.quality, COPIES),
        np.concatenate([curve.draw(decisions, rng, factor) for _ in range(COPIES)]),
        (np.arange(COPIES)[:, None] * n + decisions.unit).ravel(),
    )

    def chance(n_units: int) -> float:
        weights = starting_weights(test, kept, n_units, target, confidence)
        starts = np.flatnonzero(weights).tolist()
        # Units that look alike at every start are drawn together: there are few kinds of them.
        columns = np.concatenate([copies.shares(thresholds[start]) for start in starts])
        kinds, counts = np.unique(columns, axis=1, return_counts=True)
        drawn = np.random.default_rng(0).multinomial(n_units, counts / counts.sum(), size=RESAMPLES).astype(np.float64)
        passed = np.zeros(RESAMPLES, dtype=bool)
        for start, decided, wrong in zip(starts, kinds[::2], kinds[1::2]):
            passed |= test.p_values_of_sets(decided, wrong, target, drawn) <= weights[start] * (1 - confidence)
        return float(passed.mean())

    low = units_tolerating(test, 0, target, confidence) - 1
    high = 2 * max(n, low)
    while chance(high) < LIKELY:
        low, high = high, 2 * high
        if high > LARGEST_SCALE * n:
            return None
    while high > max(1.05 * low, low + 1):  # the draws know it no better; of few units the next is further away
        middle = (low + high) // 2
        low, high = (low, middle) if chance(middle) >= LIKELY else (middle, high)
    return high
