"""View: a gallery as it was in one version, read from segments that versions share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from holue.errors import InvalidParameterError
from holue.store.values import NOBODY, Float32Array, Int64Array, Segment, Subject, SubjectId


class Names(Protocol):
    """Asks a version for numbers and ids."""

    def __call__(self, numbers: Sequence[int] | None = None) -> list[tuple[int, SubjectId]]:
        """Number and id of everybody, or of those of some numbers who are enrolled, ascending."""


@dataclass(frozen=True, eq=False)
class View:
    """Segments, and what has moved since they were written: nothing here is as large as the gallery except the mapped rows.

    ``moved`` (ascending) are samples that belong to somebody else than their segment says: to ``moved_to``, or to ``NOBODY``.
    Samples from ``next_sample`` on were enrolled later.
    """

    version: int
    dim: int
    segments: tuple[Segment, ...]
    moved: Int64Array
    moved_to: Int64Array
    next_sample: int
    find: Callable[[SubjectId], Subject | None]  # by id, in this version
    get: Callable[[int], Subject | None]  # by number, in this version
    names: Names  # number and id of everybody in this version, or of those of some numbers, ascending
    no_medium: int | None = None  # in ``Segment.medium``: none was given
    missing: tuple[tuple[int, int], ...] = ()  # first and last sample of what could not be read
    missing_subjects: tuple[int, ...] = ()  # those with samples there, ascending

    def subjects_in(self, segment: Segment) -> Int64Array:
        """The subject of each row of a segment in this version; NOBODY where the sample is not there."""
        subjects = np.array(segment.subjects, dtype=np.int64)
        subjects[segment.samples >= self.next_sample] = NOBODY
        low, high = np.searchsorted(self.moved, [segment.samples[0], segment.samples[-1] + 1])
        moved = self.moved[low:high]
        place = np.searchsorted(segment.samples, moved)
        there = segment.samples[place] == moved  # a compaction may have dropped some
        erased = segment.subjects[place] == NOBODY
        subjects[place[there & ~erased]] = self.moved_to[low:high][there & ~erased]
        return subjects

    def __iter__(self) -> Iterator[tuple[Segment, Int64Array]]:
        return ((segment, self.subjects_in(segment)) for segment in self.segments)

    def sample_numbers(self) -> Int64Array:
        """The numbers of all samples in this version, in the order in which the segments hold them."""
        numbers = [np.array(segment.samples[belongs != NOBODY]) for segment, belongs in self]
        return np.concatenate(numbers) if numbers else np.empty(0, np.int64)

    def owners(self, samples: Int64Array) -> Int64Array:
        """The subjects of some samples, which ascend; NOBODY where a sample is not in this version."""
        found = np.full(len(samples), NOBODY, dtype=np.int64)
        for segment in self.segments:
            low, high = np.searchsorted(samples, [segment.samples[0], segment.samples[-1] + 1])
            if low < high:
                part = segment.take(np.searchsorted(segment.samples, samples[low:high]))
                there = part.samples == samples[low:high]
                found[low:high][there] = self.subjects_in(part)[there]
        return found

    def rows(self, samples: object) -> Float32Array:
        """The embeddings of some samples, copied, in the order asked for."""
        given = np.asarray(samples, dtype=np.int64)
        order = np.argsort(given, kind="stable")
        wanted = given[order]
        found = np.empty((len(wanted), self.dim), dtype=np.float32)
        done = np.zeros(len(wanted), dtype=bool)
        for segment in self.segments:
            low, high = np.searchsorted(wanted, [segment.samples[0], segment.samples[-1] + 1])
            if low == high:
                continue
            part = segment.take(np.searchsorted(segment.samples, wanted[low:high]))
            there = (part.samples == wanted[low:high]) & (self.subjects_in(part) != NOBODY)
            found[order[low:high][there]] = part.rows[there]
            done[low:high] = there
        if not done.all():
            raise InvalidParameterError(
                f"sample {int(wanted[~done][0])} is not in version {self.version}; it was removed, erased or enrolled later"
            )
        return found

    def everything(self) -> tuple[Int64Array, Int64Array, Float32Array]:
        """Samples, their subjects and their rows, copied: for small galleries and tests."""
        samples, subjects, rows = (
            [np.empty(0, np.int64)],
            [np.empty(0, np.int64)],
            [np.empty((0, self.dim), np.float32)],
        )
        for segment, belongs in self:
            here = belongs != NOBODY
            samples.append(np.array(segment.samples[here]))
            subjects.append(belongs[here])
            rows.append(np.array(segment.rows[here]))
        return np.concatenate(samples), np.concatenate(subjects), np.concatenate(rows)
