"""Writer lock: one writer per directory across processes; the kernel frees it when the process dies."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from holue.errors import StoreError, StoreLockedError

LOCK = "lock"


class WriterLock:
    """Held from its making until ``release``."""

    def __init__(self, home: Path) -> None:
        path = home / LOCK
        try:
            self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StoreError(
                f"{path} cannot be written ({error.strerror}); open it to read only (read_only=True)"
            ) from error
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            writer = os.pread(self._handle, 64, 0).decode("ascii", "replace").strip() or "unknown"
            os.close(self._handle)
            raise StoreLockedError(
                f"{home} is open for writing in process {writer}; a store has one writer: "
                "open it to read only (read_only=True), or let that process write"
            ) from error
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, str(os.getpid()).encode(), 0)

    def release(self) -> None:
        """Let another writer in."""
        os.close(self._handle)
