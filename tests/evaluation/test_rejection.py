"""Rejection curves and ratios: against brute force over all orders, by hand, and whatever the input's order."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.errors import InvalidInputError, InvalidParameterError
from holue.evaluation.metrics.rates import METRICS
from holue.evaluation.metrics.rejection import (
    oracle_curve,
    prediction_rejection,
    prediction_rejection_ratio,
    random_curve,
    rejection_curve,
    rejection_grid,
)
from holue.evaluation.metrics.undefined import UndefinedMetricWarning
from holue.evaluation.outcomes import Outcomes

names = st.sampled_from(sorted(METRICS))


def trio(rows):
    mated, accepted, correct_subject = (list(column) for column in zip(*rows))
    return {"mated": mated, "accepted": accepted, "correct_subject": correct_subject}


def silent_metric(name, rows):
    counts = np.zeros(5, dtype=int)
    if rows:
        counts = np.bincount(Outcomes(*zip(*rows)).kind, minlength=5)
    return float(METRICS[name].of_counts(counts))


def orders_consistent_with(quality):
    """Every order of the probes by quality, ties in every order."""
    groups = [[i for i, q in enumerate(quality) if q == level] for level in sorted(set(quality))]
    for orders in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield [i for order in orders for i in order]


def brute_curve(quality, rows, name, filtered):
    """Filter in every possible order; average the metric over the orders that have one."""
    curves = [
        [silent_metric(name, [rows[i] for i in order[count:]]) for count in filtered]
        for order in orders_consistent_with(quality)
    ]
    with np.errstate(invalid="ignore"):
        sums, known = np.nansum(curves, axis=0), np.sum(~np.isnan(curves), axis=0)
        return np.where(known > 0, sums / np.maximum(known, 1), np.nan)


small_cases = st.lists(
    st.tuples(st.integers(0, 2), st.booleans(), st.booleans(), st.booleans()), min_size=2, max_size=6
)


@pytest.mark.filterwarnings("ignore::holue.evaluation.metrics.undefined.UndefinedMetricWarning")
@settings(max_examples=60, deadline=None)
@given(small_cases, names)
def test_the_curve_is_the_average_over_every_order_of_the_ties(cases, name):
    quality, rows = [case[0] for case in cases], [case[1:] for case in cases]
    curve = rejection_curve(quality, **trio(rows), metric=name, max_rejection=1.0)
    assert curve.filtered.tolist() == list(range(len(rows)))
    # 1e-7 is what the evaluation of ties promises; small groups are summed exactly.
    expected = brute_curve(quality, rows, name, curve.filtered)
    np.testing.assert_allclose(curve.values, expected, atol=1e-12, rtol=0)


@settings(max_examples=40, deadline=None)
@given(small_cases)
def test_the_ratio_is_the_average_of_the_ratios_of_every_order(cases):
    quality, rows = [case[0] for case in cases], [case[1:] for case in cases]
    result = prediction_rejection(quality, **trio(rows))
    ratios = []
    for order in orders_consistent_with(quality):
        without_ties = np.empty(len(rows))
        without_ties[order] = np.arange(len(rows))
        ratios.append(prediction_rejection(without_ties, **trio(rows)).ratio)
    if not np.isnan(ratios).any():
        assert result.ratio == pytest.approx(np.mean(ratios), abs=1e-10)


def slow_ratio(quality, rows, name, fractions, kept):
    """PRR without ties, straight from its definition, with a loop for every number in it."""

    def area(values):
        return sum((values[i] + values[i + 1]) / 2 * (fractions[i + 1] - fractions[i]) for i in range(len(values) - 1))

    def curve(order):
        return [silent_metric(name, [rows[i] for i in order[len(order) - keep :]]) for keep in kept]

    by_quality = sorted(range(len(rows)), key=lambda i: quality[i])
    correct = Outcomes(*zip(*rows)).correct
    errors_first = [i for i in by_quality if not correct[i]] + [i for i in by_quality if correct[i]]
    start = silent_metric(name, rows)
    unc, oracle, random = area(curve(by_quality)), area(curve(errors_first)), area([start] * len(kept))
    return (unc - random) / (oracle - random)


@pytest.mark.parametrize("name", ["f1", "error_rate", "accuracy"])
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n", [38, 57, 100])
def test_without_ties_the_papers_ratio_is_its_definition_on_both_grids(name, seed, n):
    # F1, accuracy and error rate: the oracle's ties do not matter to them, so the reference may break them.
    rng = np.random.default_rng(seed)
    rows = [tuple(bool(flag) for flag in row) for row in rng.random((n, 3)) < [0.6, 0.6, 0.9]]
    quality = rng.permutation(n).astype(float)
    every = range(n // 2 + 1)
    expected = slow_ratio(quality, rows, name, [j / n for j in every], [n - j for j in every])
    value = prediction_rejection_ratio(quality, **trio(rows), metric=name, prr="paper")
    assert value == pytest.approx(expected, abs=1e-12)
    fractions = np.linspace(0, 0.5, 20)
    kept = [math.floor((1 - f) * n + 1e-9) for f in fractions]
    expected = slow_ratio(quality, rows, name, fractions, kept)
    value = prediction_rejection_ratio(quality, **trio(rows), metric=name, points=20, prr="paper")
    assert value == pytest.approx(expected, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans(), st.booleans()), min_size=2, max_size=40),
    names,
    st.sampled_from([None, 20]),
    st.sampled_from(["counted", "paper"]),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_input_never_matters(cases, name, points, prr, random):
    shuffled = random.sample(cases, len(cases))
    results = [
        prediction_rejection(
            [case[0] for case in given_order],
            **trio([case[1:] for case in given_order]),
            metric=name,
            points=points,
            prr=prr,
        )
        for given_order in (cases, shuffled)
    ]
    assert results[0].reason == results[1].reason
    np.testing.assert_array_equal(results[0].curve.values, results[1].curve.values)
    np.testing.assert_equal(results[0].ratio, results[1].ratio)


def test_by_hand_without_ties():
    # Qualities 1..4; errors at 1 (false rejection) and 3 (false acceptance); F1 = 2TP/(2TP + FP + FN).
    flags = {"mated": [1, 1, 0, 1], "accepted": [0, 1, 1, 1], "correct_subject": [0, 1, 0, 1]}
    result = prediction_rejection([1, 2, 3, 4], **flags, prr="paper")
    assert result.curve.fractions.tolist() == [0, 0.25, 0.5]
    assert result.curve.values == pytest.approx([4 / 6, 4 / 5, 2 / 3])
    assert result.oracle.values == pytest.approx([4 / 6, 4 / 5, 1])
    assert result.random.values == pytest.approx([4 / 6, 4 / 6, 4 / 6])
    # Areas above random: 0.25·(2/15) for the quality; 0.25·(2/15) + 0.125·(1/3) for the oracle.
    assert result.ratio == pytest.approx((0.25 * 2 / 15) / (0.25 * 2 / 15 + 0.125 / 3))


def test_by_hand_where_a_right_rejection_is_not_counted():
    # As above with a right rejection, trusted most: F1 counts four of the five probes, so two are filtered.
    flags = {"mated": [1, 1, 0, 1, 0], "accepted": [0, 1, 1, 1, 0], "correct_subject": [0, 1, 0, 1, 0]}
    result = prediction_rejection([1, 2, 3, 4, 5], **flags)
    assert result.curve.fractions == pytest.approx([0, 0.2, 0.4])
    assert result.curve.values == pytest.approx([4 / 6, 4 / 5, 2 / 3])
    assert result.oracle.values == pytest.approx([4 / 6, 4 / 5, 1])
    # Blind, one filtered: of five equally likely ones two are errors (F1 4/5), two true positives (2/4), one is neither.
    assert result.random.values[:2] == pytest.approx([4 / 6, (2 * 4 / 5 + 2 * 2 / 4 + 4 / 6) / 5])


def test_by_hand_with_a_tie():
    # The two least reliable are tied: a true positive and an error. Three more true positives stay.
    flags = {"mated": [1] * 5, "accepted": [1, 0, 1, 1, 1], "correct_subject": [1, 0, 1, 1, 1]}
    curve = rejection_curve([0, 0, 1, 2, 3], **flags)
    # After one: F1 is 6/7 (the true positive went) or 1 (the error went), each in half of the orders.
    assert curve.values == pytest.approx([8 / 9, (6 / 7 + 1) / 2, 1])


def test_tied_counts_fall_in_a_line():
    flags = {"mated": [1] * 4, "accepted": [1] * 4, "correct_subject": [0, 0, 1, 1]}
    curve = rejection_curve([7] * 4, **flags, metric="misidentifications", max_rejection=1.0)
    assert curve.values.tolist() == [2, 1.5, 1, 0.5]


def test_the_oracle_has_ratio_one_and_its_reverse_is_negative():
    rng = np.random.default_rng(0)
    flags = dict(zip(("mated", "accepted", "correct_subject"), rng.random((3, 200)) < 0.7))
    correct = Outcomes(**flags).correct
    for name in METRICS:
        assert prediction_rejection_ratio(correct, **flags, metric=name) == pytest.approx(1)
        assert prediction_rejection_ratio(~correct, **flags, metric=name) < 0


def test_a_constant_quality_is_as_good_as_blind():
    rng = np.random.default_rng(1)
    for n in (200, 2000):
        flags = dict(zip(("mated", "accepted", "correct_subject"), rng.random((3, n)) < 0.8))
        for name, metric in METRICS.items():
            assert prediction_rejection_ratio(np.zeros(n), **flags, metric=name) == 0
            ratio = prediction_rejection_ratio(np.zeros(n), **flags, metric=name, prr="paper")
            # The mean of a ratio differs from the ratio of means by O(1/n); a count and a share of all do not.
            exact = metric.is_count or name in ("error_rate", "accuracy")
            assert abs(ratio) <= (1e-10 if exact else 2 / n)


def test_blind_filtering_holds_a_rate_and_lowers_a_count():
    flags = {"mated": [1] * 4, "accepted": [1] * 4, "correct_subject": [0, 0, 1, 1]}
    assert random_curve(**flags, metric="fnir").values.tolist() == [0.5] * 3
    assert random_curve(**flags, metric="misidentifications").values.tolist() == [2, 1.5, 1]


def test_monotone_changes_of_quality_change_nothing():
    rng = np.random.default_rng(2)
    flags = dict(zip(("mated", "accepted", "correct_subject"), rng.random((3, 50)) < 0.7))
    quality = rng.normal(size=50).round(1)
    expected = prediction_rejection_ratio(quality, **flags)
    assert prediction_rejection_ratio(np.exp(quality), **flags) == expected
    assert prediction_rejection_ratio(np.where(quality == quality.max(), np.inf, quality), **flags) == expected
    assert prediction_rejection_ratio(np.unique(quality, return_inverse=True)[1], **flags) == expected


def test_the_grid_is_every_count_or_the_papers():
    for n in range(1, 300):
        fractions, filtered = rejection_grid(n, 0.5, None)
        assert filtered.tolist() == list(range(n // 2 + 1))[:n]
        assert fractions == pytest.approx(filtered / n)
        fractions, filtered = rejection_grid(n, 0.5, 20)
        assert len(filtered) == 20
        assert all(
            gone == n - max(math.floor(round((1 - fraction) * n, 6)), 1) for gone, fraction in zip(filtered, fractions)
        )


@pytest.mark.parametrize("fraction", [0.29, 0.57, 0.07, 0.1, 0.3])
def test_rounding_does_not_cost_the_grid_a_probe(fraction):
    # 0.29·100 is 28.999999999999996 in doubles.
    assert rejection_grid(100, fraction, None)[1][-1] == round(100 * fraction)


def test_no_errors_is_nan_with_a_reason():
    flags = {"mated": [1, 1, 0], "accepted": [1, 1, 0], "correct_subject": [1, 1, 0]}
    with pytest.warns(UndefinedMetricWarning, match="ratio of f1 is undefined: every decision is correct"):
        assert math.isnan(prediction_rejection_ratio([1, 2, 3], **flags))


def test_errors_of_another_kind_are_nan_with_a_reason():
    flags = {"mated": [1, 1, 1, 0], "accepted": [1, 1, 0, 0], "correct_subject": [1, 1, 0, 0]}
    with pytest.warns(UndefinedMetricWarning, match="no error counts against precision"):
        assert math.isnan(prediction_rejection_ratio([4, 3, 2, 1], **flags, metric="precision"))


def test_no_mated_probes_is_nan_with_a_reason():
    flags = {"mated": [0, 0, 0], "accepted": [1, 0, 0], "correct_subject": [0, 0, 0]}
    with pytest.warns(UndefinedMetricWarning, match="f1 is 0 whatever is filtered"):
        assert math.isnan(prediction_rejection_ratio([1, 2, 3], **flags))


def test_no_non_mated_probes_leaves_f1_its_ratio():
    flags = {"mated": [1, 1, 1], "accepted": [0, 1, 1], "correct_subject": [0, 1, 1]}
    assert prediction_rejection_ratio([1, 2, 3], **flags) == 1.0


def test_a_metric_without_a_value_from_the_start_says_what_is_missing():
    flags = {"mated": [0, 0], "accepted": [1, 0], "correct_subject": [0, 0]}
    with pytest.warns(UndefinedMetricWarning, match="there is no mated probe"):
        assert math.isnan(prediction_rejection_ratio([1, 2], **flags, metric="fnir"))


def test_a_metric_that_loses_its_value_along_the_curve_says_where():
    # Both mated probes are the least reliable: FNIR has nothing to divide by once they are filtered.
    flags = {"mated": [1, 1, 0, 0], "accepted": [1, 0, 0, 0], "correct_subject": [1, 0, 0, 0]}
    with pytest.warns(UndefinedMetricWarning, match=r"from a filtered fraction of 0\.5 on, there is no mated"):
        curve = rejection_curve([1, 2, 3, 4], **flags, metric="fnir")
    np.testing.assert_array_equal(curve.values, [0.5, 1, np.nan])
    assert curve.undefined_from == 0.5
    with pytest.warns(
        UndefinedMetricWarning, match=r"fnir has no value once the quality has filtered a fraction of 0\.5"
    ):
        assert math.isnan(prediction_rejection_ratio([1, 2, 3, 4], **flags, metric="fnir", prr="paper"))
    prediction_rejection_ratio([1, 2, 3, 4], **flags, metric="fnir", prr="paper", max_rejection=0.25)
    assert prediction_rejection_ratio([1, 2, 3, 4], **flags, metric="fnir") < 0, "it filters the right answer first"


def test_one_probe_cannot_be_filtered():
    with pytest.warns(UndefinedMetricWarning, match="not one of 1 probes is filtered"):
        assert math.isnan(prediction_rejection_ratio([1], mated=[0], accepted=[1], correct_subject=[0], metric="fpir"))


def probes(*, true_positives, true_negatives, false_acceptances, false_rejections):
    """Flags of that many probes of each kind, in this order."""
    counts = (true_positives, true_negatives, false_acceptances, false_rejections)
    kinds = np.repeat(["tp", "tn", "fa", "fr"], counts)
    mated, accepted = np.isin(kinds, ["tp", "fr"]), np.isin(kinds, ["tp", "fa"])
    return {"mated": mated, "accepted": accepted, "correct_subject": mated}


@pytest.mark.parametrize("found", [10, 9])
def test_a_quality_that_finds_the_errors_and_trusts_right_rejections_most_is_nearly_perfect(found):
    flags = probes(true_positives=300, true_negatives=1000, false_acceptances=4, false_rejections=6)
    rng = np.random.default_rng(0)
    quality = np.where(flags["accepted"], 1.0, 2.0) + rng.random(1310)
    errors = np.flatnonzero(flags["mated"] != flags["accepted"])
    quality[errors] = 4.0
    quality[errors[:found]] = rng.random(found)
    papers = prediction_rejection(quality, **flags, prr="paper")
    # The fault: once the true positives are filtered, F1 of the rest is undefined, or 0 for one error among them.
    assert math.isnan(papers.ratio) if found == 10 else papers.ratio < -1
    ratios = [prediction_rejection_ratio(quality, **flags, metric=name) for name in ("f1", "accuracy")]
    assert ratios[0] == pytest.approx(ratios[1], abs=0.01)
    assert min(ratios) > 0.85


counts_of_kinds = st.fixed_dictionaries(
    {
        "true_positives": st.integers(0, 12),
        "true_negatives": st.integers(0, 12),
        "false_acceptances": st.integers(0, 4),
        "false_rejections": st.integers(0, 4),
    }
)
headline = st.sampled_from(["f1", "accuracy"])


@settings(max_examples=100, deadline=None)
@given(counts_of_kinds, headline, st.sampled_from([None, 20]), st.randoms(use_true_random=False))
def test_the_ratio_is_defined_wherever_an_error_and_a_right_answer_are_counted_and_says_why_not(
    counts, name, points, random
):
    flags = probes(**counts)
    n = len(flags["mated"])
    if n == 0:
        return
    result = prediction_rejection(random.sample(range(n), n), **flags, metric=name, points=points)
    errors = counts["false_acceptances"] + counts["false_rejections"]
    right = counts["true_positives"] + (counts["true_negatives"] if name == "accuracy" else 0)
    assert math.isfinite(result.ratio) == (errors > 0 and right > 0)
    assert (result.reason is None) == math.isfinite(result.ratio)


@settings(max_examples=100, deadline=None)
@given(counts_of_kinds, headline, st.randoms(use_true_random=False))
def test_every_order_with_the_errors_first_has_ratio_one(counts, name, random):
    flags = probes(**counts)
    correct = flags["mated"] == flags["accepted"]
    n = len(correct)
    if n == 0:
        return
    result = prediction_rejection(np.array(random.sample(range(n), n)) + n * correct, **flags, metric=name)
    assert result.reason is not None or result.ratio == pytest.approx(1, abs=1e-9)


@settings(max_examples=100, deadline=None)
@given(counts_of_kinds, headline, st.randoms(use_true_random=False))
def test_an_order_that_finds_errors_no_later_than_blind_filtering_of_the_counted_is_never_negative(
    counts, name, random
):
    flags = probes(**counts)
    correct = flags["mated"] == flags["accepted"]
    counted = np.ones_like(correct) if name == "accuracy" else flags["mated"] | flags["accepted"]
    errors, right = ([i for i in random.sample(range(len(correct)), len(correct)) if correct[i] == of] for of in (0, 1))
    n_errors, n_counted, order = len(errors), int(counted.sum()), []
    while errors or right:
        # After j filtered probes at least the share j/C of the errors is found; which right ones go is left to chance.
        due = n_errors * (len(order) + 1) / max(n_counted, 1)
        behind = n_errors - len(errors) < due
        order.append((errors if errors and (behind or not right) else right).pop())
    if not order:
        return
    quality = np.empty(len(order))
    quality[order] = np.arange(len(order))
    result = prediction_rejection(quality, **flags, metric=name)
    assert result.reason is not None or result.ratio >= -1e-9


@pytest.mark.parametrize("name", ["f1", "accuracy", "fpir", "fnir"])
def test_random_orders_have_ratio_zero_in_the_mean(name):
    flags = probes(true_positives=3, true_negatives=2, false_acceptances=1, false_rejections=1)
    ratios = [prediction_rejection(order, **flags, metric=name).ratio for order in itertools.permutations(range(7))]
    # Every order once, so the mean is exact.
    assert np.mean(ratios) == pytest.approx(0, abs=1e-9)


def test_an_unknown_range_is_refused():
    with pytest.raises(InvalidParameterError, match="prr must be 'counted'"):
        prediction_rejection_ratio([1, 2], **GOOD, prr="all")


def test_rare_mated_probes_do_not_undo_the_oracle():
    # Once the error is gone, some orders of the rest leave true negatives only; F1 is 1 in all the others.
    flags = {"mated": [1, 1, *[0] * 8], "accepted": [1, 0, *[0] * 8], "correct_subject": [1, 0, *[0] * 8]}
    assert oracle_curve(**flags).values.tolist() == pytest.approx([2 / 3, 1, 1, 1, 1, 1])


GOOD = {"mated": [1, 0], "accepted": [1, 1], "correct_subject": [1, 0]}


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match="quality must not be NaN; row 1"):
        prediction_rejection_ratio([1, np.nan], **GOOD)
    with pytest.raises(InvalidInputError, match="quality has 3, mated has 2"):
        prediction_rejection_ratio([1, 2, 3], **GOOD)
    with pytest.raises(InvalidInputError, match="quality must be real numbers"):
        prediction_rejection_ratio(["a", "b"], **GOOD)
    with pytest.raises(InvalidInputError, match="is empty"):
        prediction_rejection_ratio([], mated=[], accepted=[], correct_subject=[])
    with pytest.raises(InvalidInputError, match="accepted must be booleans"):
        prediction_rejection_ratio([1, 2], **{**GOOD, "accepted": [1, 3]})


@pytest.mark.parametrize("setting", [{"max_rejection": 0}, {"max_rejection": 1.5}, {"max_rejection": math.nan}])
def test_a_fraction_outside_its_range_is_refused(setting):
    with pytest.raises(InvalidParameterError, match="max_rejection must lie in"):
        prediction_rejection_ratio([1, 2], **GOOD, **setting)


@pytest.mark.parametrize("points", [0, 1, 2.5, True])
def test_a_grid_of_less_than_two_points_is_refused(points):
    with pytest.raises(InvalidParameterError, match="points must be a whole number"):
        prediction_rejection_ratio([1, 2], **GOOD, points=points)
