"""Copy: a gallery of the server once more in a temporary directory, as an embedded home that only this process uses.

All reads are answered from it, so they go on while the server is gone. It is not synced to disk: it does not outlive
its process. What a killed process left behind is deleted by the next one.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from holue.errors import CorruptStoreError, StoreError
from holue.store.commit import CommitQueue
from holue.store.postgres.delta import CopySide, ServerSide, batches, carry
from holue.store.postgres.schema import COLUMNS, TYPES, Head
from holue.store.postgres.server import Row, Server
from holue.store.sqlite import compaction
from holue.store.sqlite.block import Block
from holue.store.sqlite.database import Database, connect_sqlite
from holue.store.sqlite.disk import Bytes, Disk
from holue.store.sqlite.erasure import overwrite, recorded, take_out
from holue.store.sqlite.home import DATABASE, SEGMENTS, SNAPSHOTS, Home
from holue.store.sqlite.lock import WriterLock

T = TypeVar("T")


class _QuickDisk(Disk):
    """A disk that is never waited for."""

    def write_durably(self, path: Path, pieces: Iterable[tuple[int, Bytes]]) -> None:
        for offset, data in pieces:
            self.write(path, offset, data)

    def sync_directory(self, path: Path) -> None:
        return


class LocalCopy:
    """The copy, and what it has seen: ``version`` is -1 until it has been filled, ``edit`` the last transaction."""

    def __init__(self, meta: dict[str, Any]) -> None:
        self.path = _new_folder()
        self.store: str = meta["store"]
        self.version = self.edit = -1
        self.snapshots: tuple[str, ...] = ()
        self._lock = WriterLock(self.path)
        self._reading = threading.RLock()
        (self.path / SEGMENTS).mkdir()
        (self.path / SNAPSHOTS).mkdir()
        database = Database(self.path / DATABASE, "rwc")
        database.create(meta)
        database.run("DELETE FROM change")
        database.close()
        self.home = Home(self.path, "rw", _QuickDisk(), connect_sqlite)
        self.home.database.run("PRAGMA synchronous = OFF")
        self._reader: Home | None = Home(self.path, "ro", _QuickDisk(), connect_sqlite)
        self._queue = CommitQueue(self.begin, self.commit, self.roll_back)

    def read(self, question: Callable[[Home], T]) -> T:
        """Ask a question of the copy in one transaction."""
        with self._reading:
            if self._reader is None:
                raise StoreError("the store is closed; open it again")
            self._reader.database.run("BEGIN")
            try:
                return question(self._reader)
            finally:
                self._reader.database.run("COMMIT")

    def follow(self, server: Server, head: Head) -> None:
        """Take over what is new on the server; the caller holds a transaction there that sees one state."""
        self.snapshots = head.snapshots
        if head.edit == self.edit:
            return
        erasures = server.run("SELECT kind, number FROM erasure WHERE version > %s", [self.version])
        database = self.home.database
        database.run("BEGIN IMMEDIATE")
        try:
            self._take_out(erasures)
            moved = carry(ServerSide(server), CopySide(database), self.version) | self._moved_before(server)
            database.run_many("INSERT OR IGNORE INTO moved VALUES (?)", ((sample,) for sample in moved))
            self._read_embeddings(server)
            self._read_rest(server)
            database.run("COMMIT")
        except BaseException:
            self.roll_back()
            raise
        self.version, self.edit = head.version, head.edit
        if erasures:
            self.overwrite_erased()
        if self.home.tables.oldest_version() < head.oldest:
            compaction.compact(self.home, self._queue, head.oldest)

    def cannot_follow(self, head: Head) -> bool:
        """Whether the gallery was restored, or no longer has the changes that the copy lacks."""
        return head.store != self.store or head.edit < self.edit or 0 <= self.version < head.oldest

    def begin(self) -> None:
        """Begin a change of our own."""
        self.home.database.run("BEGIN IMMEDIATE")
        self.home.tables.begin()

    def commit(self) -> None:
        """Keep the change."""
        version = self.home.tables.last_version()
        self.home.database.run("COMMIT")
        self.home.tables.end()
        self.version = version

    def roll_back(self) -> None:
        """Give up the change."""
        self.home.forget()
        try:
            self.home.database.run("ROLLBACK")
        except Exception:  # SQLite has rolled back by itself, or no transaction had begun
            return

    def compact(self, forget_before: int | None) -> None:
        """Merge small segments, and drop what only older versions hold."""
        compaction.compact(self.home, self._queue, forget_before)

    def overwrite_erased(self) -> None:
        """Overwrite what was taken out of the tables in the files of the copy, and empty its write-ahead log."""
        with self._reading:
            overwrite(self.home, recorded(self.home, "sample"))
            self.home.database.run("DELETE FROM erasing")
            self.home.database.run("VACUUM")
            self.home.database.empty_wal()

    def files(self) -> list[Path]:
        """All files of the copy."""
        return sorted(path for path in self.path.rglob("*") if path.is_file())

    def close(self) -> None:
        """Delete the copy."""
        with self._reading:
            if self._reader is None:
                return
            self._reader.close()
            self._reader = None
            self.home.close()
            shutil.rmtree(self.path, ignore_errors=True)
            self._lock.release()

    def _take_out(self, erasures: list[Row]) -> None:
        subjects = [number for kind, number in erasures if kind == "subject"]
        if self.version >= 0 and erasures:
            take_out(self.home, subjects, [number for kind, number in erasures if kind == "sample"])
        self.home.database.run_many("INSERT OR IGNORE INTO erased VALUES (?)", ((number,) for number in subjects))

    def _moved_before(self, server: Server) -> set[int]:
        """When the copy is filled: samples that belong, or belonged, to somebody else than they were given to."""
        if self.version >= 0:
            return set()
        sql = """SELECT e.number FROM embedding e LEFT JOIN sample s ON s.number = e.number
          WHERE s.subject IS DISTINCT FROM e.subject"""
        return {number for (number,) in server.run(sql)}

    def _read_embeddings(self, server: Server) -> None:
        first = self.home.tables.next_sample_at(self.version) if self.version >= 0 else 0
        query = f"SELECT {COLUMNS['embedding']} FROM embedding WHERE number >= {first} ORDER BY number"
        width = self.home.dim * 4
        for rows in batches(server.copy_out("embedding", query, TYPES["embedding"])):
            samples, subjects, times, kappa, media, by, crc, data = zip(*rows, strict=True)
            if any(len(row) != width for row in data):
                bad = next(sample for sample, row in zip(samples, data) if len(row) != width)
                raise CorruptStoreError(f"sample {bad} on the server is cut off; restore the gallery from a snapshot")
            block = Block(
                np.array(samples, np.int64), np.array(subjects, np.int64), np.array(times), np.array(kappa),
                np.array(crc, np.uint32), self.home.codes(media), self.home.codes([name or "" for name in by]),
                np.frombuffer(b"".join(data), np.float32).reshape(len(rows), -1),
            )  # fmt: skip
            self.home.ranges.append(block)

    def _read_rest(self, server: Server) -> None:
        database = self.home.database
        for name, digest, time, crc, data in server.run(
            "SELECT name, sha256, time, crc, data FROM artifact WHERE edit > %s", [self.edit]
        ):
            database.run("DELETE FROM artifact WHERE name = ?", [name])
            database.run("INSERT INTO artifact VALUES (?, ?, ?, ?, ?)", [name, digest, time, bytes(data), crc])
        last = database.one("SELECT coalesce(max(number), 0) FROM operation")
        logged = server.run(f"SELECT {COLUMNS['operation']} FROM operation WHERE number > %s ORDER BY number", [last])
        CopySide(database).insert("operation", logged)
        receipts = server.run("SELECT number, content, crc FROM receipt WHERE edit > %s", [self.edit])
        database.run_many("INSERT OR REPLACE INTO receipt VALUES (?, ?, ?)", receipts)


def _new_folder() -> Path:
    """An empty directory that only this user can read; copies whose process has died are deleted on the way."""
    root = Path(tempfile.gettempdir()) / f"holue-copies-{os.getuid()}"
    root.mkdir(mode=0o700, exist_ok=True)
    about = root.stat()
    if about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise StoreError(f"{root} belongs to somebody else or can be read by others; delete it, or set TMPDIR")
    for left in root.iterdir():
        try:
            lock = WriterLock(left) if (left / DATABASE).exists() else None
        except StoreError:  # its process lives
            continue
        if lock is not None:
            shutil.rmtree(left, ignore_errors=True)
            lock.release()
    return Path(tempfile.mkdtemp(dir=root))
