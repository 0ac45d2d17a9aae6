"""Living lists: what one version of a gallery reads of a segment's inverted lists and their sample.

The lists are made once for a segment. Who has left since is skipped where a list is read, and taken out of what is known of a
list that is not: its size, its mean (exactly, from the rows that stay) and with it the scatter around the mean. The scatter
matrix of all lists together, of which only the shape is used, stays that of the build. A sampled row that has left is replaced by
another row of its list that was not sampled, so the sample stays a uniform draw among those who have not left; a list without
such a row is always read. A change touches the lists of those who left, and copies a byte a row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from holue.evidence.block import NOBODY
from holue.evidence.ivf.inverted_lists import InvertedLists
from holue.evidence.ivf.kmeans import Float32Array, Rows
from holue.evidence.ivf.list_loops import products
from holue.evidence.ivf.sample import Mask, Sample
from holue.gallery.embeddings import Float64Array

REPLACED_SHARE = 1 / 16
"""The most rows of a matrix that are kept beside it; with more a new matrix is made."""
_SCATTERING = 2_654_435_761  # a large odd number: neighbouring rows are replaced by rows that are not neighbours


@dataclass(frozen=True, eq=False)
class PatchedMatrix:
    """A matrix of which some rows were replaced since: replacing one more copies those, not the matrix.

    >>> patched = PatchedMatrix.of(np.eye(32, dtype=np.float32)).with_rows(np.array([1]), np.full((1, 32), 2, dtype=np.float32))
    >>> patched.products(np.ones((2, 32), dtype=np.float32))[0, :3].tolist()
    [1.0, 64.0, 1.0]
    """

    base: Float32Array  # (n, d)
    at: Rows  # (r,) which rows are replaced, ascending
    rows: Float32Array  # (r, d) by what

    @classmethod
    def of(cls, base: Float32Array) -> PatchedMatrix:
        """Nothing replaced yet."""
        return cls(base, np.empty(0, dtype=np.int64), base[:0])

    def products(self, probes: Float32Array) -> Float32Array:
        """The products (n, rows) of probes with all rows."""
        scores = products(probes, self.base)
        if len(self.at):
            scores[:, self.at] = probes @ self.rows.T
        return scores

    def with_rows(self, at: Rows, rows: Float32Array) -> PatchedMatrix:
        """The same with the rows ``at``, which are all different, replaced."""
        kept = ~np.isin(self.at, at)
        at, rows = np.concatenate([self.at[kept], at]), np.concatenate([self.rows[kept], rows])
        if len(at) <= REPLACED_SHARE * len(self.base):
            order = np.argsort(at)
            return PatchedMatrix(self.base, at[order], rows[order])
        base = self.base.copy()
        base[at] = rows
        return PatchedMatrix.of(base)


@dataclass(frozen=True, eq=False)
class LivingLists:
    """L lists and M sampled rows without those who left; made by :meth:`whole` and :meth:`of`."""

    lists: InvertedLists
    sample: Sample
    left: Mask | None  # (K,) who has left, by row of the segment; None where nobody has
    gone: Mask  # (K,) the same in the order of the lists' vectors, or NOBODY
    sizes: Rows  # (L,)
    lengths: Float64Array  # (L,) of the lists' means
    centres: PatchedMatrix  # (L, d) the means, of unit length
    sample_at: Rows  # (M,) places of the sampled rows among the lists' vectors
    sampled: PatchedMatrix  # (M, d)
    always_read: Mask  # (L,)

    @classmethod
    def whole(cls, lists: InvertedLists, sample: Sample) -> LivingLists:
        """Nobody has left."""
        return cls(
            lists,
            sample,
            None,
            NOBODY,
            lists.sizes,
            lists.lengths,
            PatchedMatrix.of(lists.centres),
            sample.at,
            PatchedMatrix.of(sample.vectors),
            np.zeros(len(lists), dtype=bool),
        )

    def of(self, left: Mask | None) -> LivingLists:
        """The same for a later or an earlier version, which these rows of the segment have left.

        Only what differs from this one is computed. A row sampled in place of one that left stays sampled in an earlier version,
        and a list that is always read stays so.
        """
        if left is None:
            return LivingLists.whole(self.lists, self.sample)
        rows = np.flatnonzero(left if self.left is None else left ^ self.left)
        if len(rows) == 0:
            return self
        places = self.lists.places[rows]
        gone = np.zeros(len(left), dtype=bool) if self.left is None else self.gone.copy()
        gone[places] = left[rows]
        changed = np.unique(np.searchsorted(self.lists.starts, places, side="right") - 1)
        return replace(self, left=left, gone=gone)._with_means(changed)._with_sample()

    def __len__(self) -> int:
        return int(self.sizes.sum())

    @cached_property
    def mean_lengths(self) -> Float32Array:
        """``r_l`` in float32 (L,): what a centre's score is multiplied with to be the list's mean score."""
        return self.lengths.astype(np.float32)

    @cached_property
    def scatter(self) -> Float32Array:
        """The mean squared distance of a list's rows to their mean, per coordinate (L,): ``v_l = (1 − r_l²)/d``."""
        dim = self.lists.vectors.shape[1]
        return np.asarray(np.maximum(1.0 - self.lengths**2, 0.0) / dim, dtype=np.float32)

    @cached_property
    def expansion(self) -> Float32Array:
        """``n/q`` (L,): the rows of its list that one sampled row stands for."""
        return np.asarray(self.sizes / self.sample.counts, dtype=np.float32)

    @cached_property
    def square(self) -> Float32Array:
        """``n (n − q) / q²`` (L,): what makes a sampled square a variance."""
        n, q = self.sizes.astype(np.float64), self.sample.counts.astype(np.float64)
        return np.asarray(n * np.maximum(n - q, 0.0) / q**2, dtype=np.float32)

    def _with_means(self, changed: Rows) -> LivingLists:
        """Sizes and means of some lists, from their rows that have not left; an empty list keeps its centre."""
        sizes, lengths, always_read = self.sizes.copy(), self.lengths.copy(), self.always_read.copy()
        at, centres = [], []
        for number in changed.tolist():
            span = slice(*self.lists.starts[number : number + 2].tolist())
            rows = self.lists.vectors[span][~self.gone[span]]
            sizes[number] = len(rows)
            if len(rows) == 0:
                always_read[number] = True
                continue
            mean = rows.mean(axis=0, dtype=np.float64)
            length = float(np.linalg.norm(mean))
            lengths[number] = length if length > 1e-6 else 0.0
            if length > 1e-6:
                at.append(number)
                centres.append((mean / length).astype(np.float32))
        moved = self.centres.with_rows(np.array(at), np.array(centres)) if at else self.centres
        return replace(self, sizes=sizes, lengths=lengths, centres=moved, always_read=always_read)

    def _with_sample(self) -> LivingLists:
        """Sampled rows that have left replaced by others of their lists."""
        lost = np.flatnonzero(self.gone[self.sample_at])
        lost = lost[~self.always_read[np.searchsorted(self.lists.starts, self.sample_at[lost], side="right") - 1]]
        if len(lost) == 0:
            return self
        sample_at, always_read, found = self.sample_at.copy(), self.always_read.copy(), []
        own = np.searchsorted(self.lists.starts, sample_at, side="right") - 1
        order = np.argsort(own, kind="stable")
        firsts = np.searchsorted(own[order], np.arange(len(self.lists) + 1))
        for slot in lost.tolist():
            number = int(own[slot])
            start, end = self.lists.starts[number : number + 2].tolist()
            free = ~self.gone[start:end]
            free[sample_at[order[firsts[number] : firsts[number + 1]]] - start] = False
            others = np.flatnonzero(free)
            if len(others) == 0:
                always_read[number] = True
                continue
            sample_at[slot] = start + int(others[int(sample_at[slot]) * _SCATTERING % len(others)])
            found.append(slot)
        replaced = np.array(found, dtype=np.int64)
        rows = self.lists.vectors[sample_at[replaced]]
        sampled = self.sampled.with_rows(replaced, rows) if found else self.sampled
        return replace(self, sample_at=sample_at, sampled=sampled, always_read=always_read)
