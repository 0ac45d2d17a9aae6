"""Error versus discard: only the probes an error concerns take part."""

import math

import numpy as np
import pytest

from holue.errors import InvalidInputError, InvalidParameterError
from holue.evaluation.metrics.discard import error_versus_discard
from holue.evaluation.metrics.undefined import UndefinedMetricWarning


def test_by_hand():
    # Mated, by quality: miss, right, miss, right. The non-mated probe of quality 0 takes no part.
    edc = error_versus_discard(
        [0, 1, 2, 3, 4],
        mated=[0, 1, 1, 1, 1],
        accepted=[1, 0, 1, 1, 1],
        correct_subject=[0, 0, 1, 0, 1],
        max_discard=0.5,
    )
    assert edc.fractions.tolist() == [0, 0.25, 0.5]
    assert edc.error == pytest.approx([1 / 2, 1 / 3, 1 / 2])
    assert edc.best_error == pytest.approx([1 / 2, 1 / 3, 0])
    assert edc.area == pytest.approx(0.25 * (1 / 4 + 1 / 3 + 1 / 4))
    assert edc.best_area == pytest.approx(0.25 * (1 / 4 + 1 / 3))
    assert edc.relative_area == pytest.approx((edc.area - edc.best_area) / (0.25 - edc.best_area))


@pytest.mark.parametrize("metric", ["fnir", "fpir", "error_rate", "false_rejection_rate", "misidentification_rate"])
def test_ties_and_the_order_of_the_input_do_not_matter(metric):
    rng = np.random.default_rng(0)
    flags = {name: rng.random(300) < 0.7 for name in ("mated", "accepted", "correct_subject")}
    quality = rng.integers(0, 5, 300)
    shuffle = rng.permutation(300)
    first = error_versus_discard(quality, **flags, metric=metric)
    second = error_versus_discard(
        quality[shuffle], **{name: flag[shuffle] for name, flag in flags.items()}, metric=metric
    )
    np.testing.assert_array_equal(first.error, second.error)
    assert first.relative_area == second.relative_area
    # Broken at random and averaged, ties give the same curve: 400 draws of a share known to about 1/200.
    broken = [
        error_versus_discard(quality + rng.uniform(0, 0.5, 300), **flags, metric=metric).error for _ in range(400)
    ]
    np.testing.assert_allclose(np.mean(broken, axis=0), first.error, atol=0.005)


def test_blind_discarding_has_relative_area_one_and_the_best_zero():
    rng = np.random.default_rng(1)
    flags = {name: rng.random(300) < 0.7 for name in ("mated", "accepted", "correct_subject")}
    found = flags["accepted"] & flags["correct_subject"]
    assert error_versus_discard(np.ones(300), **flags).relative_area == pytest.approx(1)
    assert error_versus_discard(found, **flags).relative_area == pytest.approx(0)


def test_no_errors_and_no_probes_are_nan_with_a_reason():
    right = {"mated": [1] * 10, "accepted": [1] * 10, "correct_subject": [1] * 10}
    with pytest.warns(UndefinedMetricWarning, match="relative area of fnir is undefined: there is no error"):
        edc = error_versus_discard(range(10), **right)
    assert edc.area == 0
    assert math.isnan(edc.relative_area)
    with pytest.warns(UndefinedMetricWarning, match="fpir is undefined: there is no non-mated probe"):
        assert math.isnan(error_versus_discard(range(10), **right, metric="fpir").area)
    with pytest.warns(UndefinedMetricWarning, match="not one probe is discarded"):
        error_versus_discard([1, 2], mated=[1, 1], accepted=[1, 0], correct_subject=[1, 0])


def test_bad_input_is_named():
    right = {"mated": [1, 0], "accepted": [1, 0], "correct_subject": [1, 0]}
    with pytest.raises(InvalidParameterError, match=r"metric='f1' is not an error rate; choose from fpir"):
        error_versus_discard([1, 2], **right, metric="f1")
    with pytest.raises(InvalidParameterError, match="max_discard must lie in"):
        error_versus_discard([1, 2], **right, max_discard=0)
    with pytest.raises(InvalidInputError, match="quality has 1"):
        error_versus_discard([1], **right)
