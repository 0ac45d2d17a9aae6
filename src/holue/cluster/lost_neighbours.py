"""LostNeighbours: how near the subjects of shards that cannot be reached are to a candidate.

The process that asks has the rows on its disk, since it fills the shards. It does not scan them for every probe, which is what
the shards are for, but once for each candidate while a shard is away: people who come again are decided at once.
"""

from __future__ import annotations

from threading import Lock

import numpy as np

from holue.cluster.feeding import VersionToServe
from holue.cluster.shards.stripes import STRIPE, shard_of
from holue.gallery.embeddings import Float64Array
from holue.gallery.segment import Numbers

LARGEST_LOOK = 1 << 31
"""Bytes of missing rows up to which they are read: beyond it a question would wait too long, and nothing is known."""
ROUNDING = 1e-5


class LostNeighbours:
    """The cosines that were looked up since the version or the shards that are away last changed."""

    def __init__(self) -> None:
        self._about: tuple[str, frozenset[int]] | None = None
        self._known: dict[int, float] = {}
        self._lock = Lock()

    def of(self, version: VersionToServe, lost: frozenset[int], n_shards: int, numbers: Numbers) -> Float64Array:
        """The highest cosine of each number with a subject of the lost shards, rounded up; 1 where there are too many to look."""
        gallery = version.gallery
        lost_bytes = len(gallery) * gallery.dim * gallery.dtype.itemsize * len(lost) / n_shards
        if lost_bytes > LARGEST_LOOK:
            return np.ones(len(numbers))
        with self._lock:
            if self._about != (version.name, lost):
                self._about, self._known = (version.name, lost), {}
            new = np.array([number for number in np.unique(numbers).tolist() if number not in self._known], np.int64)
            if len(new):
                highest, asked = np.full(len(new), -1.0), gallery.rows(new)
                for some, rows in gallery.blocks(64 * STRIPE):
                    away = rows[np.isin(shard_of(some, n_shards), list(lost))]
                    if len(away):
                        highest = np.maximum(highest, (away @ asked.T).max(axis=0))
                self._known.update(zip(new.tolist(), np.minimum(highest + ROUNDING, 1.0).tolist()))
            return np.array([self._known[number] for number in numbers.tolist()])
