"""A compressed gallery says what an exact one says: the same top, the same decisions, and no number farther off than bounded."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

from holue.errors import GalleryTooSmallError, InvalidEmbeddingsError, InvalidParameterError
from holue.evidence.evidence import Evidence, merge
from holue.evidence.kernels.exponential_sums import CHUNK
from holue.evidence.kernels.packed_panels import PROBES_PER_PASS
from holue.evidence.precision import Precision
from holue.evidence.quantized import code_loops as compressed_loops
from holue.evidence.quantized import kernel as compressed_kernel
from holue.evidence.quantized import scan as module
from holue.evidence.quantized.kernel import (
    CodeKernel,
    HalfPanelKernel,
    TileKernel,
    UnpackedProductKernel,
    UnpackingKernel,
    compressed_kernel_for,
)
from holue.evidence.quantized.scan import scan_compressed
from holue.evidence.scan import scan
from holue.gallery.compressed import FORMS, Form, compress
from holue.gallery.gallery import Gallery
from holue.recognition.model.class_model import Prior, VonMisesFisher, close

Array = npt.NDArray[np.floating]

SHARPNESS = [0.0, 1.0, 20.0, 400.0, 5000.0]


def unit(x: Array) -> npt.NDArray[np.float32]:
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


def random_rows(rng: np.random.Generator, n: int, dim: int) -> Array:
    return rng.normal(size=(n, dim))


def clustered(rng: np.random.Generator, n: int, dim: int) -> Array:
    """Many subjects within a few degrees: more candidates than are listed."""
    return rng.normal(size=(3, dim))[rng.integers(3, size=n)] + 0.1 * rng.normal(size=(n, dim))


def duplicates(rng: np.random.Generator, n: int, dim: int) -> Array:
    return rng.normal(size=(5, dim))[rng.integers(5, size=n)]


def constant(rng: np.random.Generator, n: int, dim: int) -> Array:
    return np.ones((n, dim)) * rng.choice([-1.0, 1.0], size=(n, 1))


def one_hot(rng: np.random.Generator, n: int, dim: int) -> Array:
    return np.eye(dim)[rng.integers(dim, size=n)] * rng.choice([-1.0, 1.0], size=(n, 1))


def spiky(rng: np.random.Generator, n: int, dim: int) -> Array:
    """One large coordinate beside many that int8 cannot see: the worst for a scale per row, in some rows only."""
    x = rng.normal(size=(n, dim))
    x[::7] *= 0.003
    x[::7, 0] = 1
    return x


def tiny(rng: np.random.Generator, n: int, dim: int) -> Array:
    """Coordinates below the smallest float16."""
    x = rng.normal(size=(n, dim)) * 10.0 ** -rng.integers(3, 12, size=(n, dim))
    x[np.arange(n), rng.integers(dim, size=n)] = 1
    return x


WORLDS = [random_rows, clustered, duplicates, constant, one_hot, spiky, tiny]


def probes_of(rng: np.random.Generator, gallery: Array, n: int) -> npt.NDArray[np.float32]:
    """Strangers, noisy subjects and subjects themselves."""
    probes = rng.normal(size=(n, gallery.shape[1]))
    probes[1::3] = 0.05 * probes[1::3] + gallery[rng.integers(len(gallery), size=len(probes[1::3]))]
    probes[2::3] = gallery[rng.integers(len(gallery), size=len(probes[2::3]))]
    return unit(probes)


def truth(probes: Array, gallery: Array, sharpness: list[float]) -> tuple[Array, Array, Array]:
    """All scores, log-mass and mean score in float64."""
    scores = probes.astype(np.float64) @ gallery.astype(np.float64).T
    log_mass = np.stack([logsumexp(a * scores, axis=1) for a in sharpness], axis=1)
    mean_score = np.stack([(softmax(a * scores, axis=1) * scores).sum(axis=1) for a in sharpness], axis=1)
    return scores, log_mass, mean_score


def precision_of(seen: Evidence) -> Precision:
    assert seen.precision is not None
    return seen.precision


def assert_certified(seen: Evidence, probes: Array, gallery: Array) -> None:
    """Every number is within its bound of the float64 truth, with no allowance but for the truth's own rounding."""
    _, log_mass, mean_score = truth(probes, gallery, list(seen.sharpness))
    bounds = precision_of(seen)
    # A float64 product of up to 100 terms, times the sharpness.
    rounding = 1e-14 * (1 + seen.sharpness)
    assert (np.abs(seen.log_mass - log_mass) <= bounds.log_mass_bound + rounding).all()
    assert (np.abs(seen.mean_score - mean_score) <= bounds.mean_score_bound + rounding).all()


