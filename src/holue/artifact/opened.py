"""Opened: regular files only, and a folder of which every file belongs to one save.

A reader keeps hold of the folder it opened first. When a save replaces that folder meanwhile, its files may be gone; the reader
then starts again with the folder that is there now. All files are opened before one is read, and an open file stays readable
after it was removed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

from holue.artifact.staging import set_aside
from holue.errors import CorruptArtifactError

T = TypeVar("T")

ATTEMPTS = 1000
"""Saves that may replace the folder while it is being read: each one costs one attempt at most."""


def open_regular(path: str | os.PathLike[str], *, within: int | None = None) -> BinaryIO:
    """A regular file, opened for reading; a pipe, a device or a folder is an OSError and never waited for.

    ``within`` is the descriptor of the folder that ``path`` is relative to.
    """
    # A pipe without a writer would block the open.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0), dir_fd=within)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError("it is not a regular file")
    return open(descriptor, "rb")


def size_of(stream: BinaryIO) -> int:
    """Bytes in an open file."""
    return os.fstat(stream.fileno()).st_size


def read_folder(directory: str | os.PathLike[str], read: Callable[[int], T]) -> T:
    """What ``read`` makes of the descriptor of a folder, tried again for as long as saves replace the folder meanwhile."""
    root = Path(directory)
    for _ in range(ATTEMPTS):
        try:
            descriptor = _open_folder(root)
        except OSError as error:
            raise CorruptArtifactError(
                f"{root} is not a directory that can be read ({error.strerror}); give the directory that save() wrote"
            ) from error
        try:
            return read(descriptor)
        except CorruptArtifactError:
            if _is_at(descriptor, root):
                raise
        finally:
            os.close(descriptor)
    raise CorruptArtifactError(f"{root} was replaced {ATTEMPTS} times while it was being read; load it again later")


def _open_folder(root: Path) -> int:
    flags = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
    try:
        return os.open(root, flags)
    except FileNotFoundError:
        for aside in set_aside(root.resolve()):
            return os.open(aside, flags)
        return os.open(root, flags)  # it may have come back between the two


def _is_at(descriptor: int, root: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(root))
    except OSError:
        return not set_aside(root.resolve())
