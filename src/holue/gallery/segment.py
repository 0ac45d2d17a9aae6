"""Segment: rows of a gallery that were enrolled or merged together, and never change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.subjects import Subjects

Numbers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Segment:
    """Directions in memory or mapped from disk, with the number and the id of each row's subject; no id occurs twice.

    >>> segment = Segment(np.eye(2), np.array([3, 7]), np.array(["bob", "ann"]))
    >>> segment.rows_of(np.array([7, 4])).tolist(), segment.find(np.array(["bob"])).tolist()
    ([1, -1], [0])
    """

    directions: FloatArray  # (n, d)
    numbers: Numbers  # (n,) ascending
    subjects: Subjects  # (n,)
    concentrations: Float64Array | None = None  # (n,)

    def __len__(self) -> int:
        return len(self.numbers)

    def rows_of(self, numbers: Numbers) -> Numbers:
        """The row of each number, −1 where the segment has none."""
        return places_of(numbers, self.numbers)

    def find(self, ids: Subjects) -> Numbers:
        """The row of each id, −1 where the segment has none."""
        order, ordered = self._index
        # Ids longer than all of these would make numpy copy all of these to the wider type: they are not here.
        known = ids.astype(ordered.dtype, copy=False)
        at = np.searchsorted(ordered, known).clip(max=len(self) - 1)
        same = (ordered[at] == known) & (known == ids)
        return np.where(same, at if order is None else order[at], -1)

    @cached_property
    def _index(self) -> tuple[Numbers | None, Subjects]:
        """How to put the ids in order (None: they are), and the ids in order; made when first asked for."""
        if bool((self.subjects[1:] > self.subjects[:-1]).all()):
            return None, self.subjects
        order = np.argsort(self.subjects, kind="stable")
        return order, self.subjects[order]


def places_of(numbers: Numbers, ascending: Numbers) -> Numbers:
    """Where each number is among ascending ones, −1 where it is not; O(1) a number where they are contiguous, else O(log n).

    >>> places_of(np.array([5, 4, -1]), np.array([2, 5, 9])).tolist()
    [1, -1, -1]
    """
    n = len(ascending)
    if n == 0:
        return np.full(numbers.shape, -1, dtype=np.int64)
    if ascending[-1] - ascending[0] == n - 1:
        places = numbers - ascending[0]
        return np.where((places >= 0) & (places < n), places, -1)
    at = np.searchsorted(ascending, numbers).clip(max=n - 1)
    return np.where(ascending[at] == numbers, at, -1)


@dataclass(frozen=True, eq=False)
class Part:
    """A segment as one version of a gallery has it: some of its subjects may have left."""

    segment: Segment
    gone: Mask | None  # (n,) who has left; None where nobody has
    n_living: int

    @classmethod
    def whole(cls, segment: Segment) -> Part:
        """A segment that nobody has left."""
        return cls(segment, None, len(segment))

    def without(self, rows: Numbers) -> Part:
        """The same after the subjects of some more rows have left; a byte a row is copied."""
        gone = np.zeros(len(self.segment), dtype=bool) if self.gone is None else self.gone.copy()
        gone[rows] = True
        return Part(self.segment, gone, self.n_living - len(rows))

    def rows_of(self, numbers: Numbers) -> Numbers:
        """The row of each number that is here and has not left, else −1."""
        return self._present(self.segment.rows_of(numbers))

    def find(self, ids: Subjects) -> Numbers:
        """The row of each id that is here and has not left, else −1."""
        return self._present(self.segment.find(ids))

    def living(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Those of a value per row whose subjects have not left."""
        return values if self.gone is None else values[~self.gone]

    def _present(self, rows: Numbers) -> Numbers:
        return rows if self.gone is None else np.where((rows >= 0) & self.gone[rows], -1, rows)


def joined(parts: Sequence[Part]) -> Segment:
    """One segment of all who have not left, in the order of their numbers."""
    numbers = np.concatenate([part.living(part.segment.numbers) for part in parts])
    subjects = np.concatenate([part.living(part.segment.subjects) for part in parts])
    directions = np.concatenate([part.living(part.segment.directions) for part in parts])
    kappa = None
    if parts[0].segment.concentrations is not None:
        given = (part.segment.concentrations for part in parts)
        kappa = np.concatenate([part.living(each) for part, each in zip(parts, given) if each is not None])
    if bool((numbers[1:] > numbers[:-1]).all()):
        return Segment(directions, numbers, subjects, kappa)
    order = np.argsort(numbers)
    return Segment(directions[order], numbers[order], subjects[order], None if kappa is None else kappa[order])
