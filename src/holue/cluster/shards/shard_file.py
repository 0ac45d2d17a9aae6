"""ShardFile: the rows of one shard on the disk of its node, with checksums; made again from the store where it is not whole."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np

from holue.artifact import read_artifact, write_artifact
from holue.errors import ArtifactError, CorruptArtifactError
from holue.gallery.embeddings import FloatArray
from holue.gallery.segment import Numbers, Segment

KIND = "shard"
BYTES_PER_DIGEST_STEP = 1 << 24


class ShardFile:
    """A folder of its own, which one process has for as long as it lives.

    Folders of the same gallery that no process has, of nodes that are no more, are deleted: what was erased meanwhile must not
    stay in them.
    """

    def __init__(self, home: Path, name: str) -> None:
        self._home, self._folder = home, home / name
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._lock = os.open(home / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self._delete_left_behind(name.rpartition("-")[2])

    def read(self) -> tuple[str, int, Segment] | None:
        """The version, the last erasure and the rows, mapped, once all bytes were compared with their checksums; else None."""
        if not self._folder.is_dir():
            return None
        try:
            content, arrays = read_artifact(self._folder, KIND, mapped="directions")
            numbers, directions = arrays["numbers"], arrays["directions"]
            if digest_of(directions) != content["rows"] or len(numbers) != len(directions):
                raise CorruptArtifactError(f"{self._folder} has changed since it was written")
            return str(content["version"]), int(content["erased_at"]), Segment(directions, numbers, numbers)
        except (ArtifactError, KeyError):
            self.delete()
            return None

    def write(self, version: str, erased_at: int, numbers: Numbers, directions: FloatArray) -> Segment:
        """Put rows in place of what was there; returns them as they are mapped from disk."""
        content = {"version": version, "erased_at": erased_at, "rows": digest_of(directions)}
        write_artifact(self._folder, KIND, content, {"numbers": numbers, "directions": directions})
        written = self.read()
        if written is None:
            raise CorruptArtifactError(f"{self._folder} does not hold what was just written to it; look at the disk")
        return written[2]

    def staged(self, n_rows: int, dim: int, dtype: np.dtype[Any]) -> FloatArray:
        """Room on disk for rows that come piece by piece; gone with the array."""
        if n_rows == 0:
            return np.empty((0, dim), dtype)
        with TemporaryFile(dir=self._home) as stream:
            stream.truncate(n_rows * dim * dtype.itemsize)
            return np.memmap(stream, dtype=dtype, mode="r+", shape=(n_rows, dim))

    def delete(self) -> None:
        """Leave nothing on this disk."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Let another process have the folder."""
        os.close(self._lock)

    def _delete_left_behind(self, node: str) -> None:
        for lock in self._home.glob("*.lock"):
            if lock.stem.endswith(f"-{node}"):
                continue
            handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                lock.unlink(missing_ok=True)
            except OSError:  # its process lives
                pass
            finally:
                os.close(handle)


def digest_of(rows: FloatArray) -> str:
    """SHA-256 of the bytes of some rows, read a little at a time."""
    digest = hashlib.sha256()
    per = max(1, BYTES_PER_DIGEST_STEP // max(1, rows.shape[1] * rows.dtype.itemsize))
    for first in range(0, len(rows), per):
        digest.update(np.ascontiguousarray(rows[first : first + per]).data)
    return digest.hexdigest()
