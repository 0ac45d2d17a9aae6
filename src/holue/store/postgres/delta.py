"""Delta: what changed between two versions, read from one side (the server or a local copy) and written to the other.

Every row of the tables says since when or until when it holds, so the rows after a version are all that the other side
lacks. A row of a subject or sample that was touched replaces the one that is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol

from holue.store.postgres.schema import COLUMNS, TYPES
from holue.store.postgres.server import Row, Server
from holue.store.sqlite.database import Database

AFTER = {
    "touch": "version",
    "subject_past": "until",
    "subject": "since",
    "sample_past": "until",
    "sample": "since",
    "change": "version",
}
"""The tables of the change log, and the column that says after which version a row is new."""
PRESENT = ("subject", "sample")
AT_ONCE = 10_000


class Side(Protocol):
    """One of the two sides."""

    def rows_after(self, table: str, version: int) -> Iterator[Row]:
        """The rows of a table that are new after a version."""

    def delete(self, table: str, numbers: list[int]) -> None:
        """Delete rows by number."""

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Insert rows with the checksums they have."""


class ServerSide:
    """The tables of a gallery on the server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def rows_after(self, table: str, version: int) -> Iterator[Row]:
        """The rows of a table that are new after a version."""
        return self._server.copy_out(table, _query(table, version), TYPES[table])

    def delete(self, table: str, numbers: list[int]) -> None:
        """Delete rows by number."""
        self._server.run(f"DELETE FROM {table} WHERE number = ANY(%s)", [numbers])

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Insert rows with the checksums they have."""
        self._server.copy_in(table, COLUMNS[table], TYPES[table], rows)


class CopySide:
    """The tables of a local copy."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows_after(self, table: str, version: int) -> Iterator[Row]:
        """The rows of a table that are new after a version."""
        return iter(self._database.run(_query(table, version)))

    def delete(self, table: str, numbers: list[int]) -> None:
        """Delete rows by number."""
        self._database.run_many(f"DELETE FROM {table} WHERE number = ?", ((number,) for number in numbers))

    def insert(self, table: str, rows: Iterable[Row]) -> None:
        """Insert rows with the checksums they have."""
        marks = ", ".join("?" * len(TYPES[table]))
        self._database.run_many(f"INSERT INTO {table} ({COLUMNS[table]}) VALUES ({marks})", rows)


def carry(source: Side, target: Side, version: int) -> set[int]:
    """Write what is new after a version to the other side; returns the samples that moved.

    >>> sorted(AFTER)
    ['change', 'sample', 'sample_past', 'subject', 'subject_past', 'touch']
    """
    touches = list(source.rows_after("touch", version))
    gone: dict[str, set[int]] = {table: set() for table in PRESENT}
    for _, kind, number in touches:
        gone[kind].add(number)
    past: dict[str, list[Row]] = {}
    for table in PRESENT:
        past[table] = list(source.rows_after(f"{table}_past", version))
        gone[table].update(row[0] for row in past[table])
        if gone[table]:
            target.delete(table, sorted(gone[table]))
    _insert(target, "touch", touches)
    for table in PRESENT:
        _insert(target, f"{table}_past", past[table])
        for rows in batches(source.rows_after(table, version)):
            target.insert(table, rows)
    _insert(target, "change", list(source.rows_after("change", version)))
    return gone["sample"]


def batches(rows: Iterable[Any], size: int = AT_ONCE) -> Iterator[list[Any]]:
    """Rows in lists of a limited length.

    >>> list(batches(range(3), 2))
    [[0, 1], [2]]
    """
    batch: list[Any] = []
    for row in rows:
        batch.append(row)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _insert(target: Side, table: str, rows: Sequence[Row]) -> None:
    if rows:
        target.insert(table, rows)


def _query(table: str, version: int) -> str:
    return f"SELECT {COLUMNS[table]} FROM {table} WHERE {AFTER[table]} > {int(version)}"
