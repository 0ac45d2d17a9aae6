"""Debye: the expansion of the Bessel function I_ν for large order ν, uniform in its argument.

With z = κ/ν, s = √(1 + z²) and t = 1/s (DLMF 10.41.3),

    I_ν(κ) = e^{νη} / √(2πνs) · exp Σ_k D_k(t)/ν^k,    η = s + ln(z/(1 + s)).

The textbook sum is Σ u_k(t)/ν^k; its logarithm is taken here once and for all, term by term, because the
logarithm is what is wanted. Bessel's equation gives the derivatives E_k = D_k′ without passing by u_k:

    E_1 = (1 − 5t²)/8,    E_{k+1} = (p E_k)′ + p Σ_{i+j=k} E_i E_j,    p = t²(1 − t²)/2,    D_k(0) = 0,

so 8^k E_k is a polynomial with integer coefficients, and the recurrence is exact.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from holue.sphere.area import PI
from holue.sphere.parameters import FloatArray

#: From this order on, twelve terms leave an error below 1e-17; see `_n_terms`.
SMALLEST_ORDER = 40
_MOST_TERMS = 12


class DebyeExpansion(NamedTuple):
    """Σ_k D_k(t)/ν^k and its derivative, as polynomials in t with the powers of ν already inside."""

    order: float
    value: FloatArray
    slope: FloatArray


@lru_cache(maxsize=64)
def debye_expansion(order: float) -> DebyeExpansion:
    """Expansion for one order, which must be at least `SMALLEST_ORDER`.

    >>> debye_expansion(1e9).slope[:3] * 1e9  # E_1 alone, the other terms being negligible
    array([ 0.125, ...0. , -0.625])
    """
    terms = _n_terms(order)
    slope = np.zeros(3 * terms)
    for k, integers in enumerate(scaled_derivatives(_MOST_TERMS)[:terms], start=1):
        slope[: len(integers)] += [float(c) / (8 * order) ** k for c in integers]
    value = np.concatenate([[0.0], slope / np.arange(1, len(slope) + 1)])
    return DebyeExpansion(order, value, slope)


@lru_cache(maxsize=4)
def scaled_derivatives(terms: int) -> list[list[int]]:
    """8^k E_k(t) for k = 1 … ``terms``, each as its integer coefficients from t⁰ up.

    >>> scaled_derivatives(2)
    [[1, 0, -5], [0, 8, 0, -96, 0, 120]]
    """
    derivatives = [[1, 0, -5]]
    for k in range(1, terms):
        following = [0] * (3 * k + 3)
        for j, c in enumerate(derivatives[-1]):  # (8p E_k)′ with 8p = 4t² − 4t⁴
            following[j + 1] += 4 * (j + 2) * c
            following[j + 3] -= 4 * (j + 4) * c
        for i in range(1, k):
            for j, c in enumerate(_product(derivatives[i - 1], derivatives[k - i - 1])):
                following[j + 2] += 4 * c
                following[j + 4] -= 4 * c
        derivatives.append(following)
    return derivatives


def log_bessel_i(order: float, argument: float) -> Decimal:
    """ln I_ν(κ) to an absolute 1e-16 however large it is, for orders from `SMALLEST_ORDER` on.

    >>> round(log_bessel_i(40.0, 100.0), 15)
    Decimal('88.844149942313933')
    """
    with localcontext() as context:
        context.prec = 40
        nu, kappa = Decimal(order), Decimal(argument)
        z = kappa / nu
        s = (1 + z * z).sqrt()
        # The sum is at most 1/(12ν), so that double precision gives it to 1e-18.
        rest = float(np.polynomial.polynomial.polyval(1 / float(s), debye_expansion(order).value))
        return nu * (s + (z / (1 + s)).ln()) - (2 * PI * nu * s).ln() / 2 + Decimal(rest)


def _n_terms(order: float) -> int:
    """How many terms the order needs: the k-th derivative stays below 20 (k − 1)!/(πν)^k on [0, 1]."""
    for terms in range(1, _MOST_TERMS):
        if 20 * math.factorial(terms) / (math.pi * order) ** (terms + 1) < 1e-17:
            return terms
    return _MOST_TERMS


def _product(first: list[int], second: list[int]) -> list[int]:
    product = [0] * (len(first) + len(second) - 1)
    for i, a in enumerate(first):
        for j, b in enumerate(second):
            product[i + j] += a * b
    return product
