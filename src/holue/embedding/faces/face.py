"""Face: where a face is in a photograph, as a detector reports it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holue.gallery.embeddings import Float64Array


@dataclass(frozen=True, eq=False)
class Face:
    """A box (x, y, width, height), five points (5, 2) and the detector's score from 0 to 1; pixels of the upright photograph.

    The points are both eyes, the tip of the nose and both corners of the mouth; of a pair, the left one in the photograph first.

    >>> import numpy as np
    >>> face = Face(np.array([10.0, 20.0, 40.0, 50.0]), np.zeros((5, 2)), 0.9)
    >>> face.centre
    array([30., 45.])
    >>> print(face)
    40×50 pixels at (10, 20), score 0.90
    """

    box: Float64Array
    points: Float64Array
    score: float

    @property
    def centre(self) -> Float64Array:
        """The middle of the box."""
        return self.box[:2] + self.box[2:] / 2

    @property
    def area(self) -> float:
        """The area of the box."""
        return float(self.box[2] * self.box[3])

    def __str__(self) -> str:
        x, y, width, height = self.box
        return f"{width:.0f}×{height:.0f} pixels at ({x:.0f}, {y:.0f}), score {self.score:.2f}"


def listed(faces: Sequence[Face]) -> str:
    """The faces of one photograph, numbered, for a message."""
    return "; ".join(f"{number}: {face}" for number, face in enumerate(faces, start=1))
