"""Face measures: what makes a face in a photograph poor, as numbers that are kept beside its embedding."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from holue.embedding.faces.alignment import TEMPLATE, AlignedFace
from holue.embedding.faces.face import Face
from holue.embedding.faces.opencv import opencv
from holue.gallery.embeddings import Float64Array

PREFIX = "measure_"
MEASURES = ("score", "size", "yaw", "pitch", "roll", "sharpness", "outside")
"""Detector score; pixels of the photograph across the crop; three angles in degrees; sharpness; share of the crop outside."""

SMALL, BLURRED, TURNED, CUT, DOUBTFUL = 80.0, 0.017, 30.0, 0.02, 0.8
"""From where a face is called poor: pixels, sharpness, degrees, share outside, detector score."""
NOSE_DEPTH, MOUTH_DEPTH = 0.45, 0.1
"""How far nose and mouth lie in front of the eyes, in distances between the eyes: an average face, so angles are estimates."""


def measure(face: Face, aligned: AlignedFace) -> dict[str, float]:
    """All ``MEASURES`` of one face, by name."""
    yaw, pitch, roll = pose(face.points)
    return {
        "score": face.score,
        "size": aligned.pixels_across,
        "yaw": yaw,
        "pitch": pitch,
        "roll": roll,
        "sharpness": sharpness(aligned.crop),
        "outside": aligned.outside,
    }


def pose(points: Float64Array) -> tuple[float, float, float]:
    """Yaw, pitch and roll in degrees, from five points (5, 2).

    The points of an average face in space are projected without perspective; the projection nearest to ``points`` by least
    squares gives the rotation. Yaw is positive where the nose points to the right of the photograph, pitch where it points up,
    roll where the head is tilted clockwise. The rotation is roll first, then pitch, then yaw.

    >>> right = np.array([[0.0, 0.0], [0.0, 0.0], [6.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    >>> [tuple(round(angle) + 0 for angle in pose(points)) for points in (TEMPLATE, TEMPLATE + right)]
    [(0, 0, 0), (23, 0, 1)]
    """
    model = average_face()
    projection = np.linalg.lstsq(model, points - points.mean(axis=0), rcond=None)[0].T
    left, _, right = np.linalg.svd(projection, full_matrices=False)
    across, down = left @ right
    front = np.cross(across, down)
    yaw = np.arctan2(across[2], front[2])
    pitch = np.arcsin(np.clip(-down[2], -1, 1))
    roll = np.arctan2(down[0], down[1])
    return float(np.degrees(yaw)), float(np.degrees(pitch)), float(np.degrees(roll))


def sharpness(crop: npt.NDArray[np.uint8]) -> float:
    """The variance of the Laplacian relative to the variance of the grey levels; 0 in a crop of one colour.

    Contrast and brightness do not change it.

    >>> board = (np.indices((112, 112)).sum(axis=0) % 2 * 255).astype(np.uint8)
    >>> sharpness(np.dstack([board] * 3)) > sharpness(np.dstack([board // 2] * 3)) - 0.1 > 10
    True
    """
    cv2 = opencv()
    grey = cv2.cvtColor(crop, cv2.COLOR_RGB2GRAY).astype(np.float64)
    spread = float(grey.var())
    return float(cv2.Laplacian(grey, cv2.CV_64F).var()) / spread if spread > 0 else 0.0


def in_words(measures: Mapping[str, float]) -> str:
    """The size of a face and what is poor about it, for people.

    The limits of sharpness and score lie below 99 of 100 faces of press photographs (Labelled Faces in the Wild).

    >>> in_words({"score": 0.92, "size": 61.0, "yaw": -41.0, "pitch": 0.0, "roll": 2.0, "sharpness": 0.05, "outside": 0.0})
    '61 pixels across, small, turned to the side'
    """
    faults = {
        "small": measures["size"] < SMALL,
        "blurred": measures["sharpness"] < BLURRED,
        "turned to the side": abs(measures["yaw"]) > TURNED,
        "seen from above or below": abs(measures["pitch"]) > TURNED,
        "cut by the edge": measures["outside"] > CUT,
        "hardly a face": measures["score"] < DOUBTFUL,
    }
    return ", ".join([f"{measures['size']:.0f} pixels across", *(fault for fault, found in faults.items() if found)])


def average_face() -> Float64Array:
    """The template with depth, centred (5, 3): x to the right, y down, z to the viewer."""
    eyes = float(np.linalg.norm(TEMPLATE[1] - TEMPLATE[0]))
    depth = eyes * np.array([0.0, 0.0, NOSE_DEPTH, MOUTH_DEPTH, MOUTH_DEPTH])
    face = np.column_stack([TEMPLATE, depth])
    return np.asarray(face - face.mean(axis=0), dtype=np.float64)
