"""Row sums: rows of a matrix added up by group, in one pass over it and without a copy.

A million samples of 512 numbers are 2 GB: normalising them first would write and read that once more.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
# Compiled functions have no Python types to check.

from __future__ import annotations

import numpy as np

from holue.sphere.compiled import njit

_ANY_ORDER = {"reassoc", "contract", "nsz"}  # sums may be split over vector lanes


@njit(cache=True, nogil=True, error_model="numpy", fastmath=_ANY_ORDER)
def add_directions(sums, group, vectors, weight):
    """``sums[group_i] += weight_i · x_i / ‖x_i‖``; the first zero row ends it and is returned, else −1."""
    for i in range(vectors.shape[0]):
        largest = vectors[i, 0]
        for j in range(vectors.shape[1]):
            # As a condition: max is honest about NaN, of which there is none here, and for that reason is not vectorised.
            size = abs(vectors[i, j])
            largest = size if size > largest else largest
        if largest <= 0:
            return i
        # Relative to the largest coordinate, so that no square overflows or vanishes.
        squares = vectors[i, 0] * 0
        for j in range(vectors.shape[1]):
            x = vectors[i, j] / largest
            squares += x * x
        factor = weight[i] / np.sqrt(squares)
        place = group[i]
        for j in range(vectors.shape[1]):
            sums[place, j] += vectors[i, j] / largest * factor
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def add_rows(sums, group, rows, weight):
    """``sums[group_i] += weight_i · row_i``."""
    for i in range(rows.shape[0]):
        place = group[i]
        for j in range(rows.shape[1]):
            sums[place, j] += weight[i] * rows[i, j]
