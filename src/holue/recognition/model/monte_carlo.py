"""Monte Carlo: HolUE's integral over the probe's own distribution, by sampling.

The paper replaces ``P(c|x) = E_{z ~ vMF(μ_x, κ_x)} P_T(c|z)`` by its value at the mean. Here the expectation is taken over
samples,

    KL₁ = Σ_c P̄(c) [ln P̄(c) − ln((1−β)/K)],   P̄(c) = mean_m P_T(c|z_m)
    KL₂ = mean_m P_T(0|z_m) [(1/T − 1) ln β + ln(p(z_m|x) S) − L_T(z_m)]

with ``z_m = w_m μ_x + √(1 − w_m²) t_m``. The cosines ``w_m`` are the midpoint quantiles of their own distribution, and ``t_m``
is a Gaussian direction ``g_m``, *the same for every probe*, made orthogonal to the probe: still uniform among its tangents.
The cosine of a sample to subject ``c`` then needs no product of its own,

    z_m·μ_c = (w_m − √(1 − w_m²) b_m/r_m) s_c + (√(1 − w_m²)/r_m) g_m·μ_c,    b_m = g_m·μ_x,  r_m² = |g_m|² − b_m²

and all operating points read it once. The logarithm in KL₁ comes after the average over samples, so a gallery of several
blocks is read twice: for ``L_T(z_m)``, then for ``Σ_c P̄(c) ln P̄(c)``. The samples, and so the estimate, are the same
whatever the size.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain

import numpy as np
from scipy.special import xlogy
from threadpoolctl import threadpool_limits

from holue.errors import InvalidConcentrationError
from holue.evidence.evidence import Evidence
from holue.gallery.embeddings import Embeddings
from holue.gallery.embeddings import Float64Array as FloatArray
from holue.gallery.embeddings import FloatArray as AnyFloatArray
from holue.gallery.gallery import Gallery
from holue.recognition.model.class_model import Posterior, close
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.search.gallery_search import GallerySearch
from holue.recognition.search.search import Search
from holue.sphere.bessel import log_hyp0f1

N_SAMPLES = 16
CHUNK, AT_ONCE = 256, 8
"""Probes of one product, and of one array of sampled scores: small enough to stay in the cache."""
SUBJECTS_AT_ONCE = 32_768
"""Subjects of one product: beyond these a gallery is read twice, in blocks."""
GRID, REACH = 257, 8.0
STREAM = 0x686F6C7565


def sampled_terms(
    probes: Embeddings,
    gallery: Gallery | Search,
    points: Sequence[OperatingPoint],
    *,
    temperature: float,
    n_samples: int = N_SAMPLES,
    seed: int = 0,
    threads: int | None = None,
) -> list[FloatArray]:
    """KL₁ and KL₂ (n, 2) at every operating point.

    A probe's terms depend on the seed and on the probe, not on its neighbours. Memory does not grow with the gallery.
    """
    if probes.concentrations is None:
        raise InvalidConcentrationError("Monte-Carlo HolUE samples around each probe and needs its concentration")
    search = GallerySearch.exact(gallery) if isinstance(gallery, Gallery) else gallery
    kappa_x = probes.concentrations
    shared = shared_directions(n_samples, probes.dim, seed)
    angles = stratified_angles(probes.dim, kappa_x, n_samples)
    log_density = kappa_x[:, None] * np.cos(angles) - np.asarray(log_hyp0f1(probes.dim, kappa_x))[:, None]

    def chunk(first: int) -> FloatArray:
        rows = slice(first, first + CHUNK)
        samples = _Samples.around(probes.directions[rows], shared, angles[rows])
        return _terms(samples, search, log_density[rows], points, temperature)

    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        terms = np.concatenate(list(pool.map(chunk, range(0, len(probes), CHUNK))), axis=1)
    return list(terms)


def shared_directions(n_samples: int, dim: int, seed: int) -> FloatArray:
    """The Gaussian directions ``g_m`` (m, d).

    They come from a stream of their own: a made-up gallery drawn from ``default_rng(seed)`` would otherwise hold these very
    directions, and every sample would lie close to a subject.
    """
    return np.random.default_rng([seed, STREAM]).normal(size=(n_samples, dim))


@dataclass(frozen=True, eq=False)
class _Samples:
    """Sampled directions ``z_m = onto·μ_x + across·g_m`` around n probes, never written out."""

    mean: AnyFloatArray  # (n, d)
    shared: FloatArray  # (m, d)
    onto: FloatArray  # (n, m)
    across: FloatArray  # (n, m)

    @classmethod
    def around(cls, mean: AnyFloatArray, shared: FloatArray, angles: FloatArray) -> _Samples:
        along = mean.astype(np.float64) @ shared.T
        reach = np.sqrt(np.maximum((shared**2).sum(axis=1) - along**2, 1e-24))
        across = np.sin(angles) / reach
        return cls(mean, shared, np.cos(angles) - across * along, across)

    def scores(self, block: AnyFloatArray) -> Iterator[tuple[slice, AnyFloatArray]]:
        """The cosines (few, m, subjects) of the samples to a block of subjects, some probes at a time."""
        dtype = np.result_type(block, self.mean)
        block = block.astype(dtype, copy=False)
        along_block = (self.shared.astype(dtype) @ block.T)[None]
        scores = self.mean.astype(dtype, copy=False) @ block.T
        for start in range(0, len(scores), AT_ONCE):
            few = slice(start, start + AT_ONCE)
            sampled = self.onto[few, :, None].astype(dtype) * scores[few, None, :]
            sampled += self.across[few, :, None].astype(dtype) * along_block
            yield few, sampled


def _terms(
    samples: _Samples, search: Search, log_density: FloatArray, points: Sequence[OperatingPoint], temperature: float
) -> FloatArray:
    """The terms (points, n, 2) of n probes."""
    n, m = log_density.shape
    sharpness = [point.concentration / temperature for point in points]
    log_mass = np.full((len(points), n, m), -np.inf)
    blocks = search.blocks(SUBJECTS_AT_ONCE)
    first = next(blocks)
    one_block = len(first[0]) == len(search)
    if not one_block:
        for _, block in chain([first], blocks):
            for few, sampled in samples.scores(block):
                for i, (_, _, mass) in enumerate(_weights(sampled, sharpness)):
                    log_mass[i, few] = np.logaddexp(log_mass[i, few], mass)
    terms, known = np.zeros((len(points), n, 2)), np.zeros((len(points), n))
    for _, block in [first] if one_block else search.blocks(SUBJECTS_AT_ONCE):
        for few, sampled in samples.scores(block):
            for i, (weights, peak, mass) in enumerate(_weights(sampled, sharpness)):
                if one_block:
                    log_mass[i, few] = mass
                point = points[i]
                posterior = _posterior(log_mass[i, few], len(search), point, temperature)
                base = (posterior.log_subject_prior + point.model.height) / temperature
                share = np.exp(base + sharpness[i] * peak - posterior.log_total.reshape(mass.shape)) / m
                averaged = np.matmul(share[:, None, :].astype(weights.dtype), weights)[:, 0].astype(np.float64)
                terms[i, few, 0] += xlogy(averaged, averaged).sum(axis=1)
                known[i, few] += averaged.sum(axis=1)
    for i, point in enumerate(points):
        posterior = _posterior(log_mass[i], len(search), point, temperature)
        terms[i, :, 0] -= posterior.log_subject_prior * known[i]
        terms[i, :, 1] = posterior.kl_unknown(log_density.reshape(-1)).reshape(n, m).mean(axis=1)
    return terms


def _weights(
    sampled: AnyFloatArray, sharpness: Sequence[float]
) -> Iterator[tuple[AnyFloatArray, AnyFloatArray, FloatArray]]:
    """At every sharpness ``exp(a (s − max s))`` (n, m, subjects), in one array after the other, max s and the log-mass (n, m)."""
    peak = sampled.max(axis=2)
    sampled -= peak[:, :, None]
    weights = np.empty_like(sampled)
    for a in sharpness:
        np.multiply(sampled, sampled.dtype.type(a), out=weights)
        np.exp(weights, out=weights)
        yield weights, peak, a * peak.astype(np.float64) + np.log(weights.sum(axis=2, dtype=np.float64))


def _posterior(log_mass: FloatArray, n_subjects: int, point: OperatingPoint, temperature: float) -> Posterior:
    evidence = _masses(log_mass.reshape(-1), n_subjects, point.concentration / temperature)
    return close(evidence, 0, point.model, point.prior, n_subjects, temperature)


def _masses(log_mass: FloatArray, n_subjects: int, sharpness: float) -> Evidence:
    """Evidence about sampled directions, each exact: what sampling leaves out is an error of the terms, not of these."""
    n = len(log_mass)
    nobody = np.empty((n, 0))
    return Evidence(
        nobody, nobody.astype(np.int64), log_mass[:, None], np.zeros((n, 1)), n_subjects, np.array([sharpness])
    )


def stratified_angles(dim: int, concentration: FloatArray, n_samples: int) -> FloatArray:
    """Angles (n, m) between vMF samples and their mean: the quantiles at (i + ½)/m of each probe's own distribution.

    The angle's density is ``∝ e^{κ cos θ} sin^{d−2} θ``; it is summed on a grid around its mode.

    >>> from holue.sphere.bessel import mean_resultant_length
    >>> angles = stratified_angles(512, np.array([400.0]), 64)
    >>> bool(abs(np.cos(angles).mean() - mean_resultant_length(512, 400.0)) < 1e-4)
    True
    """
    kappa, bend = concentration[:, None], dim - 2
    # The mode solves κ sin²θ = (d − 2) cos θ.
    cosine = 2 * kappa / (bend + np.sqrt(bend**2 + 4 * kappa**2))
    sine2 = np.maximum(1 - cosine**2, 1e-300)
    width = 1 / np.sqrt(kappa * cosine + bend / sine2) if bend else 1 / np.sqrt(kappa)
    mode = np.arctan2(np.sqrt(sine2), cosine) if bend else np.zeros_like(kappa)
    low, high = np.maximum(mode - REACH * width, 0.0), np.minimum(mode + REACH * width, np.pi)
    grid = low + (high - low) * np.linspace(0.0, 1.0, GRID)
    inside = np.clip(np.sin(grid), 1e-300, None)
    log_density = kappa * (np.cos(grid) - np.cos(mode)) + bend * (
        np.log(inside) - np.log(np.sin(mode)) if bend else 0.0
    )
    density = np.exp(log_density)
    below = np.cumsum(0.5 * (density[:, 1:] + density[:, :-1]), axis=1)
    below = np.concatenate([np.zeros_like(kappa), below], axis=1) / below[:, -1:]
    wanted = (np.arange(n_samples) + 0.5) / n_samples
    return np.stack([np.interp(wanted, *pair) for pair in zip(below, grid)])
