"""However subjects came and went, the evidence is that of a gallery made from scratch with who is left and their numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.evidence.leave_one_out import evidence_of_others
from holue.evidence.link import cosine_link, power_link
from holue.evidence.quantized.scan import scan_compressed
from holue.evidence.scan import scan
from holue.gallery import gallery as gallery_module
from holue.gallery.compressed import compress
from holue.gallery.gallery import Gallery
from holue.gallery.segment import joined


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def changed_gallery(rng: np.random.Generator, size: int, dim: int, dtype: type, changes: list[str]) -> Gallery:
    """A gallery after some changes; rows are drawn from few, so that scores tie."""
    known = unit(rng.normal(size=(max(size // 2, 2), dim))).astype(dtype)

    def rows(n: int) -> np.ndarray:
        return known[rng.integers(len(known), size=n)]

    gallery, fresh = Gallery.of(np.arange(size), rows(size)), size
    for change in changes:
        n = int(rng.integers(1, max(size // 3, 2)))
        if change == "enrol":
            gallery, fresh = gallery.enroll(rows(n), np.arange(fresh, fresh + n)), fresh + n
        elif change == "replace":
            some = rng.choice(gallery.subjects, min(n, len(gallery)), replace=False)
            gallery = gallery.enroll(rows(len(some)), some, replace=True)
        elif change == "remove" and len(gallery) > 3:
            gallery = gallery.remove(rng.choice(gallery.subjects, min(n, len(gallery) - 3), replace=False))
        elif change == "remove a run" and len(gallery) > 3:
            first = int(rng.integers(len(gallery) - 3))
            gallery = gallery.remove(gallery.subjects[first : first + min(n, len(gallery) - 3)])
        elif change == "return" and len(gone := np.setdiff1d(np.arange(fresh), gallery.subjects)):
            gallery = gallery.enroll(rows(1), gone[:1])
        elif change == "compact":
            gallery = gallery.compact()
        elif change == "merge" and len(gallery.parts) > 1:
            old = gallery.parts[: int(rng.integers(2, len(gallery.parts) + 1))]
            gallery = gallery.merged(old, joined(old))
    return gallery


CHANGES = ["enrol", "replace", "remove", "remove a run", "return", "compact", "merge"]


def from_scratch(gallery: Gallery) -> Gallery:
    """One segment of who is left, with their numbers."""
    return Gallery.of(gallery.subjects, gallery.directions.copy(), numbers=gallery.numbers)


A = np.array([0.0, 5.0, 80.0, 4000.0])
some_changes = st.lists(st.sampled_from(CHANGES), max_size=8)
seeds = st.integers(0, 2**32 - 1)


@pytest.fixture(autouse=True, scope="module")
def _small_segments() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gallery_module, "OPEN_ROWS", 4)
        patch.setattr(gallery_module, "MERGED_ROWS", (40, 200))
        yield


@settings(max_examples=60, deadline=None)
@given(st.sampled_from([3, 40, 700]), some_changes, seeds)
def test_a_changed_gallery_names_and_holds_who_is_left(size: int, changes: list[str], seed: int) -> None:
    gallery = changed_gallery(np.random.default_rng(seed), size, 3, np.float64, changes)
    known = {}  # by another way: block by block
    for numbers, rows in gallery.blocks(17):
        for number, row in zip(numbers.tolist(), rows):
            assert number not in known
            known[number] = row
    assert sorted(known) == gallery.numbers.tolist()
    assert len(gallery) == len(known) == len(set(gallery.subjects.tolist()))
    np.testing.assert_array_equal(gallery.directions, [known[number] for number in sorted(known)])
    np.testing.assert_array_equal(gallery.rows(gallery.numbers), gallery.directions)
    np.testing.assert_array_equal(gallery.names(gallery.numbers), gallery.subjects)
    np.testing.assert_array_equal(gallery.index_of(gallery.subjects), gallery.numbers)
    assert gallery.next_number > gallery.numbers[-1]
    assert (gallery.index_of(np.array([-1, 10**9])) == -1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([4, 90, 1500]),
    st.sampled_from([1, 4, 9, 70]),
    st.sampled_from([0, 1, 5]),
    st.sampled_from([1, 3]),
    st.sampled_from([cosine_link, power_link]),
    some_changes,
    seeds,
)
def test_it_gives_the_evidence_of_one_made_from_scratch(
    dtype: type, size: int, n: int, top_k: int, threads: int, link: object, changes: list[str], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    gallery = changed_gallery(rng, size, 19, dtype, changes)
    probes = unit(rng.normal(size=(n, 19))).astype(dtype)
    probes[: n // 2] = gallery.directions[rng.integers(len(gallery), size=n // 2)]
    how = {"top_k": top_k, "link": link}
    seen = scan(probes, gallery, A, threads=threads, **how)
    whole = scan(probes, from_scratch(gallery), A, threads=1, **how)
    assert seen.n_subjects == whole.n_subjects == len(gallery)
    for field in ("top_index", "top_scores", "log_mass", "mean_score"):
        np.testing.assert_array_equal(getattr(seen, field), getattr(whole, field))


@pytest.mark.parametrize("form", ["float16", "int8"])
@settings(max_examples=40, deadline=None)
@given(st.sampled_from([90, 1500]), st.sampled_from([1, 9, 70]), st.sampled_from([1, 3]), some_changes, seeds)
def test_compressed_it_names_the_same_and_its_bounds_hold(
    form: str, size: int, n: int, threads: int, changes: list[str], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    gallery = changed_gallery(rng, size, 19, np.float32, changes)
    probes = unit(rng.normal(size=(n, 19)))
    a = np.array([0.0, 5.0, 80.0])
    seen = scan_compressed(probes, compress(gallery, form), a, threads=threads)
    exact = scan(probes, from_scratch(gallery), a)
    assert seen.n_subjects == len(gallery)
    np.testing.assert_array_equal(seen.top_index, exact.top_index)
    np.testing.assert_array_equal(seen.top_scores, exact.top_scores)
    assert (np.abs(seen.log_mass - exact.log_mass) <= seen.precision.log_mass_bound + 1e-12).all()
    assert (np.abs(seen.mean_score - exact.mean_score) <= seen.precision.mean_score_bound + 1e-12).all()


@settings(max_examples=20, deadline=None)
@given(some_changes, seeds)
def test_leaving_a_subject_out_is_by_number(changes: list[str], seed: int) -> None:
    rng = np.random.default_rng(seed)
    gallery = changed_gallery(rng, 60, 7, np.float64, changes)
    own = rng.choice(gallery.numbers, 9)
    probes = unit(rng.normal(size=(9, 7)))
    seen = evidence_of_others(probes, own, gallery, [5.0], top_k=3)
    for i, number in enumerate(own.tolist()):
        kept = gallery.numbers != number
        alone = Gallery.of(gallery.subjects[kept], gallery.directions[kept], numbers=gallery.numbers[kept])
        wanted = scan(probes[i : i + 1], alone, [5.0], top_k=3)
        np.testing.assert_array_equal(seen.top_index[i], wanted.top_index[0])
        # In float64 a score is the same whatever the number of probes.
        np.testing.assert_array_equal(seen.log_mass[i], wanted.log_mass[0])
        np.testing.assert_array_equal(seen.mean_score[i], wanted.mean_score[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=20, deadline=None)
@given(some_changes, st.sampled_from([1, 3]), seeds)
def test_others_say_the_same_however_subjects_came_and_went(
    dtype: type, changes: list[str], threads: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    gallery = changed_gallery(rng, 900, 19, dtype, changes)
    own = rng.choice(gallery.numbers, 30)
    probes = unit(rng.normal(size=(30, 19))).astype(dtype)
    seen = evidence_of_others(probes, own, gallery, A, top_k=3, threads=threads)
    whole = evidence_of_others(probes, own, from_scratch(gallery), A, top_k=3, threads=1)
    for field in ("top_index", "top_scores", "log_mass", "mean_score"):
        np.testing.assert_array_equal(getattr(seen, field), getattr(whole, field))
