from __future__ import annotations

from types import ModuleType

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import cumulative_trapezoid
from scipy.stats import kstest

from holue.sphere.area import log_area
from holue.sphere.bessel import mean_resultant_length
from holue.sphere.vmf import log_density, log_density_at_mean, log_normalizer, sample

DIMS = [2, 3, 5, 19, 81, 82, 83, 512, 2048, 8192]
CONCENTRATIONS = [0.0, 1e-8, 0.1, 12.0, 100.0, 1e3, 1e4, 1e5, 1e6, 1e7]
#: The first call compiles, which takes longer than Hypothesis allows an example.
COMPILING = settings(deadline=None)


@pytest.mark.parametrize("dim", DIMS)
def test_normalizer_and_peak_agree_with_fifty_digits(reference: ModuleType, dim: int):
    for concentration in CONCENTRATIONS:
        exact = reference.log_normalizer(dim, concentration)
        with mp.workdps(reference.DIGITS):
            exact_peak = exact + mp.mpf(concentration)
        assert reference.scaled_error(log_normalizer(dim, concentration), exact) < reference.TOLERANCE
        assert reference.scaled_error(log_density_at_mean(dim, concentration), exact_peak) < reference.TOLERANCE


@pytest.mark.parametrize(("dim", "zero"), [(82, 128.40475), (512, 1405.38238), (4096, 16213.664), (8192, 35633.078)])
def test_normalizer_keeps_its_digits_where_it_changes_sign(reference: ModuleType, dim: int, zero: float):
    # There −log S and log α cancel: at d = 8192 each alone is rounded to 4e-12.
    for offset in (-3.0, -1e-3, 0.1):
        exact = reference.log_normalizer(dim, zero + offset)
        assert abs(exact) < 5
        assert reference.scaled_error(log_normalizer(dim, zero + offset), exact) < 1e-14


@pytest.mark.parametrize("dim", [2, 81, 82, 8192])
def test_zero_concentration_is_the_uniform_density(dim: int):
    assert log_normalizer(dim, 0.0) == pytest.approx(-log_area(dim), rel=1e-14)
    assert log_density(-0.3, dim, 0.0) == pytest.approx(-log_area(dim), rel=1e-14)


@COMPILING
@given(st.integers(2, 8192), st.floats(0, 1e7), st.floats(-1, 1))
def test_density_is_the_normalizer_plus_concentration_times_score(dim: int, concentration: float, score: float):
    plain = log_normalizer(dim, concentration) + concentration * score
    # Both plain terms are rounded at their own size.
    assert abs(log_density(score, dim, concentration) - plain) <= 1e-14 * (abs(log_area(dim)) + concentration + 1)


def test_density_near_the_mean_keeps_its_digits_at_high_concentration(reference: ModuleType):
    score, concentration = 1 - 2**-30, 1e7
    with mp.workdps(reference.DIGITS):
        exact = reference.log_normalizer(512, concentration) + mp.mpf(concentration) * mp.mpf(score)
    assert reference.relative_error(log_density(score, 512, concentration), exact) < 1e-14


@pytest.mark.parametrize("dim", [2, 3, 17, 512])
@pytest.mark.parametrize("concentration", [0.0, 1e-3, 1.0, 50.0, 1e3, 1e5, 1e7])
def test_mean_cosine_of_the_samples_is_the_mean_resultant_length(dim: int, concentration: float):
    rng, n = np.random.default_rng(20240501), 4000 if dim < 100 else 1000
    mean = rng.standard_normal(dim)
    mean /= np.linalg.norm(mean)
    gaps = 1 - sample(mean, concentration, rng, n_samples=n) @ mean
    length = mean_resultant_length(dim, concentration)
    # A′ = 1 − A² − (d − 1)A/κ is the variance of the cosine; it cancels at large κ, where it is (d − 1)/2κ².
    slope = 1 - length**2 - (dim - 1) * length / concentration if concentration else 1 / dim
    variance = slope if concentration < 1e4 else (dim - 1) / (2 * concentration**2)
    # Five standard errors: one false alarm in two million draws of the seed.
    assert abs(gaps.mean() - (1 - length)) < 5 * np.sqrt(variance / n) + 1e-15


@pytest.mark.parametrize(
    ("dim", "concentration", "n"),
    [
        (2, 0.0, 4000),
        (2, 0.7, 4000),
        (2, 1e7, 4000),
        (3, 10.0, 4000),
        (4, 1e4, 4000),
        (16, 5.0, 4000),
        (512, 169.0, 1000),
        (512, 1e6, 1000),
        (8192, 1e4, 200),
    ],
)
def test_cosines_of_the_samples_have_the_right_distribution(dim: int, concentration: float, n: int):
    rng = np.random.default_rng(7)
    mean = np.zeros(dim)
    mean[0] = 1.0
    drawn = sample(mean, concentration, rng, n_samples=n)
    # The angle has density ∝ e^{κ cos θ} sin^{d−2} θ; the tangent part gives it without cancellation.
    angles = np.arctan2(np.linalg.norm(drawn[:, 1:], axis=1), drawn[:, 0])
    grid = np.linspace(0, np.pi, 200_001)
    if concentration > 100:
        grid = np.linspace(max(angles.min() - 1e-3, 0) * 0.5, min(angles.max() * 2, np.pi), 200_001)
    with np.errstate(divide="ignore"):
        log_weight = concentration * (np.cos(grid) - 1) + ((dim - 2) * np.log(np.sin(grid)) if dim > 2 else 0.0)
    weight = np.exp(log_weight - log_weight.max())
    mass = cumulative_trapezoid(weight, grid, initial=0)
    # A fixed seed: a p-value below 1e-3 would mean a wrong sampler rather than bad luck.
    assert kstest(angles, lambda angle: np.interp(angle, grid, mass / mass[-1])).pvalue > 1e-3


@COMPILING
@given(st.integers(2, 300), st.floats(0, 1e7), st.integers(0, 2**32 - 1))
def test_samples_are_unit_vectors(dim: int, concentration: float, seed: int):
    rng = np.random.default_rng(seed)
    mean = sample(np.eye(dim)[0], 0.0, rng).astype(np.float32)
    drawn = sample(mean, concentration, rng, n_samples=20)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, rtol=1e-12)


def test_samples_in_the_largest_space_are_unit_vectors():
    drawn = sample(np.eye(3, 8192), [0.0, 1e3, 1e7], np.random.default_rng(0), n_samples=4)
    assert drawn.shape == (3, 4, 8192)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=-1), 1.0, rtol=1e-12)


def test_each_mean_has_its_own_concentration():
    means = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    drawn = sample(np.repeat(means, 500, axis=0), np.repeat([1e6, 1.0], 500), np.random.default_rng(3))
    assert drawn.shape == (1000, 3)
    assert (drawn[:500, 0] > 0.999).all()
    # A_3(1) = coth 1 − 1 = 0.313, with a standard error of 0.023.
    assert drawn[500:, 1].mean() == pytest.approx(0.313, abs=0.1)


def test_the_same_seed_draws_the_same_samples():
    first, second = (sample(np.eye(5), 7.0, np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
