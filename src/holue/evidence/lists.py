"""Lists: a gallery grouped into neighbourhoods around centres, each stored in one piece.

Spherical k-means on a seeded part of the gallery places the centres; every row then joins the list of its nearest one.
Two moments of a list's rows are kept, because they say much about scores nobody computed: their mean, of length ``r_l``
in the direction ``m_l``, gives the mean score ``r_l z·m_l`` exactly; and the scatter around the means, ``W`` of all lists
together and ``v_l = (1 − r_l²)/d`` per coordinate of each, gives the variance of its scores nearly: ``v_l zᵀWz d / tr
W``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidParameterError
from holue.gallery.embeddings import Float64Array, FloatArray

Float32Array = npt.NDArray[np.float32]
Rows = npt.NDArray[np.int64]

TRAINING_ROWS = 32
"""Gallery rows per list that the centres are learned from."""
ITERATIONS = 8
ROWS_AT_ONCE = 16384


@dataclass(frozen=True, eq=False)
class Lists:
    """K gallery rows in L lists, the longest first: list ``l`` is ``vectors[starts[l] : starts[l + 1]]``."""

    rows: Rows  # (K,) the gallery row of each vector, ascending within a list
    starts: Rows  # (L + 1,)
    vectors: Float32Array  # (K, d)
    centres: Float32Array  # (L, d) the lists' means, of unit length
    lengths: Float64Array  # (L,) the means' lengths before that
    within: Float64Array  # (d, d) the scatter W of the rows around their lists' means

    @classmethod
    def from_order(cls, directions: FloatArray, rows: Rows, starts: Rows) -> Self:
        """The lists of a known grouping; a mean of length 0 (opposite rows) has its first row for a centre."""
        vectors = np.ascontiguousarray(directions[rows], dtype=np.float32)
        means = np.array([part.mean(axis=0, dtype=np.float64) for part in np.split(vectors, starts[1:-1])])
        lengths = np.linalg.norm(means, axis=1)
        known = lengths > 1e-6
        centres = np.where(known[:, None], means / np.where(known, lengths, 1.0)[:, None], vectors[starts[:-1]])
        moment = np.zeros((vectors.shape[1], vectors.shape[1]))
        for first in range(0, len(vectors), ROWS_AT_ONCE):
            block = vectors[first : first + ROWS_AT_ONCE]
            moment += block.T @ block
        within = (moment - (means.T * np.diff(starts)) @ means) / len(vectors)
        return cls(rows, starts, vectors, centres.astype(np.float32), np.where(known, lengths, 0.0), within)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> Rows:
        """Rows in each list (L,)."""
        return np.diff(self.starts)

    def of_rows(self) -> Rows:
        """The list of each gallery row (K,)."""
        own = np.empty_like(self.rows)
        own[self.rows] = np.repeat(np.arange(len(self)), self.sizes)
        return own

    @cached_property
    def scatter(self) -> Float64Array:
        """The mean squared distance of a list's rows to their mean, per coordinate (L,): ``v_l = (1 − r_l²)/d``."""
        scatter: Float64Array = np.maximum(1.0 - self.lengths**2, 0.0) / self.vectors.shape[1]
        return scatter

    def elongation(self, probes: FloatArray) -> Float64Array:
        """How much more the rows scatter in the direction of each probe (n,) than on average: ``zᵀWz d / tr W``."""
        along = np.einsum("ij,ij->i", probes @ self.within, probes)
        mean = np.trace(self.within) / len(self.within)
        return np.maximum(along, 0.0) / mean if mean > 0 else np.zeros(len(probes))


def group(directions: FloatArray, n_lists: int, rng: np.random.Generator) -> Lists:
    """Group unit ``directions`` (K, d) into at most ``n_lists`` lists; those that stay empty are dropped.

    >>> corners = np.repeat(np.eye(4, dtype=np.float32), 5, axis=0)
    >>> group(corners, 2, np.random.default_rng(0)).sizes.sum()
    np.int64(20)
    """
    if not 1 <= n_lists <= len(directions):
        raise InvalidParameterError(
            f"n_lists must be between 1 and the {len(directions)} subjects of the gallery, got {n_lists}"
        )
    labels = _nearest(directions, _train(directions, n_lists, rng))
    sizes = np.bincount(labels, minlength=n_lists)
    by_size = np.argsort(-sizes, kind="stable")
    place = np.empty(n_lists, dtype=np.int64)
    place[by_size] = np.arange(n_lists)
    rows = np.argsort(place[labels], kind="stable").astype(np.int64)
    ordered = sizes[by_size]
    starts = np.concatenate([[0], np.cumsum(ordered[ordered > 0])]).astype(np.int64)
    return Lists.from_order(directions, rows, starts)


def _train(directions: FloatArray, n_lists: int, rng: np.random.Generator) -> Float32Array:
    chosen = np.sort(rng.choice(len(directions), min(len(directions), TRAINING_ROWS * n_lists), replace=False))
    learned = np.ascontiguousarray(directions[chosen], dtype=np.float32)
    centres = learned[rng.choice(len(learned), n_lists, replace=False)]
    for _ in range(ITERATIONS):
        labels = _nearest(learned, centres)
        order = np.argsort(labels, kind="stable")
        sizes = np.bincount(labels, minlength=n_lists)
        filled = sizes > 0
        begins = np.concatenate([[0], np.cumsum(sizes)[:-1]])[filled]
        sums = np.add.reduceat(learned[order], begins, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        # A centre that attracted nobody starts again elsewhere.
        centres = learned[rng.integers(len(learned), size=n_lists)]
        centres[filled] = np.where(lengths > 1e-6, sums / np.maximum(lengths, 1e-6), learned[order][begins])
    return centres


def _nearest(directions: FloatArray, centres: Float32Array) -> Rows:
    nearest = np.empty(len(directions), dtype=np.int64)
    for first in range(0, len(directions), ROWS_AT_ONCE):
        block = np.asarray(directions[first : first + ROWS_AT_ONCE], dtype=np.float32)
        nearest[first : first + len(block)] = (block @ centres.T).argmax(axis=1)
    return nearest
