"""Verbs: what can be done to who is enrolled, the same for every home.

A verb works out an :class:`Edit` from the state it finds and only then has the home apply it: a refused change has
written nothing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import time as clock
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np

from holue.errors import ConflictError, InvalidParameterError, InvalidSubjectsError
from holue.store.batch import Batch, SampleFields, check_batch, check_model
from holue.store.closing import Closing
from holue.store.commit import CommitQueue
from holue.store.edit import Edit, renamed, undo_edit
from holue.store.state import State
from holue.store.values import UNCHANGED, Enrolled, Problem, Receipt, Subject, SubjectId, Unchanged


class Verbs(Closing):
    """The verbs that change a store, over the few questions that a home answers inside a transaction."""

    dim: int
    model: str | None
    damage: tuple[Problem, ...] = ()
    _queue: CommitQueue

    @property
    @abstractmethod
    def _state(self) -> State:
        """Who is enrolled, inside the transaction under way."""

    @abstractmethod
    def _apply(self, edit: Edit) -> int:
        """Apply an edit whole and return its version."""

    @abstractmethod
    def _erase(self, numbers: Sequence[int], by: str | None) -> Receipt:
        """Erase subjects with all their samples from every file of the home."""

    @abstractmethod
    def _artifact_digest(self, name: str) -> str | None:
        """The SHA-256 of an artifact inside the transaction under way; None where there is none."""

    @abstractmethod
    def _write_artifact(self, name: str, data: bytes, by: str | None) -> None:
        """Write an artifact and log it, in the transaction under way."""

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
        """Enrol new subjects, all or nothing; rows with the same id are samples of one subject.

        ``metadata`` is keyed by id; ``retain_until``, ``consent`` and ``purpose`` hold for all, or are keyed by id. The further
        fields are those of :class:`holue.store.batch.SampleFields`.
        """
        batch, by, skip_bad = self._checked(X, ids, fields)
        described = {subject: _as_json(said, f"metadata of {subject!r}") for subject, said in (metadata or {}).items()}
        _check_fields(batch.ids, metadata=metadata, retain_until=retain_until, consent=consent, purpose=purpose)

        def work() -> Enrolled:
            known = self._state.known(batch.ids)
            some = self._state.any_id()

            def why(subject: SubjectId) -> str | None:
                if subject in known:
                    return f"names {subject!r}, who is enrolled already; use add_samples or replace"
                if some is not None and type(subject) is not type(some):
                    return f"has the id {subject!r}, but this store has ids like {some!r}; convert it"
                return None

            kept = batch.without(why, skip_bad=skip_bad)
            first, _ = self._state.next_numbers()
            numbers = {subject: first + i for i, subject in enumerate(dict.fromkeys(kept.ids))}
            retained, agreed, meant = (_of(value) for value in (retain_until, consent, purpose))
            subjects = [
                Subject(number, subject, described.get(subject, {}), retained(subject), agreed(subject), meant(subject))
                for subject, number in numbers.items()
            ]
            return self._add("enroll", kept, numbers, Edit("enroll", new_subjects=subjects, by=by))

        return self._queue.submit(work)

    def add_samples(self, X: object, ids: Iterable[SubjectId], **fields: Unpack[SampleFields]) -> Enrolled:
        """Give enrolled subjects more samples, all or nothing."""
        batch, by, skip_bad = self._checked(X, ids, fields)

        def work() -> Enrolled:
            kept, numbers = self._of_enrolled(batch, skip_bad)
            return self._add("add_samples", kept, numbers, Edit("add_samples", by=by))

        return self._queue.submit(work)

    def replace(self, X: object, ids: Iterable[SubjectId], **fields: Unpack[SampleFields]) -> Enrolled:
        """Give enrolled subjects new samples in place of all they had."""
        batch, by, skip_bad = self._checked(X, ids, fields)

        def work() -> Enrolled:
            kept, numbers = self._of_enrolled(batch, skip_bad)
            old = [sample for number in numbers.values() for sample in self._state.samples_of(number)]
            return self._add("replace", kept, numbers, Edit("replace", moves=[(sample, None) for sample in old], by=by))

        return self._queue.submit(work)

    def remove(self, ids: Iterable[SubjectId], *, by: str | None = None) -> int:
        """Subjects leave with their samples; ``undo`` brings them back until they are erased. Returns the version."""
        given = _listed(ids)

        def work() -> int:
            leaving = [subject.number for subject in self._enrolled(given)]
            moves = [(sample, None) for number in leaving for sample in self._state.samples_of(number)]
            return self._apply(Edit("remove", leaving=leaving, moves=moves, by=by))

        return self._queue.submit(work)

    def remove_samples(self, samples: Iterable[int], *, by: str | None = None) -> int:
        """Samples leave; each subject concerned keeps at least one."""
        given = list(dict.fromkeys(int(sample) for sample in samples))

        def work() -> int:
            owners = self._owned(given)
            for number in sorted(set(owners.values())):
                self._keeps_a_sample(number, set(given))
            return self._apply(Edit("remove_samples", moves=[(sample, None) for sample in given], by=by))

        return self._queue.submit(work)

    def rename(self, old: SubjectId, new: SubjectId, *, by: str | None = None) -> int:
        """A subject gets another id and keeps its number."""

        def work() -> int:
            subject = self._enrolled([old])[0]
            self._free(new, like=old)
            return self._apply(Edit("rename", subjects=[renamed(subject, new)], by=by))

        return self._queue.submit(work)

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
        """Change what is said about subjects, the same for each; a field that is not given stays, None empties it."""
        chosen = _listed(ids)
        fields = {"metadata": metadata, "retain_until": retain_until, "consent": consent, "purpose": purpose}
        given: dict[str, Any] = {name: value for name, value in fields.items() if value is not UNCHANGED}
        if not given:
            raise InvalidParameterError("update needs a new metadata, retain_until, consent or purpose")
        _check_fields((), retain_until=given.get("retain_until"))
        if "metadata" in given:
            given["metadata"] = _as_json(given["metadata"], "metadata")

        def work() -> int:
            subjects = [dataclasses.replace(subject, **given) for subject in self._enrolled(chosen)]
            return self._apply(Edit("update", subjects=subjects, by=by))

        return self._queue.submit(work)

    def merge(self, ids: Iterable[SubjectId], *, into: SubjectId, by: str | None = None) -> int:
        """Subjects turn out to be one: all their samples go to ``into``, and the others leave."""
        given = [subject for subject in _listed(ids) if subject != into]

        def work() -> int:
            target, *others = self._enrolled([into, *given])
            if not others:
                raise InvalidSubjectsError(f"merge needs a subject other than into={into!r}")
            moves = [(sample, target.number) for other in others for sample in self._state.samples_of(other.number)]
            return self._apply(Edit("merge", leaving=[other.number for other in others], moves=moves, by=by))

        return self._queue.submit(work)

    def split(self, old: SubjectId, samples: Iterable[int], *, new: SubjectId, by: str | None = None) -> int:
        """A subject turns out to be two: some samples go to a new subject, which takes over consent, purpose and retention."""
        given = list(dict.fromkeys(int(sample) for sample in samples))

        def work() -> int:
            subject = self._enrolled([old])[0]
            self._free(new, like=old)
            for sample, owner in self._owned(given).items():
                if owner != subject.number:
                    raise InvalidParameterError(
                        f"sample {sample} does not belong to {old!r}; split takes the subject's own samples"
                    )
            if not given:
                raise InvalidParameterError("split needs at least one sample for the new subject")
            self._keeps_a_sample(subject.number, set(given))
            number, _ = self._state.next_numbers()
            other = Subject(number, new, {}, subject.retain_until, subject.consent, subject.purpose)
            moves = [(sample, number) for sample in given]
            return self._apply(Edit("split", new_subjects=[other], moves=moves, by=by))

        return self._queue.submit(work)

    def undo(self, version: int | None = None, *, by: str | None = None) -> int:
        """Put back everything that a change touched (the last one by default); itself a change, which can be undone."""

        def work() -> int:
            chosen = self._state.last_version() if version is None else version
            edit = undo_edit(chosen, self._state.touched(chosen), by)
            self._check_undo(chosen, edit)
            return self._apply(edit)

        return self._queue.submit(work)

    def erase(self, ids: Iterable[SubjectId] = (), *, numbers: Iterable[int] = (), by: str | None = None) -> Receipt:
        """Erase subjects and all their samples from every file of the home, snapshots included; nothing brings them back.

        An id names the enrolled subject or, where nobody is enrolled under it, the removed ones that had it last.
        """
        targets = self.erasable(ids, numbers=numbers)
        if not targets:
            raise InvalidSubjectsError("erase needs at least one subject")
        return self._erase(targets, by)

    def erasable(self, ids: Iterable[SubjectId] = (), *, numbers: Iterable[int] = ()) -> list[int]:
        """The numbers of the subjects that :meth:`erase` would erase."""
        given, chosen = _listed(ids), [int(number) for number in numbers]

        def work() -> list[int]:
            known, removed = self._state.known(given), self._state.removed(given)
            for subject in given:
                if subject not in known and subject not in removed:
                    raise InvalidSubjectsError(
                        f"{subject!r} is neither enrolled nor kept in the history; nothing to erase"
                    )
            if strange := set(chosen) - self._state.kept(chosen):
                raise InvalidSubjectsError(f"no subject has number {min(strange)}, or it was erased; nothing to erase")
            found = [n for s in given for n in ([known[s].number] if s in known else removed[s])]
            return list(dict.fromkeys([*found, *chosen]))

        return self._queue.submit(work)

    def purge(
        self, *, now: float | None = None, dry_run: bool = False, by: str | None = None
    ) -> tuple[list[int], Receipt | None]:
        """Erase the subjects whose ``retain_until`` has come; a dry run only lists their numbers."""
        expired = self._queue.submit(lambda: self._state.expired(clock.time() if now is None else now))
        if dry_run or not expired:
            return expired, None
        return expired, self._erase(expired, by)

    def put_artifact(self, name: str, data: bytes, *, by: str | None = None) -> None:
        """Keep bytes under a name, in place of what was there."""
        self._queue.submit(lambda: self._write_artifact(name, data, by))

    def put_artifacts(
        self, artifacts: Mapping[str, bytes], *, replaces: Mapping[str, bytes | None], by: str | None = None
    ) -> None:
        """Keep bytes under several names, all or nothing, if these names hold what ``replaces`` says; None is nothing.

        A ConflictError where one does not: another thread or process was faster, and nothing is written.
        """
        expected = {name: None if data is None else hashlib.sha256(data).hexdigest() for name, data in replaces.items()}

        def work() -> None:
            for name, digest in expected.items():
                if self._artifact_digest(name) != digest:
                    raise ConflictError(f"{name!r} was changed meanwhile; look at it again, then repeat your change")
            for name, data in artifacts.items():
                self._write_artifact(name, data, by)

        self._queue.submit(work)

    def _checked(self, X: object, ids: Iterable[SubjectId], fields: SampleFields) -> tuple[Batch, str | None, bool]:
        """The rows that passed the checks, who enrols them, and whether bad ones are skipped."""
        check_model(fields.get("model"), self.model)
        by, skip_bad = fields.get("by"), fields.get("skip_bad", False)
        rest: dict[str, Any] = {name: value for name, value in fields.items() if name not in ("model", "by")}
        return check_batch(X, ids, dim=self.dim, enrolled_by=by, **rest), by, skip_bad

    def _add(self, kind: str, batch: Batch, numbers: Mapping[SubjectId, int], edit: Edit) -> Enrolled:
        owners = np.array([numbers[subject] for subject in batch.ids], dtype=np.int64)
        _, first = self._state.next_numbers()
        if not len(batch):
            return Enrolled(self._state.last_version(), owners, owners.copy(), batch.bad)
        whole = Edit(kind, new_subjects=edit.new_subjects, moves=edit.moves, batch=batch, owners=owners, by=edit.by)
        version = self._apply(whole)
        return Enrolled(version, owners, np.arange(first, first + len(batch)), batch.bad)

    def _of_enrolled(self, batch: Batch, skip_bad: bool) -> tuple[Batch, dict[SubjectId, int]]:
        known = self._state.known(batch.ids)
        kept = batch.without(
            lambda subject: None if subject in known else f"names {subject!r}, who is not enrolled; use enroll",
            skip_bad=skip_bad,
        )
        return kept, {subject: known[subject].number for subject in kept.ids}

    def _enrolled(self, ids: Sequence[SubjectId]) -> list[Subject]:
        if not ids:
            raise InvalidSubjectsError("name at least one subject")
        known = self._state.known(ids)
        for subject in ids:
            if subject not in known:
                raise InvalidSubjectsError(f"{subject!r} is not enrolled; nothing was changed")
        return [known[subject] for subject in ids]

    def _owned(self, samples: Sequence[int]) -> dict[int, int]:
        owners = self._state.owners(samples)
        for sample in samples:
            if sample not in owners:
                raise InvalidParameterError(f"sample {sample} belongs to no enrolled subject; nothing was changed")
        return owners

    def _keeps_a_sample(self, number: int, going: set[int]) -> None:
        if going.issuperset(self._state.samples_of(number)):
            raise InvalidParameterError(
                f"subject number {number} would be left without a sample; remove or merge the subject instead"
            )

    def _free(self, new: SubjectId, *, like: SubjectId) -> None:
        if type(new) is not type(like) or new == "":
            raise InvalidSubjectsError(f"the new id must be of the type of {like!r} and not empty, got {new!r}")
        if self._state.known([new]):
            raise InvalidSubjectsError(f"{new!r} is enrolled already; choose another id, or merge the two")

    def _check_undo(self, version: int, edit: Edit) -> None:
        moved = {sample for sample, _ in edit.moves}
        numbers = {subject.number for subject in edit.subjects}
        taken = self._state.known([subject.id for subject in edit.subjects])
        for subject in edit.subjects:
            other = taken.get(subject.id)
            if other is not None and other.number not in {*numbers, *edit.leaving}:
                raise InvalidSubjectsError(
                    f"version {version} cannot be undone: the id {subject.id!r} is taken by another subject; rename that one"
                )
        targets = {owner for _, owner in edit.moves if owner is not None} - numbers
        if gone := targets - set(self._state.numbered(sorted(targets))):
            raise InvalidParameterError(
                f"version {version} cannot be undone: subject number {min(gone)} has left since; undo that first"
            )
        for number in edit.leaving:
            if not moved.issuperset(self._state.samples_of(number)):
                raise InvalidParameterError(
                    f"version {version} cannot be undone: subject number {number} was given samples since; undo that first"
                )
        gaining = {owner for _, owner in edit.moves}
        losing = set(self._state.owners(sorted(moved)).values()) - set(edit.leaving) - gaining
        for number in losing:
            self._keeps_a_sample(number, moved)


def _listed(ids: Iterable[SubjectId]) -> list[SubjectId]:
    if isinstance(ids, str | int):
        return [ids]
    return list(dict.fromkeys(subject.item() if isinstance(subject, np.generic) else subject for subject in ids))


def _of(value: Any) -> Callable[[SubjectId], Any]:
    """What a field says about a subject: a value for all, or one per id."""
    return value.get if isinstance(value, Mapping) else lambda _: value


def _check_fields(ids: Sequence[SubjectId], **fields: Any) -> None:
    """Refuse what is said about somebody who is not in the batch, and times that are none."""
    for name, value in fields.items():
        for subject in set(value) - set(ids) if isinstance(value, Mapping) else ():
            raise InvalidSubjectsError(f"{name} names {subject!r}, who is not in this batch; leave it out")
    until = fields["retain_until"]
    for given in until.values() if isinstance(until, Mapping) else () if until is None else (until,):
        if not np.isfinite(given):
            raise InvalidParameterError(
                f"retain_until must be finite seconds since 1970, got {given!r}; None keeps without end"
            )


def _as_json(described: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    try:
        kept: Mapping[str, Any] = json.loads(json.dumps(dict(described), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidParameterError(f"{field} must be JSON: {error}") from error
    return kept
