"""Intervals: replicates are the metric of the resampled probes, and cover as promised."""

import numpy as np
import pytest

from holue.errors import InvalidInputError, InvalidParameterError
from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.evaluation.intervals.intervals import (
    Bootstrapped,
    bootstrap_metric,
    bootstrap_prr,
    bootstrap_statistic,
    paired_difference,
)
from holue.evaluation.metrics.rates import METRICS, metric_value
from holue.evaluation.metrics.rejection import prediction_rejection
from holue.evaluation.metrics.undefined import UndefinedMetricWarning


def world(n, n_subjects, rng):
    """Probes whose errors are likelier at low quality; whole subjects are mated or not, easy or hard."""
    subject = rng.integers(0, n_subjects, n)
    mated = (rng.random(n_subjects) < 0.6)[subject]
    quality = rng.normal(size=n) + rng.normal(size=n_subjects)[subject]
    p_error = 0.4 / (1 + np.exp(2 * quality))
    accepted = np.where(mated, rng.random(n) > p_error, rng.random(n) < p_error)
    flags = {"mated": mated, "accepted": accepted, "correct_subject": rng.random(n) > p_error / 2}
    return quality, flags, subject


def rows_of(flags, rows):
    return {name: flag[rows] for name, flag in flags.items()}


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_each_replicate_is_the_metric_of_the_resampled_probes(metric):
    _, flags, subject = world(60, 15, np.random.default_rng(0))
    resamples = SubjectBootstrap.draw(subject, n_resamples=20, rng=0)
    result = bootstrap_metric(metric, **flags, resamples=resamples)
    assert result.estimate == metric_value(metric, **flags)
    for resample, value in enumerate(result.replicates):
        again = rows_of(flags, resamples.probes(resample))
        assert value == pytest.approx(metric_value(metric, **again))


@pytest.mark.parametrize("metric", ["f1", "fnir", "fpir", "misidentifications", "error_rate"])
@pytest.mark.parametrize("points", [None, 20])
@pytest.mark.parametrize("decimals", [8, 0])
@pytest.mark.parametrize("prr", ["counted", "paper"])
def test_each_replicate_is_the_ratio_of_the_resampled_probes(metric, points, decimals, prr):
    quality, flags, subject = world(300, 80, np.random.default_rng(1))
    quality = quality.round(decimals)
    resamples = SubjectBootstrap.draw(subject, n_resamples=15, rng=0)
    result = bootstrap_prr(quality, **flags, resamples=resamples, metric=metric, points=points, prr=prr)
    for resample, value in enumerate(result.replicates):
        rows = resamples.probes(resample)
        again = prediction_rejection(quality[rows], **rows_of(flags, rows), metric=metric, points=points, prr=prr)
        # A replicate's curve may be off by 1e-4 in ties, and the ratio divides areas by areas of 0.05 or so.
        assert value == pytest.approx(again.ratio, abs=1e-3, nan_ok=True)
        no_ties = ("misidentifications", "error_rate", *(["f1"] if prr == "paper" else []))
        if decimals == 8 and metric in no_ties:
            # No tie matters here, not even among the oracle's errors or in blind filtering: the same sums, in the same order.
            assert value == pytest.approx(again.ratio, abs=1e-10, nan_ok=True)


def test_any_function_of_the_rows_can_be_resampled():
    quality, flags, subject = world(100, 20, np.random.default_rng(2))
    resamples = SubjectBootstrap.draw(subject, n_resamples=30, rng=0)
    slow = bootstrap_statistic(
        "PRR",
        lambda rows: prediction_rejection(quality[rows], **rows_of(flags, rows), metric="accuracy").ratio,
        resamples,
    )
    fast = bootstrap_prr(quality, **flags, resamples=resamples, metric="accuracy")
    np.testing.assert_allclose(slow.replicates, fast.replicates, atol=1e-10)
    assert slow.estimate == fast.estimate


def test_the_order_of_the_input_never_matters():
    rng = np.random.default_rng(3)
    quality, flags, subject = world(120, 30, rng)
    quality = quality.round(0)
    shuffle = rng.permutation(120)
    intervals = []
    for rows in (np.arange(120), shuffle):
        resamples = SubjectBootstrap.draw(subject[rows], n_resamples=50, rng=5)
        intervals.append(bootstrap_prr(quality[rows], **rows_of(flags, rows), resamples=resamples).interval())
    assert intervals[0] == intervals[1]


def test_intervals_are_the_quantiles_of_the_replicates_or_their_mirror():
    resamples = SubjectBootstrap.draw([1, 2], n_resamples=1, rng=0)
    result = Bootstrapped("x", 40.0, np.append(np.arange(101.0), np.nan), resamples)
    percentile, basic = result.interval(0.9), result.basic_interval(0.9)
    assert (percentile.low, percentile.high) == pytest.approx((5, 95))
    assert (basic.low, basic.high) == pytest.approx((80 - 95, 80 - 5))
    assert (percentile.n_resamples, percentile.n_undefined, percentile.estimate) == (102, 1, 40.0)


