"""The paper's lemmas, against definitions written out densely and against 50 digits."""

import mpmath as mp
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.errors import InvalidInputError
from holue.evidence.scan import scan
from holue.functional import holistic_terms, posterior, threshold_from_concentration
from holue.recognition.model.class_model import (
    ConvolvedVonMisesFisher,
    PowerSpherical,
    Prior,
    VonMisesFisher,
    close,
    log_peak,
)
from holue.recognition.model.posterior import log_posterior
from holue.sphere import power, vmf
from holue.sphere.area import log_area

FloatArray = npt.NDArray[np.float64]


def world(seed: int, n: int, k: int, dim: int) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    gallery = rng.normal(size=(k, dim))
    gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)
    probes = gallery[rng.integers(0, k, n)] * rng.uniform(0, 1, (n, 1)) + rng.normal(size=(n, dim)) / np.sqrt(dim)
    return probes / np.linalg.norm(probes, axis=1, keepdims=True), gallery


def reference(scores, dim, kappa, beta, temperature, kappa_x):  # type: ignore[no-untyped-def]
    """One probe, 50 digits, straight from the definitions with the area of the sphere written out."""
    with mp.workdps(50):
        k, half, t = len(scores), mp.mpf(dim) / 2, mp.mpf(temperature)
        log_area_ = mp.log(2) + half * mp.log(mp.pi) - mp.loggamma(half)

        def log_c(kappa):  # type: ignore[no-untyped-def]
            return -log_area_ - mp.log(mp.hyp0f1(half, mp.mpf(kappa) ** 2 / 4))

        b = mp.mpf(beta)
        joint = [mp.log((1 - b) / k) + log_c(kappa) + mp.mpf(kappa) * mp.mpf(float(s)) for s in scores]
        joint0 = mp.log(b) - log_area_
        total = mp.log(sum(mp.exp(j / t) for j in joint) + mp.exp(joint0 / t))
        p = [mp.exp(j / t - total) for j in joint]
        p0 = mp.exp(joint0 / t - total)
        kl1 = sum(q * (mp.log(q) - mp.log((1 - b) / k)) for q in p)
        peak = log_c(kappa_x) + mp.mpf(kappa_x)
        kl2 = p0 * ((1 / t - 1) * (mp.log(b) - log_area_) + peak - total)
        return [float(mp.log(q)) for q in p], float(mp.log(p0)), float(kl1), float(kl2)


@pytest.mark.parametrize(("dim", "k"), [(2, 1), (2, 7), (3, 5), (16, 30), (128, 20), (512, 40), (1024, 10), (4096, 5)])
@pytest.mark.parametrize("temperature", [1.0, 20.0])
def test_posterior_and_holistic_terms_have_fifty_digit_accuracy(dim: int, k: int, temperature: float) -> None:
    probes, gallery = world(dim, 3, k, dim)
    kappa, beta, kappa_x = 1.7 * dim**0.75, 0.3, np.array([0.5, 80.0, 2500.0])
    log_p, log_p0 = posterior(probes, gallery, kappa, beta, temperature)
    kl1, kl2 = holistic_terms(probes, kappa_x, gallery, kappa, beta, temperature)
    for i in range(3):
        ref_p, ref_p0, ref_kl1, ref_kl2 = reference(probes[i] @ gallery.T, dim, kappa, beta, temperature, kappa_x[i])
        # The cosines themselves carry about 1e-16·κ of rounding.
        np.testing.assert_allclose(log_p[i], ref_p, atol=1e-11)
        np.testing.assert_allclose(log_p0[i], ref_p0, atol=1e-11)
        np.testing.assert_allclose(kl1[i], ref_kl1, atol=1e-10, rtol=1e-10)
        np.testing.assert_allclose(kl2[i], ref_kl2, atol=1e-10, rtol=1e-10)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(1, 40),
    st.sampled_from([2, 3, 10, 64, 512, 1024]),
    st.floats(1e-3, 5000),
    st.floats(1e-6, 1 - 1e-6),
    st.sampled_from([1.0, 3.0, 20.0]),
)
def test_probabilities_sum_to_one_and_decisions_are_those_of_the_threshold(
    seed: int, k: int, dim: int, kappa: float, beta: float, temperature: float
) -> None:
    probes, gallery = world(seed, 6, k, dim)
    log_p, log_p0 = posterior(probes, gallery, kappa, beta, temperature)
    np.testing.assert_allclose(np.exp(log_p).sum(1) + np.exp(log_p0), 1, atol=1e-9)
    scores = probes @ gallery.T
    tau = threshold_from_concentration(dim, k, kappa, beta)
    clear = np.abs(scores.max(1) - tau) * kappa > 1e-9  # at the boundary itself rounding decides
    rejected = log_p0 > log_p.max(1)
    np.testing.assert_array_equal(rejected[clear], (scores.max(1) < tau)[clear])
    np.testing.assert_array_equal(log_p.argmax(1), scores.argmax(1))


