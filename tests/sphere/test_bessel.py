from __future__ import annotations

from types import ModuleType

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue.errors import InvalidConcentrationError, InvalidParameterError
from holue.sphere.bessel import (
    inverse_mean_resultant_length,
    log_hyp0f1,
    log_hyp0f1_ratio,
    log_hyp0f1_scaled,
    mean_resultant_length,
)

#: Ends, small ones, both sides of d = 82 (where the stepping down ends), common ones.
DIMS = [2, 3, 4, 5, 20, 80, 81, 82, 83, 84, 85, 128, 512, 1025, 4096, 8191, 8192]
CONCENTRATIONS = [1e-300, 1e-8, 1e-3, 0.1, 1.0, 12.0, 39.9, 40.0, 40.1, 100.0, 256.0, 1e3, 1e4, 1e5, 1e6, 1e7]

#: The first call compiles, which takes longer than Hypothesis allows an example.
COMPILING = settings(deadline=None)
dims = st.integers(2, 8192)
#: Below 1e-140 squares, then lengths, leave the normal floats, and with them their relative accuracy.
concentrations = st.just(0.0) | st.floats(1e-140, 1e7)
#: Ten units of the last place: what the two recurrences may add up to over forty steps.
ROUNDING = 2.5e-15


@pytest.mark.parametrize(("dim", "concentration"), [(3, 1e3), (82, 12.0), (512, 1e3), (4096, 3e3), (8192, 3e3)])
def test_the_reference_agrees_with_the_series_added_one_by_one(reference: ModuleType, dim: int, concentration: float):
    exact = reference.log_hyp0f1(dim, concentration)
    assert reference.relative_error(reference.series_log_hyp0f1(dim, concentration), exact) < 1e-40


@pytest.mark.parametrize(("dim", "concentration"), [(2, 1e5), (4, 1e5), (82, 1e4), (512, 1e4), (4096, 1e5)])
def test_the_reference_agrees_with_poissons_integral(reference: ModuleType, dim: int, concentration: float):
    with mp.workdps(50):
        exact = mp.log(mp.hyp0f1(mp.mpf(dim) / 2, mp.mpf(concentration) ** 2 / 4))
    assert reference.relative_error(reference.quadrature_log_hyp0f1(dim, concentration), exact) < 1e-40


@pytest.mark.parametrize(("dim", "concentration"), [(2, 1e5), (3, 12.0), (82, 1e3), (512, 1e5), (8192, 1e6)])
def test_the_reference_agrees_with_the_continued_fraction(reference: ModuleType, dim: int, concentration: float):
    exact = reference.mean_resultant_length(dim, concentration)
    assert reference.relative_error(reference.continued_fraction_length(dim, concentration), exact) < 1e-40


@pytest.mark.parametrize("dim", DIMS)
def test_everything_agrees_with_fifty_digits(reference: ModuleType, dim: int):
    for concentration in CONCENTRATIONS:
        exact = reference.log_hyp0f1(dim, concentration)
        with mp.workdps(reference.DIGITS):
            exact_scaled = exact - mp.mpf(concentration)
        assert reference.scaled_error(log_hyp0f1(dim, concentration), exact) < reference.TOLERANCE
        assert reference.scaled_error(log_hyp0f1_scaled(dim, concentration), exact_scaled) < reference.TOLERANCE
        length = mean_resultant_length(dim, concentration)
        assert reference.relative_error(length, reference.mean_resultant_length(dim, concentration)) < ROUNDING


def test_three_dimensions_have_a_closed_form(reference: ModuleType):
    # ₀F₁(; 3/2; κ²/4) = sinh κ/κ and A_3 = coth κ − 1/κ.
    for concentration in (1e-3, 1.0, 12.0, 1e3, 1e7):
        with mp.workdps(50):
            kappa = mp.mpf(concentration)
            exact_log = mp.log(mp.sinh(kappa) / kappa)
            exact_length = mp.coth(kappa) - 1 / kappa
        assert reference.relative_error(log_hyp0f1(3, concentration), exact_log) < ROUNDING
        assert reference.relative_error(mean_resultant_length(3, concentration), exact_length) < ROUNDING


