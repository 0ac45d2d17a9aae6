"""ChunkCache: finished pieces of long work on disk, under a name that is their content."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.artifact.archive import read_archive, write_archive
from holue.errors import InvalidFileError

Arrays = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True)
class ChunkCache:
    """A directory of ``.npz`` chunks; a damaged chunk counts as absent and is written anew."""

    directory: Path

    @staticmethod
    def key(parts: Iterable[str]) -> str:
        """The name of a chunk: a hash of everything it depends on, in order.

        >>> ChunkCache.key(["model", "a"]) == ChunkCache.key(["model", "b"])
        False
        """
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def get(self, key: str) -> Arrays | None:
        """The chunk, or None where it is not there."""
        path = self._path(key)
        if not path.is_file():
            return None
        try:
            return read_archive(path)
        except InvalidFileError:
            return None

    def put(self, key: str, arrays: Arrays) -> None:
        """Keep a finished chunk."""
        write_archive(self._path(key), {name: np.asarray(array) for name, array in arrays.items()})

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key}.npz"
