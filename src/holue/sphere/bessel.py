"""Bessel: the logarithm of ₀F₁, which normalises the von Mises-Fisher density, with its slope A_d.

For dimension d let ν = d/2 − 1 and F_ν(κ) = ₀F₁(; ν + 1; κ²/4) = Γ(ν + 1) (2/κ)^ν I_ν(κ), so that F_ν(0) = 1.
There are two regimes, and no sum below loses digits to cancellation.

**Orders ν ≥ 40.** Debye's expansion (`holue.sphere.debye`) holds uniformly in κ, so that one formula serves
every concentration. Written as a growth from a reference κ₀, it is free of gamma functions. Let z = κ/ν,
s = √(1 + z²), t = 1/s, index 0 the same at κ₀, D(t) = Σ D_k(t)/ν^k and δ = s − s₀ = (z − z₀)(z + z₀)/(s + s₀):

    ln F_ν(κ) − ln F_ν(κ₀) = ν [δ − ln(1 + δ/(1 + s₀))] − ½ ln(1 + δ/s₀) + D(t) − D(t₀).

The last difference is −δ t/s₀ · Q(t) with the polynomial Q(t) = (D(t) − D(t₀))/(t − t₀). Every term is proportional
to δ, hence to κ − κ₀, and keeps its relative accuracy however close κ is to κ₀. With κ₀ = 0 (s₀ = t₀ = 1) this
is ln F_ν(κ) itself. Its derivative is the ratio of neighbouring Bessel functions,

    r_ν(κ) = I_{ν+1}(κ)/I_ν(κ) = z [1/(1 + s) − t²/(2ν) − t³ D′(t)/ν],    A_d = r_{d/2−1}.

**Orders ν < 40** (d < 82), for which the expansion is not accurate enough: begin at the first order ν + M ≥ 40 and
step down with

    r_{μ−1} = κ/(2μ + κ r_μ),    F_{μ−1} = F_μ · (1 + κ r_μ/(2μ)).

The first recurrence shrinks errors, and the second multiplies numbers above 1, whose logarithms add up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from holue.sphere.compiled import apply, compiled
from holue.sphere.debye import SMALLEST_ORDER, debye_expansion
from holue.sphere.parameters import FloatArray, as_given, check_concentration, check_dim, check_length

Numbers: TypeAlias = NDArray[Any] | Sequence[float]


@overload
def log_hyp0f1(dim: int, concentration: float) -> float: ...
@overload
def log_hyp0f1(dim: int, concentration: Numbers) -> FloatArray: ...
def log_hyp0f1(dim: int, concentration: float | Numbers) -> float | FloatArray:
    """Logarithm of the hypergeometric function that normalises the von Mises-Fisher density.

    log α(κ) = ln ₀F₁(; d/2; κ²/4)

    The relative error is some ten units of the last place at most, for small κ too.

    >>> round(log_hyp0f1(512, 1200.0), 9)
    699.026965434
    >>> log_hyp0f1(3, 0.0)
    0.0
    """
    return log_hyp0f1_ratio(dim, concentration, 0.0)


@overload
def log_hyp0f1_ratio(dim: int, concentration: float, reference: float) -> float: ...
@overload
def log_hyp0f1_ratio(dim: int, concentration: Numbers, reference: float) -> FloatArray: ...
def log_hyp0f1_ratio(dim: int, concentration: float | Numbers, reference: float) -> float | FloatArray:
    """Growth of ``log_hyp0f1`` from a reference concentration κ₀, accurate even where it is small.

    log α(κ) − log α(κ₀)

    From d = 82 on the relative error is some ten units of the last place at most, also for κ close to κ₀.

    >>> round(log_hyp0f1_ratio(8192, 20000.001, 20000.0), 12)  # A_d(20000) · 0.001
    0.000815972091
    """
    values = check_concentration(concentration)
    start = float(check_concentration(reference, "reference"))
    dim = check_dim(dim)
    plan = _plan(dim, start if dim >= _FIRST_DIM_WITHOUT_STEPS else 0.0)
    growth = apply(_each_log, values, plan.reference, plan.order, plan.steps, plan.chord, plan.slope)
    if start != plan.reference:
        growth -= log_hyp0f1(dim, start)
    return as_given(growth)


@overload
def log_hyp0f1_scaled(dim: int, concentration: float) -> float: ...
@overload
def log_hyp0f1_scaled(dim: int, concentration: Numbers) -> FloatArray: ...
def log_hyp0f1_scaled(dim: int, concentration: float | Numbers) -> float | FloatArray:
    """``log_hyp0f1`` without its linear growth, as ``scipy.special.ive`` is to ``iv``.

    log α(κ) − κ

    Subtracting κ afterwards would leave an error of κ times the machine precision.

    >>> round(log_hyp0f1_scaled(512, 1e7), 9)
    -2780.63099643
    """
    values = check_concentration(concentration)
    plan = _plan(check_dim(dim), 0.0)
    return as_given(apply(_each_scaled_log, values, plan.order, plan.steps, plan.chord, plan.slope))


@overload
def mean_resultant_length(dim: int, concentration: float) -> float: ...
@overload
def mean_resultant_length(dim: int, concentration: Numbers) -> FloatArray: ...
def mean_resultant_length(dim: int, concentration: float | Numbers) -> float | FloatArray:
    """Expected cosine to the mean direction under the von Mises-Fisher density.

    A_d(κ) = I_{d/2}(κ) / I_{d/2−1}(κ) = d log α/dκ

    It grows from κ/d at small κ to 1, with a relative error of some ten units of the last place at most.

    >>> round(mean_resultant_length(512, 169.0), 12)
    0.300390568228
    """
    values = check_concentration(concentration)
    plan = _plan(check_dim(dim), 0.0)
    return as_given(apply(_each_length, values, plan.order, plan.steps, plan.slope))


@overload
def inverse_mean_resultant_length(dim: int, length: float) -> float: ...
@overload
def inverse_mean_resultant_length(dim: int, length: Numbers) -> FloatArray: ...
def inverse_mean_resultant_length(dim: int, length: float | Numbers) -> float | FloatArray:
    """Concentration whose mean resultant length is given: its maximum-likelihood estimate.

    κ with A_d(κ) = R̄, by Newton's method with A′ = 1 − A² − (d − 1)A/κ

    The relative error of κ is below 1e-12 for R̄ taken as exact; a rounding ε of R̄ itself moves κ by ε/A′(κ).

    >>> round(inverse_mean_resultant_length(512, 0.3), 6)
    168.736904
    """
    values = check_length(length)
    dim = check_dim(dim)
    plan = _plan(dim, 0.0)
    return as_given(apply(_each_concentration, values, float(dim), plan.order, plan.steps, plan.slope))


_FIRST_DIM_WITHOUT_STEPS = 2 * SMALLEST_ORDER + 2


class _Plan(NamedTuple):
    """What the inner loops need to know about one dimension."""

    reference: float
    order: float
    steps: int
    chord: FloatArray
    slope: FloatArray


@lru_cache(maxsize=256)
def _plan(dim: int, reference: float) -> _Plan:
    steps = max(0, math.ceil(SMALLEST_ORDER - (dim / 2 - 1)))
    expansion = debye_expansion(dim / 2 - 1 + steps)
    reference_t = 1 / math.hypot(1.0, reference / expansion.order)
    # Synthetic division: Q(t) = (D(t) − D(t₀))/(t − t₀), from the highest power down.
    chord = np.zeros(len(expansion.slope))
    remainder = 0.0
    for power in range(len(chord), 0, -1):
        remainder = expansion.value[power] + reference_t * remainder
        chord[power - 1] = remainder
    return _Plan(reference, expansion.order, steps, chord, expansion.slope)


@compiled
def _polynomial(coefficients: FloatArray, t: float) -> float:
    total = 0.0
    for power in range(len(coefficients) - 1, -1, -1):
        total = total * t + coefficients[power]
    return total


@compiled
def _bessel_ratio(kappa: float, order: float, slope: FloatArray) -> float:
    """r_ν(κ) for an order of Debye's regime."""
    z = kappa / order
    s = math.hypot(1.0, z)
    t = 1 / s
    return z * (1 / (1 + s) - t * t * (0.5 + t * _polynomial(slope, t)) / order)


