"""What both densities on the sphere have in common: they integrate to one, broadcast, and refuse what is no cosine."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from scipy.integrate import quad

from holue.errors import InvalidConcentrationError, InvalidParameterError
from holue.sphere import power, vmf
from holue.sphere.area import log_area

pytestmark = pytest.mark.parametrize("density", [vmf, power], ids=["vmf", "power"])


@pytest.mark.parametrize("dim", [2, 3, 4, 7, 20])
@pytest.mark.parametrize("concentration", [0.0, 0.5, 12.0, 300.0])
def test_density_integrates_to_one(density: ModuleType, dim: int, concentration: float):
    # Rings at angle θ have the area of the sphere of one dimension less (2 points at d = 2) times sin^{d−2} θ.
    log_ring = np.log(2) if dim == 2 else log_area(dim - 1)

    def ring_mass(angle: float) -> float:
        log_mass = density.log_density(np.cos(angle), dim, concentration) + log_ring
        return float(np.exp(log_mass) * np.sin(angle) ** (dim - 2))

    total, _ = quad(ring_mass, 0, np.pi, points=[0.1, 0.3, 1.0], epsabs=1e-12, epsrel=1e-12, limit=400)
    assert total == pytest.approx(1.0, abs=1e-10)


def test_scores_and_concentrations_broadcast(density: ModuleType):
    log_density, log_normalizer = density.log_density, density.log_normalizer
    scores = np.linspace(-0.9, 1, 5)
    assert type(log_density(0.5, 16, 3.0)) is float
    assert type(log_normalizer(16, 3.0)) is type(log_normalizer(np.int32(512), 3)) is float
    assert log_density(scores, 16, 3.0).shape == (5,)
    assert log_density(0.5, 16, np.ones(3)).shape == (3,)
    both = log_density(scores[:, None], 16, np.array([1.0, 2.0, 3.0]))
    assert both.shape == (5, 3)
    assert both[4, 2] == log_density(1.0, 16, 3.0)
    for dim in (16, 512):
        assert log_normalizer(dim, np.ones((2, 3))).shape == (2, 3)
    with pytest.raises(InvalidConcentrationError, match="broadcast"):
        log_density(scores, 16, np.ones(3))


@pytest.mark.parametrize("bad", [1.1, -1.1, np.nan, 1j])
def test_a_score_that_is_no_cosine_is_refused(density: ModuleType, bad: complex):
    with pytest.raises(InvalidParameterError, match="score"):
        density.log_density(bad, 16, 3.0)


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf])
def test_a_concentration_that_is_no_finite_number_from_zero_on_is_refused(density: ModuleType, bad: float):
    for function in (density.log_normalizer, density.log_density_at_mean):
        for dim in (16, 512):
            with pytest.raises(InvalidConcentrationError, match="concentration"):
                function(dim, bad)
    with pytest.raises(InvalidConcentrationError, match="concentration"):
        density.log_density(0.0, 16, bad)


@pytest.mark.parametrize("dim", [1, 2.5])
def test_a_dimension_that_is_not_an_integer_of_at_least_two_is_refused(density: ModuleType, dim: object):
    for function in (density.log_normalizer, density.log_density_at_mean):
        with pytest.raises(InvalidParameterError, match="dim"):
            function(dim, 1.0)
