"""Delta: what changed between two versions, read from one side (the server or a local copy) and written to the other.

Numbers ascend, and the change log says whom a version touched, so what the other side lacks is found by keys alone, whatever
the size of the gallery. A row of a subject or sample that was touched replaces the one that is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

import numpy as np

from holue.store.postgres.schema import COLUMNS, TYPES
from holue.store.postgres.server import Row, Server
from holue.store.sqlite.database import Database

AFTER = {
    "touch": "version",
    "subject_past": "until",
    "sample_past": "until",
    "change": "version",
}
"""Tables of the change log, and the column that says after which version a row is new."""
ROWS_PER_STATEMENT = 10_000
PRESENT = ("subject", "sample")
"""Tables of the present state: rows after a version are those with later numbers, and those that were touched."""


class Side(Protocol):
    """One of the two sides."""

    def rows_after(self, table: str, version: int) -> Iterator[Row]:
        """The rows of a table that are new after a version."""

    def delete(self, table: str, numbers: list[int]) -> None:
        """Delete rows by number."""

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows with the checksums they have."""


class ServerSide:
    """The tables of a gallery on the server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    def rows_after(self, table: str, version: int) -> Iterator[Row]:
        """The rows of a table that are new after a version; new samples are read with their embeddings."""
        query = _touched("sample", version) if table == "sample" else _after(table, version)
        for columns in self._server.copy_out(table, query, TYPES[table]):
            yield from as_rows(columns)

    def delete(self, table: str, numbers: list[int]) -> None:
        """Delete rows by number."""
        self._server.run(f"DELETE FROM {table} WHERE number = ANY(%s)", [numbers])

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows with the checksums they have."""
        self._server.insert(table, COLUMNS[table], TYPES[table], list(zip(*rows, strict=True)))


class CopySide:
    """The tables of a local copy."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def rows_after(self, table: str, version: int) -> Iterator[Row]:
        """The rows of a table that are new after a version."""
        return iter(self._database.run(_after(table, version)))

    def delete(self, table: str, numbers: list[int]) -> None:
        """Delete rows by number."""
        self._database.run_many(f"DELETE FROM {table} WHERE number = ?", ((number,) for number in numbers))

    def insert(self, table: str, rows: Sequence[Row]) -> None:
        """Insert rows with the checksums they have."""
        marks = ", ".join("?" * len(TYPES[table]))
        self._database.run_many(f"INSERT INTO {table} ({COLUMNS[table]}) VALUES ({marks})", rows)


def carry(source: Side, target: Side, version: int) -> set[int]:
    """Write what is new after a version to the other side; returns the samples that moved."""
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


def as_rows(columns: Sequence[Any]) -> Iterator[Row]:
    """Columns as rows of plain values.

    >>> list(as_rows([np.array([1, 2]), ["ann", None]]))
    [(1, 'ann'), (2, None)]
    """
    return zip(*(column.tolist() if isinstance(column, np.ndarray) else column for column in columns), strict=True)


def batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Rows in lists of a limited length."""
    rest = iter(rows)
    while batch := list(islice(rest, ROWS_PER_STATEMENT)):
        yield batch


def _insert(target: Side, table: str, rows: Sequence[Row]) -> None:
    if rows:
        target.insert(table, rows)


def _after(table: str, version: int) -> str:
    """The rows that are new after a version."""
    if version < 0:
        return f"SELECT {COLUMNS[table]} FROM {table}"
    if table in AFTER:
        return f"SELECT {COLUMNS[table]} FROM {table} WHERE {AFTER[table]} > {int(version)}"
    new = f"SELECT {COLUMNS[table]} FROM {table} WHERE number >= {_first_new(table, version)}"
    return f"{new} UNION ALL {_touched(table, version)}"


def _touched(table: str, version: int) -> str:
    """Rows of the present state that are older than a version and were touched after it."""
    touched = f"SELECT number FROM touch WHERE version > {int(version)} AND kind = '{table}'"
    older = f"number < {_first_new(table, version)}"
    return f"SELECT {COLUMNS[table]} FROM {table} WHERE number IN ({touched}) AND {older}"


def _first_new(table: str, version: int) -> str:
    return f"coalesce((SELECT next_{table} FROM change WHERE version = {int(version)}), 1)"
