"""Ties: the average over orders, exactly."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import hypergeom

from holue.evaluation.metrics.ties import expected_ratio


def over_all_subsets(weight, counted, others, a, b, size, kept):
    """The definition: keep every subset in turn, in exact arithmetic."""
    members = [(1, 0)] * a + [(0, 1)] * b + [(0, 0)] * (size - a - b)
    values = []
    for subset in itertools.combinations(members, kept):
        top = weight * (counted + sum(x for x, _ in subset))
        bottom = top + others + sum(y for _, y in subset)
        if bottom:
            values.append(Fraction(top, bottom))
    return float(sum(values) / len(values)) if values else math.nan


@st.composite
def groups(draw):
    a, b, rest = (draw(st.integers(0, 3)) for _ in range(3))
    size = max(a + b + rest, 1)
    return draw(st.integers(0, 3)), draw(st.integers(0, 3)), a, b, size, draw(st.integers(0, size))


@settings(deadline=None)
@given(st.integers(1, 2), groups())
def test_the_average_over_orders_is_exact(weight, group):
    expected = over_all_subsets(weight, *group)
    # Sums of up to a few hundred products of doubles.
    assert expected_ratio(weight, *group, 0.0) == pytest.approx(expected, abs=1e-14, nan_ok=True)


def test_the_average_is_not_the_ratio_of_the_averages():
    # Keep one of {true positive, error} beside two true positives: F1 is 1 or 0.8.
    assert expected_ratio(2, 2, 0, 1, 1, 2, 1, 0.0) == pytest.approx(0.9)
    assert pytest.approx(0.909, abs=1e-3) == 2 * 2.5 / (2 * 2.5 + 0.5)


def test_orders_without_a_value_are_left_out():
    # Keep one of {true positive, true negative, true negative}: F1 is 1 where it is defined at all.
    assert expected_ratio(2, 0, 0, 1, 0, 3, 1, 0.0) == 1.0
    assert math.isnan(expected_ratio(2, 0, 0, 0, 0, 3, 1, 0.0))


def test_the_expansion_is_within_its_bound_and_the_tolerance():
    rng = np.random.default_rng(0)
    for _ in range(500):
        size = int(10 ** rng.uniform(0.5, 2.7))
        a = int(rng.integers(0, size + 1))
        b = int(rng.integers(0, size - a + 1))
        kept = int(rng.integers(1, size + 1))
        counted, others = (10 ** rng.uniform(0, 3, 2)).astype(int)
        for weight in (1, 2):
            exact = expected_ratio(weight, counted, others, a, b, size, kept, 0.0)
            for tolerance in (1e-4, 1e-7):
                loose = expected_ratio(weight, counted, others, a, b, size, kept, tolerance)
                assert abs(loose - exact) <= tolerance


def test_a_wide_group_is_summed_without_loss():
    # Given how many of the a + b are kept, their mean is known, and one sum of scipy's probabilities is left.
    for size in (100, 1_000, 5_000):
        a, b, kept = size // 3, size // 5, size // 2
        both = np.arange(a + b + 1)
        p = hypergeom(size, a + b, kept).pmf(both)
        mean = np.sum(p * (5 + both * a / (a + b)) / (5 + 7 + both))
        assert expected_ratio(1, 5, 7, a, b, size, kept, 0.0) == pytest.approx(mean, rel=1e-11)


def test_a_certain_denominator_needs_no_sum():
    assert expected_ratio(1, 5, 7, 40, 60, 100, 50, 0.0) == (5 + 20) / (5 + 7 + 50)