@pytest.mark.parametrize("dim", [2, 3, 81, 82, 512, 8192])
def test_small_concentrations_keep_their_digits(dim: int):
    # log α = κ²/2d and A = κ/d up to a relative κ²/d, which vanishes here.
    kappa = np.array([1e-150, 1e-100, 1e-20, 1e-9])
    np.testing.assert_allclose(log_hyp0f1(dim, kappa), kappa**2 / (2 * dim), rtol=ROUNDING)
    np.testing.assert_allclose(mean_resultant_length(dim, kappa), kappa / dim, rtol=ROUNDING)


@pytest.mark.parametrize("dim", [2, 81, 82, 8192])
def test_zero_concentration_is_uniform(dim: int):
    assert log_hyp0f1(dim, 0.0) == 0.0
    assert log_hyp0f1_scaled(dim, 0.0) == 0.0
    assert mean_resultant_length(dim, 0.0) == 0.0
    assert inverse_mean_resultant_length(dim, 0.0) == 0.0


def test_concentrations_far_beyond_the_promised_range_stay_finite():
    kappa = np.array([1e9, 1e20, 1e100, 1e200])
    for dim in (2, 81, 82, 512):
        np.testing.assert_allclose(log_hyp0f1(dim, kappa), kappa, rtol=1e-4)
        np.testing.assert_allclose(mean_resultant_length(dim, kappa), 1.0, rtol=1e-6)
        assert np.isfinite(log_hyp0f1_scaled(dim, kappa)).all()


@COMPILING
@given(dims, concentrations)
def test_length_obeys_the_bounds_of_amos(dim: int, concentration: float):
    length, b = mean_resultant_length(dim, concentration), (dim - 1) / 2
    lower = concentration / (b + np.hypot(b + 1, concentration))
    upper = concentration / (b + np.hypot(b, concentration))
    assert lower * (1 - ROUNDING) <= length <= upper * (1 + ROUNDING)
    assert 0 <= length < 1
    assert length <= concentration / dim * (1 + ROUNDING)


@COMPILING
@given(dims, concentrations, st.floats(1e-6, 10))
def test_both_grow_with_the_concentration(dim: int, concentration: float, factor: float):
    more = concentration * (1 + factor)
    assert log_hyp0f1(dim, concentration) <= log_hyp0f1(dim, more)
    # A saturates: where it is flat, rounding may hide the growth.
    assert mean_resultant_length(dim, concentration) <= mean_resultant_length(dim, more) * (1 + ROUNDING)


@COMPILING
@given(dims, concentrations)
def test_neighbouring_dimensions_are_tied_by_the_bessel_recurrence(dim: int, concentration: float):
    # A_d = κ/(d + κ A_{d+2}) and α_d/α_{d+2} = 1 + κ A_{d+2}/d; the pairs straddle both regimes.
    above = concentration * mean_resultant_length(dim + 2, concentration)
    assert mean_resultant_length(dim, concentration) == pytest.approx(
        concentration / (dim + above), rel=2 * ROUNDING, abs=0
    )
    fall = log_hyp0f1(dim, concentration) - log_hyp0f1(dim + 2, concentration)
    # The difference loses what the logarithms, at most κ, cannot hold.
    assert fall == pytest.approx(np.log1p(above / dim), rel=1e-14, abs=1e-15 + ROUNDING * concentration)


@COMPILING
@given(dims, st.floats(1e-3, 1e7))
def test_length_is_the_derivative_of_the_logarithm(dim: int, concentration: float):
    # Central difference: its own error is (step²/6)·κ²·A″, below 1e-7·A for a relative step of 1e-4; below
    # d = 82 the two logarithms are subtracted, which costs ε·log α/(2·step·κ) < 1e-11 more.
    below, above = concentration * (1 - 1e-4), concentration * (1 + 1e-4)
    slope = log_hyp0f1_ratio(dim, above, below) / (above - below)
    assert slope == pytest.approx(mean_resultant_length(dim, concentration), rel=1e-7, abs=1e-11)


