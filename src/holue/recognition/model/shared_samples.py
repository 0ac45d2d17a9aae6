"""Shared samples: HolUE-MC's terms of many probes at several operating points, from one set of sampled directions.

The expectation over ``z ~ vMF(μ_x, κ_x)`` is taken over ``z_m = w_m μ_x + √(1 − w_m²) t_m``. The cosines ``w_m`` are the midpoint
quantiles of their own distribution, and ``t_m`` is a Gaussian direction ``g_m``, *the same for every probe*, made orthogonal
to the probe: still uniform among its tangents. The cosine of a sample to subject ``c`` then needs no product of its own,

    z_m·μ_c = (w_m − √(1 − w_m²) b_m/r_m) s_c + (√(1 − w_m²)/r_m) g_m·μ_c,    b_m = g_m·μ_x,  r_m² = |g_m|² − b_m²

and all operating points read it once. :func:`holue.recognition.model.monte_carlo.monte_carlo_terms`, which draws anew for every
probe, estimates the same integral at many times the cost, but needs no array as long as the gallery.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.special import xlogy
from threadpoolctl import threadpool_limits

from holue.evidence.evidence import Evidence
from holue.gallery.embeddings import Embeddings
from holue.gallery.embeddings import Float64Array as FloatArray
from holue.gallery.gallery import Gallery
from holue.recognition.model.class_model import close
from holue.recognition.model.operating_point import OperatingPoint
from holue.sphere.bessel import log_hyp0f1

N_SAMPLES = 16
CHUNK, AT_ONCE = 256, 8
"""Probes of one product, and of one array of sampled scores: small enough to stay in the cache."""
GRID, REACH = 257, 8.0


def sampled_terms(
    probes: Embeddings,
    gallery: Gallery,
    points: Sequence[OperatingPoint],
    *,
    temperature: float,
    n_samples: int = N_SAMPLES,
    seed: int = 0,
    threads: int | None = None,
) -> list[FloatArray]:
    """KL₁ and KL₂ (n, 2) at every operating point; the formulas are those of ``recognition.monte_carlo``.

    A probe's terms depend on the seed and on the probe, not on its neighbours.
    """
    kappa_x = probes.concentrations
    assert kappa_x is not None, "the caller asks only where probes have concentrations"
    directions = gallery.directions.astype(np.result_type(gallery.directions, probes.directions), copy=False)
    shared = np.random.default_rng(seed).normal(size=(n_samples, probes.dim))
    along_gallery = (shared.astype(directions.dtype) @ directions.T)[None]
    angles = stratified_angles(probes.dim, kappa_x, n_samples)
    log_density = kappa_x[:, None] * np.cos(angles) - np.asarray(log_hyp0f1(probes.dim, kappa_x))[:, None]

    def chunk(first: int) -> FloatArray:
        rows = slice(first, first + CHUNK)
        mean = probes.directions[rows].astype(directions.dtype, copy=False)
        scores = mean @ directions.T
        along_mean = probes.directions[rows].astype(np.float64) @ shared.T
        reach = np.sqrt(np.maximum((shared**2).sum(axis=1) - along_mean**2, 1e-24))
        across = np.sin(angles[rows]) / reach
        onto = np.cos(angles[rows]) - across * along_mean
        parts = []
        for start in range(0, len(mean), AT_ONCE):
            few = slice(start, start + AT_ONCE)
            sampled = onto[few, :, None].astype(directions.dtype) * scores[few, None, :]
            sampled += across[few, :, None].astype(directions.dtype) * along_gallery
            parts.append(_terms(sampled, log_density[rows][few], points, temperature))
        return np.concatenate(parts, axis=1)

    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        terms = np.concatenate(list(pool.map(chunk, range(0, len(probes), CHUNK))), axis=1)
    return list(terms)


def _terms(
    sampled: FloatArray, log_density: FloatArray, points: Sequence[OperatingPoint], temperature: float
) -> FloatArray:
    """The terms (points, n, 2) of n probes from the scores (n, m, K) of their samples."""
    n, m, n_subjects = sampled.shape
    peak = sampled.max(axis=2)
    sampled -= peak[:, :, None]
    weights = np.empty_like(sampled)
    terms = np.empty((len(points), n, 2))
    for i, point in enumerate(points):
        a = point.concentration / temperature
        np.multiply(sampled, sampled.dtype.type(a), out=weights)
        np.exp(weights, out=weights)
        log_mass = a * peak.astype(np.float64) + np.log(weights.sum(axis=2, dtype=np.float64))
        posterior = close(
            _masses(log_mass.reshape(-1), n_subjects, a), 0, point.model, point.prior, n_subjects, temperature
        )
        terms[i, :, 1] = posterior.kl_unknown(log_density.reshape(-1)).reshape(n, m).mean(axis=1)
        base = (posterior.log_subject_prior + point.model.height) / temperature
        share = np.exp(base + a * peak - posterior.log_total.reshape(n, m)) / m
        averaged = np.matmul(share[:, None, :].astype(weights.dtype), weights)[:, 0].astype(np.float64)
        terms[i, :, 0] = xlogy(averaged, averaged).sum(axis=1) - posterior.log_subject_prior * averaged.sum(axis=1)
    return terms


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
