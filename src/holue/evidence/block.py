"""Block: rows of a gallery with their subjects' numbers and who of them has left, as kernels read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from holue.gallery.embeddings import FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.segment import Mask, Numbers, Part, places_of

NOBODY: Mask = np.zeros(0, dtype=bool)
"""The mask of a block that nobody has left: empty, so that the compiled loops have one type to read."""


class Block(NamedTuple):
    """Rows of one segment."""

    rows: FloatArray  # (n, d)
    numbers: Numbers  # (n,) ascending
    gone: Mask  # (n,) who has left, or NOBODY

    def take(self, rows: slice) -> Block:
        """Views of some rows."""
        gone = self.gone[rows]
        return Block(self.rows[rows], self.numbers[rows], gone if len(gone) and gone.any() else NOBODY)

    @property
    def n_living(self) -> int:
        """How many have not left."""
        return len(self.rows) - int(np.count_nonzero(self.gone))


def read_only(rows: FloatArray) -> FloatArray:
    """A view that cannot be written to: to the compiled loops, rows in memory and rows mapped from disk are then one type.

    Otherwise the first question to a mapped gallery would compile them a second time.
    """
    view = rows.view(np.ndarray)
    view.flags.writeable = False
    return view


def block_of(part: Part) -> Block:
    """A part of a gallery."""
    return Block(part.segment.directions, part.segment.numbers, NOBODY if part.gone is None else part.gone)


def blocks_of(gallery: Gallery | FloatArray | list[Block]) -> list[Block]:
    """The segments of a gallery; the rows of a plain matrix are numbered from 0."""
    if isinstance(gallery, list):
        return gallery
    if isinstance(gallery, Gallery):
        return [block_of(part) for part in gallery.parts]
    matrix = np.asarray(gallery)
    return [Block(matrix, np.arange(len(matrix)), NOBODY)]


def cut(blocks: Sequence[Block], begin: int, end: int, size: int) -> Iterator[Block]:
    """The rows ``begin .. end`` of all blocks as blocks of at most ``size`` rows; those that all have left are skipped."""
    start = 0
    for block in blocks:
        last = min(end - start, len(block.rows))
        for first in range(max(begin - start, 0), last, size):
            some = block.take(slice(first, min(first + size, last)))
            if len(some.gone) == 0 or some.n_living:
                yield some
        start += len(block.rows)


def rows_of(blocks: Sequence[Block], numbers: Numbers) -> FloatArray:
    """The rows of some ascending numbers, copied; each is in one of the blocks.

    >>> rows_of([Block(np.eye(2), np.array([5, 6]), NOBODY)], np.array([6]))
    array([[0., 1.]])
    """
    rows = np.empty((len(numbers), blocks[0].rows.shape[1]), dtype=blocks[0].rows.dtype)
    for block in blocks:
        places = places_of(numbers, block.numbers)
        here = places >= 0
        if len(block.gone):
            here &= ~block.gone[places]
        rows[here] = block.rows[places[here]]
    return rows