def assert_same_top(seen: Evidence, probes: Array, gallery: Array, threads: int | None = None) -> None:
    """The top of an exact scan, scores and ties bit for bit."""
    expected = scan(probes, gallery, [], top_k=seen.top_index.shape[1], threads=threads)
    np.testing.assert_array_equal(seen.top_index, expected.top_index)
    np.testing.assert_array_equal(seen.top_scores, expected.top_scores)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", WORLDS)
@pytest.mark.parametrize(
    ("n_subjects", "dim", "n_probes"), [(700, 48, 1), (1500, 37, 20), (400, 8, 70), (3, 20, 4), (1, 5, 7)]
)
def test_every_bound_holds_and_the_top_is_exact(
    form: Form, make: Callable[..., Array], n_subjects: int, dim: int, n_probes: int
) -> None:
    rng = np.random.default_rng(dim)
    gallery = unit(make(rng, n_subjects, dim))
    probes = probes_of(rng, gallery, n_probes)
    for threads in (1, 3):
        seen = scan_compressed(probes, compress(gallery, form), SHARPNESS, threads=threads)
        assert seen.n_subjects == n_subjects
        assert_certified(seen, probes, gallery)
        assert_same_top(seen, probes, gallery, threads)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(FORMS),
    st.sampled_from(WORLDS),
    st.sampled_from([1, 2, 63, 64, 65, CHUNK, CHUNK + 1, 700]),
    st.sampled_from([1, 2, 15, 16, 17, 33, 100]),
    st.sampled_from([1, 2, 3, 5, 7, 50]),
    st.lists(st.sampled_from([0.0, 0.3, 20.0, 400.0, 1e6, 1e300]), max_size=3),
    st.sampled_from([0, 1, 5, 90]),
    st.integers(1, 3),
    st.integers(0, 2**32 - 1),
)
def test_bounds_hold_at_every_size_and_sharpness(  # type: ignore[no-untyped-def]
    form, make, n_subjects, dim, n_probes, sharpness, top_k, threads, seed
) -> None:
    rng = np.random.default_rng(seed)
    gallery = unit(make(rng, n_subjects, dim))
    probes = probes_of(rng, gallery, n_probes)
    seen = scan_compressed(probes, compress(gallery, form), sharpness, top_k=top_k, threads=threads)
    for value in (seen.log_mass, seen.mean_score, *vars(precision_of(seen)).values()):
        assert np.isfinite(value).all()
    ordinary = [t for t, a in enumerate(sharpness) if a <= 1e6]
    if ordinary:
        assert_certified(take(seen, ordinary), probes, gallery)
    k = min(top_k, n_subjects)
    # Two float64 sums of up to 100 terms.
    best = -np.sort(-(probes.astype(np.float64) @ gallery.T.astype(np.float64)), axis=1)[:, :k]
    np.testing.assert_allclose(seen.top_scores[:, :k], best, atol=1e-14)
    assert (seen.top_index[:, k:] == -1).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("make", [random_rows, clustered, constant, spiky])
