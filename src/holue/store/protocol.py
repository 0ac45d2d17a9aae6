"""Store: the protocol that every home of a gallery's samples and subjects follows.

A home has its own ways to be created, opened and restored; everything else is here. The verbs are described in
:class:`holue.store.verbs.Verbs`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, Unpack

from holue.store.batch import SampleFields
from holue.store.values import (
    UNCHANGED,
    Change,
    Enrolled,
    Float32Array,
    Int64Array,
    Operation,
    Problem,
    Receipt,
    Sample,
    Status,
    Subject,
    SubjectId,
    Unchanged,
)  # fmt: skip
from holue.store.view import View


class Store(Protocol):
    """Samples and subjects, in versions; one writer, many readers.

    >>> from holue.store.memory import MemoryStore
    >>> def names(store: Store) -> list[SubjectId]:
    ...     return [subject.id for subject in store.subjects()]
    >>> store = MemoryStore(dim=2)
    >>> enrolled = store.enroll([[1, 0]], ["ann"])
    >>> names(store)
    ['ann']
    """

    dim: int
    model: str | None
    damage: tuple[Problem, ...]  # found at opening, where the rest of a damaged store was asked for

    def close(self) -> None:
        """Let another writer in; everything acknowledged is kept already."""

    @property
    def version(self) -> int:
        """The newest version."""

    def refresh(self) -> int:
        """Follow what other processes have written; returns the version reached."""

    def at(self, version: int | None = None) -> View:
        """The gallery as it was in a version; the newest by default."""

    def changes(self, since: int) -> list[Change]:
        """The changes after a version, oldest first."""

    def subject(self, subject: SubjectId) -> Subject | None:
        """The subject enrolled under an id."""

    def subjects(self, after: int = 0, limit: int = 1000) -> list[Subject]:
        """Enrolled subjects in ascending order of their numbers, a page at a time."""

    def samples(self, subject: SubjectId) -> list[Sample]:
        """The samples of an enrolled subject, as they were given."""

    def sample_numbers(self, subjects: Sequence[SubjectId]) -> dict[SubjectId, list[int]]:
        """The numbers, ascending, of the samples of those subjects that are enrolled; no embedding is read."""

    def embeddings(self, subjects: Sequence[SubjectId]) -> dict[SubjectId, tuple[Int64Array, Float32Array]]:
        """The numbers, ascending, and embeddings of the samples of those subjects that are enrolled, read at once."""

    def enroll(
        self,
        X: object,
        ids: Iterable[SubjectId],
        *,
        metadata: Mapping[SubjectId, Mapping[str, Any]] | None = None,
        retain_until: float | Mapping[SubjectId, float] | None = None,
        consent: str | Mapping[SubjectId, str] | None = None,
        purpose: str | Mapping[SubjectId, str] | None = None,
        **fields: Unpack[SampleFields],
    ) -> Enrolled:
        """Enrol new subjects, all or nothing."""

    def add_samples(self, X: object, ids: Iterable[SubjectId], **fields: Unpack[SampleFields]) -> Enrolled:
        """Give enrolled subjects more samples, all or nothing."""

    def replace(self, X: object, ids: Iterable[SubjectId], **fields: Unpack[SampleFields]) -> Enrolled:
        """Give enrolled subjects new samples in place of all they had."""

    def remove(self, ids: Iterable[SubjectId], *, by: str | None = None) -> int:
        """Subjects leave with their samples."""

    def remove_samples(self, samples: Iterable[int], *, by: str | None = None) -> int:
        """Samples leave; each subject concerned keeps at least one."""

    def rename(self, old: SubjectId, new: SubjectId, *, by: str | None = None) -> int:
        """A subject gets another id and keeps its number."""

    def update(
        self,
        ids: Iterable[SubjectId],
        *,
        metadata: Mapping[str, Any] | Unchanged = UNCHANGED,
        retain_until: float | Unchanged | None = UNCHANGED,
        consent: str | Unchanged | None = UNCHANGED,
        purpose: str | Unchanged | None = UNCHANGED,
        by: str | None = None,
    ) -> int:
        """Change what is said about subjects; a field that is not given stays."""

    def merge(self, ids: Iterable[SubjectId], *, into: SubjectId, by: str | None = None) -> int:
        """All samples go to ``into``, and the other subjects leave."""

    def split(self, old: SubjectId, samples: Iterable[int], *, new: SubjectId, by: str | None = None) -> int:
        """Some samples go to a new subject."""

    def undo(self, version: int | None = None, *, by: str | None = None) -> int:
        """Put back everything that a change touched."""

    def erase(self, ids: Iterable[SubjectId] = (), *, numbers: Iterable[int] = (), by: str | None = None) -> Receipt:
        """Erase subjects and all their samples; nothing brings them back."""

    def erasable(self, ids: Iterable[SubjectId] = (), *, numbers: Iterable[int] = ()) -> list[int]:
        """The numbers of the subjects that ``erase`` would erase."""

    def purge(
        self, *, now: float | None = None, dry_run: bool = False, by: str | None = None
    ) -> tuple[list[int], Receipt | None]:
        """Erase the subjects whose ``retain_until`` has come; a dry run only lists their numbers."""

    def receipts(self) -> list[Receipt]:
        """The receipts of all erasures."""

    def sample_counts(self, numbers: Sequence[int]) -> list[int]:
        """How many samples each of some subjects has, by their numbers; nothing of the samples is read."""

    def put_artifact(self, name: str, data: bytes, *, by: str | None = None) -> None:
        """Keep bytes under a name, in place of what was there."""

    def put_artifacts(
        self, artifacts: Mapping[str, bytes], *, replaces: Mapping[str, bytes | None], by: str | None = None
    ) -> None:
        """Keep bytes under several names, all or nothing, if these names hold what ``replaces`` says; None is nothing."""

    def artifact(self, name: str) -> bytes | None:
        """A named artifact, for instance a calibration."""

    def operations(self, after: int = 0, limit: int | None = None) -> list[Operation]:
        """The operations log after a number, the first ``limit`` of it."""

    def snapshot(self, name: str | None = None, *, by: str | None = None) -> object:
        """A copy of the store as it is now; returns what the home restores it from."""

    def compact(self, *, forget_before: int | None = None, by: str | None = None) -> None:
        """Merge small segments; with ``forget_before`` also drop what only older versions hold."""

    def verify(self) -> list[Problem]:
        """Read everything and compare checksums; the damage found."""

    def status(self) -> Status:
        """The store in numbers."""
