"""Reference: the functions of the sphere at 50 digits, written as their definitions."""

from __future__ import annotations

import sys
from types import ModuleType

import mpmath as mp
import pytest

DIGITS = 50
#: The promise: |error| ≤ 1e-12 · max(1, |value|).
TOLERANCE = 1e-12


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """This module, for tests to call its functions."""
    return sys.modules[__name__]


def log_hyp0f1(dim: int, concentration: float) -> mp.mpf:
    if dim > 4000 and 2e4 < concentration < 1e6:  # mpmath takes minutes here: neither of its expansions is short
        return quadrature_log_hyp0f1(dim, concentration)
    with mp.workdps(DIGITS):
        return mp.log(_hyp0f1(mp.mpf(dim) / 2, mp.mpf(concentration)))


def mean_resultant_length(dim: int, concentration: float) -> mp.mpf:
    """A_d(κ) = (κ/d) ₀F₁(; d/2 + 1; κ²/4) / ₀F₁(; d/2; κ²/4)."""
    if dim > 4000 and 2e4 < concentration < 1e6:
        return continued_fraction_length(dim, concentration)
    with mp.workdps(DIGITS):
        kappa, half = mp.mpf(concentration), mp.mpf(dim) / 2
        return kappa / dim * _hyp0f1(half + 1, kappa) / _hyp0f1(half, kappa)


def log_area(dim: int) -> mp.mpf:
    with mp.workdps(DIGITS):
        half = mp.mpf(dim) / 2
        return mp.log(2) + half * mp.log(mp.pi) - mp.loggamma(half)


def log_normalizer(dim: int, concentration: float) -> mp.mpf:
    with mp.workdps(DIGITS):
        return -log_area(dim) - log_hyp0f1(dim, concentration)


def log_power_normalizer(dim: int, concentration: float) -> mp.mpf:
    with mp.workdps(DIGITS):
        b = mp.mpf(dim - 1) / 2
        a = b + mp.mpf(concentration)
        return -((a + b) * mp.log(2) + b * mp.log(mp.pi) + mp.loggamma(a) - mp.loggamma(a + b))


def scaled_error(value: float, exact: mp.mpf) -> float:
    """|error| / max(1, |value|)."""
    with mp.workdps(DIGITS):
        return float(abs(mp.mpf(value) - exact) / max(1, abs(exact)))


def relative_error(value: float, exact: mp.mpf) -> float:
    with mp.workdps(DIGITS):
        return float(abs(mp.mpf(value) - exact) / abs(exact))


def series_log_hyp0f1(dim: int, concentration: float) -> mp.mpf:
    """Σ_k (κ²/4)^k / (k! (d/2)_k), whose terms are all positive, added one by one."""
    with mp.workdps(DIGITS):
        x, half = mp.mpf(concentration) ** 2 / 4, mp.mpf(dim) / 2
        total = term = mp.mpf(1)
        k = 0
        while term > total * mp.mpf(10) ** -DIGITS or k * (half + k) < x:
            term *= x / ((k + 1) * (half + k))
            total += term
            k += 1
        return mp.log(total)


def quadrature_log_hyp0f1(dim: int, concentration: float) -> mp.mpf:
    """Poisson's integral Γ(d/2)/(√π Γ((d−1)/2)) ∫ e^{κ cos θ} sin^{d−2} θ dθ over [0, π], for even or large d.

    The integrand is then smooth as a periodic function (for odd d, up to derivatives of order d − 2), so that the
    trapezoid rule converges faster than any power of the step.
    """
    with mp.workdps(DIGITS + 5):
        kappa, half = mp.mpf(concentration), mp.mpf(dim) / 2
        points = int(20 * mp.sqrt(kappa)) + dim + 100
        step = mp.pi / points
        total = mp.mpf(1) / 2 if dim == 2 else mp.mpf(0)
        for i in range(1, points):
            cosine, sine = mp.cos_sin(i * step)
            term = mp.exp(kappa * (cosine - 1)) * sine ** (dim - 2)
            total += term
            if i > points / 2 and term < total * mp.mpf(10) ** -(DIGITS + 10):
                break
        log_constant = mp.loggamma(half) - mp.loggamma(half - mp.mpf(1) / 2) - mp.log(mp.pi) / 2
        return kappa + log_constant + mp.log(total * step)


def continued_fraction_length(dim: int, concentration: float) -> mp.mpf:
    """A_d from r_{μ−1} = κ/(2μ + κ r_μ), begun so far up that the error of the start has died out."""
    with mp.workdps(DIGITS + 5):
        kappa, order = mp.mpf(concentration), mp.mpf(dim) / 2 - 1
        steps = int(12 * mp.sqrt(kappa)) + 60
        top = order + steps
        ratio = kappa / (top + mp.sqrt(top * top + kappa * kappa))
        for step in range(steps):
            ratio = kappa / (2 * (top - step) + kappa * ratio)
        return ratio


def _hyp0f1(parameter: mp.mpf, kappa: mp.mpf) -> mp.mpf:
    return mp.hyp0f1(parameter, kappa * kappa / 4, maxterms=10**7)
