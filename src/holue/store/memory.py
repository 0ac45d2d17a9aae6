"""MemoryStore: a store without a disk, for tests and for galleries that need not outlive the process.

The tests compare the other homes with it.
"""

from __future__ import annotations

import copy
import hashlib
import secrets
import time as clock
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from holue.errors import InvalidParameterError, StoreError
from holue.store.commit import CommitQueue
from holue.store.edit import Edit
from holue.store.memory_state import MemoryState, MemoryVersion
from holue.store.reference import CHANGE, current_reference, referred
from holue.store.values import (
    NOBODY,
    Change,
    Float32Array,
    Int64Array,
    Operation,
    Problem,
    Receipt,
    Sample,
    Searched,
    Segment,
    Status,
    Subject,
    SubjectId,
)  # fmt: skip
from holue.store.verbs import Verbs
from holue.store.view import View


class MemoryStore(Verbs):
    """A store in memory.

    >>> store = MemoryStore(dim=2)
    >>> store.enroll([[1, 0], [0, 1]], ["ann", "bob"]).subjects
    array([1, 2])
    >>> store.remove(["ann"]), store.subject("ann"), store.at(1).find("ann").number
    (2, None, 1)
    """

    def __init__(self, *, dim: int, model: str | None = None) -> None:
        if dim < 1:
            raise InvalidParameterError(f"dim must be at least 1, got {dim}")
        self.dim, self.model = dim, model
        self._memory = MemoryState()
        self._snapshots: dict[str, MemoryStore] = {}
        self._artifacts: dict[str, bytes] = {}
        self._operations: list[Operation] = []
        self._receipts: list[Receipt] = []
        self._queue = CommitQueue(lambda: None, lambda: None, lambda: None)

    def close(self) -> None:
        """Nothing is open."""

    @property
    def version(self) -> int:
        """The newest version."""
        return self._memory.last_version()

    def refresh(self) -> int:
        """The newest version: nobody else writes here."""
        return self.version

    def at(self, version: int | None = None) -> View:
        """The gallery as it was in a version; the newest by default."""
        state = self._memory.now if version is None else self._memory.version(version)
        chosen = self.version if version is None else version
        # A sample that somebody else has now is nobody's in versions in which it was an erased subject's.
        numbers = sorted(sample for sample, (owner, _) in state.samples.items() if owner not in self._memory.erased)
        samples = np.array(numbers, np.int64)
        kept = [self._memory.rows[number] for number in numbers]
        owners = np.array([state.samples[number][0] for number in numbers], np.int64)
        rows = np.array([sample.embedding for sample in kept], np.float32).reshape(-1, self.dim)
        kappa = np.array([np.nan if s.concentration is None else s.concentration for s in kept])
        codes = {medium: code for code, medium in enumerate(dict.fromkeys(["", *(sample.medium for sample in kept)]))}
        media = np.array([codes[sample.medium] for sample in kept], np.uint32)
        segment = Segment(0, samples, owners, rows, kappa, np.array([sample.time for sample in kept]), media)
        subjects = {number: subject for number, (subject, _) in state.subjects.items()}
        by_id = {subject.id: subject for subject in subjects.values()}
        nothing = np.empty(0, np.int64)

        def names(numbers: Sequence[int] | None = None) -> list[tuple[int, SubjectId]]:
            among = subjects if numbers is None else subjects.keys() & set(numbers)
            return [(number, subjects[number].id) for number in sorted(among)]

        segments = (segment,) if numbers else ()
        return View(
            chosen, self.dim, segments, nothing, nothing, state.next_sample, by_id.get, subjects.get, names, codes[""]
        )

    def subject(self, subject: SubjectId) -> Subject | None:
        """The subject enrolled under an id."""
        return self._memory.known([subject]).get(subject)

    def subjects(self, after: int = 0, limit: int = 1000) -> list[Subject]:
        """Enrolled subjects in ascending order of their numbers, a page at a time."""
        numbers = sorted(number for number in self._memory.now.subjects if number > after)[:limit]
        return [self._memory.now.subjects[number][0] for number in numbers]

    def samples(self, subject: SubjectId) -> list[Sample]:
        """The samples of an enrolled subject, as they were given."""
        found = self.subject(subject)
        numbers = [] if found is None else self._memory.samples_of(found.number)
        return [replace(self._memory.rows[n], subject=self._memory.now.samples[n][0]) for n in numbers]

    def sample_counts(self, numbers: Sequence[int]) -> list[int]:
        """How many samples each subject has, by their numbers."""
        return [len(self._memory.samples_of(number)) for number in numbers]

    def sample_numbers(self, subjects: Sequence[SubjectId]) -> dict[SubjectId, list[int]]:
        """The numbers, ascending, of the samples of those subjects that are enrolled."""
        found = {subject: self.subject(subject) for subject in subjects}
        return {subject: self._memory.samples_of(one.number) for subject, one in found.items() if one is not None}

    def embeddings(self, subjects: Sequence[SubjectId]) -> dict[SubjectId, tuple[Int64Array, Float32Array]]:
        """The numbers, ascending, and embeddings of the samples of those subjects that are enrolled."""
        found = {subject: self.samples(subject) for subject in subjects}
        return {
            subject: (
                np.array([one.number for one in own], np.int64),
                np.array([one.embedding for one in own], np.float32),
            )
            for subject, own in found.items()
            if own
        }

    def changes(self, since: int) -> list[Change]:
        """The changes after a version, oldest first."""
        if since < min(self._memory.versions):
            raise InvalidParameterError(
                f"changes are kept since version {min(self._memory.versions)}, asked for since {since}; read a whole view"
            )
        return [self._change(version) for version in sorted(self._memory.versions) if version > since]

    def artifact(self, name: str) -> bytes | None:
        """A named artifact, for instance a calibration."""
        return self._artifacts.get(name)

    def receipts(self) -> list[Receipt]:
        """The receipts of all erasures."""
        return list(self._receipts)

    def operations(self, after: int = 0, limit: int | None = None) -> list[Operation]:
        """The operations log: erasures, snapshots, compactions and artifacts; changes have a log of their own."""
        return self._operations[after:][:limit]

    def status(self) -> Status:
        """The store in numbers."""
        now, oldest = self._memory.now, min(self._memory.versions)
        size = sum(sample.embedding.nbytes for sample in self._memory.rows.values())
        counts = len(now.subjects), len(now.samples), int(bool(now.samples))
        names = tuple(sorted(self._snapshots)), tuple(sorted(self._artifacts))
        return Status(self.version, oldest, self.dim, self.model, *counts, size, *names)

    def verify(self) -> list[Problem]:
        """Memory has no checksums to compare."""
        return []

    def snapshot(self, name: str | None = None, *, by: str | None = None) -> str:
        """A copy of the store as it is now; returns its name."""
        chosen = name or f"version-{self.version}"
        if chosen in self._snapshots:
            raise StoreError(f"snapshot {chosen!r} exists already; choose another name")
        self._snapshots[chosen] = self._copy()
        self._log("snapshot", by, {"name": chosen})
        return chosen

    def restored(self, name: str) -> MemoryStore:
        """A new store from a snapshot, which stays as it is."""
        return self._snapshots[name]._copy()

    def compact(self, *, forget_before: int | None = None, by: str | None = None) -> None:
        """With ``forget_before``, drop older versions and what only they hold."""
        if forget_before is not None:
            self._memory.version(forget_before)
            versions = self._memory.versions
            self._memory.versions = {number: state for number, state in versions.items() if number >= forget_before}
            self._memory.versions[forget_before].touched_samples = []
            self._memory.versions[forget_before].touched_subjects = []
        self._log("compact", by, {"forget_before": forget_before})

    @property
    def _state(self) -> MemoryState:
        return self._memory

    def _apply(self, edit: Edit) -> int:
        before = self._memory.now
        version = self.version + 1
        new = 0 if edit.batch is None else len(edit.batch)
        subjects = {number: kept for number, kept in before.subjects.items() if number not in edit.leaving}
        subjects |= {subject.number: (subject, version) for subject in (*edit.subjects, *edit.new_subjects)}
        samples = {sample: kept for sample, kept in before.samples.items() if sample not in dict(edit.moves)}
        samples |= {sample: (owner, version) for sample, owner in edit.moves if owner is not None}
        for sample in self._new_samples(edit):
            self._memory.rows[sample.number] = sample
            samples[sample.number] = (sample.subject, version)
        touched = [*(subject.number for subject in edit.subjects), *edit.leaving], [sample for sample, _ in edit.moves]
        counters = before.next_subject + len(edit.new_subjects), before.next_sample + new
        fields = edit.kind, clock.time(), edit.by, edit.undoes
        self._memory.versions[version] = MemoryVersion(*fields, *counters, subjects, samples, *map(sorted, touched))
        if current_reference() is not None:
            self._log(CHANGE, edit.by, {"version": version, "kind": edit.kind})
        return version

    def _artifact_digest(self, name: str) -> str | None:
        data = self._artifacts.get(name)
        return None if data is None else hashlib.sha256(data).hexdigest()

    def _write_artifact(self, name: str, data: bytes, by: str | None) -> None:
        self._artifacts[name] = bytes(data)
        self._log("put_artifact", by, {"name": name, "sha256": self._artifact_digest(name)})

    def _new_samples(self, edit: Edit) -> Iterator[Sample]:
        batch = edit.batch
        if batch is None:
            return
        for i, owner in enumerate(edit.owners.tolist()):
            kappa = None if np.isnan(batch.concentration[i]) else float(batch.concentration[i])
            rest = float(batch.time[i]), batch.origin[i], batch.enrolled_by
            number = self._memory.now.next_sample + i
            yield Sample(number, owner, batch.medium[i], batch.rows[i].copy(), kappa, *rest)

    def _erase(self, numbers: Sequence[int], by: str | None) -> Receipt:
        salt, chosen = secrets.token_hex(16), list(numbers)

        def work() -> Receipt:
            samples = self._memory.last_samples_of(chosen)
            known = [v.subjects[n][0].id for v in self._memory.versions.values() for n in chosen if n in v.subjects]
            digests = tuple(sorted({hashlib.sha256(f"{salt}:{name!r}".encode()).hexdigest() for name in known}))
            gone = self._memory.erase(chosen, samples)
            version = self._apply(Edit("erase", leaving=chosen, moves=[(sample, None) for sample in samples], by=by))
            for snapshot in self._snapshots.values():
                snapshot._memory.erase(gone, [*samples, *snapshot._memory.last_samples_of(gone)])
            searched = (Searched("memory", 0, 0),)
            receipt = Receipt(
                len(self._receipts) + 1, version, clock.time(), salt, digests, len(samples), len(samples), searched
            )
            self._receipts.append(receipt)
            self._log("erase", by, {"receipt": receipt.number})
            return receipt

        return self._queue.submit(work)

    def _change(self, version: int) -> Change:
        state, before = self._memory.versions[version], self._memory.versions[version - 1]
        subjects = [*state.touched_subjects, *range(before.next_subject, state.next_subject)]
        samples = [*state.touched_samples, *range(before.next_sample, state.next_sample)]
        owners = [state.samples.get(sample, (NOBODY, 0))[0] for sample in samples]
        moved_to = [NOBODY if owner in self._memory.erased else owner for owner in owners]
        numbers = [np.array(n, np.int64) for n in (subjects, samples, moved_to)]
        return Change(version, state.kind, state.time, state.by, numbers[0], numbers[1], numbers[2], state.undoes)

    def _copy(self) -> MemoryStore:
        other = MemoryStore(dim=self.dim, model=self.model)
        other._memory = copy.deepcopy(self._memory)
        other._artifacts = dict(self._artifacts)
        other._operations, other._receipts = list(self._operations), list(self._receipts)
        return other

    def _log(self, verb: str, by: str | None, detail: dict[str, Any]) -> None:
        self._operations.append(Operation(len(self._operations) + 1, clock.time(), verb, by, referred(detail)))