@pytest.mark.parametrize("family", [VonMisesFisher, PowerSpherical])
@pytest.mark.parametrize("dim", [2, 9, 512])
def test_evidence_closes_into_the_dense_posterior(family: type[VonMisesFisher], dim: int) -> None:
    probes, gallery = world(4, 5, 30, dim)
    model, prior, temperature = family(dim, 60.0), Prior.of(0.4), 7.0
    seen = scan(probes, gallery, [60.0 / temperature], top_k=4, link=model.link)
    closed = close(seen, 0, model, prior, 30, temperature)
    log_p, log_p0 = log_posterior(probes, gallery, model, prior, temperature)
    np.testing.assert_allclose(closed.log_p_unknown, log_p0, atol=1e-11)
    np.testing.assert_allclose(closed.log_p_top, np.take_along_axis(log_p, seen.top_index, 1), atol=1e-11)
    p = np.exp(log_p)
    np.testing.assert_allclose(np.exp(closed.log_p_known), p.sum(1), atol=1e-11)
    entropy = -(p * log_p).sum(1) - np.exp(log_p0) * log_p0
    np.testing.assert_allclose(closed.entropy, entropy, atol=1e-10)
    kl = (p * (log_p - prior.log_subject(30))).sum(1)
    np.testing.assert_allclose(closed.kl_gallery, kl, atol=1e-10)


def test_lemma_1_the_density_is_the_mixture() -> None:
    probes, gallery = world(5, 4, 6, 8)
    kappa, prior = 12.0, Prior.of(0.25)
    model = VonMisesFisher(8, kappa)
    closed = close(scan(probes, gallery, [kappa]), 0, model, prior, 6)
    density = np.exp(vmf.log_density(probes @ gallery.T, 8, kappa)).mean(1) * 0.75 + 0.25 / np.exp(log_area(8))
    np.testing.assert_allclose(closed.log_total - log_area(8), np.log(density), atol=1e-12)


def test_power_spherical_density_is_relative_to_the_uniform_one() -> None:
    model = PowerSpherical(5, 9.0)
    scores = np.array([[-0.5, 0.2, 1.0]])
    relative = model.height + model.slope * np.asarray(model.link(scores, 0))
    np.testing.assert_allclose(relative - log_area(5), power.log_density(scores, 5, 9.0), atol=1e-12)


def test_a_sharp_probe_leaves_the_posterior_alone_and_a_blurred_one_flattens_it() -> None:
    probes, gallery = world(6, 1, 20, 64)
    prior, sharp = Prior.of(0.5), VonMisesFisher(64, 100.0)
    plain = close(scan(probes, gallery, [100.0]), 0, sharp, prior, 20)

    def through(kappa_x: float) -> float:
        model = ConvolvedVonMisesFisher(64, 100.0, np.array([kappa_x]))
        seen = scan(probes, gallery, [1.0], link=model.link)
        return float(np.exp(close(seen, 0, model, prior, 20).log_p_top[0, 0]))

    np.testing.assert_allclose(through(1e7), np.exp(plain.log_p_top[0, 0]), rtol=1e-3)
    assert through(1e-4) == pytest.approx(0.5 / 20, rel=1e-3)  # nothing learned: the prior


def test_extreme_priors_do_not_round_away() -> None:
    prior = Prior(-2000.0)
    assert prior.log_unknown == pytest.approx(-2000)
    assert Prior(2000.0).log_subject(1) == pytest.approx(-2000)
    assert Prior.of(0.5).probability == 0.5


def test_log_peak_grows_like_half_the_dimension_times_log_concentration() -> None:
    low, high = log_peak(512, np.array([1e6, 1e7]))
    assert (high - low) / np.log(10) == pytest.approx(511 / 2, rel=1e-3)


def test_evidence_must_fit_the_model_and_cover_the_gallery() -> None:
    probes, gallery = world(7, 2, 5, 4)
    seen = scan(probes, gallery, [3.0])
    with pytest.raises(InvalidInputError, match=r"sharpness 3.0, not at a/T = 4.0"):
        close(seen, 0, VonMisesFisher(4, 4.0), Prior.of(0.5), 5)
    with pytest.raises(InvalidInputError, match="covers 5 of 9 subjects"):
        close(seen, 0, VonMisesFisher(4, 3.0), Prior.of(0.5), 9)
