from __future__ import annotations

import math
from types import ModuleType

import pytest

from holue.errors import InvalidParameterError
from holue.sphere.area import log_area


def test_circle_and_sphere_have_their_known_areas():
    assert log_area(2) == pytest.approx(math.log(2 * math.pi), rel=1e-15)
    assert log_area(3) == pytest.approx(math.log(4 * math.pi), rel=1e-15)
    assert log_area(4) == pytest.approx(math.log(2 * math.pi**2), rel=1e-15)


def test_areas_agree_with_fifty_digits(reference: ModuleType):
    for dim in [*range(2, 100), 512, 1023, 4096, 8191, 8192]:
        assert reference.scaled_error(log_area(dim), reference.log_area(dim)) < 1e-14


def test_two_dimensions_more_multiply_the_area_by_two_pi_over_the_dimension():
    for dim in (2, 3, 17, 512, 8190):
        step = log_area(dim + 2) - log_area(dim)
        # The subtraction rounds values of up to 25000.
        assert step == pytest.approx(math.log(2 * math.pi / dim), abs=1e-11)


@pytest.mark.parametrize("dim", [1, 2.0, "3"])
def test_a_dimension_that_is_not_an_integer_of_at_least_two_has_no_area(dim: object):
    with pytest.raises(InvalidParameterError, match="dim"):
        log_area(dim)  # type: ignore[arg-type]
