"""Row blocks: rows of a large array a part at a time, so that memory does not grow with their number."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.intp]
BLOCK = 1 << 16
"""Rows that are in memory at a time."""


def row_blocks(rows: Rows, size: int = BLOCK) -> Iterator[Rows]:
    """The rows, at most ``size`` at a time.

    >>> [block.tolist() for block in row_blocks(np.arange(5), 2)]
    [[0, 1], [2, 3], [4]]
    """
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def mean_over(rows: Rows, value: Callable[[Rows], float], size: int = BLOCK) -> float | None:
    """The mean over all rows of what is a mean over some; None of no rows."""
    if len(rows) <= size:
        return value(rows) if len(rows) else None
    return sum(len(block) * value(block) for block in row_blocks(rows, size)) / len(rows)
