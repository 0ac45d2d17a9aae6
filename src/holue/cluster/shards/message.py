"""Message: how rows reach a shard; a change, or all rows, in pieces small enough to stay out of Ray's object store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holue.cluster.shards.packed import LARGEST
from holue.gallery.embeddings import FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.segment import Numbers

MOST_NUMBERS = 4096
"""Numbers in a message: 32 kB."""


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
