"""Ranks: CMC and FNIR(N, R, T) against a loop over probes."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.errors import InvalidInputError, InvalidParameterError, InvalidSubjectsError
from holue.evaluation.metrics.ranks import NOT_RETURNED, cmc, fnir_at_rank, subject_rank
from holue.evaluation.metrics.undefined import UndefinedMetricWarning

mated_probes = st.lists(st.tuples(st.integers(0, 5), st.integers(-3, 3)), min_size=1, max_size=30)


@settings(deadline=None)
@given(mated_probes, st.integers(1, 7), st.integers(-4, 4))
def test_a_miss_is_a_subject_beyond_the_rank_or_below_the_threshold(probes, max_rank, threshold):
    misses = 0
    for rank, score in probes:
        in_list = 1 <= rank <= max_rank
        if not (in_list and score >= threshold):
            misses += 1
    rank, score = zip(*probes)
    value = fnir_at_rank(rank, score, max_rank=max_rank, threshold=threshold)
    assert value == pytest.approx(misses / len(probes), abs=1e-15)


@settings(deadline=None)
@given(mated_probes, st.integers(1, 7))
def test_cmc_is_one_minus_fnir_without_a_threshold(probes, max_rank):
    rank, score = zip(*probes)
    curve = cmc(rank, max_rank=max_rank)
    assert curve == pytest.approx([1 - fnir_at_rank(rank, score, max_rank=r + 1) for r in range(max_rank)])
    assert (np.diff(curve) >= 0).all()


def test_the_rank_is_the_place_of_the_own_subject():
    candidates = np.array([[5, 6, 7], [6, 5, 7], [7, 6, 1]])
    assert subject_rank(candidates, [5, 5, 5]).tolist() == [1, 2, NOT_RETURNED]
    assert subject_rank(np.empty((2, 0), dtype=int), [5, 6]).tolist() == [NOT_RETURNED] * 2
    assert subject_rank(np.array([["a", None]], dtype=object), ["a"]).tolist() == [1]


def test_the_threshold_itself_is_reached():
    assert fnir_at_rank([1], [0.5], threshold=0.5) == 0.0


def test_no_mated_probes_is_nan_with_a_reason():
    with pytest.warns(UndefinedMetricWarning, match="there is no mated probe"):
        assert math.isnan(fnir_at_rank([], []))
    with pytest.warns(UndefinedMetricWarning, match="there is no mated probe"):
        assert np.isnan(cmc([], max_rank=3)).tolist() == [True] * 3


def test_bad_input_is_named():
    with pytest.raises(InvalidInputError, match=r"rank must be a whole number.*row 1 is -1"):
        cmc([1, -1], max_rank=2)
    with pytest.raises(InvalidInputError, match=r"row 0 is 1\.5"):
        cmc([1.5], max_rank=2)
    with pytest.raises(InvalidInputError, match="rank has 2, score has 1"):
        fnir_at_rank([1, 2], [0.5])
    with pytest.raises(InvalidParameterError, match="max_rank"):
        cmc([1], max_rank=0)
    with pytest.raises(InvalidInputError, match="candidates must have a row"):
        subject_rank([1, 2], [1, 2])
    with pytest.raises(InvalidSubjectsError, match="ids of one type"):
        subject_rank([[1, 2]], ["1"])
