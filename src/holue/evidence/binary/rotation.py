"""Rotation: the random rotation after which the signs of a row's coordinates are its code, and how far an estimate may be off.

With ``P`` drawn uniformly from all isometries of d into D dimensions, ``o`` a unit row and ``x̄ = sign(Po)/√D``, the estimate
``⟨x̄, Pz⟩/f`` of the cosine with a unit probe ``z``, where ``f = ⟨x̄, Po⟩``, is (Gao and Long 2024)

    s + √(1 − s²) √(1/f² − 1) u,        u the first coordinate of a uniform direction in D − 1 dimensions

because what of ``Pz`` is not along ``Po`` is uniform around it. So it has no bias, and the law of its error is known exactly. The
law is over the draw of the rotation: it holds for rows and probes that were not made with the rotation in view.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.special import betaincinv

from holue.gallery.embeddings import Float64Array

PADDED_TO = 64
"""Rotated rows have a multiple of so many coordinates: eight bytes of signs."""
SEED = 2024


def rotated_width(dim: int) -> int:
    """D: the coordinates of a rotated row."""
    return -(-dim // PADDED_TO) * PADDED_TO


@lru_cache(maxsize=4)
def rotation(dim: int) -> Float64Array:
    """``Pᵀ`` (d, D): orthonormal rows, uniform among all; the same in every process.

    >>> bool(np.allclose(rotation(3) @ rotation(3).T, np.eye(3)))
    True
    """
    width = rotated_width(dim)
    gaussian = np.random.default_rng([SEED, dim]).standard_normal((width, dim))
    q, r = np.linalg.qr(gaussian)
    # Only with the signs of R's diagonal is Q uniform (Mezzadri 2007); they also make it unique.
    return np.ascontiguousarray((q * np.where(np.diag(r) < 0, -1.0, 1.0)).T)


@lru_cache(maxsize=64)
def deviations(width: int, chance: float) -> float:
    """How many standard deviations an estimate is too low with this probability: ``P(√(D−1) u < −z) = chance``.

    >>> round(deviations(512, 1e-6), 2)
    4.71
    """
    # u² is Beta(½, (D − 2)/2), and both signs are as likely.
    square = betaincinv(0.5, (width - 2) / 2, 1.0 - 2.0 * chance)
    return float(np.sqrt(square * (width - 1)))
