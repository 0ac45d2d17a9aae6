from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from holue.errors import InvalidConcentrationError, InvalidEmbeddingsError, InvalidParameterError
from holue.sphere.parameters import FloatArray
from holue.sphere.tangent import sample_around


def gap_is_concentration(dim: int, concentration: FloatArray, rng: np.random.Generator) -> FloatArray:
    return concentration.copy()


def draw(mean: object, gap: object, n_samples: object = None) -> FloatArray:
    return sample_around(mean, gap, np.random.default_rng(5), n_samples, gap_is_concentration)  # type: ignore[arg-type]


def test_points_lie_at_the_given_gap():
    mean = np.array([2.0, -1.0, 2.0]) / 3
    gaps = np.array([0.0, 1e-12, 0.3, 1.0, 2.0])
    drawn = draw(np.tile(mean, (5, 1)), gaps)
    np.testing.assert_allclose(1 - drawn @ mean, gaps, atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, rtol=1e-15)


def test_tiny_gaps_keep_their_digits_in_the_tangent_part():
    drawn = draw([1.0, 0.0, 0.0], 1e-20, 10)
    # |sin θ| = √(2y) for a gap y far below the rounding of the cosine.
    np.testing.assert_allclose(np.linalg.norm(drawn[:, 1:], axis=1), np.sqrt(2e-20), rtol=1e-14)


def test_directions_around_the_mean_are_uniform():
    drawn = draw([0.0, 0.0, 1.0], 0.4, 4000)
    azimuths = np.arctan2(drawn[:, 1], drawn[:, 0]) / (2 * np.pi) + 0.5
    assert kstest(azimuths, "uniform").pvalue > 1e-3


def test_on_the_circle_both_sides_are_drawn_and_every_point_is_a_unit_vector():
    mean = np.array([np.cos(1.0), np.sin(1.0)])
    drawn = draw(mean, 0.5, 20_000)
    # In the plane nearly all of some random vectors is removed; one pass alone would leave 1e-12 here and there.
    np.testing.assert_allclose(np.linalg.norm(drawn, axis=1), 1.0, rtol=4e-16)
    left = drawn @ np.array([-mean[1], mean[0]]) > 0
    assert abs(left.mean() - 0.5) < 0.02  # five standard errors


def test_the_shape_follows_the_means_and_the_number_of_samples():
    rows = np.eye(3, 4)
    assert draw(rows[0], 0.1).shape == (4,)
    assert draw(rows[0], 0.1, 1).shape == (1, 4)
    assert draw(rows, 0.1).shape == (3, 4)
    assert draw(rows, [0.1, 0.2, 0.3], 5).shape == (3, 5, 4)
    assert draw(np.empty((0, 4)), 0.1, 5).shape == (0, 5, 4)


def test_rounding_of_the_means_is_removed():
    mean = np.array([0.6, 0.8], dtype=np.float16)
    np.testing.assert_allclose(np.linalg.norm(draw(mean, 0.0)), 1.0, rtol=1e-15)


@pytest.mark.parametrize(
    "bad",
    [
        [0.0, 0.0],
        [3.0, 4.0],
        [np.nan, 1.0],
        [np.inf, 1.0],
        [1j, 0],
        ["a", "b"],
        1.0,
        np.ones((1, 1, 2)),
        [[1.0], [1, 2]],
    ],
)
def test_means_that_are_no_unit_rows_are_refused(bad: object):
    with pytest.raises(InvalidEmbeddingsError, match="mean_directions"):
        draw(bad, 0.1)


def test_a_line_has_no_sphere_to_draw_from():
    with pytest.raises(InvalidParameterError, match="dim"):
        draw([1.0], 0.1)


@pytest.mark.parametrize("bad", [[0.1, 0.2], [[0.1], [0.2], [0.3]], -1.0, np.nan])
def test_concentrations_that_do_not_match_the_means_are_refused(bad: object):
    with pytest.raises(InvalidConcentrationError, match="concentration"):
        draw(np.eye(3), bad)


@pytest.mark.parametrize("bad", [0, -1, 2.0, "3"])
def test_a_number_of_samples_below_one_is_refused(bad: object):
    with pytest.raises(InvalidParameterError, match="n_samples"):
        draw(np.eye(3), 0.1, bad)
