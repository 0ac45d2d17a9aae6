"""Fixed sequence: thresholds tested in a fixed order, from strict to loose, each only as long as the one before it passed.

Learn-then-Test (Angelopoulos, Bates, Candès, Jordan, Lei 2021): to each threshold λ belongs the hypothesis "R(λ) > α" with a
valid p-value. Walked in an order fixed beforehand and stopped at the first p > δ, the chance that any threshold passed
on the way is bad is at most δ, with nothing paid for the number of thresholds: a bad one passes only if the *first* bad one
does, and that has probability at most δ. It needs no monotone risk.

Where the set allows, the walk has three starts and δ is split among them (the fallback procedure, Wiens 2003): half for a
strict threshold, a quarter for a middling one, a quarter for no filter at all. A walk that passes hands its part on to the next;
one that fails loses it. So a system that needs no filter is certified at its full size, and one good only at the top, there.

What is fixed beforehand must not look at the probes that certify. The thresholds are quantiles of *other* probes' quality
(those that calibrated the recogniser). And the strict start is not the very strictest threshold, where too few decisions are
left to refute anything, but one where enough can be *expected*: that follows from α, δ and the size of the set alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.recognition.risk.betting import BettingTest
from holue.recognition.risk.binomial import BinomialTest
from holue.recognition.risk.decisions import Decisions

TOLERATED_AT_START = 3
"""Errors that the first threshold should survive, where a third of the units is enough for it."""

STRICT, MIDDLE = 0.5, 0.4
"""The part of δ for the strict start, and how far the middling one lies between it and no filter."""

FAIR_SHARE = 1 / 3
"""The share of units that a quality score can be expected to sort out as the best ones."""


class RiskTest(Protocol):
    """A test of "the risk is above the target" from the share decided, and decided wrongly, of each unit."""

    name: str

    @classmethod
    def p_value(cls, decided: Float64Array, wrong: Float64Array, target: float) -> float:
        """How likely evidence this good is, were the risk above the target."""
        ...

    @classmethod
    def p_value_of_counts(cls, units: int, wrong_units: int, target: float) -> float:
        """The p-value of whole units."""
        ...

    @classmethod
    def p_values_of_sets(
        cls, decided: Float64Array, wrong: Float64Array, target: float, drawn: Float64Array
    ) -> Float64Array:
        """The p-values of several sets, in which each unit is drawn so many times (sets, units)."""
        ...

    @classmethod
    def upper_bound(cls, decided: Float64Array, wrong: Float64Array, confidence: float) -> float:
        """The largest risk that is not refuted."""
        ...


@dataclass(frozen=True)
class Walk:
    """How far the walk came: the loosest threshold that passed (None if none did), and those it could have tried."""

    test: type[RiskTest]
    certified: float | None
    tried: Float64Array  # strictest first; empty where the set is too small for any
    needed_units: int  # fewest units that could certify the target, without an error


def chosen_test(decisions: Decisions) -> type[RiskTest]:
    """The exact binomial tail where every unit is one probe, betting where units hold several."""
    return BinomialTest if decisions.single else BettingTest


def walk(decisions: Decisions, levels: Float64Array, target: float, confidence: float) -> Walk:
    """Walk the thresholds ``levels`` (and at last "no filter") towards looser ones.

    >>> rng = np.random.default_rng(0)
    >>> quality = rng.random(4000)
    >>> wrong = rng.random(4000) < 0.1 * (1 - quality) ** 2       # the risk at threshold t is (1 − t)²/30
    >>> decisions = Decisions(quality, wrong, np.arange(4000))
    >>> found = walk(decisions, np.linspace(0, 1, 100), target=0.01, confidence=0.95)
    >>> bool((1 - found.certified) ** 2 / 30 <= 0.01)
    True
    """
    test, delta = chosen_test(decisions), 1 - confidence
    needed = units_tolerating(test, 0, target, confidence)
    thresholds, kept = candidate_thresholds(levels)
    weights = starting_weights(test, kept, decisions.n_units, target, confidence)
    first = int(np.argmax(weights > 0)) if weights.any() else len(weights)
    tried = thresholds[first:]
    certified, level = None, 0.0
    for threshold, weight in zip(tried, weights[first:]):
        level += weight * delta
        if level > 0 and test.p_value(*decisions.shares(threshold), target) <= level:
            certified = float(threshold)
        else:
            level = 0.0
    return Walk(test, certified, tried, needed)


def candidate_thresholds(levels: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Distinct levels from the strictest down to −inf, with the share of levels that each keeps."""
    thresholds = np.append(np.unique(levels)[::-1], -np.inf)
    below = np.searchsorted(np.sort(levels), thresholds, side="left")
    return thresholds, 1 - below / len(levels)


def starting_weights(
    test: type[RiskTest], kept: Float64Array, n_units: int, target: float, confidence: float
) -> Float64Array:
    """The part of δ that each threshold starts with; all 0 where the set is too small for any.

    The strict start keeps what survives three errors or, where a third of the units is too few for that, two, one, none. A
    set that can hardly survive none puts all of δ there.
    """
    weights = np.zeros(len(kept))
    needed = units_tolerating(test, 0, target, confidence)
    if needed > n_units:
        return weights
    # Two standard deviations more than needed, so that chance seldom leaves too few.
    expected = n_units * kept - 2 * np.sqrt(n_units * kept * (1 - kept))
    if needed > n_units * FAIR_SHARE:
        weights[int(np.argmax(expected >= needed))] = 1
        return weights
    for tolerated in range(TOLERATED_AT_START, -1, -1):
        needed = units_tolerating(test, tolerated, target, 1 - STRICT * (1 - confidence))
        if needed <= n_units * FAIR_SHARE or tolerated == 0:
            break
    strict = int(np.argmax(expected >= needed))
    middle = int(np.argmax(kept >= kept[strict] + MIDDLE * (1 - kept[strict])))
    np.add.at(weights, [strict, middle, len(kept) - 1], [STRICT, (1 - STRICT) / 2, (1 - STRICT) / 2])
    return weights


def units_tolerating(test: type[RiskTest], errors: int, target: float, confidence: float) -> int:
    """The fewest decided units that certify the target although ``errors`` of them are wrong.

    >>> [units_tolerating(BinomialTest, k, 0.01, 0.95) for k in (0, 1, 2)]
    [299, 473, 628]
    """
    delta = 1 - confidence
    low, high = errors, errors + 1
    while test.p_value_of_counts(high, errors, target) > delta:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if test.p_value_of_counts(middle, errors, target) <= delta else (middle, high)
    return high