def test_bounds_hold_for_the_probes_that_the_compression_serves_worst(form: Form, make: Callable[..., Array]) -> None:
    # Along a row's own residual its error is all there is; along the residuals' first singular vector the errors add up.
    rng = np.random.default_rng(12)
    gallery = unit(make(rng, 600, 32))
    compressed = compress(gallery, form)
    part = compressed.parts[0]
    codes = part.codes.view(np.float16) if form == "float16" else part.codes
    residual = gallery - part.scales[:, None].astype(np.float64) * codes[:, :32].astype(np.float64)
    lengths = np.linalg.norm(residual, axis=1)
    worst = np.concatenate([np.linalg.svd(residual)[2][:2], residual[[0, int(lengths.argmax())]]])
    probes = unit(np.concatenate([worst, -worst])[np.linalg.norm(np.concatenate([worst, worst]), axis=1) > 0])
    seen = scan_compressed(probes, compressed, [1.0, 20.0, 400.0], top_k=0)
    assert_certified(seen, probes, gallery)
    errors = probes.astype(np.float64) @ residual.T
    assert (np.abs(errors) <= part.errors + 1e-15).all()
    assert np.abs(errors).max() >= 0.99 * lengths.max(), "some probe meets the largest error whole"
    assert (np.linalg.norm(errors, axis=1) <= compressed.residual_norm * (1 + 1e-6)).all()


def take(seen: Evidence, columns: list[int]) -> Evidence:
    p = precision_of(seen)
    cut = [
        getattr(p, name)[:, columns]
        for name in ("log_mass_bound", "mean_score_bound", "log_mass_error", "mean_score_error")
    ]
    return Evidence(
        seen.top_scores,
        seen.top_index,
        seen.log_mass[:, columns],
        seen.mean_score[:, columns],
        seen.n_subjects,
        seen.sharpness[columns],
        Precision(*cut, p.score_bound),
    )


@pytest.mark.parametrize("form", FORMS)
def test_all_kernels_see_the_same_scores_within_their_bound(form: Form) -> None:
    rng = np.random.default_rng(3)
    gallery = unit(spiky(rng, 900, 40))
    compressed = compress(gallery, form)
    kinds = []
    halves = [CodeKernel, UnpackingKernel, HalfPanelKernel, UnpackedProductKernel]
    expected = {"float16": halves, "int8": [CodeKernel, TileKernel]}
    with pytest.MonkeyPatch.context() as patch:
        for few, fewest, panels in ((64, 64, True), (64, 0, True), (0, 0, True), (0, 0, False))[: len(expected[form])]:
            patch.setattr(compressed_kernel, "FEW_PROBES", few)
            patch.setitem(compressed_kernel.FEW_CODE_PROBES, form, fewest)
            patch.setattr(compressed_kernel, "are_fastest", lambda panels=panels: panels)
            for n_probes in (9, PROBES_PER_PASS + 7):
                probes = probes_of(rng, gallery, n_probes)
                seen = scan_compressed(probes, compressed, SHARPNESS, threads=2)
                assert_certified(seen, probes, gallery)
            kinds.append(type(compressed_kernel_for(probes[:9].astype(np.float64), compressed)))
    assert kinds == expected[form]


def test_a_processor_without_float16_reads_it_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compressed_kernel, "reads_halves", lambda: False)
    rng = np.random.default_rng(4)
    gallery = unit(random_rows(rng, 500, 24))
    probes = probes_of(rng, gallery, 3)
    seen = scan_compressed(probes, compress(gallery, "float16"), SHARPNESS)
    assert_certified(seen, probes, gallery)
    assert_same_top(seen, probes, gallery)


