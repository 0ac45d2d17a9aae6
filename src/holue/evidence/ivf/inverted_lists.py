"""Inverted lists: a gallery grouped into neighbourhoods around centres, each stored in one piece.

Every row joins the list of its nearest centre (see ``kmeans.py``). Two moments of a list's rows are kept, because they say
much about scores nobody computed: their mean, of length ``r_l`` in the direction ``m_l``, gives the mean score ``r_l z·m_l``
exactly; and the scatter around the means, ``W`` of all lists together and ``v_l = (1 − r_l²)/d`` per coordinate of each,
gives the variance of its scores nearly: ``v_l zᵀWz d / tr W``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from holue.errors import InvalidParameterError
from holue.evidence.ivf.kmeans import Float32Array, Rows, Step, nearest_centre, ordered, place_centres
from holue.gallery.embeddings import Float64Array, FloatArray

COPIED_ROWS = 16384


@dataclass(frozen=True, eq=False)
class InvertedLists:
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
        vectors = np.empty((len(rows), directions.shape[1]), dtype=np.float32)
        place = np.empty_like(rows)
        place[rows] = np.arange(len(rows))
        for first in range(0, len(rows), COPIED_ROWS):  # in the order of the gallery, which may be on disk
            vectors[place[first : first + COPIED_ROWS]] = directions[first : first + COPIED_ROWS]
        means = np.array([part.mean(axis=0, dtype=np.float64) for part in np.split(vectors, starts[1:-1])])
        lengths = np.linalg.norm(means, axis=1)
        known = lengths > 1e-6
        centres = np.where(known[:, None], means / np.where(known, lengths, 1.0)[:, None], vectors[starts[:-1]])
        moment = np.zeros((vectors.shape[1], vectors.shape[1]))
        for first in range(0, len(vectors), COPIED_ROWS):
            block = vectors[first : first + COPIED_ROWS]
            moment += block.T @ block
        within = (moment - (means.T * np.diff(starts)) @ means) / len(vectors)
        return cls(rows, starts, vectors, centres.astype(np.float32), np.where(known, lengths, 0.0), within)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @cached_property
    def sizes(self) -> Rows:
        """Rows in each list (L,)."""
        return np.diff(self.starts)

    @cached_property
    def everybody(self) -> Rows:
        """The places 0 … K − 1 of all vectors."""
        return np.arange(len(self.rows))

    @cached_property
    def places(self) -> Rows:
        """Where each gallery row (K,) is among the vectors."""
        places = np.empty_like(self.rows)
        places[self.rows] = self.everybody
        return places

    def of_rows(self) -> Rows:
        """The list of each gallery row (K,)."""
        own = np.empty_like(self.rows)
        own[self.rows] = np.repeat(np.arange(len(self)), self.sizes)
        return own

    def elongation(self, probes: FloatArray) -> Float64Array:
        """How much more the rows scatter in the direction of each probe (n,) than on average: ``zᵀWz d / tr W``."""
        along = np.einsum("ij,ij->i", probes @ self.within, probes)
        return np.maximum(along, 0.0) / self.mean_within if self.mean_within > 0 else np.zeros(len(probes))

    @cached_property
    def mean_within(self) -> float:
        """The rows' variance around their lists' means, per coordinate: ``tr W / d``."""
        return float(np.trace(self.within)) / len(self.within)


def group(
    directions: FloatArray, n_lists: int, rng: np.random.Generator, *, workers: int = 1, step: Step = lambda: None
) -> InvertedLists:
    """Group unit ``directions`` (K, d) into at most ``n_lists`` lists; those that stay empty are dropped.

    >>> corners = np.repeat(np.eye(4, dtype=np.float32), 5, axis=0)
    >>> group(corners, 2, np.random.default_rng(0)).sizes.sum()
    np.int64(20)
    """
    if not 1 <= n_lists <= len(directions):
        raise InvalidParameterError(
            f"n_lists must be between 1 and the {len(directions)} subjects of the gallery, got {n_lists}"
        )
    centres = place_centres(directions, n_lists, rng, workers=workers, step=step)
    labels = nearest_centre(directions, centres, rng, workers=workers, step=step)
    return InvertedLists.from_order(directions, *ordered(labels, n_lists))
