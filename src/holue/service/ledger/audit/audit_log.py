"""Audit log: who asked what of which version, and a digest of what was answered; durable before the answer is given."""

from __future__ import annotations

import hmac
import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

import sqlalchemy as sql

from holue.errors import InvalidParameterError, NotFoundError
from holue.service.ledger.audit.audit_chain import (
    GENESIS,
    SALT_BYTES,
    Entry,
    Event,
    Tampering,
    Witness,
    canonical,
    digest,
    find_tampering,
)  # fmt: skip
from holue.service.ledger.database import Database
from holue.service.ledger.statement import Statement
from holue.service.ledger.tables import AUDIT, AUDIT_HEAD

WITNESS = "head"
PAGE = 1000
_WITNESS_LENGTH = 20 + 1 + 64 + 1


class _Waiting:
    """The entries of one call, and where they were written; a call that waits for its turn may find them written already."""

    def __init__(self, drafts: list[Entry]) -> None:
        self.drafts = drafts
        self.placed: list[Entry] = []
        self.transaction: object = None


class AuditLog:
    """The log in a ledger.

    The newest sequence and hash are kept three times: in the last row, in a table, and (where the ledger is a file) in the file
    ``head`` beside it. The file is written after the commit and never synced: it can lag behind the log, never lead.

    >>> with Database.of_gallery(":memory:") as database:
    ...     log = AuditLog(database)
    ...     appended = log.append([Event("identify", "0a1b2c3d4e5f/operator", "r1", 1.0, 1.2, decision="accepted")])
    ...     [entry.decision for entry in log.entries()], log.verify()
    (['accepted'], [])
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._path = None if database.file is None else database.file.with_name(WITNESS)
        self._noting, self._noted = threading.Lock(), 0
        self._queueing = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._head_of = Statement(database.engine, sql.select(AUDIT_HEAD.c.sequence, AUDIT_HEAD.c.hash))
        self._insert = Statement(database.engine, sql.insert(AUDIT))
        new: dict[str, Any] = {"sequence": sql.bindparam("new_sequence"), "hash": sql.bindparam("new_hash")}
        self._move_head = Statement(database.engine, sql.update(AUDIT_HEAD).values(new))
        if self._path is not None and not self._path.exists() and not self.head().sequence:
            self._write_witness(0, GENESIS)  # before the first row: a missing file is then always a removed one

    def append(self, events: Sequence[Event]) -> list[Entry]:
        """Log events, durably; calls that wait at the same time share one transaction, and so do the events of one call."""
        if not events:
            return []
        salts = secrets.token_bytes(SALT_BYTES * len(events))
        waiting = _Waiting(
            [Entry.of(event, salts[SALT_BYTES * n : SALT_BYTES * (n + 1)].hex()) for n, event in enumerate(events)]
        )
        with self._queueing:
            self._waiting.append(waiting)
        try:
            appended = self._database.writing(lambda connection: self._placed(connection, waiting))
        finally:
            with self._queueing:  # a call that failed must not be written by another
                self._waiting = [one for one in self._waiting if one is not waiting]
        self.note(appended)
        return appended

    @contextmanager
    def beside(self, event: Callable[[Any], Event]) -> Iterator[None]:
        """Log what the next change of this ledger inside the block did, in the same transaction: both are there, or neither.

        ``event`` makes the row from the change's result.
        """
        placed: list[Entry] = []

        def extend(connection: sql.Connection, result: Any) -> None:
            placed[:] = self._extend(connection, [Entry.of(event(result))])

        with self._database.beside(extend):
            yield
        self.note(placed)

    def extend(self, connection: sql.Connection, events: Sequence[Event]) -> list[Entry]:
        """Log events in a transaction of the caller's, who calls :meth:`note` once it is durable."""
        return self._extend(connection, [Entry.of(event) for event in events]) if events else []

    def entries(self, after: int = 0, limit: int | None = None) -> Iterator[Entry]:
        """The rows after a sequence, in order; read a part at a time, so that a slow reader holds no transaction open."""
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            rows = sql.select(AUDIT).where(AUDIT.c.sequence > after).order_by(AUDIT.c.sequence).limit(size)
            with self._database.reading() as connection:
                part = [Entry(**row._mapping) for row in connection.execute(rows)]
            yield from part
            if len(part) < size:
                return
            after, left = part[-1].sequence, None if left is None else left - size

    def of_request(self, request_id: str) -> list[Entry]:
        """The rows of one request."""
        rows = sql.select(AUDIT).where(AUDIT.c.request_id == request_id).order_by(AUDIT.c.sequence)
        with self._database.reading() as connection:
            return [Entry(**row._mapping) for row in connection.execute(rows)]

    def head(self) -> Witness:
        """The newest sequence and its hash: note it elsewhere, and give it to :meth:`verify` later."""
        with self._database.reading() as connection:
            return self._head(connection)

    def verify(self, witness: Witness | None = None) -> list[Tampering]:
        """Every row that was changed, dropped, moved or replaced; ``witness`` is a head that was noted elsewhere."""
        file, table = self._read_witness(), self.head()  # before the rows, which may only be ahead of them
        witnesses = [Witness(table.sequence, table.hash, "the ledger's table of the head")]
        found = []
        if file is not None:
            witnesses.append(file)
        elif self._path is not None and table.sequence:
            sentence = f"the file {WITNESS!r} beside the ledger is missing or damaged"
            found.append(Tampering("replaced", table.sequence, sentence))
        if witness is not None:
            witnesses.append(witness)
        last = 0

        def counted() -> Iterator[Entry]:
            nonlocal last
            for entry in self.entries():
                last = entry.sequence
                yield entry

        found += find_tampering(counted(), witnesses)
        newest = self.head().sequence
        if last > newest:
            found.append(
                Tampering("added", newest + 1, f"rows {newest + 1} to {last} are beyond the ledger's table of the head")
            )
        return found

    def is_answer(self, sequence: int, answer: Mapping[str, Any]) -> bool:
        """Whether this is the answer that a row logged."""
        entry = self._entry(sequence)
        return hmac.compare_digest(entry.answer_digest or "", digest(entry.salt, canonical(answer)))

    def is_input(self, sequence: int, data: bytes) -> bool:
        """Whether these are the bytes of the input that a row logged: those of the probe, float32, little-endian."""
        entry = self._entry(sequence)
        return hmac.compare_digest(entry.input_digest or "", digest(entry.salt, data))

    def export(self, stream: TextIO, after: int = 0) -> int:
        """Write the rows after a sequence as JSON lines; returns how many."""
        count = 0
        for entry in self.entries(after):
            stream.write(json.dumps(entry.to_dict(), allow_nan=False) + "\n")
            count += 1
        return count

    def _placed(self, connection: sql.Connection, own: _Waiting) -> list[Entry]:
        """The entries of one call, written with those of all calls that wait: one statement costs much less than many."""
        if own.transaction is connection.get_transaction() or _is_written(connection, own.placed):
            return own.placed
        with self._queueing:
            others = [one for one in self._waiting if one is not own]
            self._waiting = []
        calls = [own, *others]
        placed = self._extend(connection, [draft for call in calls for draft in call.drafts])
        for call in calls:
            call.transaction = connection.get_transaction()
            call.placed, placed = placed[: len(call.drafts)], placed[len(call.drafts) :]
        return own.placed

    def _extend(self, connection: sql.Connection, drafts: Sequence[Entry]) -> list[Entry]:
        head = self._head(connection)
        sequence, previous = head.sequence, head.hash
        placed = []
        for draft in drafts:
            entry = draft.after(sequence, previous)
            sequence, previous = entry.sequence, entry.hash
            placed.append(entry)
        self._insert.run(connection, [vars(entry) for entry in placed])
        if head.sequence:
            self._move_head.run(connection, [{"new_sequence": sequence, "new_hash": previous}])
        else:
            connection.execute(sql.insert(AUDIT_HEAD).values(one=1, sequence=sequence, hash=previous))
        return placed

    def _head(self, connection: sql.Connection) -> Witness:
        rows = self._head_of.rows(connection, {})
        return Witness(*rows[0]) if rows else Witness(0, GENESIS)

    def _entry(self, sequence: int) -> Entry:
        for entry in self.entries(sequence - 1, limit=1):
            if entry.sequence == sequence:
                return entry
        raise NotFoundError(f"the log has no row {sequence}")

    def note(self, appended: Sequence[Entry]) -> None:
        """Write the newest of some durable rows into the file beside the ledger."""
        if self._path is None or not appended:
            return
        entry = appended[-1]
        with self._noting, suppress(OSError):  # the witness may lag behind; the row itself is durable
            if entry.sequence > self._noted:
                self._write_witness(entry.sequence, entry.hash)
                self._noted = entry.sequence

    def _write_witness(self, sequence: int, hash_: str) -> None:
        assert self._path is not None
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(handle, f"{sequence:020d}:{hash_}\n".encode(), 0)
        finally:
            os.close(handle)

    def _read_witness(self) -> Witness | None:
        if self._path is None:
            return None
        try:
            text = self._path.read_text("ascii")[:_WITNESS_LENGTH]
            noted = Witness.parse(text.strip())
        except (OSError, ValueError, InvalidParameterError):
            return None
        return Witness(noted.sequence, noted.hash, f"the file {WITNESS!r} beside the ledger")


def read_export(stream: TextIO) -> Iterator[Entry]:
    """The rows of an exported log, for :func:`holue.service.ledger.audit.audit_chain.find_tampering`."""
    for number, line in enumerate(stream, start=1):
        try:
            yield Entry(**json.loads(line))
        except (ValueError, TypeError) as error:
            raise InvalidParameterError(f"line {number} is no row of an audit log ({error})") from error


def _is_written(connection: sql.Connection, placed: list[Entry]) -> bool:
    """Whether entries that an earlier transaction wrote are there: it may have been rolled back."""
    if not placed:
        return False
    row = sql.select(AUDIT.c.hash).where(AUDIT.c.sequence == placed[-1].sequence)
    return connection.execute(row).scalar_one_or_none() == placed[-1].hash