@compiled
def _length(kappa: float, order: float, steps: int, slope: FloatArray) -> float:
    """r_{ν−M}(κ): M steps down from Debye's regime."""
    ratio = _bessel_ratio(kappa, order, slope)
    for step in range(steps):
        ratio = kappa / (2 * (order - step) + kappa * ratio)
    return ratio


@compiled
def _log_beyond_leading(
    kappa: float,
    s: float,
    delta: float,
    reference_s: float,
    order: float,
    steps: int,
    chord: FloatArray,
    slope: FloatArray,
) -> float:
    """Growth of ln F_{ν−M} from the reference, without its leading term νδ."""
    t = 1 / s
    total = -order * math.log1p(delta / (1 + reference_s)) - 0.5 * math.log1p(delta / reference_s)
    total -= delta * t / reference_s * _polynomial(chord, t)
    if steps > 0:
        ratio = _bessel_ratio(kappa, order, slope)
        excess = 0.0  # the product of the factors, less 1: small concentrations keep their digits
        for step in range(steps):
            factor = kappa * ratio / (2 * (order - step))
            excess += factor + excess * factor
            if excess > 1e100:  # long before it overflows
                total += math.log1p(excess)
                excess = 0.0
            ratio = kappa / (2 * (order - step) + kappa * ratio)
        total += math.log1p(excess)
    return total