def test_intervals_over_subjects_cover_where_intervals_over_probes_do_not():
    # Probes of a subject share its fate, so probes are worth far fewer than they number.
    rng = np.random.default_rng(4)
    covered = {"subjects": 0, "probes": 0}
    for _ in range(150):
        subject = np.repeat(np.arange(40), 10)
        found = np.repeat(rng.random(40) < 0.7, 10)
        flags = {"mated": np.ones(400, bool), "accepted": found, "correct_subject": found}
        for name, ids in (("subjects", subject), ("probes", np.arange(400))):
            resamples = SubjectBootstrap.draw(ids, n_resamples=200, rng=rng)
            interval = bootstrap_metric("fnir", **flags, resamples=resamples).interval(0.9)
            covered[name] += interval.low <= 0.3 <= interval.high
    # 150 trials at 0.9: deviation 0.025; percentile intervals of 40 subjects run a little short.
    assert covered["subjects"] / 150 > 0.8
    assert covered["probes"] / 150 < 0.6


def test_pairing_narrows_a_difference():
    quality, flags, subject = world(600, 150, np.random.default_rng(5))
    noisy = quality + np.random.default_rng(6).normal(scale=0.3, size=600)
    resamples = SubjectBootstrap.draw(subject, n_resamples=200, rng=0)
    first = bootstrap_prr(quality, **flags, resamples=resamples)
    second = bootstrap_prr(noisy, **flags, resamples=resamples)
    difference = paired_difference(first, second)
    assert difference.estimate == first.estimate - second.estimate
    assert difference.name == " - ".join(["prediction rejection ratio of f1"] * 2)
    unpaired = np.hypot(first.replicates.std(), second.replicates.std())
    assert difference.replicates.std() < 0.8 * unpaired
    assert paired_difference(first, first).interval().high == 0


def test_different_resamples_cannot_be_paired():
    _, flags, subject = world(50, 10, np.random.default_rng(7))
    first, second = (
        bootstrap_metric("f1", **flags, resamples=SubjectBootstrap.draw(subject, n_resamples=5, rng=seed))
        for seed in (0, 1)
    )
    with pytest.raises(InvalidInputError, match="different resamples"):
        paired_difference(first, second)


def test_what_has_no_interval_is_nan_with_a_reason():
    one = SubjectBootstrap.draw([1, 1], n_resamples=5, rng=0)
    flags = {"mated": [1, 1], "accepted": [1, 0], "correct_subject": [1, 0]}
    with pytest.warns(UndefinedMetricWarning, match="interval of fnir is undefined: there is only one subject"):
        assert np.isnan(bootstrap_metric("fnir", **flags, resamples=one).interval().low)
    with pytest.warns(UndefinedMetricWarning, match="fpir is undefined: there is no non-mated probe"):
        nothing = bootstrap_metric("fpir", **flags, resamples=one)
    with pytest.warns(UndefinedMetricWarning, match="the estimate itself is undefined"):
        assert np.isnan(nothing.interval().high)
    right = {"mated": [1, 1], "accepted": [1, 1], "correct_subject": [1, 1]}
    with pytest.warns(UndefinedMetricWarning, match="every decision is correct"):
        bootstrap_prr([1, 2], **right, resamples=one)


def test_resamples_without_a_value_are_counted_and_left_out():
    # One non-mated probe among four subjects: about (3/4)^4 of the resamples have none.
    resamples = SubjectBootstrap.draw([1, 2, 3, 4], n_resamples=1000, rng=0)
    flags = {"mated": [1, 1, 1, 0], "accepted": [1, 1, 1, 0], "correct_subject": [1, 1, 1, 0]}
    interval = bootstrap_metric("fpir", **flags, resamples=resamples).interval()
    assert (interval.low, interval.high) == (0, 0)
    assert interval.n_undefined == pytest.approx(1000 * 0.75**4, abs=80)


def test_bad_input_is_named():
    _, flags, subject = world(50, 10, np.random.default_rng(8))
    resamples = SubjectBootstrap.draw(subject[:40], n_resamples=5, rng=0)
    with pytest.raises(InvalidInputError, match="mated has 50, the subjects of resamples has 40"):
        bootstrap_metric("f1", **flags, resamples=resamples)
    whole = SubjectBootstrap.draw(subject, n_resamples=5, rng=0)
    with pytest.raises(InvalidInputError, match="quality must not be NaN"):
        bootstrap_prr(np.full(50, np.nan), **flags, resamples=whole)
    with pytest.raises(InvalidParameterError, match="level must lie in"):
        bootstrap_metric("f1", **flags, resamples=whole).interval(95)
