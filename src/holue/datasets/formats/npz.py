"""NumPy archive: named arrays of a ``.npz`` file, never a pickle; errors name the file and the key."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidFileError
from holue.evaluation.protocol import listed

_UNREADABLE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)


def read_npz(
    path: str | Path, *, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, npt.NDArray[Any]]:
    """The wanted arrays of an archive; keys that are neither required nor optional are not even decompressed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/probes.npz", embeddings=np.eye(2))
    ...     list(read_npz(f"{folder}/probes.npz", required=["embeddings"]))
    ['embeddings']
    """
    with _open(Path(path)) as archive:
        missing = [key for key in required if key not in archive.files]
        if missing:
            raise InvalidFileError(
                f"{path}: missing key {listed(missing)}; "
                f"the file holds {listed(archive.files, shown=12) or 'no arrays'}"
            )
        wanted = [*required, *(key for key in optional if key in archive.files and key not in required)]
        return {key: _read(archive, key, path) for key in wanted}


def npz_keys(path: str | Path) -> list[str]:
    """The names of the arrays in an archive."""
    with _open(Path(path)) as archive:
        return list(archive.files)


def _open(path: Path) -> np.lib.npyio.NpzFile:
    if not path.is_file():
        raise InvalidFileError(f"{path}: no such file")
    if path.stat().st_size == 0:
        raise InvalidFileError(f"{path}: the file is empty; write it again with np.savez")
    try:
        archive = np.load(path, allow_pickle=False)
    except zipfile.BadZipFile as error:
        raise InvalidFileError(
            f"{path}: the archive is damaged or cut short ({error}); copy or write it again"
        ) from error
    except _UNREADABLE as error:
        raise InvalidFileError(f"{path}: not an .npz archive; write it with np.savez(path, embeddings=...)") from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InvalidFileError(f"{path}: a single .npy array, not an .npz archive; write it with np.savez")
    return archive


def _read(archive: np.lib.npyio.NpzFile, key: str, path: str | Path) -> npt.NDArray[Any]:
    try:
        array = archive[key]
    except _UNREADABLE as error:
        if "allow_pickle" in str(error):
            raise InvalidFileError(
                f"{path}: key {key!r} holds pickled objects, which could run code and are never loaded; "
                "save plain numbers or strings, for instance np.asarray(ids, dtype=str)"
            ) from error
        raise InvalidFileError(f"{path}: key {key!r} cannot be read ({error}); copy or write the file again") from error
    if not isinstance(array, np.ndarray):
        raise InvalidFileError(f"{path}: key {key!r} is not a NumPy array")
    return array