@pytest.mark.parametrize(
    ("features", "name", "expected"), [("+sse2,+f16c", None, True), ("+sse2", None, False), (None, "generic", False)]
)
def test_a_processor_chosen_by_hand_is_believed(  # type: ignore[no-untyped-def]
    monkeypatch, features, name, expected
) -> None:
    monkeypatch.setattr(compressed_loops.config, "CPU_FEATURES", features)
    monkeypatch.setattr(compressed_loops.config, "CPU_NAME", name)
    assert compressed_loops.reads_halves.__wrapped__() is expected


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_probes_and_galleries_of_other_precision_are_bounded_too(form: Form, dtype: type) -> None:
    rng = np.random.default_rng(5)
    gallery = unit(random_rows(rng, 600, 30)).astype(dtype)
    probes = rng.normal(size=(4, 30))
    probes /= np.linalg.norm(probes, axis=1, keepdims=True)
    seen = scan_compressed(probes, compress(gallery, form), SHARPNESS)
    assert_certified(seen, probes, gallery)
    np.testing.assert_array_equal(seen.top_index, scan(probes, gallery, []).top_index)


def test_bounds_are_worth_having() -> None:
    # Random subjects, d = 128: at κ/T = 20 the mass is spread and errors cannot all add up; at κ = 400 the listed dominate.
    rng = np.random.default_rng(6)
    gallery = unit(random_rows(rng, 20_000, 128))
    probes = probes_of(rng, gallery, 12)
    limits = {"float16": (2e-3, 5e-4, 1e-4), "int8": (0.05, 0.02, 5e-3)}
    for form in FORMS:
        bounds = precision_of(scan_compressed(probes, compress(gallery, form), [20.0, 400.0]))
        spread, sharp, mated = limits[form]
        assert bounds.log_mass_bound[:, 0].max() < spread
        assert bounds.log_mass_bound[:, 1].max() < sharp
        assert bounds.mean_score_bound.max() < sharp
        assert bounds.log_mass_bound[2::3, 1].max() < mated
        # Taking every error at its largest would say this much: 20 times more.
        assert 20 * bounds.score_bound.max() > 4 * bounds.log_mass_bound[:, 0].max()


