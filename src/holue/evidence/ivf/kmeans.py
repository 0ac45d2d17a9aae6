"""k-means: the centres of the inverted lists, and the nearest of them to each row.

Spherical k-means on a seeded part of the gallery places them. Comparing every row with L centres takes most of the time an index
needs, so a coarse quantizer groups the centres around about √L coarse centres, and a row is compared with the centres of the
coarse ones nearest to it. The rows whose best centre found like this scores lowest in their block may have missed a better one:
they are compared with all. What is lost is little (of faces one row in a hundred joins its second-best list) and only makes a
list somewhat wider, since a list is described by the rows it has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from holue.evidence.accumulator import Accumulator
from holue.evidence.block import NOBODY
from holue.evidence.ivf.list_loops import Float32Array as Float32Array
from holue.evidence.ivf.list_loops import visit, visitors_of
from holue.evidence.threads.thread_pool import parallel_map
from holue.gallery.embeddings import FloatArray

Rows = npt.NDArray[np.int64]
Step = Callable[[], None]
"""Called whenever another part is done."""

TRAINING_ROWS = 32
"""Gallery rows per centre that the centres are learned from."""
ITERATIONS = 8
FEWEST_QUANTIZED = 1024
"""Centres up to which comparing with all of them is as fast."""
COARSE_READ_TRAINING, COARSE_READ = 8, 16
"""Coarse centres whose centres a row is compared with, while the centres still move and in the end."""
RECHECKED = 0.05
"""The share of rows compared with all centres in the end."""
ASSIGNED_ROWS = 8192


@dataclass(frozen=True, eq=False)
class CoarseQuantizer:
    """L centres, grouped around coarse ones: those of coarse centre ``j`` are ``centres[starts[j] : starts[j + 1]]``."""

    coarse: Float32Array
    numbers: Rows  # (L,) what each centre was called before
    starts: Rows
    centres: Float32Array

    @classmethod
    def around(cls, centres: Float32Array, rng: np.random.Generator) -> Self:
        """Group these around about √L coarse centres."""
        coarse = place_centres(centres, round(np.sqrt(len(centres))), rng)
        labels = _best(centres, coarse)
        numbers, starts = ordered(labels, len(coarse))
        return cls(coarse[labels[numbers[starts[:-1]]]], numbers, starts, centres[numbers])

    def nearest(self, block: Float32Array, n_coarse: int, rechecked: float) -> Rows:
        """The nearest centre of each row among those of its ``n_coarse`` nearest coarse ones; for the worst, among all."""
        n_coarse = min(n_coarse, len(self.coarse))
        scores = block @ self.coarse.T
        least = np.partition(scores, -n_coarse, axis=1)[:, -n_coarse]
        visitors, firsts = visitors_of(scores >= least[:, None])
        best = Accumulator.start(len(block), np.empty(0), 1)
        everybody = np.arange(len(self.centres))
        visit(block, self.centres, everybody, NOBODY, self.starts, visitors, firsts, best.arrays)
        nearest, score = best.top_index[:, 0], best.top_scores[:, 0]
        worst = np.argpartition(score, int(rechecked * len(block)))[: int(rechecked * len(block))]
        nearest[worst] = _best(block[worst], self.centres)
        return self.numbers[nearest]


def place_centres(
    directions: FloatArray, n_centres: int, rng: np.random.Generator, *, workers: int = 1, step: Step = lambda: None
) -> Float32Array:
    """Learn so many centres of unit ``directions`` (K, d) from some of them, in ``ITERATIONS`` steps.

    >>> corners = np.repeat(np.eye(3, dtype=np.float32), 5, axis=0)
    >>> place_centres(corners, 3, np.random.default_rng(0)).shape
    (3, 3)
    """
    chosen = np.sort(rng.choice(len(directions), min(len(directions), TRAINING_ROWS * n_centres), replace=False))
    learned = np.ascontiguousarray(directions[chosen], dtype=np.float32)
    centres = learned[rng.choice(len(learned), n_centres, replace=False)]
    for _ in range(ITERATIONS):
        labels = nearest_centre(learned, centres, rng, workers=workers, n_coarse=COARSE_READ_TRAINING, rechecked=0.0)
        order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels, minlength=n_centres)
        filled = sizes > 0
        begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])[filled]
        sums = np.add.reduceat(learned[order], begins, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        # A centre that attracted nobody starts again elsewhere.
        centres = learned[rng.integers(len(learned), size=n_centres)]
        centres[filled] = np.where(lengths > 1e-6, sums / np.maximum(lengths, 1e-6), learned[order[begins]])
        step()
    return centres


def nearest_centre(
    directions: FloatArray,
    centres: Float32Array,
    rng: np.random.Generator,
    *,
    workers: int = 1,
    step: Step = lambda: None,
    n_coarse: int = COARSE_READ,
    rechecked: float = RECHECKED,
) -> Rows:
    """The number of the nearest centre of each row (K,), nearly always; in ``ITERATIONS`` steps, too."""
    quantizer = CoarseQuantizer.around(centres, rng) if len(centres) >= FEWEST_QUANTIZED else None
    nearest = np.empty(len(directions), dtype=np.int64)
    for part in np.array_split(np.arange(0, len(directions), ASSIGNED_ROWS), ITERATIONS):
        blocks = iter(part.tolist())  # each worker takes the next one

        def find(blocks: Iterator[int]) -> None:
            for first in blocks:
                block = np.ascontiguousarray(directions[first : first + ASSIGNED_ROWS], dtype=np.float32)
                found = _best(block, centres) if quantizer is None else quantizer.nearest(block, n_coarse, rechecked)
                nearest[first : first + len(block)] = found

        parallel_map(find, [blocks] * workers)
        step()
    return nearest


def ordered(labels: Rows, n_lists: int) -> tuple[Rows, Rows]:
    """The rows list by list, the longest first and the empty ones left out, and where each list begins.

    >>> rows, starts = ordered(np.array([2, 0, 2]), 3)
    >>> rows.tolist(), starts.tolist()
    ([0, 2, 1], [0, 2, 3])
    """
    sizes = np.bincount(labels, minlength=n_lists)
    by_size = np.argsort(-sizes, kind="stable")
    place = np.empty(n_lists, dtype=np.int64)
    place[by_size] = np.arange(n_lists)
    rows = np.argsort(place[labels], kind="stable").astype(np.int64)
    filled = sizes[by_size][: int((sizes > 0).sum())]
    return rows, np.concatenate([[0], np.cumsum(filled)]).astype(np.int64)


def _best(block: Float32Array, centres: Float32Array) -> Rows:
    best: Rows = (block @ centres.T).argmax(axis=1)
    return best
