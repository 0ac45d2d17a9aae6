"""Disk: the only place that writes files other than SQLite's, so that a test can record or fail every write."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from holue.errors import StoreError

Bytes = bytes | bytearray | memoryview
CHUNK = 1 << 24


class Disk:
    """Plain file operations; what must survive power loss says so."""

    def write(self, path: Path, offset: int, data: Bytes) -> None:
        """Write without waiting for the disk."""
        self._write(path, [(offset, data)], sync=False)

    def write_durably(self, path: Path, pieces: Iterable[tuple[int, Bytes]]) -> None:
        """Write pieces of a file and return once they are on disk."""
        self._write(path, pieces, sync=True)

    def create(self, path: Path, data: Bytes) -> None:
        """A new file that is on disk with its name."""
        self._write(path, [(0, data)], sync=True)
        self.sync_directory(path.parent)

    def copy(self, source: Path, target: Path, size: int | None = None) -> None:
        """Copy a file, or its first bytes, without waiting for the disk."""
        rest = source.stat().st_size if size is None else size
        offset = 0
        self.write(target, 0, b"")
        with source.open("rb") as reading:
            while offset < rest:
                data = reading.read(min(CHUNK, rest - offset))
                if not data:
                    raise StoreError(f"{source} is cut off; run verify")
                self.write(target, offset, data)
                offset += len(data)

    def rename(self, source: Path, target: Path) -> None:
        """Rename a file or directory; durable once the directory is synced."""
        source.rename(target)

    def sync(self, path: Path) -> None:
        """Make what was written to a file durable."""
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file off, durably."""
        with path.open("r+b") as stream:
            stream.truncate(size)
            os.fsync(stream.fileno())

    def remove(self, path: Path) -> None:
        """Delete a file; after power loss it may be back."""
        path.unlink(missing_ok=True)

    def sync_directory(self, path: Path) -> None:
        """Make names in a directory durable."""
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def _write(self, path: Path, pieces: Iterable[tuple[int, Bytes]], *, sync: bool) -> None:
        # One descriptor for writing and syncing: the kernel reports a failed write-back to descriptors that were open then.
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            for offset, data in pieces:
                rest = memoryview(data).cast("B")
                while rest:
                    written = os.pwrite(handle, rest, offset)
                    rest, offset = rest[written:], offset + written
            if sync:
                os.fdatasync(handle)
        finally:
            os.close(handle)
