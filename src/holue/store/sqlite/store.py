"""SqliteStore: the embedded home of a gallery, a directory that one process writes and many read."""

from __future__ import annotations

import os
import shutil
import threading
import time as clock
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Literal, Self, TypeVar

from holue.errors import CorruptStoreError, HolueError, InvalidParameterError, StoreError
from holue.store.commit import CommitQueue
from holue.store.edit import Edit
from holue.store.sqlite.database import FORMAT_VERSION, Connect, Database, connect_sqlite
from holue.store.sqlite.files.disk import Disk
from holue.store.sqlite.files.head import HEAD, write_head
from holue.store.sqlite.files.lock import WriterLock
from holue.store.sqlite.home import DATABASE, SEGMENTS, SNAPSHOTS, Home, refuse, require_store
from holue.store.sqlite.reader import Reader
from holue.store.sqlite.reading import read_status
from holue.store.sqlite.tables import Tables
from holue.store.sqlite.upkeep import compaction, erasure, recovery, snapshots
from holue.store.sqlite.upkeep.verification import damage_of, find_damage
from holue.store.values import Problem, Receipt, Status
from holue.store.verbs import Verbs

T = TypeVar("T")
Damaged = Literal["refuse", "serve"]
ATTEMPTS = 3
"""Times that damage is looked at before it is believed: a writer may be replacing files."""


