"""Risk against coverage: AURC and its excess, against sums over every order."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.errors import InvalidInputError
from holue.evaluation.metrics.risk_coverage import aurc, excess_aurc

cases = st.lists(st.tuples(st.integers(0, 2), st.booleans()), min_size=1, max_size=6)


def flags(correct):
    return {"mated": [True] * len(correct), "accepted": [True] * len(correct), "correct_subject": list(correct)}


def slow(quality, correct):
    """Keep the k most reliable for every k, in every order that quality allows."""
    values = []
    for order in itertools.permutations(range(len(quality))):
        if all(quality[a] >= quality[b] for a, b in itertools.pairwise(order)):
            errors = [not correct[i] for i in order]
            values.append(np.mean([np.mean(errors[:k]) for k in range(1, len(errors) + 1)]))
    return np.mean(values)


@settings(max_examples=50, deadline=None)
@given(cases)
def test_aurc_is_the_mean_risk_over_coverages_and_orders(rows):
    quality, correct = zip(*rows)
    assert aurc(quality, **flags(correct)) == pytest.approx(slow(quality, correct), abs=1e-12)


@settings(max_examples=50, deadline=None)
@given(cases)
def test_the_excess_is_nothing_for_the_best_order_and_never_negative(rows):
    quality, correct = zip(*rows)
    assert excess_aurc(correct, **flags(correct)) == pytest.approx(0, abs=1e-12)
    excess = excess_aurc(quality, **flags(correct))
    assert excess >= -1e-12
    assert excess == pytest.approx(slow(quality, correct) - slow(correct, correct), abs=1e-12)


def test_blind_ordering_gives_the_error_rate():
    correct = [True] * 70 + [False] * 30
    assert aurc(np.zeros(100), **flags(correct)) == pytest.approx(0.3)


def test_the_best_value_tends_to_its_known_limit():
    correct = np.arange(20_000) >= 2_000
    rate = 0.1
    limit = rate + (1 - rate) * math.log(1 - rate)
    # The sum is a Riemann sum of the integral: off by at most rate/n.
    assert aurc(correct, **flags(correct)) == pytest.approx(limit, abs=rate / 20_000)


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match="quality must not be NaN; row 0"):
        aurc([np.nan], **flags([True]))
