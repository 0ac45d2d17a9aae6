"""Database: SQL on ``gallery.db``, the only truth of the embedded home."""

from __future__ import annotations

import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

Row = tuple[Any, ...]
Connect = Callable[[Path, str], Any]
"""Opens a connection to a database file in mode "rwc", "rw" or "ro": anything with ``execute``, ``executemany``, ``close``."""

APPLICATION = 0x486F6C75
FORMAT_VERSION = 1
LOG_PAGES = 1000
"""Pages in the write-ahead log after which it is moved into the database and written from its beginning again.

A log that grows is slower to sync than one that is overwritten, so it must be short enough to be overwritten soon.
"""
SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE change (version INTEGER PRIMARY KEY, kind TEXT, time REAL, by TEXT, first_subject INTEGER, next_subject INTEGER,
  first_sample INTEGER, next_sample INTEGER, undoes INTEGER, crc INTEGER);
CREATE TABLE subject (number INTEGER PRIMARY KEY, id, since INTEGER, metadata TEXT, retain_until REAL, consent TEXT,
  purpose TEXT, crc INTEGER);
CREATE UNIQUE INDEX subject_id ON subject (id);
CREATE INDEX subject_retain ON subject (retain_until) WHERE retain_until IS NOT NULL;
CREATE TABLE subject_past (number INTEGER, id, since INTEGER, metadata TEXT, retain_until REAL, consent TEXT, purpose TEXT,
  until INTEGER, crc INTEGER);
CREATE INDEX subject_past_number ON subject_past (number, until);
CREATE INDEX subject_past_id ON subject_past (id);
CREATE INDEX subject_past_until ON subject_past (until);
CREATE TABLE sample (number INTEGER PRIMARY KEY, subject INTEGER, since INTEGER, origin TEXT, crc INTEGER);
CREATE INDEX sample_subject ON sample (subject);
CREATE TABLE sample_past (number INTEGER, subject INTEGER, since INTEGER, origin TEXT, until INTEGER, crc INTEGER);
CREATE INDEX sample_past_number ON sample_past (number, until);
CREATE INDEX sample_past_until ON sample_past (until);
CREATE INDEX sample_past_subject ON sample_past (subject);
CREATE TABLE touch (version INTEGER, kind TEXT, number INTEGER, PRIMARY KEY (version, kind, number)) WITHOUT ROWID;
CREATE INDEX touch_number ON touch (kind, number);
CREATE TABLE moved (sample INTEGER PRIMARY KEY);
CREATE TABLE range (number INTEGER PRIMARY KEY AUTOINCREMENT, first INTEGER, last INTEGER, n INTEGER, file INTEGER,
  offset INTEGER, data BLOB, columns_crc INTEGER, crc INTEGER);
CREATE INDEX range_first ON range (first);
CREATE TABLE word (code INTEGER PRIMARY KEY, text TEXT UNIQUE);
CREATE TABLE artifact (name TEXT PRIMARY KEY, sha256 TEXT, time REAL, data BLOB, crc INTEGER) WITHOUT ROWID;
CREATE TABLE operation (number INTEGER PRIMARY KEY, time REAL, verb TEXT, by TEXT, detail TEXT, crc INTEGER);
CREATE TABLE erasing (kind TEXT, number INTEGER, PRIMARY KEY (kind, number)) WITHOUT ROWID;
CREATE TABLE erased (number INTEGER PRIMARY KEY);
CREATE TABLE receipt (number INTEGER PRIMARY KEY, content TEXT, crc INTEGER);
"""
CHECKED = {
    "change": "version, kind, time, by, first_subject, next_subject, first_sample, next_sample, undoes",
    "subject": "number, id, since, metadata, retain_until, consent, purpose",
    "subject_past": "number, id, since, metadata, retain_until, consent, purpose, until",
    "sample": "number, subject, since, origin",
    "sample_past": "number, subject, since, origin, until",
    "range": "first, last, n, file, offset, columns_crc",
    "artifact": "name, sha256, time",
    "operation": "number, time, verb, by, detail",
    "receipt": "number, content",
}
"""Tables with a checksum per row, and what it covers: SQLite itself would not notice a flipped bit in a value."""


def connect_sqlite(path: Path, mode: str) -> Any:
    """The standard library's SQLite."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    wal = path.with_name(path.name + "-wal")
    if mode == "ro" and not os.access(path.parent, os.W_OK) and not (wal.exists() and wal.stat().st_size):
        uri += "&immutable=1"  # a log that is all in the database needs no shared memory, which could not be made here
    return sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, timeout=30, cached_statements=256
    )


def checked(values: Sequence[Any]) -> Row:
    """The values of a row with their checksum behind them."""
    return (*values, zlib.crc32(repr(tuple(values)).encode("utf-8", "surrogatepass")))


def row_checksum(values: Sequence[Any]) -> int:
    """CRC-32 of the values of a row."""
    return int(checked(values)[-1])


class Database:
    """A connection on which every statement runs to its end before the call returns.

    >>> import tempfile
    >>> database = Database(Path(tempfile.mkdtemp()) / "gallery.db", "rwc")
    >>> database.run("SELECT 1 + ?", [2])
    [(3,)]
    """

    def __init__(self, path: Path, mode: str, connect: Connect = connect_sqlite) -> None:
        self.path = path
        self._connection = connect(path, mode)
        self.run("PRAGMA busy_timeout = 30000")
        if mode != "ro":
            # With the write-ahead log the same as FULL. A snapshot has a rollback journal, and its deletion must be durable too:
            # a journal that power loss brought back would bring back what was erased.
            self.run("PRAGMA synchronous = EXTRA")
            self.run("PRAGMA secure_delete = ON")
            # What SQLite sorts or vacuums must not be left in a temporary file.
            self.run("PRAGMA temp_store = MEMORY")
            self.run(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")

    def run(self, sql: str, values: Sequence[Any] = ()) -> list[Row]:
        """Run one statement; all of its rows."""
        return list(self._connection.execute(sql, tuple(values)))

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for many rows."""
        self._connection.executemany(sql, rows)

    def one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first value of the first row, or None."""
        rows = self.run(sql, values)
        return rows[0][0] if rows else None

    def insert(self, table: str, rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows with their checksums."""
        marks = ", ".join("?" * (CHECKED[table].count(",") + 2))
        self.run_many(f"INSERT INTO {table} ({CHECKED[table]}, crc) VALUES ({marks})", map(checked, rows))

    def create(self, meta: dict[str, Any]) -> None:
        """Make the tables, in one transaction."""
        self.run("PRAGMA journal_mode = WAL")
        self.run("BEGIN IMMEDIATE")
        self.run(f"PRAGMA application_id = {APPLICATION}")
        self.run(f"PRAGMA user_version = {FORMAT_VERSION}")
        for statement in SCHEMA.split(";"):
            if statement.strip():
                self.run(statement)
        self.run_many("INSERT INTO meta VALUES (?, ?)", ((key, json.dumps(value)) for key, value in meta.items()))
        self.insert("change", [(0, "create", 0.0, None, 1, 1, 1, 1, None)])
        self.run("COMMIT")

    def meta(self) -> dict[str, Any]:
        """What was fixed at creation."""
        return {key: json.loads(value) for key, value in self.run("SELECT key, value FROM meta")}

    def empty_wal(self) -> bool:
        """Move the write-ahead log into the database and cut it to nothing; False while a reader prevents it."""
        busy, _, _ = self.run("PRAGMA wal_checkpoint(TRUNCATE)")[0]
        return not busy

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()
