from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from holue.embedding.faces.alignment import TEMPLATE, align
from holue.embedding.faces.face import Face
from holue.embedding.faces.measures import MEASURES, average_face, measure, pose, sharpness

cv2 = pytest.importorskip("cv2")
NOISE = np.random.default_rng(2).normal(0, 1, (112, 112, 3))
OCTAVES = [
    4 * edge * cv2.GaussianBlur(NOISE, (0, 0), edge) for edge in (1, 2, 4, 8)
]  # coarse and fine, as in a photograph
TEXTURE = (128 + 20 * np.sum(OCTAVES, axis=0)).clip(0, 255).astype(np.uint8)


@given(st.floats(-60, 60), st.floats(-40, 40), st.floats(-90, 90), st.floats(0.2, 20))
def test_the_pose_of_a_turnedaverage_face_is_recovered(yaw: float, pitch: float, roll: float, scale: float) -> None:
    # x is to the right, y down, z to the viewer: the nose goes right, then up, then the image is turned clockwise
    turned = Rotation.from_euler("zxy", [roll, pitch, yaw], degrees=True).apply(average_face())
    points = scale * turned[:, :2] + [30.0, 70.0]
    np.testing.assert_allclose(pose(points), (yaw, pitch, roll), atol=1e-6)  # rounding of two decompositions


@given(st.floats(-40, 40), st.floats(-40, 40))
def test_a_mirrored_face_looks_to_the_other_side(x: float, y: float) -> None:
    points = TEMPLATE + np.outer([0, 0, 1, 0, 0], [x / 4, y / 4])
    mirrored = (points * [-1, 1])[[1, 0, 2, 4, 3]]
    yaw, pitch, roll = pose(points)
    # the template itself is not quite symmetric: two degrees
    np.testing.assert_allclose(pose(mirrored), (-yaw, pitch, -roll), atol=3)


def test_the_nose_says_where_a_face_looks() -> None:
    nose = np.outer([0, 0, 1, 0, 0], [1, 0])
    assert pose(TEMPLATE + 6 * nose)[0] > 10 > -10 > pose(TEMPLATE - 6 * nose)[0]
    assert pose(TEMPLATE - 6 * nose[:, ::-1])[1] > 5 > -5 > pose(TEMPLATE + 6 * nose[:, ::-1])[1]


def test_blur_lowers_sharpness_and_contrast_does_not_change_it() -> None:
    blurred = [sharpness(cv2.GaussianBlur(TEXTURE, (0, 0), sigma)) for sigma in (0.5, 1.0, 2.0, 4.0)]
    assert sorted(blurred, reverse=True) == blurred
    assert sharpness(TEXTURE) > blurred[0]
    assert sharpness(TEXTURE // 2 + 50) == pytest.approx(sharpness(TEXTURE), rel=0.02)  # rounded to whole levels
    assert sharpness(np.full_like(TEXTURE, 7)) == 0


def test_every_measure_is_a_number_of_its_name() -> None:
    face = Face(np.array([20.0, 30.0, 60.0, 80.0]), TEMPLATE, 0.75)
    found = measure(face, align(TEXTURE, TEMPLATE, 112, "a.jpg"))
    assert tuple(found) == MEASURES
    assert (found["score"], found["size"], found["outside"]) == (0.75, pytest.approx(112), 0)
    assert np.isfinite(list(found.values())).all()
