"""One rule decides every tie: the smaller row, for every kernel, batch size, number of threads, split and merge order."""

from functools import reduce

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.evidence.evidence import Evidence, merge
from holue.evidence.ivf.index import ApproximateIndex
from holue.evidence.leave_one_out import evidence_of_others
from holue.evidence.link import power_link
from holue.evidence.quantized.scan import scan_compressed
from holue.evidence.scan import scan
from holue.gallery.compressed import compress
from holue.gallery.gallery import Gallery

Array = npt.NDArray[np.floating]


def tied(rng: np.random.Generator, n_subjects: int, dim: int, distinct: int, dtype: type) -> Array:
    """Rows of which many are equal, at random places."""
    rows = rng.normal(size=(distinct, dim))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return rows.astype(dtype)[rng.integers(distinct, size=n_subjects)]


def top_by_hand(probe: Array, gallery: Array, k: int) -> list[int]:
    """Equal rows have equal scores, so only distinct rows are compared, and those are far apart."""
    distinct, which = np.unique(gallery, axis=0, return_inverse=True)
    scores = (distinct.astype(np.float64) @ probe.astype(np.float64))[which.ravel()]
    return np.lexsort((np.arange(len(gallery)), -scores))[:k].tolist()


dtypes = st.sampled_from([np.float32, np.float64])


