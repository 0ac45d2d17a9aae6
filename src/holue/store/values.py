"""Values: what a store keeps and what its verbs return."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt

Int64Array = npt.NDArray[np.int64]
Float32Array = npt.NDArray[np.float32]
Float64Array = npt.NDArray[np.float64]
SubjectId = str | int


def several(ids: SubjectId | Iterable[SubjectId]) -> Iterable[SubjectId]:
    """A single id as a list of one; a string is an id, not its letters."""
    return [ids] if isinstance(ids, str | int | np.integer) else ids


NOBODY = -1
"""In arrays of subject numbers: the sample belongs to no subject (it was removed or erased)."""


class Unchanged(Enum):
    """Stands for a field that an update leaves as it is; None would empty it."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED


@dataclass(frozen=True)
class Subject:
    """One enrolled subject; the number is given once and never used again.

    >>> Subject(7, "ann").metadata
    {}
    """

    number: int
    id: SubjectId
    metadata: Mapping[str, Any] = field(default_factory=dict)
    retain_until: float | None = None  # seconds since 1970; None: without end
    consent: str | None = None
    purpose: str | None = None


@dataclass(frozen=True, eq=False)
class Sample:
    """One embedding of a subject, as it was given."""

    number: int
    subject: int
    medium: str
    embedding: Float32Array
    concentration: float | None
    time: float
    origin: str | None
    enrolled_by: str | None


@dataclass(frozen=True, eq=False)
class Change:
    """One step from ``version - 1`` to ``version``: who and what it touched.

    ``samples`` beside ``moved_to``: the subject that each sample belongs to since this version, or ``NOBODY``.
    Erased subjects and samples are named by number only, and by the erasure's own change only.
    """

    version: int
    kind: str
    time: float
    by: str | None
    subjects: Int64Array
    samples: Int64Array
    moved_to: Int64Array
    undoes: int | None = None


_COLUMNS = ("samples", "subjects", "rows", "concentration", "time", "medium")


@dataclass(frozen=True, eq=False)
class Segment:
    """Immutable rows, in ascending order of their sample numbers; mapped from disk where the home has one.

    ``subjects`` names whom each sample was given to when the segment was written; a version says what has moved since.
    """

    number: int  # names this segment for as long as the store exists; 0 for rows that no file holds yet
    samples: Int64Array  # (n,)
    subjects: Int64Array  # (n,) NOBODY where a sample was erased
    rows: Float32Array  # (n, d)
    concentration: Float64Array  # (n,) NaN where none was given
    time: Float64Array  # (n,)
    medium: npt.NDArray[np.uint32]  # (n,) equal where samples of a subject come from one photograph or recording

    def __len__(self) -> int:
        return len(self.samples)

    def take(self, places: Int64Array) -> Segment:
        """Some rows, copied; the places ascend."""
        return Segment(self.number, *(np.array(getattr(self, name)[places]) for name in _COLUMNS))


@dataclass(frozen=True)
class BadRow:
    """A row of a batch that was left out, and why."""

    row: int
    why: str


@dataclass(frozen=True, eq=False)
class Enrolled:
    """What an enrolment gave: the version, per row that was taken its subject and sample number, and what was left out."""

    version: int
    subjects: Int64Array
    samples: Int64Array
    left_out: tuple[BadRow, ...] = ()


@dataclass(frozen=True)
class Searched:
    """A file that was searched for erased bytes, and how many 64-byte windows of them it holds."""

    file: str
    size: int
    found: int


@dataclass(frozen=True)
class Receipt:
    """Proof of an erasure: which files were searched. It holds salted digests of the ids, not the ids.

    ``samples`` counts the embeddings that were erased; ``compared`` those whose bytes were still readable and could be searched
    for: fewer if an interrupted erasure had already overwritten some.
    """

    number: int
    version: int
    time: float
    salt: str
    digests: tuple[str, ...]
    samples: int
    compared: int
    files: tuple[Searched, ...]
    not_searched: tuple[str, ...] = ()  # what may hold the bytes and was out of reach

    @property
    def clean(self) -> bool:
        """Whether files were searched and none holds any of the bytes."""
        return bool(self.files) and not any(searched.found for searched in self.files)


@dataclass(frozen=True)
class Problem:
    """Damage: the file, what is wrong with it, and the subjects concerned (numbers, as far as they can be told)."""

    file: str
    what: str
    subjects: tuple[int, ...] = ()


@dataclass(frozen=True)
class Status:
    """A store in numbers."""

    version: int
    oldest_version: int
    dim: int
    model: str | None
    subjects: int
    samples: int
    segments: int
    bytes: int
    snapshots: tuple[str, ...]
    artifacts: tuple[str, ...]
    age: float | None = None  # seconds since a local copy was known to be current; None where the truth itself is read


@dataclass(frozen=True)
class Operation:
    """An entry of the operations log; it names no subject."""

    number: int
    time: float
    verb: str
    by: str | None
    detail: Mapping[str, Any]
