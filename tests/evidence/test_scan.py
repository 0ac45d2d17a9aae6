import tracemalloc

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import logsumexp

from holue.errors import GalleryTooSmallError, InvalidEmbeddingsError, InvalidParameterError
from holue.evidence.kernels import kernel as module
from holue.evidence.link import ConvolvedLink, power_link
from holue.evidence.scan import scan
from holue.gallery.gallery import Gallery
from holue.sphere import vmf


def unit(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.float64]:
    x = rng.normal(size=shape)
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    # A float32 cosine of 300 terms errs by about 1e-7, and the sharpness multiplies it.
    [(np.float64, 1e-11), (np.float32, 5000 * 4e-7)],
)
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_blocks_and_threads_agree_with_the_dense_reference(
    monkeypatch: pytest.MonkeyPatch, dtype: type, tolerance: float, threads: int
) -> None:
    for block in ("SUBJECT_BLOCK", "SWEEP_BLOCK"):
        monkeypatch.setattr(module, block, 17)
    monkeypatch.setattr(module, "PROBE_BLOCK", 13)
    rng = np.random.default_rng(0)
    probes, gallery = unit(rng, 40, 300).astype(dtype), unit(rng, 200, 300).astype(dtype)
    probes[:20] = gallery[:20]
    sharpness = np.array([0.0, 1.0, 20.0, 400.0, 5000.0])
    seen = scan(probes, gallery, sharpness, top_k=7, threads=threads)
    scores = probes.astype(np.float64) @ gallery.astype(np.float64).T
    order = np.argsort(-scores, axis=1, kind="stable")[:, :7]
    np.testing.assert_array_equal(seen.top_index, order)
    exponents = sharpness * scores[:, :, None]
    log_mass = logsumexp(exponents, axis=1)
    np.testing.assert_allclose(seen.log_mass, log_mass, atol=tolerance)
    mean = np.einsum("nk,nkm->nm", scores, np.exp(exponents - log_mass[:, None]))
    np.testing.assert_allclose(seen.mean_score, mean, atol=max(tolerance / 1000, 1e-12))


def test_ties_go_to_the_smaller_row_however_the_gallery_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    gallery = np.tile(np.eye(3), (4, 1))
    expected = [[0, 3, 6, 9]]
    for block in (1, 2, 5, 100):
        monkeypatch.setattr(module, "SUBJECT_BLOCK", block)
        for threads in (1, 2, 3):
            assert scan(np.eye(3)[:1], gallery, [1.0], top_k=4, threads=threads).top_index.tolist() == expected


def test_fewer_subjects_than_places_leave_places_unfilled() -> None:
    seen = scan(np.eye(2), np.eye(2)[:1], [3.0], top_k=3)
    assert seen.top_index.tolist() == [[0, -1, -1], [0, -1, -1]]
    assert (seen.top_scores[:, 1:] == -np.inf).all()
    np.testing.assert_allclose(seen.log_mass[:, 0], [3.0, 0.0])


def test_a_gallery_in_parts_gives_the_same_evidence_as_one_matrix() -> None:
    rng = np.random.default_rng(1)
    X = unit(rng, 30, 6)
    gallery = Gallery.from_samples(X[:20], range(20)).enroll(X[20:], range(20, 30))
    whole, parted = scan(X[:4], gallery.directions, [5.0]), scan(X[:4], gallery, [5.0])
    np.testing.assert_array_equal(whole.top_index, parted.top_index)
    np.testing.assert_array_equal(whole.log_mass, parted.log_mass)


def test_memory_stays_at_the_size_of_blocks() -> None:
    rng = np.random.default_rng(2)
    probes, gallery = unit(rng, 2000, 8).astype(np.float32), unit(rng, 20000, 8).astype(np.float32)
    scan(probes[:2], gallery, [10.0])  # compile first
    tracemalloc.start()
    scan(probes, gallery, [10.0, 1.0], threads=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2000 * 20000 * 4 / 4, f"peak of {peak} bytes: did the score matrix appear?"


def test_power_link_is_the_power_spherical_exponent() -> None:
    scores = np.array([[-1.0, 0.0, 0.5]])
    np.testing.assert_allclose(power_link(scores, 0), [[-np.inf, 0, np.log(1.5)]])
    seen = scan(np.eye(2)[:1], np.array([[-1.0, 0.0], [0.0, 1.0]]), [3.0], link=power_link)
    np.testing.assert_allclose(seen.log_mass, [[0.0]])
    np.testing.assert_allclose(seen.mean_score, [[0.0]])


def test_convolved_link_is_the_integral_of_two_densities() -> None:
    # On the circle the integral over all directions is a sum over a fine grid of angles.
    kappa, kappa_x = 7.0, 3.0
    angles = np.linspace(-np.pi, np.pi, 20000, endpoint=False)
    scores = np.array([[-1.0, -0.2, 0.6, 1.0]])
    for s, value in zip(scores[0], ConvolvedLink(2, kappa, np.array([kappa_x]))(scores, 0)[0]):
        log_f = vmf.log_density(np.cos(angles), 2, kappa) + vmf.log_density(np.cos(angles - np.arccos(s)), 2, kappa_x)
        integral = np.mean(np.exp(log_f)) * 2 * np.pi
        np.testing.assert_allclose(np.exp(value) / (2 * np.pi), integral, rtol=1e-9)


def test_bad_input_is_named() -> None:
    with pytest.raises(GalleryTooSmallError, match="empty"):
        scan(np.eye(2), np.empty((0, 2)), [1.0])
    with pytest.raises(InvalidEmbeddingsError, match="directions have 3 features, the gallery has 2"):
        scan(np.eye(3), np.eye(2), [1.0])
    for sharpness in ([-1.0], [np.nan], [np.inf], [[1.0]]):
        with pytest.raises(InvalidParameterError, match="sharpness"):
            scan(np.eye(2), np.eye(2), sharpness)
    with pytest.raises(InvalidParameterError, match="top_k"):
        scan(np.eye(2), np.eye(2), [1.0], top_k=-1)
    with pytest.raises(InvalidParameterError, match="threads"):
        scan(np.eye(2), np.eye(2), [1.0], threads=0)
