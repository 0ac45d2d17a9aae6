"""Alignment: a face moved onto the template that ArcFace recognisers are trained on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.embedding.faces.opencv import opencv
from holue.errors import InvalidInputError
from holue.gallery.embeddings import Float64Array

TEMPLATE_SIZE = 112
TEMPLATE: Float64Array = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]]
)
"""Where eyes, nose and mouth belong in 112 × 112 pixels."""
SMOOTHED_FROM = 2.0
"""From so many pixels of the photograph per pixel of the crop, the photograph is averaged first: bilinear interpolation
reads four pixels and would pass over all others."""


@dataclass(frozen=True, eq=False)
class AlignedFace:
    """The crop (size, size, 3), how many pixels of the photograph it is wide, and which share of it lies outside of that."""

    crop: npt.NDArray[np.uint8]
    pixels_across: float
    outside: float


def similarity(points: Float64Array, target: Float64Array) -> npt.NDArray[np.complex128]:
    """The similarity transform ``w = a z + b`` nearest to ``points`` → ``target``, as the complex numbers (a, b).

    Points are complex numbers, so that ``a`` turns and scales and ``b`` shifts. The least squares are

        a = Σ conj(z − z̄)(w − w̄) / Σ |z − z̄|²,    b = w̄ − a z̄

    >>> a, b = similarity(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[5.0, 5.0], [5.0, 7.0]]))
    >>> print(a.round(6), b.round(6))  # turned by a quarter, twice as large
    2j (5+5j)
    """
    z, w = points @ [1, 1j], target @ [1, 1j]
    centred = z - z.mean()
    a = (centred.conj() @ (w - w.mean())) / (np.abs(centred) ** 2).sum()
    return np.array([a, w.mean() - a * z.mean()])


def align(pixels: npt.NDArray[np.uint8], points: Float64Array, size: int, origin: str) -> AlignedFace:
    """Cut the face with these five points out of a photograph (H, W, 3), aligned to the template at ``size`` pixels.

    What lies outside of the photograph is black.
    """
    # Pixel centres are whole numbers: the template of another size keeps its edges, not its corner.
    target = (TEMPLATE + 0.5) * (size / TEMPLATE_SIZE) - 0.5
    a, b = similarity(points, target)
    if not (np.isfinite(a) and np.isfinite(b) and abs(a) > 0):
        raise InvalidInputError(
            f"{origin}: the five points of a face coincide: {points.tolist()}; use another photograph"
        )
    outside = _outside(pixels.shape[:2], a, b, size)
    across = size / abs(a)
    cv2 = opencv()
    if abs(a) * SMOOTHED_FROM <= 1:
        shrink = abs(a) * SMOOTHED_FROM
        shape = max(1, round(pixels.shape[1] * shrink)), max(1, round(pixels.shape[0] * shrink))
        factor = np.array(shape) / (pixels.shape[1], pixels.shape[0])
        pixels = cv2.resize(pixels, shape, interpolation=cv2.INTER_AREA)
        a, b = similarity((points + 0.5) * factor - 0.5, target)
    matrix = np.array([[a.real, -a.imag, b.real], [a.imag, a.real, b.imag]])
    crop = cv2.warpAffine(pixels, matrix, (size, size), flags=cv2.INTER_LINEAR)
    return AlignedFace(crop, float(across), outside)


def _outside(shape: tuple[int, ...], a: complex, b: complex, size: int) -> float:
    x, y = np.meshgrid(np.arange(size), np.arange(size))
    source = (x + 1j * y - b) / a
    inside = (np.abs(source.real - (shape[1] - 1) / 2) <= shape[1] / 2) & (
        np.abs(source.imag - (shape[0] - 1) / 2) <= shape[0] / 2
    )
    return float(1 - inside.mean())
