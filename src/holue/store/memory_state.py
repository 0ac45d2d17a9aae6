"""MemoryState: all versions of a store in memory, and what the verbs ask of the newest.

Written to be obviously right: each version is a dictionary of its own, so a change copies the table of subjects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from holue.errors import InvalidParameterError
from holue.store.edit import Touched, undone_since
from holue.store.values import Sample, Subject, SubjectId


@dataclass
class MemoryVersion:
    """One version: its subjects and the owners of its samples, each with the version since which that holds."""

    kind: str = "create"
    time: float = 0.0
    by: str | None = None
    undoes: int | None = None
    next_subject: int = 1
    next_sample: int = 1
    subjects: dict[int, tuple[Subject, int]] = field(default_factory=dict)
    samples: dict[int, tuple[int, int]] = field(default_factory=dict)
    touched_subjects: list[int] = field(default_factory=list)
    touched_samples: list[int] = field(default_factory=list)


class MemoryState:
    """All that a store holds; it answers what the verbs ask."""

    def __init__(self) -> None:
        self.versions: dict[int, MemoryVersion] = {0: MemoryVersion()}
        self.rows: dict[int, Sample] = {}
        self.erased: set[int] = set()

    @property
    def now(self) -> MemoryVersion:
        """The newest version."""
        return self.versions[max(self.versions)]

    def known(self, ids: Sequence[SubjectId]) -> dict[SubjectId, Subject]:
        """Those of the ids that are enrolled."""
        wanted = set(ids)
        return {subject.id: subject for subject, _ in self.now.subjects.values() if subject.id in wanted}

    def numbered(self, numbers: Sequence[int]) -> dict[int, Subject]:
        """Those of the numbers that are enrolled."""
        return {number: self.now.subjects[number][0] for number in numbers if number in self.now.subjects}

    def any_id(self) -> SubjectId | None:
        """The id of some enrolled subject."""
        return next((subject.id for subject, _ in self.now.subjects.values()), None)

    def samples_of(self, number: int) -> list[int]:
        """The samples of a subject, ascending."""
        return sorted(sample for sample, (owner, _) in self.now.samples.items() if owner == number)

    def owners(self, samples: Sequence[int]) -> dict[int, int]:
        """The subjects of those samples that belong to one."""
        return {sample: self.now.samples[sample][0] for sample in samples if sample in self.now.samples}

    def next_numbers(self) -> tuple[int, int]:
        """The next subject number and the next sample number."""
        return self.now.next_subject, self.now.next_sample

    def last_version(self) -> int:
        """The newest version's number."""
        return max(self.versions)

    def touched(self, version: int) -> Touched:
        """What a change touched, as far as it was not erased."""
        after = self.version(version)
        if version == min(self.versions):
            raise InvalidParameterError(f"version {version} cannot be undone: what was before it is no longer kept")
        before = self.versions[version - 1]
        new_subjects, new_samples = (
            range(before.next_subject, after.next_subject),
            range(before.next_sample, after.next_sample),
        )
        subjects = self._kept([*after.touched_subjects, *new_subjects], [v.subjects for v in self.versions.values()])
        samples = self._kept([*after.touched_samples, *new_samples], [v.samples for v in self.versions.values()])
        last = 0
        changes = [(later, state.undoes) for later, state in self.versions.items() if later > version]
        without_effect, undone_by = undone_since(version, changes)
        for later, state in self.versions.items():
            if later in without_effect:
                continue
            if {*subjects} & self._touched_in(later, state, "subject") or {*samples} & self._touched_in(
                later, state, "sample"
            ):
                last = max(last, later)
        return Touched(
            [(number, before.subjects[number][0] if number in before.subjects else None) for number in subjects],
            [(sample, before.samples[sample][0] if sample in before.samples else None) for sample in samples],
            last,
            undone_by,
        )

    def removed(self, ids: Sequence[SubjectId]) -> dict[SubjectId, list[int]]:
        """Numbers of subjects that are gone but not erased, by the id they had last."""
        found: dict[SubjectId, list[int]] = {}
        for number, subject in sorted(self._gone().items()):
            if subject.id in ids:
                found.setdefault(subject.id, []).append(number)
        return found

    def kept(self, numbers: Sequence[int]) -> set[int]:
        """Those of the numbers that are enrolled, or removed and not erased."""
        return {number for number in numbers if any(number in state.subjects for state in self.versions.values())}

    def expired(self, now: float) -> list[int]:
        """Numbers of subjects, enrolled or removed, whose ``retain_until`` has come."""
        everybody = [*(subject for subject, _ in self.now.subjects.values()), *self._gone().values()]
        return sorted(s.number for s in everybody if s.retain_until is not None and s.retain_until <= now)

    def version(self, version: int) -> MemoryVersion:
        """One version; an error where it is not kept."""
        if version not in self.versions:
            kept = f"{min(self.versions)} to {max(self.versions)}"
            raise InvalidParameterError(f"version {version} is not kept; this store keeps versions {kept}")
        return self.versions[version]

    def erase(self, subjects: list[int], samples: list[int]) -> list[int]:
        """Take subjects and samples out of every version; returns all subjects that went, earlier names of theirs too."""
        former = {
            owners[s][0] for v in self.versions.values() for owners in [v.samples] for s in samples if s in owners
        }
        for state in self.versions.values():
            state.samples = {s: kept for s, kept in state.samples.items() if s not in samples}
            state.touched_samples = [s for s in state.touched_samples if s not in samples]
        held = {owner for state in self.versions.values() for owner, _ in state.samples.values()}
        gone = {*subjects, *(number for number in former if number not in held)}
        self.erased |= {number for number in gone if number < self.now.next_subject}
        for state in self.versions.values():
            state.subjects = {number: kept for number, kept in state.subjects.items() if number not in gone}
            state.touched_subjects = [number for number in state.touched_subjects if number not in gone]
        for sample in samples:
            self.rows.pop(sample, None)
        return sorted(gone)

    def last_samples_of(self, subjects: Sequence[int]) -> list[int]:
        """Samples that belong to the subjects, or belonged to them when they were removed."""
        last: dict[int, int] = {}
        for state in self.versions.values():
            last |= {sample: owner for sample, (owner, _) in state.samples.items()}
        return sorted(sample for sample, owner in last.items() if owner in subjects)

    def _gone(self) -> dict[int, Subject]:
        last = {number: subject for v in self.versions.values() for number, (subject, _) in v.subjects.items()}
        return {number: subject for number, subject in last.items() if number not in self.now.subjects}

    def _touched_in(self, version: int, state: MemoryVersion, kind: str) -> set[int]:
        if kind == "subject":
            return {*state.touched_subjects, *(n for n, (_, since) in state.subjects.items() if since == version)}
        return {*state.touched_samples, *(n for n, (_, since) in state.samples.items() if since == version)}

    @staticmethod
    def _kept(numbers: list[int], states: list[dict[int, Any]]) -> list[int]:
        return sorted(number for number in numbers if any(number in state for state in states))
