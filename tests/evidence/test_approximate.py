"""Approximate evidence against the exact scan of the same gallery."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

from holue.errors import GalleryTooSmallError, InvalidEmbeddingsError, InvalidParameterError
from holue.evidence.block import NOBODY, Block
from holue.evidence.evidence import merge
from holue.evidence.ivf.index import ApproximateIndex
from holue.evidence.ivf.list_loops import products
from holue.evidence.ivf.living_lists import LivingLists
from holue.evidence.ivf.sample import Sample
from holue.evidence.ivf.tail_calibration import TailCalibration
from holue.evidence.link import power_link
from holue.evidence.scan import scan

K, DIM = 20_000, 64
SHARPNESS = np.array([150.0, 7.5])  # κ and κ/T


def unit(x: np.ndarray) -> np.ndarray:
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


def families(rng: np.random.Generator, n: int) -> np.ndarray:
    """Families of about 40 look-alikes, always the same ones."""
    centres = unit(np.random.default_rng(7).standard_normal((500, DIM)))
    return unit(centres[rng.integers(500, size=n)] + 0.9 * unit(rng.standard_normal((n, DIM))))


@pytest.fixture(scope="module")
def gallery() -> np.ndarray:
    return families(np.random.default_rng(0), K)


@pytest.fixture(scope="module")
def index(gallery: np.ndarray) -> ApproximateIndex:
    return ApproximateIndex.build(gallery, n_lists=256, n_probe=24, n_sample=2048, seed=1)


@pytest.fixture(scope="module")
def probes(gallery: np.ndarray) -> np.ndarray:
    """300 mated ones at a cosine of about 0.9, 300 strangers of the same families."""
    rng = np.random.default_rng(2)
    mated = unit(gallery[rng.choice(K, 300, replace=False)] + 0.5 * unit(rng.standard_normal((300, DIM))))
    return np.concatenate([mated, families(rng, 300)])


def test_with_every_list_read_it_is_the_exact_scan(index: ApproximateIndex, gallery: np.ndarray, probes: np.ndarray):
    exact, everything = scan(probes, gallery, SHARPNESS), index.scan(probes, SHARPNESS, n_probe=len(index.lists))
    np.testing.assert_array_equal(everything.top_index, exact.top_index)
    # Two float32 kernels: a cosine differs by some 1e-7, a log-mass by the sharpness times that.
    np.testing.assert_allclose(everything.top_scores, exact.top_scores, atol=4e-7)
    np.testing.assert_allclose(everything.log_mass, exact.log_mass, atol=1e-4)
    np.testing.assert_allclose(everything.mean_score, exact.mean_score, atol=1e-5)
    assert everything.precision is not None
    assert not everything.precision.log_mass_error.any()


def test_the_true_value_is_within_three_standard_errors(
    index: ApproximateIndex, gallery: np.ndarray, probes: np.ndarray
):
    exact, estimate = scan(probes, gallery, SHARPNESS), index.scan(probes, SHARPNESS)
    assert estimate.precision is not None
    rounding = 1e-6 * SHARPNESS + 1e-5
    covered = np.abs(estimate.log_mass - exact.log_mass) <= 3 * estimate.precision.log_mass_error + rounding
    mean_covered = np.abs(estimate.mean_score - exact.mean_score) <= 3 * estimate.precision.mean_score_error + 1e-5
    # 99 % promised; of 600 probes, 13 misses are 2.9 binomial deviations above the 6 of a coverage of exactly that.
    assert (~covered).sum(axis=0).max() <= 13
    assert (~mean_covered).sum(axis=0).max() <= 13


def test_the_mean_score_is_within_three_standard_errors_beyond_the_reach_of_the_sample_too():
    dim = 32
    rng, stretch = (
        np.random.default_rng(0),
        np.random.default_rng(3).standard_normal((dim, dim)) * np.linspace(1, 0.3, dim),
    )
    # A cloud without families: nobody stands out, and the unread part weighs something at every sharpness.
    people = unit(0.3 + rng.standard_normal((K + 300, dim)) @ stretch.T / np.sqrt(dim))
    gallery, strangers = people[:K], people[K:]
    index = ApproximateIndex.build(gallery, n_lists=256, n_probe=16, n_sample=2048, seed=1)
    mated = unit(gallery[:300] + 0.5 * unit(rng.standard_normal((300, dim))))
    sharpness = index.sample.reach * np.array([0.5, 1.0, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0])
    for probes in (mated, strangers):
        exact, estimate = scan(probes, gallery, sharpness), index.scan(probes, sharpness)
        assert estimate.precision is not None
        off = np.abs(estimate.mean_score - exact.mean_score)
        missed = off > 3 * estimate.precision.mean_score_error + 1e-5
        # 99 % promised: of 300 probes, 8 misses are 2.9 binomial deviations above the 3 of a coverage of exactly that.
        assert missed.sum(axis=0).max() <= 8


def test_the_log_mass_at_a_small_sharpness_is_within_hundredths(
    index: ApproximateIndex, gallery: np.ndarray, probes: np.ndarray
):
    exact, estimate = scan(probes, gallery, SHARPNESS), index.scan(probes, SHARPNESS)
    off = np.abs(estimate.log_mass - exact.log_mass)[:, 1]
    # A list holds 80 rows here: that their scores are not quite normal shows more than in a large gallery.
    assert np.median(off) < 0.005
    assert off.max() < 0.05


def test_mated_probes_find_their_subject_and_its_exact_score(
    index: ApproximateIndex, gallery: np.ndarray, probes: np.ndarray
):
    exact, estimate = scan(probes, gallery, SHARPNESS), index.scan(probes, SHARPNESS)
    found = estimate.top_index[:300, 0] == exact.top_index[:300, 0]
    assert found.mean() >= 0.99
    np.testing.assert_allclose(estimate.top_scores[:300][found, 0], exact.top_scores[:300][found, 0], atol=4e-7)
    # A mate that was found leaves nothing to be uncertain about at κ.
    assert estimate.precision is not None
    assert np.median(estimate.precision.log_mass_error[:300, 0]) < 1e-6


def far_log_mass(index: ApproximateIndex, unread: object, a: float) -> np.ndarray:
    """The slow obvious way: every score of the lists that were not read."""
    near = np.repeat(unread.near, index.lists.sizes, axis=1)  # type: ignore[attr-defined]
    scores = unread.probes.astype(np.float64) @ index.lists.vectors.T.astype(np.float64)  # type: ignore[attr-defined]
    return logsumexp(np.where(near, -np.inf, a * scores), axis=1)


def test_the_sample_is_unbiased_over_the_draw_and_knows_its_error(index: ApproximateIndex, probes: np.ndarray):
    draws, a = 200, 7.5
    unread = index._route(probes[280:320], index.n_probe, 2)
    truth = np.exp(far_log_mass(index, unread, a))
    ratios, errors = [], []
    for seed in range(draws):
        sample = Sample.draw(index.lists, 1024, np.random.default_rng(seed))
        drawn = replace(unread, living=LivingLists.whole(index.lists, sample))
        measured = drawn.measure(a)
        ratios.append(measured.sampled * np.exp(measured.log_unit) / truth)
        errors.append(measured.error * np.exp(measured.log_unit) / truth)
    bias, deviation = np.mean(ratios, axis=0) - 1, np.std(ratios, axis=0)
    # 40 means of 200 draws each: 4.5 deviations happen once in 7000 runs.
    assert (np.abs(bias) < 4.5 * deviation / np.sqrt(draws)).all()
    # The error is that of the draw or, where normal scores would make it more, that: never much less.
    assert (np.sqrt(np.mean(np.square(errors), axis=0)) > 0.9 * deviation).all()
    assert (np.sqrt(np.mean(np.square(errors), axis=0)) < 1.5 * deviation).all()


def test_without_a_calibration_the_sample_alone_counts(
    index: ApproximateIndex, gallery: np.ndarray, probes: np.ndarray
):
    exact = scan(probes, gallery, 7.5)
    alone = replace(index, calibration=TailCalibration.unknown()).scan(probes, 7.5)
    assert alone.precision is not None
    error = alone.precision.log_mass_error
    assert (error > index.scan(probes, 7.5).precision.log_mass_error).mean() > 0.9  # type: ignore[union-attr]
    assert (np.abs(alone.log_mass - exact.log_mass) <= 3 * error + 1e-5).mean() >= 0.98


def test_between_the_learned_sharpnesses_the_calibration_is_that_of_a_bent_curve():
    learned = np.array([0.125, 0.25, 0.375, 0.5, 0.75, 1.0])
    bent = learned**4  # as what normal scores leave out grows
    calibration = TailCalibration(learned, np.stack([bent] * 4), np.ones(1), np.zeros((3, 1)), np.zeros((3, 1)))
    for between in (0.45, 0.6, 0.65, 0.9):
        # A straight line is off by 0.07 at 0.9, this by 0.0094.
        np.testing.assert_allclose(calibration.at(between), between**4, atol=0.01)
    assert calibration.at(0.0) == (0.0, 0.0, 0.0, 0.0)
    assert calibration.at(5.0) == (1.0, 1.0, 1.0, 1.0)


def test_at_sharpness_zero_the_mass_is_the_number_of_subjects(index: ApproximateIndex, probes: np.ndarray):
    evidence = index.scan(probes[:5], 0.0)
    np.testing.assert_allclose(evidence.log_mass, np.log(K), rtol=1e-6)  # sums of float32 counts


def test_the_same_seed_gives_the_same_evidence_and_another_another(gallery: np.ndarray, probes: np.ndarray):
    first, again, other = (
        ApproximateIndex.build(gallery, n_lists=128, n_probe=8, n_sample=512, seed=seed).scan(probes[:20], SHARPNESS)
        for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(first.log_mass, again.log_mass)
    assert not np.array_equal(first.log_mass, other.log_mass)


def test_a_gallery_on_disk_gives_the_same_index_and_says_how_far_it_is(gallery: np.ndarray, tmp_path: Path):
    gallery.tofile(tmp_path / "rows")
    mapped = np.memmap(tmp_path / "rows", dtype=np.float32, mode="r", shape=gallery.shape)
    heard: list[tuple[int, int]] = []
    settings = {"n_lists": 64, "n_probe": 8, "n_sample": 256, "seed": 3}
    there = ApproximateIndex.build(mapped, **settings, progress=lambda done, total: heard.append((done, total)))
    here = ApproximateIndex.build(gallery, **settings)
    np.testing.assert_array_equal(there.lists.rows, here.lists.rows)
    np.testing.assert_array_equal(there.calibration.table, here.calibration.table)
    assert [done for done, _ in heard] == list(range(1, heard[0][1] + 1))


def test_in_one_dimension_there_are_two_lists_and_nothing_to_estimate():
    signs = np.where(np.random.default_rng(0).random((10_000, 1)) < 0.4, -1, 1).astype(np.float32)
    index = ApproximateIndex.build(signs, seed=0)
    assert len(index.lists) == 2
    evidence, exact = index.scan(signs[:9], SHARPNESS), scan(signs[:9], signs, SHARPNESS)
    np.testing.assert_allclose(evidence.log_mass, exact.log_mass, atol=1e-5)


def test_threads_and_batches_do_not_matter(index: ApproximateIndex, probes: np.ndarray):
    one = index.scan(probes[:50], SHARPNESS, threads=1)
    several = index.scan(probes[:50], SHARPNESS, threads=3)
    np.testing.assert_array_equal(one.top_index, several.top_index)
    # Blocks of another size may be multiplied in another order: rounding of float32.
    np.testing.assert_allclose(one.log_mass, several.log_mass, atol=1e-4)
    single = index.scan(probes[7:8], SHARPNESS)
    np.testing.assert_allclose(single.log_mass[0], one.log_mass[7], atol=1e-4)
    assert len(index.scan(probes[:0], SHARPNESS)) == 0


def test_it_merges_with_exact_evidence_of_another_part(
    index: ApproximateIndex, gallery: np.ndarray, probes: np.ndarray
):
    other = families(np.random.default_rng(9), 3000)
    whole = scan(probes, np.concatenate([gallery, other]), SHARPNESS)
    merged = merge(index.scan(probes, SHARPNESS), scan(probes, other, SHARPNESS).shifted(K))
    assert merged.n_subjects == K + 3000
    assert merged.precision is not None
    off = np.abs(merged.log_mass - whole.log_mass)
    assert (off <= 3 * merged.precision.log_mass_error + 1e-6 * SHARPNESS + 1e-5).mean() >= 0.985


def test_later_rows_are_read_exactly(index: ApproximateIndex):
    new = families(np.random.default_rng(11), 10)
    grown = replace(index, later=Block(new, np.arange(K, K + 10), NOBODY))
    evidence = grown.scan(new, SHARPNESS)
    assert evidence.n_subjects == len(grown) == K + 10
    np.testing.assert_array_equal(evidence.top_index[:, 0], np.arange(K, K + 10))
    assert "10 later rows" in repr(grown)


def listed(index: ApproximateIndex) -> np.ndarray:
    """The list of each sampled row."""
    return np.searchsorted(index.lists.starts, index.living.sample_at, side="right") - 1


@pytest.mark.parametrize("how", ["anybody", "a whole neighbourhood", "nearly everybody"])
def test_who_has_left_counts_for_nothing_and_the_errors_stay_honest(
    how: str, index: ApproximateIndex, gallery: np.ndarray, probes: np.ndarray
):
    rng, left = np.random.default_rng(3), np.zeros(K, dtype=bool)
    if how == "anybody":
        left[rng.choice(K, K // 10, replace=False)] = True
    elif how == "a whole neighbourhood":
        left[np.argsort(-(gallery @ gallery[5]))[: K // 20]] = True
    else:
        left[rng.choice(K, K - K // 8, replace=False)] = True
    changed, versions = index, [np.zeros(K, dtype=bool)]
    for some in np.array_split(np.flatnonzero(left), 5):
        versions.append(versions[-1].copy())
        versions[-1][some] = True
    for number in (1, 2, 3, 2, 4, 1, 5):  # one version after the other, and back
        changed = changed.of(versions[number])
    afresh = index.of(left).living
    np.testing.assert_array_equal(changed.living.sizes, afresh.sizes)
    np.testing.assert_array_equal(changed.living.lengths, afresh.lengths)
    eye = np.eye(DIM, dtype=np.float32)
    np.testing.assert_array_equal(changed.living.centres.products(eye), afresh.centres.products(eye))
    assert not changed.living.gone[changed.living.sample_at][~changed.living.always_read[listed(changed)]].any()
    stays = np.flatnonzero(~left)
    whole = scan(probes, gallery[stays], SHARPNESS)
    seen = changed.scan(probes, SHARPNESS)
    assert seen.n_subjects == len(changed) == len(stays)
    assert not left[seen.top_index[seen.top_index >= 0]].any()
    assert seen.precision is not None
    off = np.abs(seen.log_mass - whole.log_mass)
    assert (off <= 3 * seen.precision.log_mass_error + 1e-6 * SHARPNESS + 1e-5).mean() >= 0.99
    off = np.abs(seen.mean_score - whole.mean_score)
    assert (off <= 3 * seen.precision.mean_score_error + 1e-5).mean() >= 0.99


def test_an_earlier_version_can_be_read_again(index: ApproximateIndex, probes: np.ndarray):
    left = np.zeros(K, dtype=bool)
    left[:50] = True
    later = index.of(left)
    for name in ("top_index", "log_mass"):
        np.testing.assert_array_equal(
            *(getattr(each.scan(probes, SHARPNESS), name) for each in (index, later.of(None)))
        )
    assert len(later) == K - 50


def test_with_all_lists_read_who_stays_is_found_as_in_an_exact_scan(
    index: ApproximateIndex, gallery: np.ndarray, probes: np.ndarray
):
    left = np.random.default_rng(4).random(K) < 0.3
    stays = np.flatnonzero(~left)
    seen = index.of(left).scan(probes, SHARPNESS, n_probe=len(index.lists))
    whole = scan(probes, gallery[stays], SHARPNESS)
    np.testing.assert_array_equal(seen.top_index, stays[whole.top_index])
    np.testing.assert_array_equal(seen.top_scores, whole.top_scores)
    np.testing.assert_allclose(seen.log_mass, whole.log_mass, atol=1e-4)


def test_equal_rows_are_ordered_by_the_gallery(gallery: np.ndarray):
    twice = np.concatenate([gallery[:10_000], gallery[:10_000]])
    index = ApproximateIndex.build(twice, n_lists=64, n_probe=8, n_sample=256, seed=0)
    top = index.scan(gallery[100:120], SHARPNESS, top_k=2).top_index
    np.testing.assert_array_equal(top, np.stack([np.arange(100, 120), np.arange(10_100, 10_120)], axis=1))


def test_a_lower_mated_cosine_reads_more_lists(gallery: np.ndarray):
    near, far = (
        ApproximateIndex.build(gallery, n_lists=128, n_sample=256, mated_cosine=cosine, seed=0).n_probe
        for cosine in (0.9, 0.5)
    )
    assert near < far
    rows = np.arange(200)
    index = ApproximateIndex.build(gallery, n_lists=128, n_sample=256, n_probe=8, seed=0)
    assert index.lists_needed(gallery[rows], rows, recall=0.5) <= 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_lists": 0}, "n_lists"),
        ({"n_lists": K + 1}, "n_lists"),
        ({"n_sample": 1.5}, "n_sample"),
        ({"n_probe": True}, "n_probe"),
        ({"mated_cosine": 1.0}, "mated_cosine"),
        ({"recall": 0.0}, "recall"),
    ],
)
def test_a_setting_outside_its_range_is_named(gallery: np.ndarray, settings: dict, message: str):
    with pytest.raises(InvalidParameterError, match=message):
        ApproximateIndex.build(gallery, **({"n_lists": 16, "n_sample": 64} | settings))


def test_a_small_gallery_is_sent_to_the_exact_scan(gallery: np.ndarray):
    with pytest.raises(GalleryTooSmallError, match="scan\\(\\)"):
        ApproximateIndex.build(gallery[:9999])


def test_what_it_cannot_do_is_refused(index: ApproximateIndex, probes: np.ndarray):
    with pytest.raises(InvalidParameterError, match="cosine link"):
        index.scan(probes, SHARPNESS, link=power_link)
    with pytest.raises(InvalidEmbeddingsError, match="features"):
        index.scan(probes[:, :10], SHARPNESS)
    with pytest.raises(InvalidParameterError, match="n_probe"):
        index.scan(probes, SHARPNESS, n_probe=2)
    with pytest.raises(InvalidParameterError, match="top_k"):
        index.scan(probes, SHARPNESS, top_k=-1)


@pytest.mark.parametrize("n_probes", [1, 2, 7])
@pytest.mark.parametrize(("n_vectors", "dim"), [(1, 16), (8, 16), (29, 13), (600, 128)])
def test_products_of_one_probe_are_those_of_many(n_probes: int, n_vectors: int, dim: int) -> None:
    rng = np.random.default_rng(n_vectors)
    probes, vectors = (rng.standard_normal((n, dim), dtype=np.float32) for n in (n_probes, n_vectors))
    found = products(probes, vectors)
    wanted = probes.astype(np.float64) @ vectors.astype(np.float64).T
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)
