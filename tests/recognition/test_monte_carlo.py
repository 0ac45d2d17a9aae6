"""HolUE-MC estimates the integral it is defined by, the same way whatever the size of the gallery."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlogy

from holue.errors import InvalidConcentrationError
from holue.functional import holistic_terms
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery
from holue.recognition.model import monte_carlo as module
from holue.recognition.model.monte_carlo import sampled_terms
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.model.posterior import log_posterior
from holue.recognition.quality.monte_carlo import MonteCarloQuality
from holue.recognition.reading import Reading
from holue.sphere import vmf
from holue.sphere.bessel import log_hyp0f1

RNG = np.random.default_rng(0)
GALLERY = Gallery.from_samples(RNG.normal(size=(50, 16)), range(50))
POINT = OperatingPoint.solve(dim=16, n_subjects=50, threshold=0.6, concentration=30.0)
T = 5.0


def probes(n: int, kappa: float) -> Embeddings:
    return Embeddings.from_samples(np.random.default_rng(1).normal(size=(n, 16)), kappa)


def terms(some: Embeddings, gallery: Gallery = GALLERY, **how: int) -> np.ndarray:
    return sampled_terms(some, gallery, [POINT], temperature=T, **how)[0]


def integral(mean: np.ndarray, kappa: float, z: np.ndarray) -> tuple[float, float]:
    """KL₁ and KL₂ from samples z of vMF(mean, κ), written out over the whole gallery."""
    log_p, log_p0 = log_posterior(z, GALLERY.directions, POINT.model, POINT.prior, T)
    averaged = np.exp(log_p).mean(0)
    log_density = kappa * z @ mean - log_hyp0f1(16, kappa)
    total = POINT.prior.log_unknown / T - log_p0
    kl2 = np.mean(np.exp(log_p0) * ((1 / T - 1) * POINT.prior.log_unknown + log_density - total))
    return float(xlogy(averaged, averaged / np.exp(POINT.prior.log_subject(50))).sum()), float(kl2)


def test_it_estimates_the_integral_of_independent_draws() -> None:
    some = probes(30, 40.0)
    estimated = terms(some, n_samples=2000)
    rng = np.random.default_rng(3)
    drawn = np.array([integral(mean, 40.0, vmf.sample(mean, 40.0, rng, 20_000)) for mean in some.directions])
    # Some thousands of draws on either side: they differ by a few hundredths of the spread between probes.
    assert (np.sqrt(np.mean((estimated - drawn) ** 2, axis=0)) < 0.05 * drawn.std(axis=0)).all()


def test_a_gallery_drawn_from_the_same_seed_is_sampled_as_any_other() -> None:
    """The shared directions were once the first rows of every simulated gallery of that seed, and KL₁ was far off."""
    point = OperatingPoint.solve(dim=256, n_subjects=200, threshold=0.3)
    found = []
    for people in (np.random.default_rng(0).normal(size=(200, 256)), np.random.default_rng(77).normal(size=(200, 256))):
        gallery = Gallery.from_samples(people, range(200))
        some = Embeddings(gallery.directions[:20], np.full(20, 300.0))
        few, many = (sampled_terms(some, gallery, [point], temperature=T, n_samples=n)[0][:, 0] for n in (16, 1024))
        found.append(np.abs(few - many).mean())
    assert found[0] < 2 * found[1]


def test_its_samples_written_out_give_its_terms() -> None:
    some = probes(5, 40.0)
    shared = module.shared_directions(8, 16, 3)
    samples = module._Samples.around(some.directions, shared, module.stratified_angles(16, np.full(5, 40.0), 8))
    for i, given_terms in enumerate(terms(some, n_samples=8, seed=3)):
        z = samples.onto[i, :, None] * some.directions[i] + samples.across[i, :, None] * shared
        np.testing.assert_allclose(np.linalg.norm(z, axis=1), 1.0)
        np.testing.assert_allclose(given_terms, integral(some.directions[i], 40.0, z), rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(at_once=st.integers(1, 60), cuts=st.lists(st.integers(1, 49), max_size=3, unique=True))
def test_reading_the_gallery_in_blocks_or_parts_changes_nothing(at_once: int, cuts: list[int]) -> None:
    some = probes(5, 40.0)
    whole = terms(some)
    parts = tuple(np.split(GALLERY.directions, sorted(cuts)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SUBJECTS_AT_ONCE", at_once)
        np.testing.assert_allclose(terms(some, Gallery.of(GALLERY.subjects, *parts)), whole, rtol=1e-11)


def test_the_quality_does_not_jump_where_a_gallery_outgrows_a_block(monkeypatch: pytest.MonkeyPatch) -> None:
    """At one subject more than a block the second reading begins; one subject moves a term by about 1/K, not more."""
    rng = np.random.default_rng(0)
    people = rng.normal(size=(2001, 16)).astype(np.float32)
    some = Embeddings.from_samples(people[:200] + 0.3 * rng.normal(size=(200, 16)).astype(np.float32), 40.0)
    monkeypatch.setattr(module, "SUBJECTS_AT_ONCE", 2000)
    found = []
    for size in (1999, 2000, 2001):
        gallery = Gallery.from_samples(people[:size], np.arange(size))
        point = OperatingPoint.solve(dim=16, n_subjects=size, threshold=0.7)
        found.append(MonteCarloQuality().terms(Reading.of(some, gallery, point, temperature=20.0)))
    before, across = (np.abs(b - a).max(axis=0) for a, b in pairwise(found))
    assert (across < 3 * before + 1e-5).all()


def test_a_certain_probe_has_the_mean_value_terms() -> None:
    some = probes(6, 1e7)
    sampled = terms(some, n_samples=64).T
    at_mean = holistic_terms(some.directions, 1e7, GALLERY.directions, 30.0, POINT.unknown_prior, T)
    np.testing.assert_allclose(sampled[0], at_mean[0], atol=1e-3)
    # ln p(z|x) under the expectation is (d−1)/2 below its peak, however sharp the probe: that is its entropy.
    p0 = np.exp(log_posterior(some.directions, GALLERY.directions, POINT.model, POINT.prior, T)[1])
    np.testing.assert_allclose(sampled[1], at_mean[1] - p0 * 15 / 2, atol=p0.max() * 1.5)


def test_samples_follow_the_probe_and_not_its_neighbours() -> None:
    some = probes(4, 40.0)
    np.testing.assert_allclose(terms(some)[2:3], terms(some.take(slice(2, 3))), rtol=1e-12)


def test_a_blurred_probe_is_less_informative_than_a_sharp_one() -> None:
    directions = GALLERY.directions[:10]
    sharp, blurred = (terms(Embeddings(directions, np.full(10, kappa))).sum(axis=1) for kappa in (1e4, 5.0))
    assert (sharp > blurred).all()


def test_probes_without_concentration_are_refused() -> None:
    with pytest.raises(InvalidConcentrationError, match="needs its concentration"):
        terms(Embeddings(GALLERY.directions[:1]))
