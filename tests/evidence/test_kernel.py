"""Every kernel against the dense float64 definition: ties, edges of chunks and tiles, high sharpness, odd memory."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp, softmax

from holue.evidence.evidence import Evidence
from holue.evidence.kernels import kernel as module
from holue.evidence.kernels.exponential_sums import CHUNK
from holue.evidence.kernels.kernel import LinkedKernel, PanelKernel, SweepKernel, kernel_for
from holue.evidence.link import cosine_link, power_link
from holue.evidence.scan import scan
from holue.gallery.gallery import Gallery

Array = npt.NDArray[np.floating]

COSINE_ERROR = 1e-6
"""Of a float32 cosine of up to 512 coordinates summed one after the other: √512 roundings of 6e-8, with a margin."""
MASS_ERROR = 1e-6
"""Of a log-mass beyond that of its cosines: the polynomial, and float32 exponents (see binned_sums.py)."""


def unit(rng: np.random.Generator, *shape: int) -> Array:
    x = rng.normal(size=shape)
    return (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(np.float32)


def assert_dense(seen: Evidence, probes: Array, gallery: Array, *, cosine_error: float = COSINE_ERROR) -> None:
    """Evidence equals the definition, within what float32 cosines allow."""
    scores = probes.astype(np.float64) @ gallery.astype(np.float64).T
    k = min(seen.top_index.shape[1], len(gallery))
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    np.testing.assert_allclose(seen.top_scores[:, :k], np.take_along_axis(scores, order, 1), atol=cosine_error)
    assert (seen.top_index[:, k:] == -1).all()
    assert (seen.top_scores[:, k:] == -np.inf).all()
    if cosine_error == 0:
        np.testing.assert_array_equal(seen.top_index[:, :k], order)
    for t, a in enumerate(seen.sharpness):
        log_mass = logsumexp(a * scores, axis=1)
        assert np.abs(seen.log_mass[:, t] - log_mass).max() <= a * cosine_error + MASS_ERROR
        weights = softmax(a * scores, axis=1)
        mean = (weights * scores).sum(axis=1)
        # An error ε of the cosines moves the weights by a relative a·ε, and the mean by that times the spread.
        spread = np.sqrt((weights * (scores - mean[:, None]) ** 2).sum(axis=1))
        assert (np.abs(seen.mean_score[:, t] - mean) <= cosine_error * (1 + 2 * a * spread) + MASS_ERROR).all()
    assert seen.n_subjects == len(gallery)


FAST = SweepKernel, PanelKernel


def use(monkeypatch: pytest.MonkeyPatch, kind: type) -> None:
    """Let all float32 probes be read by one of the fast kernels."""
    monkeypatch.setattr(module, "FEW_PROBES", 10**6 if kind is SweepKernel else 0)


@st.composite
def axis_worlds(draw: st.DrawFn) -> tuple[Array, Array]:
    """Probes and subjects along the axes: scores are exactly −1, 0 and 1, so every tie is a true one."""
    dim = draw(st.sampled_from([1, 2, 8, 11]))
    axes = np.concatenate([np.eye(dim), -np.eye(dim)]).astype(np.float32)
    pick = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_subjects = draw(st.sampled_from([1, 2, 3, 4, 5, 31, 33, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 3]))
    n_probes = draw(st.sampled_from([1, 2, 3, 4, 5, 6, 7]))
    return axes[pick.integers(2 * dim, size=n_probes)], axes[pick.integers(2 * dim, size=n_subjects)]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    axis_worlds(),
    st.sampled_from(FAST),
    st.sampled_from([1, 7, 300, 10000]),
    st.lists(st.sampled_from([0.0, 0.5, 20.0, 400.0, 5000.0, 1e6, 1e300]), max_size=3),
    st.sampled_from([0, 1, 2, 5, 40, 600]),
    st.integers(1, 3),
)
def test_fast_kernels_agree_with_the_definition_where_ties_abound(  # type: ignore[no-untyped-def]
    monkeypatch, world, kind, block, sharpness, top_k, threads
) -> None:
    probes, gallery = world
    use(monkeypatch, kind)
    monkeypatch.setattr(module, "SWEEP_BLOCK", block)
    monkeypatch.setattr(module, "SUBJECT_BLOCK", block)
    monkeypatch.setattr(module, "PROBE_BLOCK", 5)
    a = np.array(sharpness)
    assert isinstance(kernel_for(probes, cosine_link, a), kind if a.max(initial=0) <= 1e6 else LinkedKernel)
    seen = scan(probes, gallery, sharpness, top_k=top_k, threads=threads)
    assert_dense(seen, probes, gallery, cosine_error=0)


@pytest.mark.parametrize("kind", FAST)
@pytest.mark.parametrize("dim", [3, 8, 100, 512])
@pytest.mark.parametrize("n_subjects", [5, 777, 2100])
@pytest.mark.parametrize("n_probes", [1, 4, 17, 67])
def test_fast_kernels_keep_their_bound_up_to_concentration_5000(
    monkeypatch: pytest.MonkeyPatch, kind: type, dim: int, n_subjects: int, n_probes: int
) -> None:
    use(monkeypatch, kind)
    rng = np.random.default_rng(dim)
    probes, gallery = unit(rng, n_probes, dim), unit(rng, n_subjects, dim)
    probes[::2] = gallery[rng.integers(n_subjects, size=len(probes[::2]))]  # a mated probe's peak towers over the rest
    seen = scan(probes, gallery, [0.0, 1.0, 20.0, 250.0, 400.0, 5000.0], top_k=6, threads=2)
    assert_dense(seen, probes, gallery)


def test_an_ascending_gallery_raises_the_maximum_in_every_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SWEEP_BLOCK", 64)
    angle = np.linspace(np.pi, 0.0, 3000)
    gallery = np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)
    probe = np.array([[1.0, 0.0]], dtype=np.float32)
    for kind in FAST:
        use(monkeypatch, kind)
        assert_dense(scan(probe, gallery, [1.0, 5000.0], threads=1), probe, gallery)
        assert_dense(scan(probe, gallery[::-1], [1.0, 5000.0], threads=1), probe, gallery[::-1])


def test_equal_rows_score_equally_wherever_they_stand() -> None:
    rng = np.random.default_rng(3)
    gallery = np.tile(unit(rng, 1, 45), (2 * CHUNK + 9, 1))
    probes = unit(rng, 7, 45)
    seen = scan(probes, gallery, [20.0], top_k=len(gallery), threads=2)
    np.testing.assert_array_equal(seen.top_index, np.tile(np.arange(len(gallery)), (7, 1)))
    assert (seen.top_scores == seen.top_scores[:, :1]).all()


def test_every_link_and_precision_but_the_fast_one_is_read_in_float64() -> None:
    rng = np.random.default_rng(4)
    probes = unit(rng, 3, 6)
    assert isinstance(kernel_for(probes, power_link, np.ones(1)), LinkedKernel)
    assert isinstance(kernel_for(probes.astype(np.float64), cosine_link, np.ones(1)), LinkedKernel)
    x, gallery = probes.astype(np.float64), rng.normal(size=(900, 6))
    gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)
    seen = scan(x, gallery, [400.0, 20.0])
    np.testing.assert_allclose(
        seen.log_mass, np.stack([logsumexp(a * (x @ gallery.T), axis=1) for a in (400.0, 20.0)], axis=1), rtol=1e-12
    )


@pytest.mark.parametrize("n_probes", [2, 70])
def test_strided_reversed_half_precision_and_read_only_galleries_are_read(n_probes: int) -> None:
    rng = np.random.default_rng(5)
    probes, gallery = unit(rng, n_probes, 24), unit(rng, 1000, 24)
    frozen = gallery.copy()
    frozen.flags.writeable = False
    for form in (gallery[::3], gallery[::-1], np.asfortranarray(gallery), frozen, gallery.astype(np.float16)):
        assert_dense(scan(probes, form, [20.0, 400.0]), probes, form)


def test_a_mapped_gallery_is_read_in_place(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    gallery = unit(rng, 5000, 16)
    gallery.tofile(tmp_path / "gallery.f32")
    mapped = np.memmap(tmp_path / "gallery.f32", dtype=np.float32, mode="r", shape=gallery.shape)
    for n_probes in (1, 80):
        whole = scan(gallery[:n_probes], gallery, [20.0], threads=2)
        for form in (mapped, Gallery.of(np.arange(5000), mapped)):
            read = scan(gallery[:n_probes], form, [20.0], threads=2)
            np.testing.assert_array_equal(whole.top_index, read.top_index)
            np.testing.assert_array_equal(whole.log_mass, read.log_mass)


@pytest.mark.parametrize("n_probes", [1, 5, 6, 7, 64, 65, 100])
@pytest.mark.parametrize("dim", [3, 8, 45, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_score_of_a_probe_and_a_row_does_not_depend_on_where_the_row_stands(
    n_probes: int, dim: int, dtype: type
) -> None:
    rng = np.random.default_rng(7)
    probes, rows = unit(rng, n_probes, dim).astype(dtype), unit(rng, CHUNK + 37, dim).astype(dtype)
    kernel = kernel_for(probes, cosine_link, np.ones(1))
    whole = kernel.scores(rows)
    for some in (slice(1, 2), slice(3, 20), slice(500, 540), slice(None, None, -1)):
        np.testing.assert_array_equal(kernel.scores(rows[some]), whole[:, some])
