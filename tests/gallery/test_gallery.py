import numpy as np
import pytest

from holue.errors import (
    GalleryTooSmallError,
    InvalidConcentrationError,
    InvalidEmbeddingsError,
    InvalidSubjectsError,
)
from holue.gallery import gallery as module
from holue.gallery.gallery import Gallery


@pytest.fixture
def three() -> Gallery:
    return Gallery.from_samples(np.eye(3), ["c", "a", "b"])


def test_subjects_are_sorted_and_directions_follow(three: Gallery) -> None:
    assert three.subjects.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(three.directions, np.eye(3)[[1, 2, 0]])


def test_each_change_is_a_new_version_and_leaves_the_old_one_alone(three: Gallery) -> None:
    grown = three.enroll([[1.0, 1.0, 0.0]], ["dora"])
    assert (len(three), len(grown)) == (3, 4)
    assert grown.version > three.version
    assert grown.subjects.tolist() == ["a", "b", "c", "dora"]
    shrunk = grown.remove(["a", "c"])
    assert shrunk.subjects.tolist() == ["b", "dora"]
    np.testing.assert_allclose(shrunk.directions, [[0, 0, 1], [0.5**0.5, 0.5**0.5, 0]])
    assert len(grown) == 4


def test_replacing_renews_the_template(three: Gallery) -> None:
    with pytest.raises(InvalidSubjectsError, match="'a' is enrolled already"):
        three.enroll([[1.0, 1.0, 1.0]], ["a"])
    renewed = three.enroll([[1.0, 1.0, 1.0]], ["a"], replace=True)
    assert len(renewed) == 3
    row = int(renewed.index_of(np.array(["a"]))[0])
    np.testing.assert_allclose(renewed.directions[row], np.full(3, 3**-0.5))


def test_replacing_everyone_is_allowed(three: Gallery) -> None:
    renewed = three.enroll(-np.eye(3), ["a", "b", "c"], replace=True)
    np.testing.assert_allclose(renewed.directions, -np.eye(3))


def test_enrolling_appends_parts_without_copying_full_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL_PART", 2)
    first = Gallery.from_samples(np.eye(4)[:2], [1, 2])
    second = first.enroll(np.eye(4)[2:3], [3])
    third = second.enroll(np.eye(4)[3:], [4])
    assert second.parts[0] is first.parts[0]
    assert [len(p) for p in third.parts] == [2, 2]
    np.testing.assert_array_equal(third.directions, np.eye(4))
    assert [(start, len(block)) for start, block in third.blocks(1)] == [(i, 1) for i in range(4)]
    assert third.remove([1, 2]).subjects.tolist() == [3, 4]


def test_rows_are_found_and_strangers_are_minus_one(three: Gallery) -> None:
    assert three.index_of(np.array(["b", "zoe", "a"])).tolist() == [1, -1, 0]


def test_concentrations_travel_with_their_subjects() -> None:
    gallery = Gallery.from_samples(np.eye(3), [3, 1, 2], concentration=[30.0, 10.0, 20.0])
    assert gallery.concentrations.tolist() == [10, 20, 30]  # type: ignore[union-attr]
    assert gallery.enroll([[1.0, 1, 1]], [9], 90.0).remove(2).concentrations.tolist() == [10, 30, 90]  # type: ignore[union-attr]
    with pytest.raises(InvalidConcentrationError, match="has concentrations"):
        gallery.enroll([[1.0, 1, 1]], [9])


def test_bad_input_is_named(three: Gallery) -> None:
    with pytest.raises(GalleryTooSmallError, match="empty"):
        Gallery.from_samples(np.empty((0, 3)), [])
    with pytest.raises(InvalidSubjectsError, match="'zoe' is not enrolled"):
        three.remove("zoe")
    with pytest.raises(GalleryTooSmallError, match="empty gallery"):
        three.remove(["a", "b", "c"])
    with pytest.raises(InvalidSubjectsError, match="integers but the gallery's subjects are strings"):
        three.enroll(np.eye(3), [1, 2, 3])
    with pytest.raises(InvalidEmbeddingsError, match="4 features, the gallery has 3"):
        three.enroll(np.eye(4), list("wxyz"))
