"""Folder: the directory of a local copy, which belongs to one process while its lock is held.

Most are temporary and are deleted when the store is closed. With ``copy=keep`` in the gallery's URL the copy stays in the
user's cache directory, under the gallery's random identity, and the next opening claims it. A note written last says what the
copy has seen; a copy without one was not closed as a whole (its process was killed) and is deleted.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from holue.artifact.cache_directory import default_cache_directory
from holue.errors import StoreError
from holue.store.sqlite.files.disk import Disk
from holue.store.sqlite.files.lock import WriterLock
from holue.store.sqlite.home import DATABASE

NOTE = "closed"


@dataclass(frozen=True)
class Seen:
    """The last transaction of the server that a copy has taken over: its version, its number and its token."""

    version: int
    edit: int
    token: str | None


class Folder:
    """A claimed directory; ``seen`` says what a copy that was kept there has seen, None where the directory is empty."""

    def __init__(self, path: Path, lock: WriterLock, *, kept: bool, seen: Seen | None = None) -> None:
        self.path, self.kept, self.seen = path, kept, seen
        self._lock = lock

    @classmethod
    def temporary(cls) -> Folder:
        """A new directory; those whose process has died are deleted on the way."""
        root = _private(Path(tempfile.gettempdir()) / f"holue-copies-{os.getuid()}")
        for left in _free(root):
            left.delete()
        return cls._new(root, kept=False)

    @classmethod
    def of_gallery(cls, store: str) -> Folder:
        """A new directory for a copy that will be kept."""
        return cls._new(_private(_kept_root(store)), kept=True)

    @classmethod
    def claim(cls, store: str) -> Folder | None:
        """The kept copy of a gallery that no process uses now."""
        for folder in _free(_kept_root(store)):
            if folder.seen is not None:
                (folder.path / NOTE).unlink()
                Disk().sync_directory(folder.path)
                return folder
            folder.delete()
        return None

    @classmethod
    def _new(cls, root: Path, *, kept: bool) -> Folder:
        path = Path(tempfile.mkdtemp(dir=root))
        return cls(path, WriterLock(path), kept=kept)

    def keep(self, seen: Seen) -> None:
        """Leave a copy, whose files are closed, to the next opening; where one is kept already, it is deleted."""
        if any(self.path.parent.glob(f"*/{NOTE}")):
            self.delete()
            return
        disk = Disk()
        for path in (*self.path.rglob("*"), self.path):
            if path.is_dir():
                disk.sync_directory(path)
            else:
                disk.write_durably(path, [])
        content = json.dumps(asdict(seen))
        disk.create(self.path / NOTE, f"{zlib.crc32(content.encode()):08x} {content}".encode())
        self._lock.release()

    def delete(self) -> None:
        """Delete the directory."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.release()


@dataclass(frozen=True)
class Derived:
    """A directory of a kept copy for what others make from its samples: gone with the copy, and when somebody is erased."""

    path: Path

    def artifact(self, name: str) -> bytes | None:
        """Bytes kept under a name."""
        file = self.path / f"{name}.word"
        return file.read_bytes() if file.exists() else None

    def put_artifact(self, name: str, data: bytes) -> None:
        """Keep bytes under a name, in place of what was there."""
        self.path.mkdir(exist_ok=True)
        (self.path / f"{name}.word").write_bytes(data)


def delete_kept(store: str, before: int) -> None:
    """Delete kept copies of a gallery that nobody uses and that have not seen a version: they hold what was erased in it."""
    try:
        root = _kept_root(store)
    except RuntimeError:  # this user has no home directory, so nothing was kept in it
        return
    for folder in _free(root):
        if folder.seen is None or folder.seen.version < before:
            folder.delete()
        else:
            folder._lock.release()


def _kept_root(store: str) -> Path:
    return default_cache_directory() / "copies" / store


def _private(root: Path) -> Path:
    root.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = root.stat()
    if about.st_uid != os.getuid() or about.st_mode & 0o077:
        raise StoreError(
            f"{root} belongs to somebody else or can be read by others; delete it, or set TMPDIR or HOLUE_CACHE"
        )
    return root


def _free(root: Path) -> Iterator[Folder]:
    """The directories that no process uses, locked one by one; the caller deletes, uses or releases each."""
    for path in sorted(root.iterdir()) if os.path.isdir(root) else ():
        if (path / DATABASE).exists():
            try:
                lock = WriterLock(path)
            except StoreError:  # its process lives, or has deleted it just now
                continue
            yield Folder(path, lock, kept=True, seen=_seen(path))


def _seen(path: Path) -> Seen | None:
    try:
        crc, _, content = (path / NOTE).read_text().partition(" ")
        return Seen(**json.loads(content)) if zlib.crc32(content.encode()) == int(crc, 16) else None
    except (OSError, ValueError, TypeError):
        return None
