"""Copy: a gallery of the server once more in a directory of this machine, as an embedded home that only this process uses.

All reads are answered from it, so they go on while the server is gone. It is synced to disk only when it is closed and kept;
what a killed process left behind is deleted by the next one.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from holue.errors import StoreError
from holue.store.commit import CommitQueue
from holue.store.postgres.binary import BYTES, INT, TEXT
from holue.store.postgres.local.delta import CopySide, ServerSide, as_rows, carry
from holue.store.postgres.local.folder import Folder, Seen, delete_kept
from holue.store.postgres.local.gathering import Gathering
from holue.store.postgres.schema import COLUMNS, TYPES, Head
from holue.store.postgres.server import Row, Server
from holue.store.sqlite.database import Database, connect_sqlite
from holue.store.sqlite.files.disk import Bytes, Disk
from holue.store.sqlite.home import DATABASE, DERIVED, SEGMENTS, SNAPSHOTS, Home
from holue.store.sqlite.upkeep import compaction
from holue.store.sqlite.upkeep.erasure import overwrite, recorded, take_out

T = TypeVar("T")
NOTHING = Seen(-1, -1, None)
ROWS_BYTES = 32 << 20
"""Rows of about so many bytes become one range of the copy."""
_GIVEN = ", ".join(f"e.{name}" for name in COLUMNS["embedding"].split(", ")[:-1])
_NOW = "s.subject, s.since, s.origin, s.crc"
_TYPES = [*TYPES["embedding"][:-1], INT, INT, TEXT, INT, BYTES]


class _QuickDisk(Disk):
    """A disk that is never waited for."""

    def write_durably(self, path: Path, pieces: Iterable[tuple[int, Bytes]]) -> None:
        for offset, data in pieces:
            self.write(path, offset, data)

    def sync_directory(self, path: Path) -> None:
        return


class LocalCopy:
    """The copy, and what it has seen of the server: nothing until it has been filled."""

    def __init__(self, folder: Folder, meta: dict[str, Any]) -> None:
        self.path, self.store = folder.path, str(meta["store"])
        self.seen = folder.seen or NOTHING
        self.snapshots: tuple[str, ...] = ()
        self._folder = folder
        self._reading = threading.RLock()
        self.home = Home(self.path, "rw", _QuickDisk(), connect_sqlite)
        self.home.database.run("PRAGMA synchronous = OFF")
        self._reader: Home | None = Home(self.path, "ro", _QuickDisk(), connect_sqlite)
        self._queue = CommitQueue(self.begin, self.commit, self.roll_back)

    @classmethod
    def prepare(cls, meta: dict[str, Any], *, keep: bool) -> LocalCopy:
        """The copy that was kept of a gallery, where there is one and nothing is wrong with it; else an empty one."""
        while keep and (folder := Folder.claim(meta["store"])) is not None:
            try:
                copy = cls(folder, meta)
                if copy._is_whole(meta):
                    return copy
                copy.close(keep=False)
            except Exception:  # it cannot be read: it is made again
                folder.delete()
        return cls.empty(meta, keep=keep)

    @classmethod
    def empty(cls, meta: dict[str, Any], *, keep: bool) -> LocalCopy:
        """A copy that has seen nothing yet."""
        folder = Folder.of_gallery(meta["store"]) if keep else Folder.temporary()
        (folder.path / SEGMENTS).mkdir()
        (folder.path / SNAPSHOTS).mkdir()
        database = Database(folder.path / DATABASE, "rwc")
        database.create(meta)
        database.run("DELETE FROM change")
        database.close()
        return cls(folder, meta)

    @property
    def version(self) -> int:
        """The version reached; -1 until the copy has been filled."""
        return self.seen.version

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
        if head.edit == self.seen.edit:
            return
        erasures = server.run("SELECT version, kind, number FROM erasure WHERE version > %s", [self.version])
        database = self.home.database
        database.run("BEGIN IMMEDIATE")
        try:
            self._take_out(erasures)
            moved = carry(ServerSide(server), CopySide(database), self.version) | self._read_samples(server)
            database.run_many("INSERT OR IGNORE INTO moved VALUES (?)", ((sample,) for sample in moved))
            self._read_rest(server)
            database.run("COMMIT")
        except BaseException:
            self.roll_back()
            raise
        filled, self.seen = self.version >= 0, Seen(head.version, head.edit, head.token)
        if erasures:
            delete_kept(self.store, max(version for version, _, _ in erasures))
        if erasures and filled:
            self.overwrite_erased()
        if self.home.tables.oldest_version() < head.oldest:
            compaction.compact(self.home, self._queue, head.oldest)

    def cannot_follow(self, head: Head) -> bool:
        """Whether the gallery is another one by now (restored, or its server was), or has forgotten what the copy lacks."""
        another = head.store != self.store or head.edit < self.seen.edit or head.asked != self.seen.token
        return another or 0 <= self.version < head.oldest

    def begin(self) -> None:
        """Begin a change of our own."""
        self.home.database.run("BEGIN IMMEDIATE")
        self.home.tables.begin()

    def commit(self) -> None:
        """Keep the change."""
        self.home.database.run("COMMIT")
        self.home.tables.end()

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
        """Overwrite what was taken out of the tables in the files of the copy, and empty its write-ahead log.

        Copies that are kept on this machine and not in use are deleted: nobody would overwrite theirs before the next opening.
        """
        delete_kept(self.store, self.version)
        with self._reading:
            overwrite(self.home, recorded(self.home, "sample"))
            shutil.rmtree(self.path / DERIVED, ignore_errors=True)
            self.home.database.run("DELETE FROM erasing")
            self.home.database.run("VACUUM")
            self.home.database.empty_wal()

    def files(self) -> list[Path]:
        """All files of the copy."""
        return sorted(path for path in self.path.rglob("*") if path.is_file())

    def close(self, *, keep: bool) -> None:
        """Delete the copy, or keep it for the next opening."""
        with self._reading:
            if self._reader is None:
                return
            self._reader.close()
            self._reader = None
            done = keep and self.version >= 0 and not recorded(self.home, "sample") and self.home.database.empty_wal()
            self.home.close()
            if done:
                self._folder.keep(self.seen)
            else:
                self._folder.delete()

    def _is_whole(self, meta: dict[str, Any]) -> bool:
        """What an embedded home checks when it is opened: sizes and headers of its files, and its version."""
        same = self.home.database.meta() == meta and self.home.tables.last_version() == self.version
        return same and not self.home.cheap_problems()

    def _take_out(self, erasures: list[Row]) -> None:
        subjects = [number for _, kind, number in erasures if kind == "subject"]
        if self.version >= 0 and erasures:
            take_out(self.home, subjects, [number for _, kind, number in erasures if kind == "sample"])
        self.home.database.run_many("INSERT OR IGNORE INTO erased VALUES (?)", ((number,) for number in subjects))

    def _read_samples(self, server: Server) -> set[int]:
        """Take over new samples with their embeddings; returns those that belong to somebody else than they were given to."""
        first = self.home.tables.next_sample_at(self.version) if self.version >= 0 else 0
        query = f"""SELECT {_GIVEN}, {_NOW}, e.data FROM embedding e LEFT JOIN sample s ON s.number = e.number
          WHERE e.number >= {first} ORDER BY e.number"""
        insert = f"INSERT INTO sample ({COLUMNS['sample']}) VALUES (?, ?, ?, ?, ?)"
        moved: set[int] = set()
        gathering = Gathering(self.home, ROWS_BYTES)
        for numbers, *given, subjects, since, origin, crc, data in server.copy_out("embedding", query, _TYPES):
            gathering.add([numbers, *given, data])
            rows = as_rows([numbers, subjects, since, origin, crc])
            if isinstance(subjects, np.ndarray):
                moved.update(numbers[subjects != given[0]].tolist())
            else:  # some have left
                owned = zip(numbers.tolist(), given[0].tolist(), subjects, strict=True)
                moved.update(number for number, before, now in owned if before != now)
                rows = (row for row in rows if row[1] is not None)
            self.home.database.run_many(insert, rows)
        gathering.flush()
        return moved

    def _read_rest(self, server: Server) -> None:
        database = self.home.database
        for name, digest, time, crc, data in server.run(
            "SELECT name, sha256, time, crc, data FROM artifact WHERE edit > %s", [self.seen.edit]
        ):
            database.run("DELETE FROM artifact WHERE name = ?", [name])
            database.run("INSERT INTO artifact VALUES (?, ?, ?, ?, ?)", [name, digest, time, bytes(data), crc])
        last = database.one("SELECT coalesce(max(number), 0) FROM operation")
        logged = server.run(f"SELECT {COLUMNS['operation']} FROM operation WHERE number > %s ORDER BY number", [last])
        CopySide(database).insert("operation", logged)
        receipts = server.run("SELECT number, content, crc FROM receipt WHERE edit > %s", [self.seen.edit])
        database.run_many("INSERT OR REPLACE INTO receipt VALUES (?, ?, ?)", receipts)
