"""Tables: who is enrolled, in SQL: the present state, and past states with the versions between which they held."""

from __future__ import annotations

import json
import time as clock
from collections.abc import Sequence
from typing import Any

import numpy as np

from holue.errors import InvalidParameterError
from holue.store.edit import Edit, Touched, undone_since
from holue.store.reference import CHANGE, current_reference, referred
from holue.store.sqlite.database import CHECKED, Database, Row
from holue.store.values import NOBODY, Change, Int64Array, Subject, SubjectId

SUBJECT = CHECKED["subject"]
SAMPLE = CHECKED["sample"]
NOT_ERASED = "subject NOT IN (SELECT number FROM erased)"


class Tables:
    """Questions and changes on one connection; the caller holds the transaction."""

    def __init__(self, database: Database) -> None:
        self._database = database
        # Version, next subject, next sample: while this writer has a transaction, and as its last one left them.
        self._counters: tuple[int, int, int] | None = None
        self._left: tuple[int, int, int] | None = None

    def begin(self) -> None:
        """The writer has begun a transaction: nobody else can change the counters."""
        self._counters = self._left or self._read_counters()

    def end(self, *, only_writer: bool = False) -> None:
        """The transaction is over; what it left is what the next one finds, if nobody else ever writes."""
        self._counters, self._left = None, self._counters if only_writer else None

    def known(self, ids: Sequence[SubjectId]) -> dict[SubjectId, Subject]:
        """Those of the ids that are enrolled."""
        rows = self._in(f"SELECT {SUBJECT} FROM subject WHERE id IN", list(ids))
        return {row[1]: _subject(row) for row in rows}

    def numbered(self, numbers: Sequence[int]) -> dict[int, Subject]:
        """Those of the numbers that are enrolled."""
        rows = self._in(f"SELECT {SUBJECT} FROM subject WHERE number IN", list(numbers))
        return {row[0]: _subject(row) for row in rows}

    def page(self, after: int, limit: int) -> list[Subject]:
        """Enrolled subjects in ascending order of their numbers, the first after one."""
        sql = f"SELECT {SUBJECT} FROM subject WHERE number > ? ORDER BY number LIMIT ?"
        return [_subject(row) for row in self._database.run(sql, [after, limit])]

    def any_id(self) -> SubjectId | None:
        """The id of some enrolled subject."""
        found: SubjectId | None = self._database.one("SELECT id FROM subject LIMIT 1")
        return found

    def samples_of(self, number: int) -> list[int]:
        """The samples of a subject, ascending."""
        return [
            row[0]
            for row in self._database.run("SELECT number FROM sample WHERE subject = ? ORDER BY number", [number])
        ]

    def sample_counts(self, numbers: Sequence[int]) -> dict[int, int]:
        """How many samples each of some subjects has; those without one are left out."""
        sql = "SELECT subject, count(*) FROM sample WHERE subject IN"
        return dict(self._in(sql, list(numbers), " GROUP BY subject"))

    def samples_of_all(self, ids: Sequence[SubjectId]) -> dict[SubjectId, list[int]]:
        """The samples, ascending, of those of the ids that are enrolled."""
        found: dict[SubjectId, list[int]] = {}
        join = "SELECT subject.id, sample.number FROM subject JOIN sample ON sample.subject = subject.number"
        for subject, number in self._in(f"{join} WHERE subject.id IN", list(ids), " ORDER BY sample.number"):
            found.setdefault(subject, []).append(number)
        return found

    def owners(self, samples: Sequence[int]) -> dict[int, int]:
        """The subjects of those samples that belong to one."""
        return dict(self._in("SELECT number, subject FROM sample WHERE number IN", list(samples)))

    def next_numbers(self) -> tuple[int, int]:
        """The next subject number and the next sample number."""
        return (self._counters or self._read_counters())[1:]

    def last_version(self) -> int:
        """The newest version."""
        return (self._counters or self._read_counters())[0]

    def oldest_version(self) -> int:
        """The oldest version that can still be read."""
        return int(self._database.one("SELECT min(version) FROM change"))

    def apply(self, edit: Edit, time: float | None = None) -> int:
        """Write an edit, all but the rows of its batch; returns its version."""
        version = self.last_version() + 1
        next_subject, next_sample = self.next_numbers()
        new = len(edit.batch) if edit.batch is not None else 0
        self._change_subjects(version, edit.subjects, edit.leaving)
        self._database.insert("subject", (_row(subject, version) for subject in edit.new_subjects))
        self._move(version, edit.moves)
        if edit.batch is not None:
            numbers = range(next_sample, next_sample + new)
            owners = edit.owners.tolist()
            self._database.insert("sample", zip(numbers, owners, [version] * new, edit.batch.origin))
        self.log_change(version, edit, (next_subject, next_sample), new, time)
        return version

    def log_change(
        self, version: int, edit: Edit, first: tuple[int, int], new_samples: int, time: float | None = None
    ) -> None:
        """Add to the change log."""
        subjects = [*(subject.number for subject in edit.subjects), *edit.leaving]
        touched = [*((version, "subject", n) for n in subjects), *((version, "sample", n) for n, _ in edit.moves)]
        if touched:
            self._database.run_many("INSERT OR IGNORE INTO touch VALUES (?, ?, ?)", touched)
        next_subject, next_sample = first
        counters = (next_subject, next_subject + len(edit.new_subjects), next_sample, next_sample + new_samples)
        when = clock.time() if time is None else time
        self._database.insert("change", [(version, edit.kind, when, edit.by, *counters, edit.undoes)])
        self._counters = version, counters[1], counters[3]
        if current_reference() is not None:
            self.log_operation(CHANGE, edit.by, {"version": version, "kind": edit.kind})

    def log_operation(self, verb: str, by: str | None, detail: dict[str, Any]) -> None:
        """Add to the operations log, with what the operation is made for."""
        number = 1 + (self._database.one("SELECT max(number) FROM operation") or 0)
        self._database.insert("operation", [(number, clock.time(), verb, by, json.dumps(referred(detail)))])

    def touched(self, version: int) -> Touched:
        """What a change touched, as far as it was not erased."""
        change = self._change(version)
        if version <= self.oldest_version():
            raise InvalidParameterError(f"version {version} cannot be undone: what was before it is no longer kept")
        subjects, samples = self._numbers_of(change)
        past = {
            row[0]: _subject(row)
            for row in self._database.run(f"SELECT {SUBJECT} FROM subject_past WHERE until = ?", [version])
        }
        owned: dict[int, int] = dict(
            self._database.run("SELECT number, subject FROM sample_past WHERE until = ?", [version])
        )
        later = self._database.run("SELECT version, undoes FROM change WHERE version > ?", [version])
        without_effect, undone_by = undone_since(version, later)
        kept = self._not_erased("subject", subjects), self._not_erased("sample", samples)
        since = [self._touched_since(version, kind, numbers) for kind, numbers in zip(("subject", "sample"), kept)]
        return Touched(
            [(number, past.get(number)) for number in kept[0]],
            [(number, owned.get(number)) for number in kept[1]],
            max((since[0] | since[1]) - without_effect, default=version),
            undone_by,
        )

    def changes(self, since: int) -> list[Change]:
        """The changes after a version, oldest first."""
        oldest = self.oldest_version()
        if since < oldest:
            raise InvalidParameterError(
                f"changes are kept since version {oldest}, asked for since {since}; read a whole view"
            )
        rows = self._database.run(f"SELECT {CHECKED['change']} FROM change WHERE version > ? ORDER BY version", [since])
        return [self._as_change(row) for row in rows]

    def next_sample_at(self, version: int) -> int:
        """The first sample number that a version does not have yet."""
        return int(self._change(version)[7])

    def moved_at(self, version: int | None) -> tuple[Int64Array, Int64Array]:
        """Samples whose segment no longer says whose they are, and whose they are in a version (None: the newest)."""
        if version is None:
            sql = "SELECT m.sample, s.subject FROM moved m LEFT JOIN sample s ON s.number = m.sample ORDER BY m.sample"
            rows = self._database.run(sql)
        else:
            # A sample that somebody else has now is nobody's in versions in which it was an erased subject's.
            sql = f"""SELECT m.sample, coalesce((SELECT subject FROM sample WHERE number = m.sample AND since <= ?),
              (SELECT subject FROM sample_past p WHERE p.number = m.sample AND p.since <= ? AND p.until > ? AND {NOT_ERASED}))
              FROM moved m ORDER BY m.sample"""
            rows = self._database.run(sql, [version, version, version])
        pairs = np.array([(sample, NOBODY if owner is None else owner) for sample, owner in rows], np.int64).reshape(
            -1, 2
        )
        return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])

    def subject_at(self, version: int, column: str, value: SubjectId) -> Subject | None:
        """The subject that had an id or number in a version."""
        rows = self._database.run(
            f"""SELECT {SUBJECT} FROM subject WHERE {column} = ? AND since <= ? UNION ALL
              SELECT {SUBJECT} FROM subject_past WHERE {column} = ? AND since <= ? AND until > ?""",
            [value, version, value, version, version],
        )
        return _subject(rows[0]) if rows else None

    def names_at(self, version: int, numbers: Sequence[int] | None = None) -> list[tuple[int, SubjectId]]:
        """Number and id of everybody enrolled in a version, or of those of some numbers, ascending."""
        among = "" if numbers is None else "number IN (SELECT value FROM json_each(?)) AND "
        sql = f"""SELECT number, id FROM subject WHERE {among}since <= ? UNION ALL
          SELECT number, id FROM subject_past WHERE {among}since <= ? AND until > ? ORDER BY number"""
        given = [] if numbers is None else [json.dumps(list(numbers))]
        return self._database.run(sql, [*given, version, *given, version, version])

    def subjects_between(self, version: int, first: int, last: int) -> set[int]:
        """The subjects that had some of the samples ``first`` to ``last`` in a version."""
        sql = f"""SELECT subject FROM sample WHERE number BETWEEN ? AND ? AND since <= ? UNION
          SELECT subject FROM sample_past WHERE number BETWEEN ? AND ? AND since <= ? AND until > ? AND {NOT_ERASED}"""
        return {row[0] for row in self._database.run(sql, [first, last, version, first, last, version, version])}

    def removed(self, ids: Sequence[SubjectId]) -> dict[SubjectId, list[int]]:
        """Numbers of subjects that are gone but not erased, by the id they had last."""
        found: dict[SubjectId, list[int]] = {}
        sql = """SELECT number, id, max(until) FROM subject_past p WHERE number IN
          (SELECT number FROM subject_past WHERE id IN (SELECT value FROM json_each(?)))
          AND NOT EXISTS (SELECT 1 FROM subject s WHERE s.number = p.number) GROUP BY number"""
        wanted = set(ids)
        for number, subject, _ in self._database.run(sql, [json.dumps(list(ids))]):
            if subject in wanted:
                found.setdefault(subject, []).append(number)
        return found

    def kept(self, numbers: Sequence[int]) -> set[int]:
        """Those of the numbers that are enrolled, or removed and not erased."""
        tables = ("subject", "subject_past")
        return {
            row[0] for table in tables for row in self._in(f"SELECT number FROM {table} WHERE number IN", list(numbers))
        }

    def expired(self, now: float) -> list[int]:
        """Subjects, enrolled or removed, whose time has come."""
        sql = """SELECT number FROM subject WHERE retain_until <= ? UNION SELECT number FROM
          (SELECT number, retain_until, max(until) FROM subject_past p
          WHERE NOT EXISTS (SELECT 1 FROM subject s WHERE s.number = p.number) GROUP BY number) WHERE retain_until <= ?"""
        return sorted(row[0] for row in self._database.run(sql, [now, now]))

    def forget_before(self, version: int) -> None:
        """Drop states that ended with or before a version, and the log before it."""
        for table in ("subject_past", "sample_past"):
            self._database.run(f"DELETE FROM {table} WHERE until <= ?", [version])
        self._database.run("DELETE FROM touch WHERE version <= ?", [version])
        self._database.run("DELETE FROM change WHERE version < ?", [version])

    def _change_subjects(self, version: int, states: Sequence[Subject], leaving: Sequence[int]) -> None:
        new = list(states)
        if not new and not leaving:
            return
        numbers = [*(subject.number for subject in new), *leaving]
        rows = self._in(f"SELECT {SUBJECT} FROM subject WHERE number IN", numbers)
        self._database.insert("subject_past", ((*row, version) for row in rows))
        # All go before any comes: two subjects may have exchanged their ids.
        self._database.run_many("DELETE FROM subject WHERE number = ?", ((row[0],) for row in rows))
        self._database.insert("subject", (_row(subject, version) for subject in new))

    def _move(self, version: int, moves: Sequence[tuple[int, int | None]]) -> None:
        if not moves:
            return
        numbers = [sample for sample, _ in moves]
        rows = self._in(f"SELECT {SAMPLE} FROM sample WHERE number IN", numbers)
        past = "SELECT number, origin, max(until) FROM sample_past WHERE number IN"
        origins = {row[0]: row[1] for row in self._in(past, numbers, " GROUP BY number")} | {
            row[0]: row[3] for row in rows
        }
        self._database.insert("sample_past", ((*row, version) for row in rows))
        self._database.run_many("DELETE FROM sample WHERE number = ?", ((row[0],) for row in rows))
        back = ((sample, owner, version, origins.get(sample)) for sample, owner in moves if owner is not None)
        self._database.insert("sample", back)
        self._database.run_many("INSERT OR IGNORE INTO moved VALUES (?)", ((sample,) for sample in numbers))

    def _read_counters(self) -> tuple[int, int, int]:
        sql = "SELECT version, next_subject, next_sample FROM change ORDER BY version DESC LIMIT 1"
        version, next_subject, next_sample = self._database.run(sql)[0]
        return version, next_subject, next_sample

    def _change(self, version: int) -> Row:
        rows = self._database.run(f"SELECT {CHECKED['change']} FROM change WHERE version = ?", [version])
        if not rows:
            kept = f"{self.oldest_version()} to {self.last_version()}"
            raise InvalidParameterError(f"version {version} is not kept; this store keeps versions {kept}")
        return rows[0]

    def _numbers_of(self, change: Row) -> tuple[list[int], list[int]]:
        touched = self._database.run("SELECT kind, number FROM touch WHERE version = ? ORDER BY number", [change[0]])
        subjects = [*(number for kind, number in touched if kind == "subject"), *range(change[4], change[5])]
        return subjects, [*(number for kind, number in touched if kind == "sample"), *range(change[6], change[7])]

    def _not_erased(self, table: str, numbers: list[int]) -> list[int]:
        tables = (table, f"{table}_past")
        return sorted({row[0] for t in tables for row in self._in(f"SELECT number FROM {t} WHERE number IN", numbers)})

    def _touched_since(self, version: int, kind: str, numbers: list[int]) -> set[int]:
        sql = f"SELECT DISTINCT version FROM touch WHERE kind = '{kind}' AND version > {version} AND number IN"
        return {row[0] for row in self._in(sql, numbers)}

    def _as_change(self, row: Row) -> Change:
        version, kind, time, by, *_, undoes = row
        subjects, samples = self._numbers_of(row)
        given = json.dumps(samples)
        sql = f"""SELECT number, subject FROM sample WHERE since <= ? AND number IN (SELECT value FROM json_each(?)) UNION ALL
          SELECT number, subject FROM sample_past WHERE since <= ? AND until > ? AND {NOT_ERASED}
          AND number IN (SELECT value FROM json_each(?))"""
        owners: dict[int, int] = dict(self._database.run(sql, [version, given, version, version, given]))
        moved_to = np.array([owners.get(sample, NOBODY) for sample in samples], np.int64)
        numbers = np.array(subjects, np.int64), np.array(samples, np.int64)
        return Change(version, kind, time, by, *numbers, moved_to, undoes)

    def _in(self, sql: str, values: list[Any], end: str = "") -> list[Row]:
        if len(values) == 1:  # the usual single change
            return self._database.run(f"{sql} (?){end}", values)
        return (
            self._database.run(f"{sql} (SELECT value FROM json_each(?)){end}", [json.dumps(values)]) if values else []
        )


def _subject(row: Row) -> Subject:
    number, name, _, metadata, *rest = row[:7]
    return Subject(number, name, json.loads(metadata) if metadata else {}, *rest)


def _row(subject: Subject, since: int) -> Row:
    metadata = json.dumps(dict(subject.metadata), sort_keys=True) if subject.metadata else None
    until = None if subject.retain_until is None else float(subject.retain_until)
    return (subject.number, subject.id, since, metadata, until, subject.consent, subject.purpose)