@COMPILING
@given(st.integers(82, 8192), concentrations, st.floats(1e-12, 1))
def test_growth_over_a_short_interval_keeps_its_digits(dim: int, concentration: float, factor: float):
    end = concentration * (1 + factor)
    growth = log_hyp0f1_ratio(dim, end, concentration)
    # The mean value theorem: the slope grows, so that its ends bracket the mean slope.
    low, high = mean_resultant_length(dim, np.array([concentration, end])) * (end - concentration)
    assert low * (1 - 1e-14) <= growth <= high * (1 + 1e-14)


@COMPILING
@given(dims, concentrations)
def test_scaling_removes_exactly_the_concentration(dim: int, concentration: float):
    difference = log_hyp0f1(dim, concentration) - concentration
    # 1e-14: at d < 82 the scaled logarithm is a difference of terms some forty times larger.
    tolerance = 1e-14 * (1 + abs(difference)) + ROUNDING * concentration
    assert abs(log_hyp0f1_scaled(dim, concentration) - difference) <= tolerance


@COMPILING
@given(dims, st.floats(0, 1, exclude_max=True))
def test_length_of_the_inverse_is_the_length(dim: int, length: float):
    concentration = inverse_mean_resultant_length(dim, length)
    assert np.isfinite(concentration)
    assert mean_resultant_length(dim, concentration) == pytest.approx(length, rel=2 * ROUNDING, abs=1e-300)


@pytest.mark.parametrize("dim", [2, 3, 10, 81, 82, 512, 3000])
def test_inverse_is_accurate_even_for_nearly_equal_samples(reference: ModuleType, dim: int):
    for length in (1e-30, 1e-3, 0.3, 0.499, 0.5, 0.9, 0.999, 1 - 1e-9, 1 - 1e-14):
        with mp.workdps(50):
            kappa = mp.mpf(inverse_mean_resultant_length(dim, length))
            reached = reference.mean_resultant_length(dim, kappa)
            slope = 1 - reached**2 - (dim - 1) * reached / kappa
            # One exact Newton step measures the distance to the root.
            error = abs((reached - mp.mpf(length)) / slope / kappa)
        assert error < 1e-12


def test_numbers_give_numbers_and_arrays_give_arrays_of_their_shape():
    kappa = np.arange(6, dtype=np.float32).reshape(2, 3)
    for function in (log_hyp0f1, log_hyp0f1_scaled, mean_resultant_length):
        assert type(function(16, 2.0)) is float
        assert type(function(np.int64(16), 2)) is float
        values = function(16, kappa)
        assert values.shape == (2, 3)
        assert values.dtype == np.float64
        assert values[1, 2] == function(16, 5.0)
        assert function(16, kappa.T)[2, 1] == function(16, 5.0)
        assert function(16, []).shape == (0,)
        assert function(16, [1.0, 2.0])[1] == function(16, 2.0)


def test_read_only_concentrations_are_accepted_and_left_alone():
    kappa = np.array([1.0, 2.0])
    kappa.flags.writeable = False
    np.testing.assert_array_equal(log_hyp0f1(8, kappa), log_hyp0f1(8, kappa.copy()))
    writeable = np.array([1.0, 2.0])
    log_hyp0f1(8, writeable)
    log_hyp0f1_ratio(8, writeable, 0.5)
    np.testing.assert_array_equal(writeable, kappa)


@pytest.mark.parametrize("dim", [1, 0, -3, 2.5, 512.0, "512", None, True])
def test_a_dimension_that_is_not_an_integer_of_at_least_two_is_refused(dim: object):
    for function in (log_hyp0f1, log_hyp0f1_scaled, mean_resultant_length, inverse_mean_resultant_length):
        with pytest.raises(InvalidParameterError, match="dim"):
            function(dim, 0.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-1e-9, np.nan, np.inf, [1.0, -1.0], 1j, "many", [None], [[1.0], [1.0, 2.0]]])
def test_a_concentration_that_is_no_finite_number_from_zero_on_is_refused(bad: object):
    for function in (log_hyp0f1, log_hyp0f1_scaled, mean_resultant_length):
        with pytest.raises(InvalidConcentrationError, match="concentration"):
            function(512, bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("bad", [-0.1, 1.0, 1.5, np.nan, [0.5, 1.0]])
def test_a_length_outside_zero_to_one_is_refused(bad: object):
    with pytest.raises(InvalidParameterError, match="length"):
        inverse_mean_resultant_length(512, bad)  # type: ignore[arg-type]
