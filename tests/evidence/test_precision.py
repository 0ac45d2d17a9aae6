"""Bounds that held before a merge hold after it; standard errors add as those of independent parts do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

from holue.errors import InvalidInputError
from holue.evidence.evidence import Evidence, concatenate, merge
from holue.evidence.precision import EVERY_PLACE, Precision

SHARPNESS = np.array([0.0, 20.0, 400.0])


def off_by(scores, errors):  # type: ignore[no-untyped-def]
    """Evidence of scores that are off by at most ``errors``, with the bounds that follow, next to the exact evidence."""
    exact, seen = (
        Evidence(
            values[None, :1],
            np.full((1, 1), -1),
            np.array([[logsumexp(a * values) for a in SHARPNESS]]),
            np.array([[softmax(a * values) @ values for a in SHARPNESS]]),
            len(values),
            SHARPNESS,
        )
        for values in (scores, scores + errors)
    )
    precision = Precision(
        np.abs(seen.log_mass - exact.log_mass),
        np.abs(seen.mean_score - exact.mean_score),
        np.zeros((1, 3)),
        np.zeros((1, 3)),
        np.array([np.abs(errors).max()]),
    )
    return Evidence(**{**vars(seen), "precision": precision}), exact


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 6), min_size=2, max_size=4), st.sampled_from([0, 1e-3, 0.3]))
def test_bounds_hold_after_any_number_of_merges(seed, sizes, error) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(seed)
    parts = [off_by(rng.uniform(-1, 1, n), rng.uniform(-error, error, n)) for n in sizes]
    seen, exact = parts[0]
    for other_seen, other_exact in parts[1:]:
        seen, exact = merge(seen, other_seen), merge(exact, other_exact)
    precision = seen.precision
    assert precision is not None
    rounding = 1e-13 * (1 + SHARPNESS)
    assert (np.abs(seen.log_mass - exact.log_mass) <= precision.log_mass_bound + rounding).all()
    assert (np.abs(seen.mean_score - exact.mean_score) <= precision.mean_score_bound + rounding).all()
    largest = np.max([part.precision.log_mass_bound for part, _ in parts], axis=0)  # type: ignore[union-attr]
    assert (precision.log_mass_bound <= largest + rounding).all()
    assert precision.score_bound == max(part.precision.score_bound for part, _ in parts)  # type: ignore[union-attr]
    assert exact.precision is None, "exact parts stay exact"


def test_merging_is_the_same_in_any_order() -> None:
    rng = np.random.default_rng(0)
    a, b, c = (off_by(rng.uniform(-1, 1, 4), rng.uniform(-0.1, 0.1, 4))[0] for _ in range(3))
    left, right = merge(merge(a, b), c).precision, merge(a, merge(c, b)).precision
    assert left is not None
    assert right is not None
    # The mean score's bound depends on the order a little; it holds in each.
    for field in ("log_mass_bound", "log_mass_error", "score_bound"):
        np.testing.assert_allclose(getattr(left, field), getattr(right, field), rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("swap", [False, True])
def test_empty_evidence_leaves_precision_alone(swap: bool) -> None:
    rng = np.random.default_rng(1)
    seen, _ = off_by(rng.uniform(-1, 1, 4), rng.uniform(-0.1, 0.1, 4))
    seen = Evidence(**{**vars(seen), "precision": Precision(*rng.uniform(0, 1, (4, 1, 3)), np.array([0.3]))})
    empty = Evidence.empty(1, SHARPNESS, 1)
    merged = (merge(seen, empty) if swap else merge(empty, seen)).precision
    assert merged is not None
    for field, value in vars(seen.precision).items():
        np.testing.assert_array_equal(getattr(merged, field), value)
    assert merge(empty, empty).precision is None


def test_exact_evidence_that_says_so_stays_exactly_exact() -> None:
    rng = np.random.default_rng(2)
    seen, _ = off_by(rng.uniform(-1, 1, 5), np.zeros(5))
    _, exact = off_by(rng.uniform(-1, 1, 5), np.zeros(5))
    merged = merge(seen, exact).precision
    assert merged is not None
    for name, value in vars(merged).items():
        assert (value == (EVERY_PLACE if name == "top_from" else 0)).all()


def test_columns_and_batches_keep_their_precision() -> None:
    rng = np.random.default_rng(4)
    seen, exact = off_by(rng.uniform(-1, 1, 5), rng.uniform(-0.1, 0.1, 5))
    seen = Evidence(**{**vars(seen), "precision": Precision(*rng.uniform(0, 1, (4, 1, 3)), np.array([0.3]))})
    row = concatenate([exact, seen, seen])
    assert row.precision is not None
    for field, value in vars(seen.precision).items():
        none = np.full_like(value, EVERY_PLACE if field == "top_from" else 0.0)
        np.testing.assert_array_equal(getattr(row.precision, field), np.concatenate([none, value, value]))
    sharpest = row.columns(slice(1, 3))
    np.testing.assert_array_equal(sharpest.log_mass, row.log_mass[:, 1:])
    assert sharpest.precision is not None
    for field, value in vars(row.precision).items():
        np.testing.assert_array_equal(getattr(sharpest.precision, field), value[:, 1:] if value.ndim == 2 else value)
    assert concatenate([exact, exact]).columns(slice(0, 1)).precision is None, "exact stays exact"


def test_evidence_of_other_subjects_is_not_put_in_a_row() -> None:
    seen, _ = off_by(np.array([0.1, 0.2]), np.zeros(2))
    more, _ = off_by(np.array([0.1, 0.2, 0.3]), np.zeros(3))
    for other in (more, seen.columns(slice(0, 2))):
        with pytest.raises(InvalidInputError, match="the same subjects at the same sharpness"):
            concatenate([seen, other])


@pytest.mark.parametrize("sign", [-1, 1])
def test_standard_errors_are_those_of_independent_estimates(sign: int) -> None:
    # Two parts whose masses are estimated with a relative error of 1 and 2 percent; a mean score moves with its own mass.
    rng = np.random.default_rng(3)
    masses, means, sigma, slope = (
        np.array([3.0, 5.0]),
        np.array([0.2, 0.5]),
        np.array([0.01, 0.02]),
        sign * np.array([0.3, -0.1]),
    )
    draws = rng.normal(size=(200_000, 2))
    drawn = masses * np.exp(sigma * draws)
    drawn_means = means + slope * sigma * draws
    merged_mass = np.log(drawn.sum(axis=1))
    merged_mean = (drawn * drawn_means).sum(axis=1) / drawn.sum(axis=1)
    first, second = (
        Evidence(
            np.full((1, 0), 0.0),
            np.full((1, 0), -1),
            np.log(masses[i : i + 1, None]),
            means[i : i + 1, None],
            1,
            np.array([1.0]),
            Precision(
                np.zeros((1, 1)),
                np.zeros((1, 1)),
                sigma[i : i + 1, None],
                np.abs(slope * sigma)[i : i + 1, None],
                np.zeros(1),
            ),
        )
        for i in range(2)
    )
    precision = merge(first, second).precision
    assert precision is not None
    # 200 000 draws know a deviation to 0.2 %; the second order is 2 % of the first.
    assert precision.log_mass_error[0, 0] == pytest.approx(merged_mass.std(), rel=0.02)
    assert precision.mean_score_error[0, 0] >= 0.98 * merged_mean.std()
    if sign < 0:  # a part that gains mass moves its mean away from the other's, as mass and mean pull the same way
        assert precision.mean_score_error[0, 0] == pytest.approx(merged_mean.std(), rel=0.02)
