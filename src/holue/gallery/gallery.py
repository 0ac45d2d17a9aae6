"""Gallery: who is enrolled, as one direction per subject; each change makes a new version.

A subject has a number for life: an int64 given at enrolment, ascending, never used again. A version is a list of immutable
segments and, per segment, who has left. Enrolling adds a small segment, removing marks; both share everything else with the
version before, so that no change costs more because the gallery is large. Small segments are merged as they add up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from holue.errors import (
    GalleryTooSmallError,
    InvalidConcentrationError,
    InvalidEmbeddingsError,
    InvalidSubjectsError,
)
from holue.gallery.embeddings import Embeddings, Float64Array, FloatArray
from holue.gallery.pooling import pool
from holue.gallery.segment import Numbers, Part, Segment, joined
from holue.gallery.subjects import Subjects, as_subjects

OPEN_ROWS = 256
"""Rows under which the last segment is joined with newly enrolled ones: at d = 512 half a megabyte is copied."""
MERGED_ROWS = (1024, 4096)
"""Segments smaller than one of these are merged when together they reach it: few segments, and each row is copied few times.

Larger ones, of which codes or lists may have been made, are merged only by :meth:`Gallery.merged` and :meth:`Gallery.compact`."""
MOST_SEGMENTS, MOST_GONE = 16, 0.1
"""Beyond so many segments, or such a share of a large one gone, compacting makes scans faster."""


@dataclass(frozen=True, eq=False)
class Gallery:
    """An immutable version of the enrolled subjects.

    Subjects are numbered in the order of enrolment (sorted within one call), from 0; a tie between scores goes to the smaller
    number. A new template keeps its subject's number; who was removed and is enrolled again gets a new one.

    >>> gallery = Gallery.from_samples([[1.0, 0.0], [0.0, 1.0]], ["ann", "bob"])
    >>> gallery.enroll([[-1.0, 0.0]], ["eve"])
    Gallery(3 subjects, d=2, version 2)
    >>> gallery.enroll([[-1.0, 0.0]], ["eve"]).remove("ann").index_of(np.array(["bob", "eve", "ann"]))
    array([ 1,  2, -1])
    """

    parts: tuple[Part, ...]
    next_number: int
    version: int = 1

    @classmethod
    def of(
        cls,
        subjects: Subjects,
        *directions: FloatArray,
        concentrations: Float64Array | None = None,
        numbers: Numbers | None = None,
        version: int = 1,
    ) -> Self:
        """Subjects with their unit directions, in one matrix or several that follow each other; trusted to be valid.

        They are numbered from 0 where ``numbers``, ascending, does not say otherwise.
        """
        known = np.arange(len(subjects)) if numbers is None else numbers
        parts, start = [], 0
        for matrix in directions:
            rows = slice(start, start + len(matrix))
            kappa = None if concentrations is None else concentrations[rows]
            parts.append(Part.whole(Segment(matrix, known[rows], subjects[rows], kappa)))
            start += len(matrix)
        return cls(tuple(parts), int(known[-1]) + 1 if len(known) else 0, version)

    @classmethod
    def from_samples(
        cls,
        X: object,
        y: object,
        concentration: object = None,
        *,
        media: object = None,
        weighting: str = "uniform",
    ) -> Self:
        """Samples pooled to one template per subject (see :func:`holue.gallery.pooling.pool`)."""
        if np.ndim(y) >= 1 and len(np.asarray(y)) == 0:  # type: ignore[arg-type]
            raise GalleryTooSmallError("the gallery is empty: enrol at least one subject")
        subjects, templates = pool(X, y, media=media, concentration=concentration, weighting=weighting, field="y")
        return cls.of(subjects, templates.directions, concentrations=templates.concentrations)

    def __len__(self) -> int:
        return sum(part.n_living for part in self.parts)

    def __repr__(self) -> str:
        return f"Gallery({len(self)} subjects, d={self.dim}, version {self.version})"

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return int(self.parts[0].segment.directions.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """The precision of the directions."""
        return self.parts[0].segment.directions.dtype

    @property
    def has_concentrations(self) -> bool:
        """Whether every template has a concentration; else none has."""
        return self.parts[0].segment.concentrations is not None

    # -- all subjects: O(K) where there are several segments, or some have left ---------------------------------------------

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers (K,) of all subjects, ascending."""
        return self._all([part.segment.numbers for part in self.parts])

    @cached_property
    def subjects(self) -> Subjects:
        """The ids (K,) of all subjects, in the order of their numbers."""
        return self._all([part.segment.subjects for part in self.parts])

    @property
    def directions(self) -> FloatArray:
        """The directions (K, d) of all subjects, in the order of their numbers."""
        return self._all([part.segment.directions for part in self.parts])

    @property
    def concentrations(self) -> Float64Array | None:
        """The concentrations (K,) of all subjects, in the order of their numbers, where there are any."""
        given = [part.segment.concentrations for part in self.parts]
        known = [each for each in given if each is not None]
        return self._all(known) if known else None

    def blocks(self, size: int) -> Iterator[tuple[Numbers, FloatArray]]:
        """The numbers and directions of all subjects, at most ``size`` at a time, segment by segment."""
        for part in self.parts:
            for first in range(0, len(part.segment), size):
                rows = slice(first, first + size)
                numbers, directions = part.segment.numbers[rows], part.segment.directions[rows]
                if part.gone is not None and part.gone[rows].any():
                    there = ~part.gone[rows]
                    numbers, directions = numbers[there], directions[there]
                if len(numbers):
                    yield numbers, directions

    # -- some subjects ---------------------------------------------------------------------------------------------------

    def rows(self, numbers: Numbers) -> FloatArray:
        """The directions of some numbers (n, d), copied; a number that nobody has is an error."""
        found = np.empty((len(numbers), self.dim), dtype=self.dtype)
        self._fill(found, numbers, [part.segment.directions for part in self.parts])
        return found

    def names(self, numbers: Numbers) -> Subjects:
        """The ids of some numbers, of any shape; a negative one is nobody's, and named 0 or the empty string."""
        ids = [part.segment.subjects for part in self.parts]
        found = np.zeros(numbers.size, dtype=np.result_type(*ids))
        self._fill(found, numbers.ravel(), ids)
        return found.reshape(numbers.shape)

    def index_of(self, ids: Subjects) -> Numbers:
        """Number of each id, −1 where it is not enrolled; ids of another type than the gallery's are an error."""
        self.check_type(ids, field="y")
        numbers = np.full(len(ids), -1, dtype=np.int64)
        for part in reversed(self.parts):
            missing = np.flatnonzero(numbers < 0)
            if len(missing) == 0:
                break
            rows = part.find(ids[missing])
            here = rows >= 0
            numbers[missing[here]] = part.segment.numbers[rows[here]]
        return numbers

    def check_type(self, ids: Subjects, *, field: str) -> None:
        """Refuse integers against strings: they would never match, and every probe would look unknown."""
        own = self.parts[0].segment.subjects.dtype.kind
        if ids.dtype.kind != own:
            names = {"i": "integers", "U": "strings"}
            raise InvalidSubjectsError(
                f"{field} holds {names[ids.dtype.kind]} but the gallery's subjects are "
                f"{names[own]}; convert one of them, for instance with .astype(str)"
            )

    # -- changes ---------------------------------------------------------------------------------------------------------

    def enroll(
        self,
        X: object,
        y: object,
        concentration: object = None,
        *,
        media: object = None,
        weighting: str = "uniform",
        replace: bool = False,
    ) -> Gallery:
        """A new version with these subjects added; with ``replace=True`` enrolled ones get the new template."""
        subjects, templates = pool(X, y, media=media, concentration=concentration, weighting=weighting, field="y")
        self._check_compatible(templates, subjects)
        numbers = self.index_of(subjects)
        known = numbers >= 0
        if known.any() and not replace:
            raise InvalidSubjectsError(
                f"subject {subjects[int(known.argmax())].item()!r} is enrolled already; pass replace=True to replace the "
                "template, or remove it first"
            )
        kept = self._without(numbers[known]) if known.any() else self.parts
        last = self.next_number + int(len(known) - known.sum())
        numbers[~known] = np.arange(self.next_number, last)
        directions = templates.directions.astype(self.dtype, copy=False)
        added = Part.whole(Segment(directions, numbers, subjects, templates.concentrations))
        if known.any():  # their numbers do not ascend
            added = Part.whole(joined([added]))
        return Gallery(_settled(kept, added), last, self.version + 1)

    def remove(self, subjects: object) -> Gallery:
        """A new version without these subjects (one id or several)."""
        several = np.ndim(subjects) > 0  # type: ignore[arg-type]
        ids = as_subjects(subjects if several else [subjects], field="subject")
        if len(ids) == 0:
            raise InvalidSubjectsError("no subject was named; nothing was removed")
        numbers = self.index_of(ids)
        if (numbers < 0).any():
            raise InvalidSubjectsError(
                f"subject {ids[int((numbers < 0).argmax())].item()!r} is not enrolled; nothing was removed"
            )
        leaving = np.unique(numbers)
        if len(leaving) == len(self):
            raise GalleryTooSmallError("removing the last subject would leave an empty gallery; nothing was removed")
        return self.without(leaving)

    def without(self, numbers: Numbers) -> Gallery:
        """A new version that these numbers have left, as far as they are enrolled; it may be empty."""
        parts = tuple(part for part in self._without(numbers) if part.n_living)
        return Gallery(parts, self.next_number, self.version + 1)

    def exchanged(self, gone: Numbers, numbers: Numbers, subjects: Subjects, templates: Embeddings) -> Gallery:
        """A new version that some numbers have left, and in which templates have come under numbers given, ascending.

        For a store, which numbers its subjects itself: whoever comes back has the number they had. Trusted to be valid: a number
        or an id that comes anew is nobody's, or that of somebody ``gone``.
        """
        parts = self._without(gone)
        self._check_compatible(templates, subjects)
        directions = templates.directions.astype(self.dtype, copy=False)
        added = Part.whole(Segment(directions, numbers, subjects, templates.concentrations))
        return Gallery(_settled(parts, added), max(self.next_number, int(numbers[-1]) + 1), self.version + 1)

    def compact(self) -> Gallery:
        """The same version in one segment without the rows of those who left; no answer changes. O(K)."""
        return self.merged(self.parts, joined(self.parts))

    def merged(self, earlier: Sequence[Part], segment: Segment) -> Gallery:
        """The same version with some parts, as they were ``earlier``, replaced by one ``segment`` joined from them.

        Who has left since is marked in it. Where one of the parts is no longer there, nothing changes.
        """
        now = {id(part.segment): part for part in self.parts}
        if any(id(part.segment) not in now for part in earlier):
            return self
        left = [
            before.segment.numbers[np.flatnonzero(part.gone if before.gone is None else part.gone & ~before.gone)]
            for before in earlier
            if (part := now[id(before.segment)]).gone is not None
        ]
        new = Part.whole(segment)
        gone = np.concatenate(left) if left else np.empty(0, dtype=np.int64)
        if len(gone):
            new = new.without(segment.rows_of(gone))
        old = {id(part.segment) for part in earlier}
        kept = [part for part in self.parts if id(part.segment) not in old]
        parts = tuple(part for part in (new, *kept) if part.n_living)
        return replace(self, parts=parts)

    def worth_merging(self) -> tuple[Part, ...]:
        """The large parts that are better one segment: those that many have left, or the smaller ones of too many.

        Small ones are left out: the next enrolment may join them.
        """
        large = [part for part in self.parts if len(part.segment) >= MERGED_ROWS[-1]]
        if len(large) > MOST_SEGMENTS:
            most = max(len(part.segment) for part in large)
            smaller = [part for part in large if len(part.segment) <= most // 2]
            return tuple(smaller if len(smaller) > 1 else large)
        return tuple(part for part in large if part.n_living < (1 - MOST_GONE) * len(part.segment))

    # -- inside ----------------------------------------------------------------------------------------------------------

    def _without(self, numbers: Numbers) -> tuple[Part, ...]:
        """The parts after the subjects of these numbers, which are enrolled, have left."""
        parts = []
        for part in self.parts:
            rows = part.rows_of(numbers)
            rows = rows[rows >= 0]
            parts.append(part.without(rows) if len(rows) else part)
        return tuple(parts)

    def _all(self, values: Sequence[npt.NDArray[Any]]) -> npt.NDArray[Any]:
        living = [part.living(each) for part, each in zip(self.parts, values)]
        if len(living) == 1:
            return living[0]
        numbers = np.concatenate([part.living(part.segment.numbers) for part in self.parts])
        together = np.concatenate(living)
        return together if bool((numbers[1:] > numbers[:-1]).all()) else together[np.argsort(numbers)]

    def _fill(self, found: npt.NDArray[Any], numbers: Numbers, values: Sequence[npt.NDArray[Any]]) -> None:
        missing = np.flatnonzero(numbers >= 0)
        for part, each in zip(self.parts, values):
            rows = part.rows_of(numbers[missing])
            here = rows >= 0
            found[missing[here]] = each[rows[here]]
            missing = missing[~here]
        if len(missing):
            raise InvalidSubjectsError(
                f"number {int(numbers[missing[0]])} is nobody's in version {self.version} of the gallery: the subject left, or "
                "was enrolled later; name numbers with the version that the evidence is of"
            )

    def _check_compatible(self, templates: Embeddings, subjects: Subjects) -> None:
        self.check_type(subjects, field="y")
        if templates.dim != self.dim:
            raise InvalidEmbeddingsError(
                f"X has {templates.dim} features, the gallery has {self.dim}: enrol with the same embedding model"
            )
        if (templates.concentrations is not None) != self.has_concentrations:
            has, new = ("has", "without") if self.has_concentrations else ("has no", "with")
            raise InvalidConcentrationError(
                f"the gallery {has} concentrations and these subjects come {new} one; give them to all or to none"
            )


def _settled(kept: Sequence[Part], added: Part) -> tuple[Part, ...]:
    """Parts with one added, small ones joined: first the last one, then those that together reach the next size."""
    parts = [part for part in kept if part.n_living]
    if parts and len(parts[-1].segment) < OPEN_ROWS:
        added = Part.whole(joined([parts.pop(), added]))
    parts.append(added)
    for size in MERGED_ROWS:
        small = [part for part in parts if len(part.segment) < size]
        if len(small) > 1 and sum(part.n_living for part in small) >= size:
            parts = [part for part in parts if len(part.segment) >= size]
            parts.append(Part.whole(joined(small)))
    return tuple(parts)
