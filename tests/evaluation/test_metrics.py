"""Metrics: each against a loop over probes, by hand, and undefined with a reason."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.errors import InvalidParameterError
from holue.evaluation.metrics import rates as metrics
from holue.evaluation.metrics.undefined import UndefinedMetricWarning

probes = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=1, max_size=30)


def slow(name, rows):
    """The definitions, counted one probe at a time."""
    tp = fp = rejected = misidentified = tn = 0
    for mated, accepted, correct_subject in rows:
        if mated and not accepted:
            rejected += 1
        elif mated and not correct_subject:
            misidentified += 1
        elif mated:
            tp += 1
        elif accepted:
            fp += 1
        else:
            tn += 1
    fn = rejected + misidentified

    def ratio(top, bottom):
        return top / bottom if bottom else math.nan

    return {
        "fpir": ratio(fp, fp + tn),
        "fnir": ratio(fn, fn + tp),
        "dir": ratio(tp, fn + tp),
        "precision": ratio(tp, tp + fp),
        "recall": ratio(tp, tp + fn),
        "f1": ratio(tp, tp + (fp + fn) / 2),
        "accuracy": ratio(tp + tn, len(rows)),
        "error_rate": ratio(fp + fn, len(rows)),
        "false_rejection_rate": ratio(rejected, fn + tp),
        "misidentification_rate": ratio(misidentified, fn + tp),
        "false_acceptances": fp,
        "false_rejections": rejected,
        "misidentifications": misidentified,
    }[name]


@pytest.mark.filterwarnings("ignore::holue.evaluation.metrics.undefined.UndefinedMetricWarning")
@settings(deadline=None)
@given(probes, st.sampled_from(sorted(metrics.METRICS)))
def test_every_metric_agrees_with_counting_probe_by_probe(rows, name):
    mated, accepted, correct_subject = (list(column) for column in zip(*rows))
    value = metrics.metric_value(name, mated=mated, accepted=accepted, correct_subject=correct_subject)
    assert value == pytest.approx(slow(name, rows), abs=1e-15, nan_ok=True)


def test_by_hand():
    # 5 mated: 2 right, 2 rejected, 1 as another; 4 non-mated: 1 accepted.
    mated = [1, 1, 1, 1, 1, 0, 0, 0, 0]
    accepted = [1, 1, 0, 0, 1, 1, 0, 0, 0]
    correct_subject = [1, 1, 0, 1, 0, 0, 0, 0, 0]
    trio = (mated, accepted, correct_subject)
    assert metrics.fpir(mated, accepted) == metrics.fpir(*trio) == 1 / 4
    assert metrics.fnir(*trio) == 3 / 5
    assert metrics.detection_identification_rate(*trio) == metrics.recall(*trio) == 2 / 5
    assert metrics.precision(*trio) == 2 / 3
    assert metrics.f1(*trio) == 2 * (2 / 3 * 2 / 5) / (2 / 3 + 2 / 5)
    assert metrics.error_rate(*trio) == 4 / 9
    assert metrics.accuracy(*trio) == 5 / 9


@pytest.mark.parametrize(
    ("compute", "mated", "accepted", "reason"),
    [
        (metrics.fpir, [1], [1], "fpir is undefined: there is no non-mated probe"),
        (metrics.fnir, [0], [1], "fnir is undefined: there is no mated probe"),
        (metrics.recall, [0], [1], "recall is undefined: there is no mated probe"),
        (metrics.precision, [1], [0], "no true positive and no false acceptance"),
        (metrics.f1, [0], [0], "f1 is undefined: there is neither a mated nor an accepted probe"),
    ],
)
def test_an_empty_denominator_is_nan_with_a_reason(compute, mated, accepted, reason):
    with pytest.warns(UndefinedMetricWarning, match=reason):
        assert math.isnan(compute(mated, accepted, [0]))


def test_f1_is_zero_when_there_are_errors_but_no_true_positive():
    assert metrics.f1([1, 0], [0, 1], [0, 0]) == 0.0


def test_an_unknown_metric_is_refused_with_the_known_ones():
    with pytest.raises(InvalidParameterError, match=r"metric='F2' is not known; choose from f1, fpir, fnir"):
        metrics.metric_value("F2", mated=[1], accepted=[1], correct_subject=[1])


def test_many_counts_at_once_are_silent_where_undefined():
    counts = np.array([[1, 0, 1, 0, 0], [0, 0, 0, 0, 3]])
    assert metrics.METRICS["f1"].of_counts(counts) == pytest.approx([2 / 3, math.nan], nan_ok=True)
