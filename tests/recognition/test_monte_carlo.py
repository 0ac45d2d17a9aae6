import numpy as np
import pytest
from scipy.special import xlogy

from holue.errors import InvalidConcentrationError
from holue.functional import holistic_terms
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery
from holue.recognition.model import monte_carlo as module
from holue.recognition.model.class_model import Prior, VonMisesFisher
from holue.recognition.model.monte_carlo import monte_carlo_terms
from holue.recognition.model.posterior import log_posterior
from holue.sphere import vmf
from holue.sphere.bessel import log_hyp0f1

RNG = np.random.default_rng(0)
GALLERY = Gallery.from_samples(RNG.normal(size=(50, 16)), range(50))
MODEL, PRIOR, T = VonMisesFisher(16, 30.0), Prior.of(0.4), 5.0


def probes(n: int, kappa: float) -> Embeddings:
    return Embeddings.from_samples(np.random.default_rng(1).normal(size=(n, 16)), kappa)


def test_a_certain_probe_has_the_mean_value_terms() -> None:
    some = probes(6, 1e7)
    sampled = monte_carlo_terms(some, GALLERY, MODEL, PRIOR, temperature=T, n_samples=64)
    at_mean = holistic_terms(some.directions, 1e7, GALLERY.directions, 30.0, 0.4, T)
    np.testing.assert_allclose(sampled[0], at_mean[0], atol=1e-3)
    # ln p(z|x) under the expectation is (d−1)/2 below its peak, however sharp the probe: that is its entropy.
    p0 = np.exp(log_posterior(some.directions, GALLERY.directions, MODEL, PRIOR, T)[1])
    np.testing.assert_allclose(sampled[1], at_mean[1] - p0 * 15 / 2, atol=p0.max() * 1.5)


def test_streaming_agrees_with_the_integral_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SUBJECT_BLOCK", 7)
    monkeypatch.setattr(module, "PROBES_AT_ONCE", 2)
    some = probes(5, 40.0)
    kl1, kl2 = monte_carlo_terms(some, GALLERY, MODEL, PRIOR, temperature=T, n_samples=8, seed=3)
    for i, mean in enumerate(some.directions):
        z = module._draw(mean, 40.0, 8, 3)
        log_p, log_p0 = log_posterior(z, GALLERY.directions, MODEL, PRIOR, T)
        averaged = np.exp(log_p).mean(0)
        expected1 = xlogy(averaged, averaged / np.exp(PRIOR.log_subject(50))).sum()
        log_density = 40.0 * z @ mean - log_hyp0f1(16, 40.0)
        total = PRIOR.log_unknown / T - log_p0
        expected2 = np.mean(np.exp(log_p0) * ((1 / T - 1) * PRIOR.log_unknown + log_density - total))
        np.testing.assert_allclose([kl1[i], kl2[i]], [expected1, expected2], rtol=1e-10)


def test_samples_follow_the_probe_and_not_its_neighbours() -> None:
    some = probes(4, 40.0)
    whole = monte_carlo_terms(some, GALLERY, MODEL, PRIOR)
    alone = monte_carlo_terms(some.take(slice(2, 3)), GALLERY, MODEL, PRIOR)
    np.testing.assert_allclose([whole[0][2], whole[1][2]], [alone[0][0], alone[1][0]], rtol=1e-12)


def test_a_blurred_probe_is_less_informative_than_a_sharp_one() -> None:
    directions = GALLERY.directions[:10]
    sharp = monte_carlo_terms(Embeddings(directions, np.full(10, 1e4)), GALLERY, MODEL, PRIOR, temperature=T)
    blurred = monte_carlo_terms(Embeddings(directions, np.full(10, 5.0)), GALLERY, MODEL, PRIOR, temperature=T)
    assert (sum(sharp) > sum(blurred)).all()


def test_draws_have_the_asked_concentration() -> None:
    z = module._draw(GALLERY.directions[0], 50.0, 4000, 0)
    assert np.mean(z @ GALLERY.directions[0]) == pytest.approx(float(vmf.mean_resultant_length(16, 50.0)), abs=0.01)


def test_probes_without_concentration_are_refused() -> None:
    with pytest.raises(InvalidConcentrationError, match="needs its concentration"):
        monte_carlo_terms(Embeddings(GALLERY.directions[:1]), GALLERY, MODEL, PRIOR)
