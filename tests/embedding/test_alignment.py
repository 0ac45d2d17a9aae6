from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from holue.embedding.faces.alignment import TEMPLATE, align, similarity
from holue.errors import InvalidInputError

pytest.importorskip("cv2")
RNG = np.random.default_rng(3)
SMOOTH = np.dstack([np.add.outer(np.arange(200.0), c * np.arange(160.0)) / 4 for c in (0.5, 1.0, 2.0)]).clip(0, 255)
PHOTOGRAPH = SMOOTH.astype(np.uint8)
POINTS = TEMPLATE * 0.8 + [40.0, 50.0]
numbers = st.floats(-50, 50, allow_nan=False)


def moved(points: np.ndarray, a: complex, b: complex) -> np.ndarray:
    w = a * (points @ [1, 1j]) + b
    return np.column_stack([w.real, w.imag])


@given(st.floats(0.1, 10), st.floats(-np.pi, np.pi), numbers, numbers)
def test_a_similarity_is_recovered_from_what_it_did(scale: float, angle: float, x: float, y: float) -> None:
    a, b = scale * np.exp(1j * angle), x + 1j * y
    found = similarity(TEMPLATE, moved(TEMPLATE, a, b))
    # coordinates up to about 1500, relative rounding 1e-16
    np.testing.assert_allclose(found, [a, b], atol=1e-9)


@given(arrays(np.float64, (5, 2), elements=numbers), st.floats(-0.1, 0.1), st.floats(-0.1, 0.1), numbers, numbers)
def test_no_similarity_is_nearer_than_the_one_found(
    noise: np.ndarray, da: float, db: float, x: float, y: float
) -> None:
    target = TEMPLATE + noise
    a, b = similarity(TEMPLATE, target)

    def off(a: complex, b: complex) -> float:
        return float(((moved(TEMPLATE, a, b) - target) ** 2).sum())

    assert off(a, b) <= off(a + da + 1j * db, b + 0.01 * (x + 1j * y)) + 1e-6


def test_points_on_the_template_leave_the_photograph_as_it_is() -> None:
    photograph = RNG.integers(0, 256, (112, 112, 3), dtype=np.uint8)
    aligned = align(photograph, TEMPLATE, 112, "a.jpg")
    np.testing.assert_array_equal(aligned.crop, photograph)
    assert (aligned.pixels_across, aligned.outside) == (pytest.approx(112), 0)


def test_a_turned_photograph_gives_the_same_crop() -> None:
    turned = np.ascontiguousarray(np.rot90(PHOTOGRAPH, -1, axes=(0, 1)))
    height = PHOTOGRAPH.shape[0]
    points = np.column_stack([height - 1 - POINTS[:, 1], POINTS[:, 0]])
    upright, sideways = (align(*case, 112, "a.jpg").crop for case in ((PHOTOGRAPH, POINTS), (turned, points)))
    # bilinear weights are rounded to 1/32 of a pixel, neighbouring pixels differ by at most one level
    np.testing.assert_allclose(upright.astype(int), sideways.astype(int), atol=1)


def test_a_larger_photograph_gives_the_same_crop() -> None:
    large = np.kron(PHOTOGRAPH, np.ones((5, 5, 1), np.uint8))
    points = (POINTS + 0.5) * 5 - 0.5
    small, smoothed = align(PHOTOGRAPH, POINTS, 112, "a.jpg"), align(large, points, 112, "a.jpg")
    assert smoothed.pixels_across == pytest.approx(5 * small.pixels_across)
    np.testing.assert_allclose(small.crop.astype(int), smoothed.crop.astype(int), atol=2)  # averaging rounds once more


def test_noise_is_averaged_out_of_a_large_photograph() -> None:
    grey = np.full((1200, 1200, 3), 128.0)
    noisy = (grey + RNG.normal(0, 40, grey.shape)).clip(0, 255).astype(np.uint8)
    crop = align(noisy, (TEMPLATE + 0.5) * 10 - 0.5, 112, "a.jpg").crop
    # ten by ten pixels become one; the photograph is averaged to twice the crop's size: 40 / 5, and interpolation lowers it
    assert crop.astype(float).std() < 40 / 5


def test_what_lies_outside_of_the_photograph_is_black_and_counted() -> None:
    photograph = np.full((112, 112, 3), 200, np.uint8)
    aligned = align(photograph, TEMPLATE + np.array([56.0, 0.0]), 112, "a.jpg")
    assert aligned.outside == pytest.approx(0.5)
    assert (aligned.crop[:, 57:] == 0).all()
    assert (aligned.crop[:, :55] == 200).all()


def test_points_that_coincide_are_refused() -> None:
    with (
        pytest.raises(InvalidInputError, match=r"a.jpg: the five points of a face coincide"),
        np.errstate(all="ignore"),
    ):
        align(PHOTOGRAPH, np.ones((5, 2)), 112, "a.jpg")
