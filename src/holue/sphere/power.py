"""Power spherical: the density on the sphere that is proportional to (1 + μ·x)^κ (De Cao and Aziz 2020).

    log p(x) = log N_d(κ) + κ ln(1 + μ·x),    log N_d(κ) = −[(a + b) ln 2 + b ln π + lnΓ(a) − lnΓ(a + b)]

with b = (d − 1)/2 and a = b + κ. A score is the cosine μ·x; (1 + μ·x)/2 ~ Beta(a, b) makes sampling exact.

The difference of log-gammas is never taken. With c = a + b and Stirling's formula,
lnΓ(x) = (x − ½) ln x − x + ½ ln 2π + σ(x),

    log N_d(κ) = (a − ½) ln(c/2a) + b [ln(c/2π) − 1] − ½ ln 2 + σ(c) − σ(a),

where ln(c/2a) = ln(1 − κ/2a) keeps its digits for κ ≪ d, and nothing cancels for κ ≫ d.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import digamma, xlog1py, xlogy

from holue.sphere.area import PI
from holue.sphere.bessel import Numbers
from holue.sphere.compiled import apply, compiled
from holue.sphere.parameters import (
    FloatArray,
    as_given,
    check_concentration,
    check_dim,
    check_score_and_concentration,
)
from holue.sphere.tangent import sample_around

#: Below this dimension every term is so small that rounding stays under 1e-13 without an anchor.
_FIRST_ANCHORED_DIM = 82


@overload
def log_normalizer(dim: int, concentration: float) -> float: ...
@overload
def log_normalizer(dim: int, concentration: Numbers) -> FloatArray: ...
def log_normalizer(dim: int, concentration: float | Numbers) -> float | FloatArray:
    """Logarithm of the constant that makes (1 + μ·x)^κ a density.

    log N_d(κ) = −[(a + b) ln 2 + b ln π + lnΓ(a) − lnΓ(a + b)],    b = (d − 1)/2,    a = b + κ

    In high dimension it is measured from its zero κ₀, so that small values are as accurate as large ones.

    >>> round(log_normalizer(512, 169.0), 9)
    846.856723542
    """
    values = check_concentration(concentration)
    dim = check_dim(dim)
    if dim < _FIRST_ANCHORED_DIM:
        return as_given(np.asarray(log_density_at_mean(dim, values) - values * math.log(2)))
    start, value = _anchor(dim)
    return as_given(value + apply(_each_growth, values, start, (dim - 1) / 2))


@overload
def log_density_at_mean(dim: int, concentration: float) -> float: ...
@overload
def log_density_at_mean(dim: int, concentration: Numbers) -> FloatArray: ...
def log_density_at_mean(dim: int, concentration: float | Numbers) -> float | FloatArray:
    """Log-density at the mean direction, the highest there is.

    log p(μ) = log N_d(κ) + κ ln 2 = (a − ½) ln(1 + b/a) + b [ln(c/4π) − 1] + σ(c) − σ(a)

    >>> round(log_density_at_mean(512, 169.0), 9)
    963.998597057
    """
    values = check_concentration(concentration)
    return as_given(apply(_each_log_peak, values, (check_dim(dim) - 1) / 2))


@overload
def log_density(score: float, dim: int, concentration: float) -> float: ...
@overload
def log_density(score: Numbers, dim: int, concentration: float | Numbers) -> FloatArray: ...
@overload
def log_density(score: float, dim: int, concentration: Numbers) -> FloatArray: ...
def log_density(score: float | Numbers, dim: int, concentration: float | Numbers) -> float | FloatArray:
    """Log-density at points whose cosine to the mean direction is ``score``.

    log p(x) = log N_d(κ) + κ ln(1 + s) = log p(μ) + κ ln((1 + s)/2)

    It is −∞ opposite the mean (s = −1), unless κ = 0.

    >>> round(log_density(0.3, 512, 169.0), 9)
    891.196284237
    >>> log_density(-1.0, 512, 169.0)
    -inf
    """
    scores, concentrations = check_score_and_concentration(score, concentration)
    with np.errstate(divide="ignore"):  # ln 0 is the right answer opposite the mean
        # On each side the difference that is small, 1 + s or 1 − s, is exact.
        far, near = xlogy(concentrations, (1 + scores) / 2), xlog1py(concentrations, -(1 - scores) / 2)
    fall = np.where(scores < 0, far, near)
    return as_given(np.asarray(log_density_at_mean(dim, concentrations) + fall))


@overload
def mean_resultant_length(dim: int, concentration: float) -> float: ...
@overload
def mean_resultant_length(dim: int, concentration: Numbers) -> FloatArray: ...
def mean_resultant_length(dim: int, concentration: float | Numbers) -> float | FloatArray:
    """Expected cosine to the mean direction.

    (a − b)/(a + b) = κ/(d − 1 + κ)

    >>> mean_resultant_length(3, 2.0)
    0.5
    """
    values = check_concentration(concentration)
    return as_given(np.asarray(values / (check_dim(dim) - 1 + values)))


def sample(
    mean_directions: ArrayLike,
    concentration: ArrayLike,
    rng: np.random.Generator,
    n_samples: int | None = None,
) -> FloatArray:
    """Draw unit vectors around mean directions of shape (d,) or (n, d).

    One draw per mean, in the same shape; with ``n_samples`` an axis of draws comes before the last:
    (n_samples, d) or (n, n_samples, d). ``concentration`` is one number or one per mean.

    Exact: the cosine is 1 − 2Y with Y ~ Beta(b, a), drawn from the end that is small at large κ.

    >>> drawn = sample([0.0, 0.0, 1.0], 1e7, np.random.default_rng(0))
    >>> drawn.shape, bool(drawn[2] > 0.99999)
    ((3,), True)
    """
    return sample_around(mean_directions, concentration, rng, n_samples, _draw_gap)


def _draw_gap(dim: int, concentration: FloatArray, rng: np.random.Generator) -> FloatArray:
    half = (dim - 1) / 2
    return 2 * rng.beta(half, half + concentration)


@lru_cache(maxsize=256)
def _anchor(dim: int) -> tuple[float, float]:
    """κ₀ and log N_d(κ₀), κ₀ being the zero of log N_d as a float; the value is what its rounding leaves.

    The terms are tens of thousands and cancel, which takes more than double precision, once per dimension.
    """
    b = (dim - 1) / 2
    kappa = 100.0 * dim
    for _ in range(40):  # Newton on a concave function, from beyond its zero: κ falls to it
        slope = float(digamma(2 * b + kappa) - digamma(b + kappa)) - math.log(2)
        kappa -= (log_density_at_mean(dim, kappa) - kappa * math.log(2)) / slope
    with localcontext() as context:
        context.prec = 40
        half = Decimal(b)
        a = half + Decimal(kappa)
        c = a + half
        leading = (a - Decimal("0.5")) * (c / (2 * a)).ln() + half * ((c / (2 * PI)).ln() - 1)
        leading -= Decimal(2).ln() / 2
        rest = _stirling_remainder(float(c)) - _stirling_remainder(float(a))
        return kappa, float(leading + Decimal(rest))


@compiled
def _stirling_remainder(x: float) -> float:
    """σ(x) = lnΓ(x) − (x − ½) ln x + x − ½ ln 2π: its series from 10 on, shifted up below."""
    total = 0.0
    while x < 10:
        total += (x + 0.5) * math.log1p(1 / x) - 1
        x += 1
    y = 1 / (x * x)
    series = 1 / 156 - y * 3617 / 122400
    series = 1 / 1188 - y * (691 / 360360 - y * series)
    series = 1 / 12 - y * (1 / 360 - y * (1 / 1260 - y * (1 / 1680 - y * series)))
    return total + series / x


@compiled
def _each_log_peak(concentrations: FloatArray, b: float) -> FloatArray:
    peaks = np.empty_like(concentrations)
    for i in range(len(concentrations)):
        a = b + concentrations[i]
        c = a + b
        leading = (a - 0.5) * math.log1p(b / a) + b * (math.log(c / (4 * math.pi)) - 1)
        peaks[i] = leading + (_stirling_remainder(c) - _stirling_remainder(a))
    return peaks


@compiled
def _each_growth(concentrations: FloatArray, start: float, b: float) -> FloatArray:
    """log N_d(κ) − log N_d(κ₀): every term is proportional to δ = κ − κ₀.

    (c₀ − ½) ln(1 + δ/c₀) − (a₀ − ½) ln(1 + δ/a₀) + δ ln(c/2a) + [σ(c) − σ(c₀)] − [σ(a) − σ(a₀)]
    """
    growth = np.empty_like(concentrations)
    a0 = b + start
    c0 = a0 + b
    remainder = _stirling_remainder(c0) - _stirling_remainder(a0)
    for i in range(len(concentrations)):
        kappa = concentrations[i]
        delta = kappa - start
        a = b + kappa
        c = a + b
        leading = (c0 - 0.5) * math.log1p(delta / c0) - (a0 - 0.5) * math.log1p(delta / a0)
        leading += delta * math.log1p(-kappa / (2 * a))
        growth[i] = leading + (_stirling_remainder(c) - _stirling_remainder(a) - remainder)
    return growth
