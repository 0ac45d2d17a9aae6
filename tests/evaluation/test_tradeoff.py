"""Trade-off: every point against deciding at its threshold."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.errors import InvalidInputError, InvalidParameterError
from holue.evaluation.metrics.rates import METRICS
from holue.evaluation.metrics.tradeoff import det_points
from holue.evaluation.metrics.undefined import UndefinedMetricWarning
from holue.evaluation.outcomes import Outcomes

probes = st.lists(st.tuples(st.integers(0, 4), st.booleans(), st.booleans()), min_size=1, max_size=25)


@pytest.mark.filterwarnings("ignore::holue.evaluation.metrics.undefined.UndefinedMetricWarning")
@settings(deadline=None)
@given(probes, st.randoms(use_true_random=False))
def test_each_point_is_the_error_rates_of_deciding_at_its_threshold(rows, random):
    rows = random.sample(rows, len(rows))
    score, mated, correct_subject = (np.array(column) for column in zip(*rows))
    points = det_points(score, mated=mated, correct_subject=correct_subject)
    assert points.threshold.tolist() == [math.inf, *sorted(set(score.tolist()), reverse=True)]
    for threshold, fpir, fnir in zip(points.threshold, points.fpir, points.fnir):
        counts = np.bincount(Outcomes(mated, score >= threshold, correct_subject).kind, minlength=5)
        assert fpir == pytest.approx(float(METRICS["fpir"].of_counts(counts)), abs=1e-15, nan_ok=True)
        assert fnir == pytest.approx(float(METRICS["fnir"].of_counts(counts)), abs=1e-15, nan_ok=True)


def test_equal_scores_are_accepted_together():
    points = det_points([0.5] * 4, mated=[1, 1, 0, 0], correct_subject=[1, 1, 0, 0])
    assert points.fpir.tolist() == [0, 1]
    assert points.fnir.tolist() == [1, 0]


def test_the_operating_point_is_the_most_lenient_that_keeps_the_fpir():
    score = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4]
    mated = [1, 0, 1, 0, 0, 0]
    points = det_points(score, mated=mated, correct_subject=mated)
    assert points.at_fpir(0.0) == (0.9, 0.0, 0.5)
    assert points.at_fpir(0.25) == (0.7, 0.25, 0.0)
    assert points.at_fpir(1.0) == (0.4, 1.0, 0.0)
    assert points.detection_identification_rate[-1] == 1.0


def test_a_rate_without_probes_is_nan_with_a_reason():
    with pytest.warns(UndefinedMetricWarning, match="fpir is undefined: there is no non-mated probe"):
        points = det_points([0.5, 0.6], mated=[1, 1], correct_subject=[1, 1])
    assert np.isnan(points.fpir).all()
    assert points.fnir.tolist() == [1, 0.5, 0]
    with pytest.warns(UndefinedMetricWarning, match="operating point"):
        assert math.isnan(points.at_fpir(0.1)[0])


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match="score must not be NaN; row 0"):
        det_points([np.nan], mated=[1], correct_subject=[1])
    with pytest.raises(InvalidInputError, match=r"score must be below \+inf.*row 1"):
        det_points([0, np.inf], mated=[1, 0], correct_subject=[1, 0])
    with pytest.raises(InvalidInputError, match="score has 1, mated has 2"):
        det_points([0.1], mated=[1, 0], correct_subject=[1, 0])
    points = det_points([0.5, 0.6], mated=[1, 0], correct_subject=[1, 0])
    with pytest.raises(InvalidParameterError, match="fpir must lie in"):
        points.at_fpir(2)
