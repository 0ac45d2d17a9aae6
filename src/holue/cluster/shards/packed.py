"""Packed: a question to a shard, or its answer, as bytes.

Ray takes each argument of a call by itself, and bytes the quickest: as arrays and names a question cost the process that asks
half as much again. Arguments under 100 kB travel with the call, larger ones through the object store, so a long question is cut.
Both ends run the same code, and Ray itself would pickle what it is given.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

LARGEST = 64 * 1024
"""Bytes of a piece: Ray passes arguments under 100 kB with the call itself."""


def whole(value: object) -> bytes:
    """A value as one run of bytes, as an answer is: one that is too long for the call itself goes through the object store."""
    return pickle.dumps(value, protocol=5)


def packed(value: object) -> tuple[bytes, ...]:
    """A value as pieces of bytes, each small enough to travel with a call.

    >>> [len(piece) <= LARGEST for piece in packed(bytes(100_000))]
    [True, True]
    """
    run = whole(value)
    return tuple(run[first : first + LARGEST] for first in range(0, len(run), LARGEST))


def unpacked(pieces: Sequence[bytes]) -> Any:
    """What was packed.

    >>> unpacked(packed(("1@0", 10)))
    ('1@0', 10)
    """
    return pickle.loads(pieces[0] if len(pieces) == 1 else b"".join(pieces))
