"""NumPy archive: the wanted arrays of a ``.npz`` file, never a pickle; errors name the file and the key."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from holue.artifact.archive import archive_names, read_archive
from holue.errors import InvalidFileError, UnsafeArtifactError
from holue.evaluation.protocol import listed


def read_npz(
    path: str | Path, *, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, npt.NDArray[Any]]:
    """The wanted arrays of an archive; keys that are neither required nor optional are not even decompressed.

    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.savez(f"{folder}/probes.npz", embeddings=np.eye(2))
    ...     list(read_npz(f"{folder}/probes.npz", required=["embeddings"]))
    ['embeddings']
    """
    names = npz_keys(path)
    missing = [key for key in required if key not in names]
    if missing:
        raise InvalidFileError(
            f"{path}: missing key {listed(missing)}; the file holds {listed(names, shown=12) or 'no arrays'}"
        )
    try:
        return read_archive(path, [*required, *(key for key in optional if key not in required)])
    except UnsafeArtifactError as error:
        raise InvalidFileError(str(error)) from error


def npz_keys(path: str | Path) -> list[str]:
    """The names of the arrays in an archive."""
    return archive_names(path)