@compiled
def _each_log(
    concentrations: FloatArray,
    reference: float,
    order: float,
    steps: int,
    chord: FloatArray,
    slope: FloatArray,
) -> FloatArray:
    growth = np.empty_like(concentrations)
    reference_z = reference / order
    reference_s = math.hypot(1.0, reference_z)
    for i in range(len(concentrations)):
        kappa = concentrations[i]
        z = kappa / order
        s = math.hypot(1.0, z)
        delta = (kappa - reference) / order * ((z + reference_z) / (s + reference_s))
        rest = _log_beyond_leading(kappa, s, delta, reference_s, order, steps, chord, slope)
        growth[i] = order * delta + rest
    return growth


@compiled
def _each_scaled_log(
    concentrations: FloatArray, order: float, steps: int, chord: FloatArray, slope: FloatArray
) -> FloatArray:
    scaled = np.empty_like(concentrations)
    for i in range(len(concentrations)):
        kappa = concentrations[i]
        z = kappa / order
        s = math.hypot(1.0, z)
        delta = z * (z / (s + 1))
        # νδ − κ = √(ν² + κ²) − ν − κ, multiplied by its conjugate.
        leading = -order * ((delta + z) / (s + z))
        scaled[i] = leading + _log_beyond_leading(kappa, s, delta, 1.0, order, steps, chord, slope)
    return scaled


@compiled
def _each_length(concentrations: FloatArray, order: float, steps: int, slope: FloatArray) -> FloatArray:
    lengths = np.empty_like(concentrations)
    for i in range(len(concentrations)):
        lengths[i] = _length(concentrations[i], order, steps, slope)
    return lengths


@compiled
def _gap(kappa: float, order: float, steps: int, slope: FloatArray) -> float:
    """1 − r_{ν−M}(κ), which keeps its digits where r is close to 1."""
    z = kappa / order
    s = math.hypot(1.0, z)
    t = 1 / s
    gap = (1 + 1 / (s + z)) * t / (1 + t) + z * t * t * (0.5 + t * _polynomial(slope, t)) / order
    for step in range(steps):
        twice = 2 * (order - step)
        gap = (twice - kappa * gap) / (twice + kappa * (1 - gap))
    return gap


@compiled
def _each_concentration(lengths: FloatArray, dim: float, order: float, steps: int, slope: FloatArray) -> FloatArray:
    """Newton's method from the inverse of κ/(b + √((b + 1)² + κ²)), b = (d − 1)/2, which is A at both ends."""
    b = (dim - 1) / 2
    concentrations = np.empty_like(lengths)
    for i in range(len(lengths)):
        length = lengths[i]
        complement = (1 - length) * (1 + length)
        kappa = length * (b + math.sqrt(b * b + complement * dim)) / complement
        for _ in range(20):
            if kappa == 0.0:
                break
            if length < 0.5:
                missing = length - _length(kappa, order, steps, slope)
            else:
                missing = _gap(kappa, order, steps, slope) - (1 - length)
            if kappa < 1e4 * dim:
                reached = length - missing
                rise = 1 - reached * reached - (dim - 1) * reached / kappa
            else:  # A′ cancels; the curve of the start has the same slope to four digits here
                q = math.hypot(b + 1, kappa)
                rise = (b + (b + 1) * ((b + 1) / q)) / (b + q) / (b + q)
            step = missing / rise
            kappa += step
            if abs(step) <= 1e-12 * kappa:
                break
        concentrations[i] = kappa
    return concentrations
