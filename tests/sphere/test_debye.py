from __future__ import annotations

from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from numpy.polynomial import polynomial

from holue.sphere.debye import SMALLEST_ORDER, debye_expansion, log_bessel_i, scaled_derivatives


def textbook_debye_polynomials(terms: int) -> list[list[Fraction]]:
    """u_k of DLMF 10.41.9: u_{k+1} = ½ t² (1 − t²) u_k′ + ⅛ ∫ (1 − 5s²) u_k ds, exactly."""
    polynomials = [[Fraction(1)]]
    for _ in range(terms):
        following = [Fraction(0)] * (len(polynomials[-1]) + 3)
        for j, c in enumerate(polynomials[-1]):
            following[j + 1] += c * j / 2 + c / (8 * (j + 1))
            following[j + 3] -= c * j / 2 + 5 * c / (8 * (j + 3))
        polynomials.append(following)
    return polynomials


def test_the_exponential_of_the_expansion_is_the_textbook_series():
    # With U = exp S: k u_k = Σ_j j D_j u_{k−j}, and D_j is the integral of the derivative the module holds.
    terms = 12
    textbook = textbook_debye_polynomials(terms)
    logarithm = [
        [Fraction(0), *(Fraction(c, 8**k * (j + 1)) for j, c in enumerate(integers))]
        for k, integers in enumerate(scaled_derivatives(terms), start=1)
    ]
    for k in range(1, terms + 1):
        total = [Fraction(0)] * (3 * k + 1)
        for j in range(1, k + 1):
            for p, a in enumerate(logarithm[j - 1]):
                for q, b in enumerate(textbook[k - j]):
                    total[p + q] += j * a * b
        assert total == [k * c for c in textbook[k]]


def test_the_sum_at_one_is_the_negative_of_stirlings_series():
    # lnΓ(ν + 1) = ν ln ν − ν + ½ ln 2πν − D(1); 1e-17 is the promise of the expansion.
    for order in (40.0, 40.5, 255.0, 4095.0):
        with mp.workdps(50):
            nu = mp.mpf(order)
            exact = nu * mp.log(nu) - nu + mp.log(2 * mp.pi * nu) / 2 - mp.loggamma(nu + 1)
        assert abs(polynomial.polyval(1.0, debye_expansion(order).value) - exact) < 1e-17


@pytest.mark.parametrize("order", [SMALLEST_ORDER, 40.5, 60.0, 255.0, 4095.0])
@pytest.mark.parametrize("argument", [1e-3, 1.0, 30.0, 400.0, 3e3, 1e7])
def test_the_bessel_function_is_right_to_sixteen_decimals(order: float, argument: float):
    with mp.workdps(50):
        exact = mp.log(mp.besseli(mp.mpf(order), mp.mpf(argument), maxterms=10**7))
        assert abs(mp.mpf(str(log_bessel_i(float(order), argument))) - exact) < 1e-16


def test_larger_orders_need_fewer_terms():
    assert len(debye_expansion(4095.0).slope) < len(debye_expansion(255.0).slope) < len(debye_expansion(40.0).slope)


def test_the_slope_is_the_derivative_of_the_value():
    for order in (40.0, 255.0):
        expansion = debye_expansion(order)
        np.testing.assert_allclose(polynomial.polyder(expansion.value), expansion.slope, rtol=1e-15)
