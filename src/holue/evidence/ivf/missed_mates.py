"""MissedMates: how many lists have to be read so that a mate at a cosine is found, measured on rows of the gallery itself.

A trial is an enrolled row moved to a cosine ``c``: ``c x + √(1−c²) e``, where the unit vector ``e`` is normal to the row and
has the second moment of the gallery. Noise that points where the gallery itself varies is what probes of people have, and it is
harder than noise in all directions alike, most of which no centre sees. The trial is found if as many lists are read as have a
centre at least as near as that of its own list. So many are read that at most 0.001 of such mates are missed with confidence
0.95: the number is an order statistic of the trials, which gives that whatever their distribution (a tolerance limit).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from holue.evidence.ivf.inverted_lists import InvertedLists
from holue.evidence.ivf.kmeans import Float32Array, Rows
from holue.evidence.ivf.list_loops import count_nearer
from holue.evidence.threads.thread_pool import parallel_map
from holue.gallery.embeddings import Float64Array, FloatArray

TRIALS = 16_384
TRIED_AT_ONCE = 512
MISSED = 0.001
"""The share of mates at the threshold that may be missed."""
CONFIDENCE = 0.95
COSINES = np.round(np.arange(0.1, 0.951, 0.025), 3)
"""Where it is measured; between them the lower one counts."""


@dataclass(frozen=True, eq=False)
class MissedMates:
    """At g ascending cosines: the lists to read, and the share of the trials that are missed then."""

    cosines: Float64Array  # (g,)
    lists: Rows  # (g,)
    missed: Float64Array  # (g,)
    n_lists: int

    @classmethod
    def unknown(cls, n_lists: int) -> Self:
        """Before anything was measured: only reading all lists misses nobody."""
        return cls(np.empty(0), np.empty(0, dtype=np.int64), np.empty(0), n_lists)

    @classmethod
    def measure(
        cls,
        lists: InvertedLists,
        sampled: Float32Array,
        rng: np.random.Generator,
        *,
        fewest: int = 1,
        workers: int = 1,
    ) -> Self:
        """Try rows of the lists; ``sampled`` rows give the second moment, and ``fewest`` lists are read in any case."""
        at = rng.integers(len(lists.rows), size=TRIALS)
        own = np.searchsorted(lists.starts, at, side="right") - 1
        root = _root(sampled)
        seeds = rng.integers(2**63, size=-(-TRIALS // TRIED_AT_ONCE))
        ratios = (np.sqrt(1 - COSINES**2) / COSINES).astype(np.float32)
        needed = np.empty((TRIALS, len(COSINES)), dtype=np.int64)

        def attempt(number: int) -> None:
            some = slice(number * TRIED_AT_ONCE, (number + 1) * TRIED_AT_ONCE)
            rows = lists.vectors[at[some]]
            aside = _aside(rows, root, np.random.default_rng(seeds[number]))
            count_nearer(rows @ lists.centres.T, aside @ lists.centres.T, own[some], ratios, needed[some])

        for first in range(0, len(seeds), workers):
            parallel_map(attempt, list(range(first, min(first + workers, len(seeds)))))
        needed.sort(axis=0)
        enough = np.minimum(np.maximum(needed[TRIALS - 1 - may_be_missed(TRIALS)], fewest), len(lists))
        return cls(COSINES, enough, (needed > enough).mean(axis=0), len(lists))

    def at(self, cosine: float) -> tuple[int, float]:
        """The lists to read for mates of this cosine or a higher one, and the measured share of those at it that are missed.

        >>> known = MissedMates(np.array([0.3, 0.5]), np.array([40, 8]), np.array([0.0005, 0.0004]), 64)
        >>> known.at(0.45), known.at(0.2)
        ((40, 0.0005), (64, 0.0))
        """
        place = int(np.searchsorted(self.cosines, cosine, side="right")) - 1
        if place < 0:
            return self.n_lists, 0.0
        return int(self.lists[place]), float(self.missed[place])


def may_be_missed(trials: int) -> int:
    """How many of so many trials may be missed, for a share of at most ``MISSED`` with ``CONFIDENCE``.

    >>> may_be_missed(16_384), may_be_missed(4096)
    (9, 0)
    """
    from scipy.stats import binom

    count = int(binom.ppf(1 - CONFIDENCE, trials, MISSED))
    while count > 0 and binom.cdf(count, trials, MISSED) > 1 - CONFIDENCE:
        count -= 1
    return count


def _root(rows: Float32Array) -> Float32Array:
    """A square root (d, d) of the second moment of some rows."""
    x = rows.astype(np.float64)
    values, vectors = np.linalg.eigh(x.T @ x / len(x))
    root: Float32Array = (vectors * np.sqrt(np.maximum(values, 0.0))).astype(np.float32)
    return root


def _aside(rows: Float32Array, root: Float32Array, rng: np.random.Generator) -> Float32Array:
    """Unit vectors normal to the rows, of the second moment whose root is given; 0 where there are none."""
    noise = rng.standard_normal(rows.shape, dtype=np.float32) @ root.T
    noise -= np.einsum("ij,ij->i", noise, rows)[:, None] * rows
    length = np.linalg.norm(noise, axis=1, keepdims=True)
    return np.asarray(noise / np.where(length > 1e-6, length, np.inf), dtype=np.float32)


def blurred(directions: FloatArray, cosine: float, rng: np.random.Generator) -> FloatArray:
    """Unit vectors at the given cosine to these, in random ways; in one dimension, where there are none, the same again."""
    noise = rng.standard_normal(directions.shape)
    noise -= np.einsum("ij,ij->i", noise, directions)[:, None] * directions
    length = np.linalg.norm(noise, axis=1, keepdims=True)
    some = length > 0
    aside = np.sqrt(1 - cosine**2) * noise / np.where(some, length, 1.0)
    blurred: FloatArray = np.where(some, cosine * directions + aside, directions)
    return blurred
