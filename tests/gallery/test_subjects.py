import copy
import pickle

import numpy as np
import pytest

from holue.errors import InvalidSubjectsError
from holue.gallery.gallery import Gallery
from holue.gallery.subjects import UNKNOWN, as_labels, as_subjects


def test_unknown_is_one_value_through_copies_and_numpy() -> None:
    assert copy.deepcopy(UNKNOWN) is UNKNOWN
    assert pickle.loads(pickle.dumps(UNKNOWN)) is UNKNOWN
    labels = np.where([True, False], np.array([3, 4]), UNKNOWN)
    assert labels.tolist() == [3, UNKNOWN]
    assert (labels == UNKNOWN).tolist() == [False, True]


@pytest.mark.parametrize("ids", [[1, 2], np.array([1, 2], dtype=np.uint8), np.array([1, 2], dtype=object)])
def test_whole_numbers_become_int64(ids: object) -> None:
    assert as_subjects(ids).dtype == np.int64


def test_strings_stay_strings() -> None:
    assert as_subjects(np.array(["a", "bb"], dtype=object)).tolist() == ["a", "bb"]


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (["a", 1], "only integers or only strings|one type"),
        (np.array(["a", 1], dtype=object), "int, str"),
        ([1.5, 2.0], "got float"),
        (np.array([1.5, 2.0]), "dtype float64"),
        ([True, False], "got bool"),
        (np.array(["a", None], dtype=object), r"y\[1\] is missing"),
        (np.array(["a", np.nan], dtype=object), r"y\[1\] is missing"),
        (["a", ""], r"y\[1\] is an empty id"),
        ([["a", "b"]], "one-dimensional"),
        ([UNKNOWN, "a"], r"y\[0\] is UNKNOWN"),
    ],
)
def test_bad_ids_are_named(ids: object, says: str) -> None:
    with pytest.raises(InvalidSubjectsError, match=says):
        as_subjects(ids)


def test_a_wrong_count_is_named() -> None:
    with pytest.raises(InvalidSubjectsError, match="2 ids for 3 embeddings"):
        as_subjects(["a", "b"], 3)


def test_labels_separate_the_unknown() -> None:
    subjects, unknown = as_labels(np.array(["a", UNKNOWN, "b"], dtype=object))
    assert unknown.tolist() == [False, True, False]
    assert subjects[~unknown].tolist() == ["a", "b"]
    assert as_labels([UNKNOWN, UNKNOWN])[1].all()


def test_ids_that_differ_by_a_trailing_nul_are_not_fused() -> None:
    for ids in (["ann", "ann\0"], np.array(["ann", "ann\0"], dtype=object), ["ann\0"]):
        with pytest.raises(InvalidSubjectsError, match="NUL"):
            as_subjects(ids)
        with pytest.raises(InvalidSubjectsError, match="NUL"):
            as_labels([*ids, UNKNOWN])
    gallery = Gallery.from_samples(np.eye(2), ["ann", "bob"])
    for ids in ("ann\0", ["ann\0"]):
        with pytest.raises(InvalidSubjectsError, match="NUL"):
            gallery.remove(ids)
    assert as_subjects(["a\0b", "a"]).tolist() == ["a\0b", "a"]
