"""Bit planes: the rotated coordinates of a row in one bit each or in two, and those of a probe as the planes add them.

With ``x = Po`` the rotated row, ``σ = ‖x‖/√D`` and ``t`` a coordinate, a code stands for a vector ``y`` of

    one bit:    y_t = ±1, the sign of x_t
    two bits:   y_t = ±1 or ±3, the larger where |x_t| > STEP · σ

which is a sum of planes of signs, ``y = Σ_p LEVELS_p ±1``. So ``⟨y, Pz⟩`` is one sum of signs over the probe's coordinates,
repeated for every plane and multiplied by its level: what reads one plane reads two. Two bits halve the error of an estimate
(extended RaBitQ, Gao et al. 2024: whatever ``y`` is, the law of the error follows from its cosine with ``x``).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array

LEVELS = {1: (1.0,), 2: (2.0, 1.0)}
"""What a sign of each plane counts, by the number of planes."""
STEP = 0.9957
"""The distance of the four levels that fit a normal distribution best (Max 1960)."""


def planes_of(rotated: npt.NDArray[np.floating[Any]], planes: int) -> npt.NDArray[np.bool_]:
    """The bits (n, planes · D) of rotated rows (n, D), plane by plane.

    >>> planes_of(np.array([[2.0, -0.1, 0.1, -2.0]]), 2).astype(int)
    array([[1, 0, 1, 0, 1, 1, 0, 0]])
    """
    positive = rotated >= 0
    if planes == 1:
        return positive
    scale = STEP * np.sqrt(np.einsum("ij,ij->i", rotated, rotated) / rotated.shape[1])
    return np.concatenate([positive, positive == (np.abs(rotated) > scale[:, None])], axis=1)


def values_of(bits: npt.NDArray[np.bool_], planes: int) -> npt.NDArray[np.float32]:
    """The vectors ``y`` (n, D) that bits stand for.

    >>> values_of(planes_of(np.array([[2.0, -0.1, 0.1, -2.0]]), 2), 2)
    array([[ 3., -1.,  1., -3.]], dtype=float32)
    """
    signs = bits.reshape(len(bits), planes, -1)
    levels = np.array(LEVELS[planes], dtype=np.float32)
    return np.asarray(np.einsum("p,ipt->it", levels, 2 * signs.astype(np.float32) - 1))


def repeated(rotated: Float64Array, planes: int) -> Float64Array:
    """Rotated probes (n, D) as the planes (n, planes · D) add them."""
    return np.concatenate([level * rotated for level in LEVELS[planes]], axis=1)
