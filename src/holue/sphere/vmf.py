"""Von Mises-Fisher: the density on the sphere that is proportional to e^{κ μ·x}.

    log p(x) = log C_d(κ) + κ μ·x,    log C_d(κ) = −log S − log α(κ)

with S the area of the sphere and α(κ) = ₀F₁(; d/2; κ²/4): the paper's class model ("Model for p(z|c)", in the
section on GalUE), its C_d(κ) = κ^{d/2−1} / [(2π)^{d/2} I_{d/2−1}(κ)] rewritten. A score is the cosine μ·x.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import ArrayLike

from holue.sphere.area import PI, log_area
from holue.sphere.bessel import (
    Numbers,
    log_hyp0f1,
    log_hyp0f1_ratio,
    log_hyp0f1_scaled,
    mean_resultant_length,
)
from holue.sphere.debye import SMALLEST_ORDER, log_bessel_i
from holue.sphere.parameters import FloatArray, as_given, check_dim, check_score_and_concentration
from holue.sphere.tangent import sample_around


@overload
def log_normalizer(dim: int, concentration: float) -> float: ...
@overload
def log_normalizer(dim: int, concentration: Numbers) -> FloatArray: ...
def log_normalizer(dim: int, concentration: float | Numbers) -> float | FloatArray:
    """Logarithm of the constant that makes e^{κ μ·x} a density.

    log C_d(κ) = −log S − log α(κ) = log C_d(κ₀) − [log α(κ) − log α(κ₀)]

    In high dimension −log S and log α(κ) are tens of thousands and cancel where log C_d changes sign. There it is
    measured from its zero κ₀, so that small values are as accurate as large ones.

    >>> round(log_normalizer(512, 169.0), 9)
    841.40753106
    """
    start, value = _anchor(check_dim(dim))
    return value - log_hyp0f1_ratio(dim, concentration, start)


@overload
def log_density_at_mean(dim: int, concentration: float) -> float: ...
@overload
def log_density_at_mean(dim: int, concentration: Numbers) -> FloatArray: ...
def log_density_at_mean(dim: int, concentration: float | Numbers) -> float | FloatArray:
    """Log-density at the mean direction, the highest there is.

    log p(μ) = log C_d(κ) + κ = −log S − (log α(κ) − κ)

    It grows like ((d − 1)/2) ln κ; adding κ to ``log_normalizer`` would drown that in rounding at large κ.

    >>> round(log_density_at_mean(512, 169.0), 9)
    1010.40753106
    """
    return -log_area(dim) - log_hyp0f1_scaled(dim, concentration)


@overload
def log_density(score: float, dim: int, concentration: float) -> float: ...
@overload
def log_density(score: Numbers, dim: int, concentration: float | Numbers) -> FloatArray: ...
@overload
def log_density(score: float, dim: int, concentration: Numbers) -> FloatArray: ...
def log_density(score: float | Numbers, dim: int, concentration: float | Numbers) -> float | FloatArray:
    """Log-density at points whose cosine to the mean direction is ``score``.

    log p(x) = log C_d(κ) + κ s = log p(μ) − κ (1 − s)

    >>> round(log_density(0.3, 512, 169.0), 9)
    892.10753106
    """
    scores, concentrations = check_score_and_concentration(score, concentration)
    return as_given(np.asarray(log_density_at_mean(dim, concentrations) - concentrations * (1 - scores)))


def sample(
    mean_directions: ArrayLike,
    concentration: ArrayLike,
    rng: np.random.Generator,
    n_samples: int | None = None,
) -> FloatArray:
    """Draw unit vectors around mean directions of shape (d,) or (n, d).

    One draw per mean, in the same shape; with ``n_samples`` an axis of draws comes before the last:
    (n_samples, d) or (n, n_samples, d). ``concentration`` is one number or one per mean.

    The cosine w = μ·x has the density ∝ e^{κw} (1 − w²)^{(d−3)/2}, drawn by rejection
    (Ulrich 1984, Wood 1994).

    >>> drawn = sample([0.0, 0.0, 1.0], 1e7, np.random.default_rng(0))
    >>> drawn.shape, bool(drawn[2] > 0.99999)
    ((3,), True)
    >>> sample(np.eye(3), [0.0, 10.0, 1e3], np.random.default_rng(0), n_samples=5).shape
    (3, 5, 3)
    """
    return sample_around(mean_directions, concentration, rng, n_samples, _draw_gap)


@lru_cache(maxsize=256)
def _anchor(dim: int) -> tuple[float, float]:
    """κ₀ and log C_d(κ₀): κ₀ = 0 where the logarithms are small, else the zero of log C_d.

    The value at the zero is what rounding κ₀ leaves; it takes more than double precision, once per dimension:
    log C_d(κ) = ν ln κ − (d/2) ln 2π − ln I_ν(κ), ν = d/2 − 1.
    """
    if dim / 2 - 1 < SMALLEST_ORDER:
        return 0.0, -log_area(dim)
    kappa = float(dim)
    for _ in range(20):  # Newton on a convex function: from the first step on κ falls to the zero
        kappa -= (log_area(dim) + log_hyp0f1(dim, kappa)) / mean_resultant_length(dim, kappa)
    with localcontext() as context:
        context.prec = 40
        half, exact = Decimal(dim) / 2, Decimal(kappa)
        value = (half - 1) * exact.ln() - half * (2 * PI).ln() - log_bessel_i(dim / 2 - 1, kappa)
    return kappa, float(value)


def _draw_gap(dim: int, concentration: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Gaps y = 1 − w of Wood's algorithm, which never forms w: at large κ it is too close to 1.

    Envelope: y = 2bZ/(1 − Z + bZ) with Z ~ Beta(h, h), h = (d − 1)/2, b = h/(κ + √(κ² + h²)). It touches the
    density at y₀ = 2b/(1 + b); y is kept with probability e^{κ(y₀ − y)} [(y₀ + y − y₀y)/(y₀(2 − y₀))]^{d−1}.
    """
    half = (dim - 1) / 2
    slant = half / (concentration + np.hypot(concentration, half))
    touch = 2 * slant / (1 + slant)
    gap = np.empty_like(concentration)
    pending = np.arange(len(gap))
    while len(pending):
        kappa, b, y0 = concentration[pending], slant[pending], touch[pending]
        z = rng.beta(half, half, size=len(pending))
        y = 2 * b * z / ((1 - z) + b * z)
        log_kept = kappa * (y0 - y) + (dim - 1) * np.log((y0 + y - y0 * y) / (y0 * (2 - y0)))
        kept = -rng.standard_exponential(len(pending)) <= log_kept
        gap[pending[kept]] = y[kept]
        pending = pending[~kept]
    return gap
