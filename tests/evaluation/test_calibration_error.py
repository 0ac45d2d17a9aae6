"""Calibration error: against a loop over bins, and scikit-learn where it has the same number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss
from sklearn.metrics import log_loss as reference_log_loss

from holue.errors import InvalidInputError, InvalidParameterError
from holue.evaluation.metrics.calibration_error import (
    brier_score,
    expected_calibration_error,
    log_loss,
    reliability_diagram,
    squared_calibration_error,
)

# Multiples of 1/8 meet the edges of 2 and 4 bins exactly, and tie often.
probabilities = st.lists(
    st.tuples(st.integers(0, 8).map(lambda eighths: eighths / 8), st.booleans()), min_size=1, max_size=30
)


@settings(deadline=None)
@given(probabilities, st.sampled_from([1, 2, 3, 4, 15]))
def test_the_error_is_the_weighted_gap_over_bins_of_equal_width(rows, bins):
    total = 0.0
    for b in range(bins):
        lower, upper = b / bins, (b + 1) / bins
        members = [row for row in rows if lower < row[0] <= upper or (b == 0 and row[0] == 0)]
        if members:
            gap = abs(np.mean([p for p, _ in members]) - np.mean([c for _, c in members]))
            total += len(members) / len(rows) * gap
    p, correct = zip(*rows)
    assert expected_calibration_error(p, correct=correct, bins=bins) == pytest.approx(total, abs=1e-12)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_the_diagram_is_scikit_learns(strategy):
    rng = np.random.default_rng(0)
    p = rng.random(500)
    correct = rng.random(500) < p**2
    diagram = reliability_diagram(p, correct=correct, bins=10, strategy=strategy)
    observed, predicted = calibration_curve(correct, p, n_bins=10, strategy=strategy)
    np.testing.assert_allclose(diagram.observed, observed)
    np.testing.assert_allclose(diagram.predicted, predicted)
    assert diagram.count.sum() == 500
    assert (diagram.edges[:, 0] <= diagram.predicted).all()
    assert (diagram.predicted <= diagram.edges[:, 1]).all()
    gaps = np.abs(observed - predicted)
    assert diagram.largest_error == pytest.approx(gaps.max())


@settings(deadline=None)
@given(probabilities, st.sampled_from(["uniform", "quantile"]), st.randoms(use_true_random=False))
def test_the_order_of_the_input_never_matters(rows, strategy, random):
    errors = []
    for order in (rows, random.sample(rows, len(rows))):
        p, correct = zip(*order)
        errors.append(expected_calibration_error(p, correct=correct, bins=4, strategy=strategy))
    assert errors[0] == pytest.approx(errors[1], abs=1e-12)


def test_equal_probabilities_share_a_bin_of_equal_mass():
    diagram = reliability_diagram([0.5] * 6, correct=[1, 1, 1, 0, 0, 0], bins=3, strategy="quantile")
    assert diagram.count.tolist() == [6]
    assert diagram.expected_error == 0.0


def test_brier_and_log_loss_are_scikit_learns():
    rng = np.random.default_rng(1)
    p = np.concatenate([rng.random(50), [0.0, 1.0, 1.0]])
    correct = np.concatenate([rng.random(50) < 0.5, [False, True, False]])
    assert brier_score(p, correct=correct) == pytest.approx(brier_score_loss(correct, p))
    assert log_loss(p, correct=correct) == pytest.approx(reference_log_loss(correct, p))


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match=r"probability must lie in \[0, 1\]; row 1 is 1\.5"):
        brier_score([0.5, 1.5], correct=[1, 0])
    with pytest.raises(InvalidInputError, match="probability must not be NaN"):
        brier_score([np.nan], correct=[1])
    with pytest.raises(InvalidInputError, match="correct must be booleans"):
        brier_score([0.5], correct=[2])
    with pytest.raises(InvalidInputError, match="probability has 2, correct has 1"):
        brier_score([0.5, 0.5], correct=[1])
    with pytest.raises(InvalidParameterError, match="bins"):
        reliability_diagram([0.5], correct=[1], bins=0)
    with pytest.raises(InvalidParameterError, match="strategy"):
        reliability_diagram([0.5], correct=[1], strategy="equal")


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 300), st.integers(1, 60))
def test_pooled_bins_hold_enough_probes_and_lose_none(seed: int, n: int, fewest: int) -> None:
    rng = np.random.default_rng(seed)
    p = rng.random(n) ** 3
    diagram = reliability_diagram(p, correct=rng.random(n) < p)
    pooled = diagram.pooled(fewest)
    assert pooled.count.sum() == n
    assert (pooled.count >= min(fewest, n)).all()
    assert pooled.predicted @ pooled.count == pytest.approx(p.sum())
    assert (pooled.edges[1:, 0] >= pooled.edges[:-1, 1]).all()
    assert set(pooled.edges[:, 0]) <= set(diagram.edges[:, 0])


def test_wilson_intervals_cover_the_true_share_about_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    covered = []
    for _ in range(400):
        diagram = reliability_diagram(np.full(50, 0.9), correct=rng.random(50) < 0.9)
        low, high = diagram.intervals(0.95)[0]
        covered.append(low <= 0.9 <= high)
    assert 0.91 < np.mean(covered) <= 0.99


def test_the_squared_error_of_right_probabilities_is_zero_on_average_though_people_answer_alike() -> None:
    rng = np.random.default_rng(0)
    found = {"by person": [], "by answer": []}  # type: ignore[var-annotated]
    for _ in range(200):
        person = np.repeat(np.arange(60), 5)
        p = np.repeat(rng.random(60), 5)
        right = np.repeat(rng.random(60), 5) < p  # all five answers of a person are right, or none
        found["by person"].append(squared_calibration_error(p, correct=right, person=person, bins=5))
        found["by answer"].append(squared_calibration_error(p, correct=right, bins=5))
    mean, spread = np.mean(found["by person"]), np.std(found["by person"]) / np.sqrt(200)
    assert abs(mean) < 4 * spread
    assert np.mean(found["by answer"]) > 4 * spread, "counting answers takes their agreement for an error"


def test_the_squared_error_finds_an_error_that_is_there() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(20_000) * 0.8
    right = rng.random(20_000) < p + 0.1
    assert squared_calibration_error(p, correct=right) == pytest.approx(0.01, abs=0.002)