class SqliteStore(Reader, Verbs):
    """Made by :meth:`create` and :meth:`open`; a context manager.

    >>> import tempfile
    >>> home = tempfile.mkdtemp() + "/gallery"
    >>> with SqliteStore.create(home, dim=2, model="my-model-1") as store:
    ...     enrolled = store.enroll([[1, 0], [0, 1]], ["ann", "bob"])
    >>> with SqliteStore.open(home, write=False) as store:
    ...     store.subject("bob").number, store.version
    (2, 1)
    """

    def __init__(self, path: Path, *, write: bool, damaged: Damaged, disk: Disk, connect: Connect) -> None:
        self.path, self._head = path, path / HEAD
        self._disk, self._connect = disk, connect
        self._reading = threading.RLock()
        self._maintaining = threading.Lock()
        require_store(path)
        self._lock = WriterLock(path) if write else None
        self._writer: Home | None = None
        self._reader: Home | None = None
        try:
            self._reader = Home(path, "ro", disk, connect)
            self.dim, self.model = self._reader.dim, self._reader.model
            self._queue = CommitQueue(self._begin, self._commit, self._rollback, partial(_explain, "writing"))
            self._refuse_damage(damaged, write)
            if write:
                with _as_store_error("opening for writing"):
                    self._writer = Home(path, "rw", disk, connect)
                    recovery.cut_off(self._writer)
                    erasure.complete(self._writer, self._queue)
        except BaseException:
            self.close()
            raise

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, dim: int, model: str | None = None, disk: Disk | None = None,
        connect: Connect = connect_sqlite,
    ) -> Self:  # fmt: skip
        """A new store; ``dim`` and ``model`` (the fingerprint of the embedding model) hold for its whole life."""
        target = Path(path)
        if dim < 1:
            raise InvalidParameterError(f"dim must be at least 1, got {dim}")
        if target.exists() and any(target.iterdir()):
            raise StoreError(f"{target} exists already and is not empty; open it, or choose another directory")
        with _as_store_error("creating"):
            # Until its last step the database has another name: what was created in part is not a store, and may be tried again.
            staging = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}.tmp")
            (staging / SEGMENTS).mkdir(parents=True)
            (staging / SNAPSHOTS).mkdir()
            try:
                database = Database(staging / DATABASE, "rwc", connect)
                database.create({"dim": int(dim), "model": model, "store": str(uuid.uuid4()), "format": FORMAT_VERSION})
                database.close()
                used = disk or Disk()
                used.sync_directory(staging)
                staging.rename(target)
                used.sync_directory(target.parent)
            except BaseException:
                shutil.rmtree(staging, ignore_errors=True)
                raise
        return cls.open(target, disk=disk, connect=connect)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, write: bool = True, damaged: Damaged = "refuse", dim: int | None = None,
        model: str | None = None, disk: Disk | None = None, connect: Connect = connect_sqlite,
    ) -> Self:  # fmt: skip
        """Open a store. With ``damaged="serve"`` (reading only) every byte is read; what is damaged is left out.

        ``damage`` lists it, and ``view.missing_subjects`` names the subjects concerned in a version.
        """
        if damaged == "serve" and write:
            raise InvalidParameterError("a damaged store is not written to; open with write=False, damaged='serve'")
        store = cls(Path(path), write=write, damaged=damaged, disk=disk or Disk(), connect=connect)
        for field, given, kept in (("dim", dim, store.dim), ("model", model, store.model)):
            if given is not None and given != kept:
                store.close()
                raise InvalidParameterError(f"{path} was created with {field}={kept!r}, asked for {given!r}")
        return store

    @classmethod
    def restore(cls, snapshot: str | os.PathLike[str], path: str | os.PathLike[str]) -> Self:
        """A new store from a snapshot, which stays as it is."""
        snapshots.restore(Path(snapshot), Path(path), Disk())
        return cls.open(path)

    def close(self) -> None:
        """Close files and let another writer in. Everything acknowledged is on disk already."""
        for home in (self._reader, self._writer):
            if home is not None:
                home.close()
        self._reader = self._writer = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def status(self) -> Status:
        """The store in numbers."""
        n_bytes = sum(path.stat().st_size for path in self.path.rglob("*") if path.is_file())
        return self._read(lambda home: read_status(home, n_bytes, snapshots.names(self.path)))

    def verify(self) -> list[Problem]:
        """Read every byte and compare checksums; the damage found, with the subjects concerned."""
        with self._maintaining:
            problems = find_damage(self.path, self._disk, self._connect)
            # Another process may have replaced files in between; damage stays.
            return find_damage(self.path, self._disk, self._connect) if problems and self._lock is None else problems

    # Writing beside the verbs

    def snapshot(self, name: str | None = None, *, by: str | None = None) -> Path:
        """A copy of the store as it is now, in the home's ``snapshots`` directory; writing may go on meanwhile."""
        home = self._writing_home()
        with self._maintaining, _as_store_error("taking a snapshot"):
            path = snapshots.take(home, name or f"version-{self.version}")
        self._queue.submit(lambda: home.log("snapshot", by, {"name": path.name}))
        return path

    def compact(self, *, forget_before: int | None = None, by: str | None = None) -> None:
        """Merge small segments; with ``forget_before`` also drop what only older versions hold. Writing may go on meanwhile."""
        home = self._writing_home()
        with self._maintaining, _as_store_error("compacting"):
            compaction.compact(home, self._queue, forget_before)
        self._queue.submit(lambda: home.log("compact", by, {"forget_before": forget_before}))

    def _erase(self, numbers: Sequence[int], by: str | None) -> Receipt:
        home = self._writing_home()
        with self._maintaining, _as_store_error("erasing"):
            return erasure.erase(home, self._queue, list(numbers), by)

    @property
    def _state(self) -> Tables:
        return self._writing_home().tables

    def _apply(self, edit: Edit) -> int:
        return self._writing_home().apply(edit)

    def _artifact_digest(self, name: str) -> str | None:
        return self._writing_home().artifact_digest(name)

    def _write_artifact(self, name: str, data: bytes, by: str | None) -> None:
        self._writing_home().put_artifact(name, data, by)

    # Transactions

    def _read(self, question: Callable[[Home], T]) -> T:
        for _ in range(ATTEMPTS - 1):
            try:
                return self._ask(question)
            except CorruptStoreError:  # a compaction may have replaced files in between; damage stays
                clock.sleep(0.05)
        return self._ask(question)

    def _ask(self, question: Callable[[Home], T]) -> T:
        with self._reading:
            home = self._home()
            with _as_store_error("reading"):
                home.database.run("BEGIN")
                try:
                    return question(home)
                finally:
                    home.database.run("COMMIT")

    def _begin(self) -> None:
        home = self._writing_home()
        home.database.run("BEGIN IMMEDIATE")
        home.tables.begin()

    def _commit(self) -> None:
        home = self._writing_home()
        version = home.tables.last_version()
        home.database.run("COMMIT")
        home.tables.end(only_writer=True)
        with suppress(OSError):  # the witness may lag behind; the change itself is durable
            write_head(self._disk, self._head, version)

    def _rollback(self) -> None:
        home = self._writing_home()
        home.forget()
        try:
            home.database.run("ROLLBACK")
        except Exception:  # SQLite has rolled back by itself, or no transaction had begun
            return

    def _writing_home(self) -> Home:
        if self._writer is None:
            state = "is closed" if self._reader is None else "is open for reading"
            raise StoreError(f"{self.path} {state}; open it with write=True to change it")
        return self._writer

    def _refuse_damage(self, damaged: Damaged, write: bool) -> None:
        self._serve = damaged == "serve"
        if self._serve:
            self.damage = tuple(damage_of(self.path, self._disk, self._connect))
            return
        for attempt in range(ATTEMPTS):
            try:
                problems = self._home().cheap_problems()
            except HolueError:
                raise
            except Exception as error:
                problems = [Problem(DATABASE, f"cannot be read ({error})")]
            if not problems:
                return
            if not write and attempt < ATTEMPTS - 1:
                clock.sleep(0.05)  # a writer may have replaced files in between
        raise refuse(self.path, problems)

    def _home(self) -> Home:
        if self._reader is None:
            raise StoreError(f"{self.path} is closed; open it again")
        return self._reader


def _explain(verb: str, error: BaseException) -> BaseException:
    if isinstance(error, HolueError) or not isinstance(error, Exception):
        return error
    kept = "; nothing of this change was acknowledged" if verb == "writing" else ""
    explained = StoreError(f"{verb} failed: {error}{kept}")
    explained.__cause__ = error
    return explained


@contextmanager
def _as_store_error(verb: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise _explain(verb, error) from error.__cause__
