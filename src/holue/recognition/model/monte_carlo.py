"""Monte Carlo: HolUE's integral over the probe's own distribution, by sampling.

The paper replaces ``P(c|x) = E_{z ~ vMF(μ_x, κ_x)} P_T(c|z)`` by its value at the mean. Here the expectation is taken over
samples. The logarithm in KL₁ comes after the average, so the gallery is read twice: once for ``L_T(z)`` of every sample, once
for ``Σ_c P̄(c) ln P̄(c)``; each pass streams over blocks.
"""

from __future__ import annotations

import zlib

import numpy as np
from scipy.special import xlogy

from holue.errors import InvalidConcentrationError
from holue.evidence.scan import SUBJECT_BLOCK, scan
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.gallery import Gallery
from holue.recognition.model.class_model import Prior, VonMisesFisher, close
from holue.sphere import vmf
from holue.sphere.bessel import log_hyp0f1

PROBES_AT_ONCE = 64


def monte_carlo_terms(
    probes: Embeddings,
    gallery: Gallery,
    model: VonMisesFisher,
    prior: Prior,
    *,
    temperature: float = 20.0,
    n_samples: int = 16,
    seed: int = 0,
) -> tuple[Float64Array, Float64Array]:
    """KL₁ and KL₂ (n,) with the integral sampled:

        KL₁ = Σ_c P̄(c) [ln P̄(c) − ln((1−β)/K)],   P̄(c) = mean_m P_T(c|z_m)
        KL₂ = mean_m P_T(0|z_m) [(1/T − 1) ln β + ln(p(z_m|x) S) − L_T(z_m)]

    The generator of each probe is seeded by the probe itself, so that an answer does not depend on its neighbours.
    """
    if probes.concentrations is None:
        raise InvalidConcentrationError("Monte-Carlo HolUE samples around each probe and needs its concentration")
    parts = [
        _terms(probes.take(slice(i, i + PROBES_AT_ONCE)), gallery, model, prior, temperature, n_samples, seed)
        for i in range(0, len(probes), PROBES_AT_ONCE)
    ]
    return np.concatenate([kl1 for kl1, _ in parts]), np.concatenate([kl2 for _, kl2 in parts])


def _terms(
    probes: Embeddings,
    gallery: Gallery,
    model: VonMisesFisher,
    prior: Prior,
    temperature: float,
    n_samples: int,
    seed: int,
) -> tuple[Float64Array, Float64Array]:
    n, dim, kappa_x = len(probes), probes.dim, probes.concentrations
    assert kappa_x is not None
    samples = np.stack([_draw(row, float(kappa), n_samples, seed) for row, kappa in zip(probes.directions, kappa_x)])
    flat = samples.reshape(n * n_samples, dim).astype(probes.directions.dtype)
    evidence = scan(flat, gallery, [model.slope / temperature], top_k=1)
    posterior = close(evidence, 0, model, prior, len(gallery), temperature)

    along = np.einsum("nmd,nd->nm", samples, probes.directions)
    log_density = kappa_x[:, None] * along - np.asarray(log_hyp0f1(dim, kappa_x))[:, None]
    kl_unknown = posterior.kl_unknown(log_density.reshape(-1)).reshape(n, n_samples).mean(axis=1)

    base = (posterior.log_subject_prior + model.height) / temperature - posterior.log_total
    known, known_log_known = np.zeros(n), np.zeros(n)
    for _, block in gallery.blocks(SUBJECT_BLOCK):
        log_p = base[:, None] + model.slope / temperature * (flat @ block.T)
        averaged = np.exp(log_p).reshape(n, n_samples, -1).mean(axis=1)
        known += averaged.sum(axis=1)
        known_log_known += xlogy(averaged, averaged).sum(axis=1)
    return known_log_known - posterior.log_subject_prior * known, kl_unknown


def _draw(mean: Float64Array, concentration: float, n_samples: int, seed: int) -> Float64Array:
    direction = np.asarray(mean, dtype=np.float64)
    # Rounded, so that the same direction up to rounding draws the same samples; adding 0 turns −0 into 0.
    rng = np.random.default_rng([seed, zlib.crc32((np.round(direction, 4) + 0.0).tobytes())])
    return vmf.sample(direction, concentration, rng, n_samples)
