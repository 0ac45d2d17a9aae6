"""Home: one directory of the embedded home as one connection sees it; a snapshot is a directory of the same kind."""

from __future__ import annotations

import hashlib
import json
import time as clock
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import CorruptStoreError, StoreError
from holue.store.edit import Edit
from holue.store.sqlite.database import APPLICATION, FORMAT_VERSION, Connect, Database
from holue.store.sqlite.files.block import Block, row_checksums
from holue.store.sqlite.files.disk import Disk
from holue.store.sqlite.files.head import read_head
from holue.store.sqlite.files.ranges import Range, Ranges
from holue.store.sqlite.tables import Tables
from holue.store.values import Problem

DATABASE = "gallery.db"
SEGMENTS = "segments"
SNAPSHOTS = "snapshots"
DERIVED = "derived"
"""For what others make from the samples and can make again; an erasure deletes all of it."""
SUBJECTS_IN_MESSAGE = 5


def require_store(path: Path) -> None:
    """Refuse a directory that is no store before anything is written there."""
    if not (path / DATABASE).is_file():
        what = "has no gallery.db" if path.is_dir() else "does not exist"
        raise CorruptStoreError(f"{path} {what}; give the directory of a gallery, or make a new one with create=True")


class Home:
    """A database connection with the tables and ranges read through it."""

    def __init__(self, path: Path, mode: str, disk: Disk, connect: Connect) -> None:
        file = path / DATABASE
        require_store(path)
        self.path, self.disk, self.connect = path, disk, connect
        try:
            self.database = Database(file, mode, connect)
            application, version = self.database.one("PRAGMA application_id"), self.database.one("PRAGMA user_version")
            meta = self.database.meta() if application == APPLICATION else {}
        except Exception as error:
            raise CorruptStoreError(
                f"{file} cannot be read as a database ({error}); restore it from a snapshot"
            ) from error
        if application != APPLICATION:
            raise CorruptStoreError(f"{file} is not the database of a store")
        if version > FORMAT_VERSION:
            raise StoreError(
                f"{file} has format version {version}, this holue reads up to {FORMAT_VERSION}; upgrade holue"
            )
        self.dim: int = meta["dim"]
        self.model: str | None = meta["model"]
        self._words: dict[str, int] = {}
        self.tables = Tables(self.database)
        self.ranges = Ranges(self.database, path / SEGMENTS, disk, self.dim, uuid.UUID(meta["store"]))

    def apply(self, edit: Edit) -> int:
        """Write an edit whole, in the transaction under way; returns its version."""
        if edit.batch is not None:
            _, first = self.tables.next_numbers()
            batch = edit.batch
            n = len(batch)
            by = self.codes([batch.enrolled_by or ""]).repeat(n)
            block = Block(
                np.arange(first, first + n), edit.owners, batch.time, batch.concentration, row_checksums(batch.rows),
                self.codes(batch.medium), by, batch.rows,
            )  # fmt: skip
            with self.ranges.appending(block):
                return self.tables.apply(edit)
        return self.tables.apply(edit)

    def codes(self, words: Sequence[str]) -> npt.NDArray[np.uint32]:
        """The codes of words in the columns of blocks; a new word gets one."""
        different = set(words)
        for word in different - set(self._words):
            self.database.run("INSERT OR IGNORE INTO word (text) VALUES (?)", [word])
            self._words[word] = self.database.one("SELECT code FROM word WHERE text = ?", [word])
        if len(different) == 1:
            return np.full(len(words), self._words[words[0]], np.uint32)
        return np.fromiter((self._words[word] for word in words), np.uint32, len(words))

    def words(self, codes: Iterable[int]) -> dict[int, str]:
        """The words of codes, as far as there are any."""
        sql = "SELECT code, text FROM word WHERE code IN (SELECT value FROM json_each(?))"
        return dict(self.database.run(sql, [json.dumps(list(codes))]))

    def forget(self) -> None:
        """Forget what was cached: a transaction was rolled back."""
        self._words.clear()
        self.tables.end()
        self.ranges.forget()

    def put_artifact(self, name: str, data: bytes, by: str | None) -> None:
        """Keep bytes under a name, in place of what was there, and log it."""
        digest = hashlib.sha256(data).hexdigest()
        self.database.run("DELETE FROM artifact WHERE name = ?", [name])
        self.database.insert("artifact", [(name, digest, clock.time())])
        self.database.run("UPDATE artifact SET data = ? WHERE name = ?", [data, name])
        self.log("put_artifact", by, {"name": name, "sha256": digest})

    def artifact_digest(self, name: str) -> str | None:
        """The SHA-256 of an artifact; None where there is none."""
        found: str | None = self.database.one("SELECT sha256 FROM artifact WHERE name = ?", [name])
        return found

    def log(self, verb: str, by: str | None, detail: dict[str, Any]) -> None:
        """Add to the operations log."""
        self.tables.log_operation(verb, by, detail)

    def subjects_of(self, entries: list[Range]) -> tuple[int, ...]:
        """Numbers of the subjects with samples in some ranges."""
        sql = "SELECT DISTINCT subject FROM sample WHERE number BETWEEN ? AND ?"
        found = {row[0] for entry in entries for row in self.database.run(sql, [entry.first, entry.last])}
        return tuple(sorted(found))

    def cheap_problems(self) -> list[Problem]:
        """Damage that shows without reading the rows: files missing or cut off, changes missing."""
        found = [
            Problem(f"{SEGMENTS}/{path.name}", what, self.subjects_of(entries))
            for path, what, entries in self.ranges.check_files()
        ]
        head, version = read_head(self.path), self.tables.last_version()
        if head is not None and head > version:
            what = (
                f"is at version {version}, but version {head} was acknowledged: the database or its write-ahead log "
                "was cut off, changed or replaced"
            )
            found.append(Problem(DATABASE, what))
        return found

    def close(self) -> None:
        """Close the connection."""
        self.database.close()


def refuse(path: Path, problems: list[Problem]) -> CorruptStoreError:
    """The error that names damage with the subjects concerned."""
    parts = []
    for problem in problems:
        some = ", ".join(map(str, problem.subjects[:SUBJECTS_IN_MESSAGE]))
        more = (
            f" and {len(problem.subjects) - SUBJECTS_IN_MESSAGE} more"
            if len(problem.subjects) > SUBJECTS_IN_MESSAGE
            else ""
        )
        whom = f" (subject numbers {some}{more})" if problem.subjects else ""
        parts.append(f"{path / problem.file} {problem.what}{whom}")
    return CorruptStoreError(
        "; ".join(parts)
        + ". Nothing was changed. Restore a snapshot, or open it for reading only with damaged='serve' to read the rest"
    )
