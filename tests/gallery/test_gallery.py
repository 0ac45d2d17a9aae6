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
from holue.gallery.segment import joined


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


def test_a_change_shares_all_but_the_smallest_segment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OPEN_ROWS", 2)
    monkeypatch.setattr(module, "MERGED_ROWS", ())
    first = Gallery.from_samples(np.eye(4)[:2], [1, 2])
    second = first.enroll(np.eye(4)[2:3], [3])
    third = second.enroll(np.eye(4)[3:], [4])
    assert third.parts[0] is second.parts[0] is first.parts[0]
    assert [len(part.segment) for part in third.parts] == [2, 2]
    np.testing.assert_array_equal(third.directions, np.eye(4))
    assert [(numbers.tolist(), len(block)) for numbers, block in third.blocks(1)] == [([i], 1) for i in range(4)]
    fourth = third.remove([1])
    assert fourth.parts[0].segment is first.parts[0].segment
    assert fourth.remove([2]).subjects.tolist() == [3, 4]


def test_a_number_is_for_life(three: Gallery) -> None:
    changed = three.remove("c").enroll(-np.eye(3)[:1], ["b"], replace=True).enroll(np.eye(3)[:1], ["c"])
    assert changed.index_of(np.array(["a", "b", "c"])).tolist() == [0, 1, 3]
    assert changed.names(np.array([[3, -1], [0, 1]])).tolist() == [["c", ""], ["a", "b"]]
    np.testing.assert_array_equal(changed.rows(np.array([1, 3])), [[-1, 0, 0], [1, 0, 0]])
    with pytest.raises(InvalidSubjectsError, match="number 2 is nobody's in version 4"):
        changed.rows(np.array([2]))
    assert changed.compact().numbers.tolist() == [0, 1, 3]
    assert changed.compact().version == changed.version


def test_single_enrolments_stay_few_segments() -> None:
    rng = np.random.default_rng(0)
    gallery = Gallery.from_samples(rng.normal(size=(2000, 2)), np.arange(2000))
    for subject in range(2000, 4200):
        gallery = gallery.enroll(rng.normal(size=(1, 2)), [subject])
    assert len(gallery.parts) <= 6
    assert len(gallery) == 4200


def test_segments_merged_meanwhile_know_who_left_since() -> None:
    gallery = Gallery.of(np.arange(9), np.eye(9)[:4], np.eye(9)[4:7], np.eye(9)[7:]).remove([1])
    old = gallery.parts[:2]
    segment = joined(old)
    later = gallery.remove([2]).enroll(-np.eye(9)[5:6], [5], replace=True).enroll(np.eye(9)[:1], [9])
    merged = later.merged(old, segment)
    assert merged.subjects.tolist() == later.subjects.tolist() == [0, 3, 4, 5, 6, 7, 8, 9]
    np.testing.assert_array_equal(merged.directions, later.directions)
    assert any(part.segment is segment for part in merged.parts)
    assert merged.merged(old, segment) is merged, "its segments are no longer there"


def test_a_tenth_gone_or_too_many_segments_are_worth_merging(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MERGED_ROWS", (20,))
    gallery = Gallery.of(np.arange(40), np.eye(40)[:30], np.eye(40)[30:])
    assert gallery.worth_merging() == ()
    left = gallery.remove([1, 2, 3, 4])
    assert [part.segment for part in left.worth_merging()] == [gallery.parts[0].segment]
    monkeypatch.setattr(module, "MERGED_ROWS", (2,))
    many = Gallery.of(
        np.arange(61), np.eye(61)[:20], *(np.eye(61)[i : i + 2] for i in range(20, 60, 2)), np.eye(61)[60:]
    )
    assert len(many.worth_merging()) == 20, "neither the largest nor the one that is still joined with others"


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
