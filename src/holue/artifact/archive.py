"""Archive: named plain arrays in one ``.npz`` file; nothing in it is unpickled, and no size is believed before it is checked."""

from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.artifact.opened import open_regular, size_of
from holue.artifact.plain_array import NotPlainError, read_array
from holue.artifact.whole import whole_file
from holue.errors import InvalidFileError, UnsafeArtifactError

Arrays = dict[str, npt.NDArray[Any]]

LARGEST_RATIO = 1032
"""Deflate makes nothing smaller than by this factor: an archive that claims more is no archive."""
SUFFIX = ".npy"
NPY, ZIP = b"\x93NUMPY", b"PK"
"""How an array and an archive begin."""
_UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    OSError,
    ValueError,
    RuntimeError,
    NotImplementedError,
    MemoryError,
)


def write_archive(path: str | os.PathLike[str], arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write an ``.npz`` without pickles, whole or not at all."""
    with whole_file(path) as stream:
        np.savez(stream, allow_pickle=False, **arrays)


def read_archive(path: str | os.PathLike[str], names: Iterable[str] | None = None) -> Arrays:
    """Arrays of an ``.npz`` by name, all of them or those in ``names``; others are not even decompressed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_archive(f"{folder}/some.npz", {"a": np.arange(3), "b": np.eye(2)})
    ...     read_archive(f"{folder}/some.npz", ["a"])
    {'a': array([0, 1, 2])}
    """
    with _opened(Path(path)) as archive:
        members = _members(archive)
        wanted = members if names is None else {name: members[name] for name in names if name in members}
        return {name: _read(archive, member, name, Path(path)) for name, member in wanted.items()}


def archive_names(path: str | os.PathLike[str]) -> list[str]:
    """The names of the arrays in an ``.npz``."""
    with _opened(Path(path)) as archive:
        return list(_members(archive))


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    try:
        stream = open_regular(path)
    except FileNotFoundError as error:
        raise InvalidFileError(f"{path}: no such file") from error
    except (OSError, ValueError) as error:
        raise InvalidFileError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from error
    with stream:
        if size_of(stream) == 0:
            raise InvalidFileError(f"{path}: the file is empty; write it again with np.savez")
        start = stream.read(len(NPY))
        if start == NPY:
            raise InvalidFileError(f"{path}: a single .npy array, not an .npz archive; write it with np.savez")
        if not start.startswith(ZIP):
            raise InvalidFileError(f"{path}: not an .npz archive; write it with np.savez(path, embeddings=...)")
        try:
            archive = zipfile.ZipFile(stream)
        except _UNREADABLE as error:
            raise InvalidFileError(
                f"{path}: the archive is damaged or cut short ({error}); copy or write it again"
            ) from error
        yield archive


def _members(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    return {info.filename.removesuffix(SUFFIX): info for info in archive.infolist()}


def _read(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str, path: Path) -> npt.NDArray[Any]:
    try:
        if member.file_size > max(member.compress_size, 1) * LARGEST_RATIO:
            raise NotPlainError(f"{member.compress_size} bytes claim to hold {member.file_size}")
        with archive.open(member) as stream:
            return read_array(stream, member.file_size)  # type: ignore[arg-type]
    except NotPlainError as error:
        if error.pickled:
            raise UnsafeArtifactError(
                f"{path}: key {name!r} holds pickled objects, which could run code and are never loaded; "
                "save plain numbers or strings, for instance np.asarray(ids, dtype=str)"
            ) from error
        raise InvalidFileError(
            f"{path}: key {name!r} cannot be read ({error}); copy or write the file again"
        ) from error
    except _UNREADABLE as error:
        raise InvalidFileError(
            f"{path}: key {name!r} cannot be read ({error}); copy or write the file again"
        ) from error
