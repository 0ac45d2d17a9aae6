from __future__ import annotations

import warnings
from types import ModuleType

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, kstest

from holue.errors import InvalidConcentrationError, InvalidParameterError
from holue.sphere.area import log_area
from holue.sphere.power import (
    log_density,
    log_density_at_mean,
    log_normalizer,
    mean_resultant_length,
    sample,
)

DIMS = [2, 3, 4, 5, 19, 20, 81, 82, 83, 128, 512, 1025, 4096, 8191, 8192]
CONCENTRATIONS = [0.0, 1e-300, 1e-8, 1e-3, 0.1, 1.0, 9.5, 12.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7]
#: The first call compiles, which takes longer than Hypothesis allows an example.
COMPILING = settings(deadline=None)


@pytest.mark.parametrize("dim", DIMS)
def test_normalizer_and_peak_agree_with_fifty_digits(reference: ModuleType, dim: int):
    for concentration in CONCENTRATIONS:
        exact = reference.log_power_normalizer(dim, concentration)
        with mp.workdps(reference.DIGITS):
            exact_peak = exact + mp.mpf(concentration) * mp.log(2)
        assert reference.scaled_error(log_normalizer(dim, concentration), exact) < reference.TOLERANCE
        assert reference.scaled_error(log_density_at_mean(dim, concentration), exact_peak) < reference.TOLERANCE


@pytest.mark.parametrize(("dim", "zero"), [(82, 169.79178), (512, 1920.6779), (4096, 22503.0423), (8192, 49617.5115)])
def test_normalizer_keeps_its_digits_where_it_changes_sign(reference: ModuleType, dim: int, zero: float):
    for offset in (-3.0, -0.1, -1e-3, 0.0, 1e-3, 0.1, 3.0):
        exact = reference.log_power_normalizer(dim, zero + offset)
        assert abs(exact) < 5
        assert reference.scaled_error(log_normalizer(dim, zero + offset), exact) < 1e-14


@pytest.mark.parametrize("dim", DIMS)
def test_zero_concentration_is_the_uniform_density(dim: int):
    assert log_normalizer(dim, 0.0) == pytest.approx(-log_area(dim), rel=1e-14)
    # (1 + s)^0 is 1, opposite the mean too.
    for score in (-1.0, 0.0, 1.0):
        assert log_density(score, dim, 0.0) == pytest.approx(-log_area(dim), rel=1e-14)


@COMPILING
@given(st.integers(2, 8192), st.floats(0, 1e7), st.floats(-1, 1, exclude_min=True))
def test_density_is_the_normalizer_plus_concentration_times_log_one_plus_score(
    dim: int, concentration: float, score: float
):
    rise = concentration * np.log1p(score)
    plain = log_normalizer(dim, concentration) + rise
    # Each plain term is rounded at its own size.
    rounding = 1e-14 * (abs(log_area(dim)) + concentration + abs(rise) + 1)
    assert abs(log_density(score, dim, concentration) - plain) <= rounding


def test_density_near_the_mean_keeps_its_digits_at_high_concentration(reference: ModuleType):
    score, concentration = 1 - 2**-30, 1e7
    with mp.workdps(reference.DIGITS):
        rise = mp.mpf(concentration) * mp.log(1 + mp.mpf(score))
        exact = reference.log_power_normalizer(512, concentration) + rise
    assert reference.relative_error(log_density(score, 512, concentration), exact) < 1e-14


def test_density_opposite_the_mean_is_zero_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = log_density([-1.0, -1.0000001, 0.5], 16, [3.0, 1e7, 3.0])
    assert values[0] == values[1] == -np.inf
    assert np.isfinite(values[2])


def test_density_falls_with_the_angle():
    values = log_density(np.linspace(1, -0.999, 1000), 512, 300.0)
    assert (np.diff(values) < 0).all()


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_a_concentration_that_is_no_finite_number_from_zero_on_is_refused(bad: float):
    with pytest.raises(InvalidConcentrationError, match="concentration"):
        mean_resultant_length(512, bad)


@pytest.mark.parametrize("dim", [1, 2.5])
def test_a_dimension_that_is_not_an_integer_of_at_least_two_is_refused(dim: object):
    with pytest.raises(InvalidParameterError, match="dim"):
        mean_resultant_length(dim, 1.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("dim", "concentration", "n"),
    [
        (2, 0.0, 4000),
        (2, 0.7, 4000),
        (2, 1e7, 4000),
        (3, 10.0, 4000),
        (16, 5.0, 4000),
        (512, 169.0, 1000),
        (512, 1e7, 1000),
        (8192, 1e4, 200),
    ],
)
def test_cosines_of_the_samples_have_the_right_distribution(dim: int, concentration: float, n: int):
    mean = np.zeros(dim)
    mean[0] = 1.0
    drawn = sample(mean, concentration, np.random.default_rng(11), n_samples=n)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, rtol=1e-12)
    # (1 − μ·x)/2 = sin²(θ/2) ~ Beta(b, a); the angle comes from the tangent part, which does not cancel.
    angles = np.arctan2(np.linalg.norm(drawn[:, 1:], axis=1), drawn[:, 0])
    b = (dim - 1) / 2
    # A fixed seed: a p-value below 1e-3 would mean a wrong sampler rather than bad luck.
    assert kstest(np.sin(angles / 2) ** 2, beta(b, b + concentration).cdf).pvalue > 1e-3
    length = mean_resultant_length(dim, concentration)
    # Five standard errors of the mean cosine 1 − 2Y, Y ~ Beta(b, a).
    margin = 5 * 2 * beta(b, b + concentration).std() / np.sqrt(n)
    assert abs(2 * np.mean(np.sin(angles / 2) ** 2) - (1 - length)) < margin


def test_each_mean_has_its_own_concentration():
    drawn = sample(np.eye(2, 3), [1e6, 0.0], np.random.default_rng(3), n_samples=400)
    assert drawn.shape == (2, 400, 3)
    assert (drawn[0, :, 0] > 0.999).all()
    # Uniform on the sphere: the cosine has mean 0 and standard error 0.029.
    assert abs(drawn[1, :, 1].mean()) < 0.15