def test_at_high_concentration_the_exact_top_is_the_mass() -> None:
    rng = np.random.default_rng(7)
    gallery = unit(random_rows(rng, 5000, 64))
    seen = scan_compressed(gallery[:8], compress(gallery, "int8"), [400.0, 5000.0])
    # The own subject weighs e^{400·0.5} times more than any other.
    assert precision_of(seen).log_mass_bound.max() < 1e-9
    np.testing.assert_allclose(seen.log_mass, [[400.0, 5000.0]] * 8, rtol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_decisions_are_those_of_the_exact_scan_whatever_the_mass(form: Form) -> None:
    # ln P(c) − ln P(0) = ℓ_c − ℓ_0 holds no total, so an exact top score decides.
    rng = np.random.default_rng(8)
    gallery = unit(random_rows(rng, 3000, 32))
    probes = unit(probes_of(rng, gallery, 60) + 0.25 * rng.normal(size=(60, 32)) * rng.uniform(0, 1, (60, 1)))
    model, prior = VonMisesFisher(32, 40.0), Prior.of(0.5)
    accepted = []
    for seen in (scan_compressed(probes, compress(gallery, form), [40.0]), scan(probes, gallery, [40.0])):
        posterior = close(seen, 0, model, prior, len(gallery))
        accepted.append(posterior.log_p_top[:, 0] >= posterior.log_p_unknown)
        wrong = Evidence(**{**vars(seen), "log_mass": seen.log_mass + 3})  # far outside any bound
        off = close(wrong, 0, model, prior, len(gallery))
        np.testing.assert_array_equal(off.log_p_top[:, 0] >= off.log_p_unknown, accepted[-1])
    np.testing.assert_array_equal(*accepted)
    assert 5 < accepted[0].sum() < 55


def test_more_candidates_than_are_listed_are_scanned_exactly(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    gallery = unit(np.concatenate([np.tile(rng.normal(size=16), (100, 1)), rng.normal(size=(300, 16))]))
    scanned: list[int] = []

    def counted(directions, *arguments, **options):  # type: ignore[no-untyped-def]
        scanned.append(len(directions))
        return scan(directions, *arguments, **options)

    monkeypatch.setattr(module, "scan", counted)
    probes = np.stack([gallery[0], gallery[200]])
    seen = scan_compressed(probes, compress(gallery, "int8"), [20.0], top_k=2)
    assert scanned == [1], "a hundred equal subjects cannot all be listed; the other probe needs nothing"
    assert seen.top_index.tolist()[0] == [0, 1]
    assert_same_top(seen, probes, gallery)
    bounds = precision_of(seen)
    assert bounds.log_mass_bound[0, 0] < 1e-12 < bounds.log_mass_bound[1, 0], "the first probe was scanned in float64"
    assert bounds.score_bound[0] < 1e-14
    assert_certified(seen, probes, gallery)


def test_a_tolerance_makes_the_probes_concerned_exact() -> None:
    rng = np.random.default_rng(10)
    gallery = unit(random_rows(rng, 2000, 32))
    probes = probes_of(rng, gallery, 12)
    compressed = compress(gallery, "int8")
    free = precision_of(scan_compressed(probes, compressed, [20.0])).log_mass_bound[:, 0]
    tolerance = float(np.median(free))
    held = scan_compressed(probes, compressed, [20.0], tolerance=tolerance)
    kept = precision_of(held).log_mass_bound[:, 0]
    np.testing.assert_array_equal(kept[free <= tolerance], free[free <= tolerance])
    assert (kept[free > tolerance] < 1e-12).all()
    assert_certified(held, probes, gallery)
    none = scan_compressed(probes, compressed, [20.0], tolerance=0)
    np.testing.assert_array_equal(none.log_mass, scan(probes.astype(np.float64), gallery, [20.0]).log_mass)
    assert_certified(none, probes, gallery)
    assert (precision_of(none).log_mass_bound < 1e-12).all()


@pytest.mark.parametrize("form", FORMS)
def test_a_gallery_in_parts_and_a_merge_of_parts_keep_the_bounds(form: Form) -> None:
    rng = np.random.default_rng(11)
    gallery = unit(random_rows(rng, 900, 24))
    probes = probes_of(rng, gallery, 5)
    parted = Gallery.of(np.arange(900), gallery[:300], gallery[300:310], gallery[310:])
    whole = scan_compressed(probes, compress(parted, form), SHARPNESS, threads=2)
    left = scan_compressed(probes, compress(gallery[:400], form), SHARPNESS)
    right = scan_compressed(probes, compress(gallery[400:], form), SHARPNESS).shifted(400)
    for seen in (whole, merge(left, right)):
        assert_certified(seen, probes, gallery)
        assert_same_top(seen, probes, gallery)


def test_bad_input_is_named() -> None:
    gallery = np.eye(3, dtype=np.float32)
    compressed = compress(gallery, "int8")
    with pytest.raises(InvalidEmbeddingsError, match="directions have 2 features, the gallery has 3"):
        scan_compressed(np.eye(2), compressed, [1.0])
    with pytest.raises(InvalidParameterError, match="tolerance must be at least 0"):
        scan_compressed(gallery, compressed, [1.0], tolerance=-1)
    with pytest.raises(InvalidParameterError, match="tolerance must be at least 0"):
        scan_compressed(gallery, compressed, [1.0], tolerance=float("nan"))
    with pytest.raises(InvalidParameterError, match="top_k"):
        scan_compressed(gallery, compressed, [1.0], top_k=-1)
    with pytest.raises(InvalidParameterError, match="sharpness"):
        scan_compressed(gallery, compressed, [-1.0])
    with pytest.raises(GalleryTooSmallError, match="empty"):
        scan_compressed(gallery, compress(gallery[:0], "int8"), [1.0])
    assert len(scan_compressed(gallery[:0], compressed, [1.0])) == 0