@settings(max_examples=60, deadline=None)
@given(
    dtypes,
    dtypes,
    st.sampled_from([3, 40, 300, 1500]),
    st.sampled_from([3, 16, 37, 128]),
    st.sampled_from([1, 2, 3, 20]),
    st.sampled_from([1, 4, 7, 70]),
    st.sampled_from([1, 5, 30]),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_ties_go_to_the_smaller_row_in_every_search(  # type: ignore[no-untyped-def]
    of_probes, of_gallery, n_subjects, dim, distinct, n_probes, k, threads, seed
) -> None:
    rng = np.random.default_rng(seed)
    gallery = tied(rng, n_subjects, dim, distinct, of_gallery)
    probes = tied(rng, n_probes, dim, n_probes, of_probes)
    probes[::2] = gallery[rng.integers(n_subjects, size=len(probes[::2]))].astype(of_probes)
    expected = [top_by_hand(probe, gallery, k) for probe in probes]
    found = [
        scan(probes, gallery, [20.0], top_k=k, threads=threads),
        scan(probes, gallery, [20.0], top_k=k, threads=threads, link=power_link),
        scan_compressed(probes, compress(gallery, "int8"), [20.0], top_k=k, threads=threads),
        scan_compressed(probes, compress(gallery, "float16"), [20.0], top_k=k, threads=threads),
    ]
    size = min(k, n_subjects)
    for seen in found:
        assert seen.top_index[:, :size].tolist() == [own[:size] for own in expected]
        np.testing.assert_array_equal(seen.top_scores, found[0].top_scores)


@settings(max_examples=40, deadline=None)
@given(dtypes, st.integers(2, 90), st.integers(1, 5), st.integers(1, 6), st.randoms(), st.integers(0, 2**32 - 1))
def test_batches_splits_and_merge_orders_find_the_same_top(  # type: ignore[no-untyped-def]
    dtype, n_probes, n_parts, k, shuffler, seed
) -> None:
    # Rows a rounding apart: which of them scores higher depends on the order of a sum, unless that order is fixed.
    rng = np.random.default_rng(seed)
    gallery = tied(rng, 120, 24, 6, np.float64)
    gallery = (gallery + rng.integers(-1, 2, size=gallery.shape) * np.finfo(dtype).eps / 8).astype(dtype)
    probes = tied(rng, n_probes, 24, n_probes, dtype)
    whole = scan(probes, gallery, [20.0], top_k=k)
    one_by_one = [scan(probe[None], gallery, [20.0], top_k=k) for probe in probes]
    np.testing.assert_array_equal(whole.top_index, np.concatenate([seen.top_index for seen in one_by_one]))
    np.testing.assert_array_equal(whole.top_scores, np.concatenate([seen.top_scores for seen in one_by_one]))
    cuts = np.sort(rng.integers(1, 120, size=n_parts - 1)).tolist()
    spans = [(begin, end) for begin, end in zip([0, *cuts], [*cuts, 120]) if begin < end]
    parts = [scan(probes, gallery[begin:end], [20.0], top_k=k).shifted(begin) for begin, end in spans]
    shuffler.shuffle(parts)
    merged: Evidence = reduce(merge, parts)
    np.testing.assert_array_equal(merged.top_index, whole.top_index)
    np.testing.assert_array_equal(merged.top_scores, whole.top_scores)
    np.testing.assert_array_equal(merged.log_mass, whole.log_mass)
    np.testing.assert_array_equal(merged.mean_score, whole.mean_score)


def test_every_kernel_of_many_probes_decides_alike() -> None:
    rng = np.random.default_rng(0)
    gallery, probes = tied(rng, 900, 67, 30, np.float32), tied(rng, 80, 67, 80, np.float32)
    alone = [scan(probe[None], gallery, [], top_k=40).top_index[0].tolist() for probe in probes]
    assert scan(probes, gallery, [], top_k=40).top_index.tolist() == alone
    assert alone == [top_by_hand(probe, gallery, 40) for probe in probes]


def test_an_index_decides_ties_by_the_row_of_the_gallery() -> None:
    rng = np.random.default_rng(1)
    gallery = tied(rng, 10_000, 12, 300, np.float32)
    probes = tied(rng, 70, 12, 70, np.float32)
    index = ApproximateIndex.build(gallery, n_lists=30, n_probe=30, seed=0)
    expected = [top_by_hand(probe, gallery, 5) for probe in probes]
    for batch in (1, 2, 70):
        found = [index.scan(probes[at : at + batch], [20.0], threads=2).top_index for at in range(0, 70, batch)]
        assert np.concatenate(found).tolist() == expected


@settings(max_examples=20, deadline=None)
@given(dtypes, st.integers(0, 2**32 - 1))
def test_leaving_a_subject_out_decides_ties_alike(dtype: type, seed: int) -> None:
    rng = np.random.default_rng(seed)
    gallery = tied(rng, 700, 19, 3, dtype)
    own = rng.integers(700, size=30)
    found = evidence_of_others(gallery[own], own, Gallery.of(np.arange(700), gallery), [20.0], top_k=4)
    for i, row in enumerate(own):
        rest = np.delete(np.arange(700), row)
        assert found.top_index[i].tolist() == rest[top_by_hand(gallery[row], gallery[rest], 4)].tolist()


@pytest.mark.parametrize("sharpness", [1e3, 1e6, 1e12])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_best_subject_never_weighs_more_than_the_whole_gallery(dtype: type, sharpness: float) -> None:
    rng = np.random.default_rng(2)
    gallery = tied(rng, 500, 64, 500, dtype)
    for n_probes in (1, 9, 70):
        probes = gallery[:n_probes]
        for seen in (
            scan(probes, gallery, [sharpness]),
            scan_compressed(probes, compress(gallery, "int8"), [sharpness]),
        ):
            log_p = sharpness * seen.top_scores - seen.log_mass
            assert (log_p <= 1e-15 * sharpness).all()  # of the difference of two numbers that large
            assert (seen.mean_score <= seen.top_scores[:, :1] + 1e-15).all()


def test_merging_long_tops_takes_memory_for_their_length_only() -> None:
    import tracemalloc

    def seen(first: int) -> Evidence:
        index = np.tile(np.arange(first, first + 2000), (100, 1))
        return Evidence(-index / 1e4, index, np.zeros((100, 1)), np.zeros((100, 1)), 2000, np.ones(1))

    left, right = seen(0), seen(2000)
    tracemalloc.start()
    merged = merge(left, right)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert merged.top_index[:, :2000].tolist() == left.top_index.tolist()
    # Both tops, their order, and some copies: 100 · 4000 numbers of 8 bytes each; all pairs would be 400 MB.
    assert peak < 10 * 100 * 4000 * 8
