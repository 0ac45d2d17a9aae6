"""Message: how rows reach a shard; a change, or all rows, in pieces small enough to stay out of Ray's object store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holue.gallery.embeddings import FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.segment import Numbers

LARGEST = 64 * 1024
"""Bytes of rows in a message: Ray passes arguments under 100 kB with the call itself."""
MOST_NUMBERS = 4096
"""Numbers in a message: 32 kB."""


def inline(matrix: FloatArray) -> tuple[FloatArray, ...]:
    """A matrix as runs of rows, each small enough to be an argument that Ray passes with the call itself.

    >>> [len(some) for some in inline(np.zeros((300, 128), np.float32))]
    [128, 128, 44]
    """
    per = max(1, LARGEST // max(1, matrix.shape[1] * matrix.dtype.itemsize))
    return tuple(matrix[first : first + per] for first in range(0, max(1, len(matrix)), per))


@dataclass(frozen=True, eq=False)
class Message:
    """A piece of the step from the version ``base`` to ``version``; ``base`` is None where all rows come anew.

    Of the numbers ``gone`` nobody stays but those who come with a row. Pieces carry the same ``step`` and arrive in order; what
    they say counts once the ``last`` is there.
    """

    step: str  # a random word
    base: str | None
    version: str
    gone: Numbers
    numbers: Numbers  # (n,) ascending
    rows: FloatArray  # (n, d)
    n_rows: int  # of all pieces together
    place: int  # the rows in the pieces before
    last: bool
    erased: bool = False  # whether somebody was erased: then nothing of earlier versions may stay


def pieces(
    step: str,
    base: str | None,
    version: str,
    gone: Numbers,
    numbers: Numbers,
    gallery: Gallery,
    *,
    erased: bool = False,
) -> Iterator[Message]:
    """A step as messages: first who has gone, then the rows of ``numbers``, ascending, read from ``gallery`` as they are sent."""
    none = np.empty(0, np.int64)
    per = max(1, min(MOST_NUMBERS, LARGEST // (gallery.dim * gallery.dtype.itemsize)))
    first, n = 0, len(numbers)
    while len(gone) > MOST_NUMBERS:
        yield Message(step, base, version, gone[:MOST_NUMBERS], none, gallery.rows(none), n, 0, False, erased)
        gone = gone[MOST_NUMBERS:]
    while True:
        some = numbers[first : first + per]
        last = first + len(some) == n
        yield Message(step, base, version, gone, some, gallery.rows(some), n, first, last, erased)
        if last:
            return
        first, gone = first + len(some), none
