"""Stripes: which shard a subject belongs to, by its number alone.

Runs of ``STRIPE`` numbers go to the shards in turn. So shards stay equally large while a gallery grows, and everybody who knows
the number of shards agrees on who is where, without asking.
"""

from __future__ import annotations

from holue.gallery.segment import Numbers

STRIPE = 1024


def shard_of(numbers: Numbers, n_shards: int) -> Numbers:
    """The shard of each number.

    >>> import numpy as np
    >>> shard_of(np.array([0, 1023, 1024, 2048]), 2).tolist()
    [0, 0, 1, 0]
    """
    return numbers // STRIPE % n_shards


def of_shard(numbers: Numbers, shard: int, n_shards: int) -> Numbers:
    """Those of some numbers that belong to a shard."""
    own: Numbers = numbers[shard_of(numbers, n_shards) == shard]
    return own
