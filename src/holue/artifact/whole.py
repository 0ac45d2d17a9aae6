"""Whole: files and folders that appear under their name complete, or not at all.

Everything is written under a hidden name beside the target, forced to the disk, and then takes the target's place in one step: a
process that dies at any moment leaves the earlier version or the new one.
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from holue.artifact.exchange import put_in_place
from holue.artifact.staging import remove_leftovers, set_aside, staged_file, staged_folder
from holue.errors import CannotWriteError


@contextmanager
def whole_folder(target: str | os.PathLike[str]) -> Iterator[Path]:
    """A folder to fill, which takes the place of ``target`` at the end; after an error nothing has changed.

    The caller makes sure that an earlier folder at ``target`` may be replaced.
    """
    target = Path(target).resolve()  # through links: the folder they name is replaced; and "." gets its name
    with cannot_write(target):
        if target.is_mount():
            raise CannotWriteError(
                f"{target}: is a mount point, which cannot be replaced in one step; choose a folder inside it"
            )
        target.parent.mkdir(parents=True, exist_ok=True)
        restore(target)
        remove_leftovers(target)
        with staged_folder(target) as staged:
            yield staged
            _sync_tree(staged)
            put_in_place(staged, target)
            _sync_folder(target.parent)


@contextmanager
def whole_file(target: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream to write, which becomes the file ``target`` at the end; after an error nothing has changed.

    A device or a pipe (``/dev/stdout``) is written directly: it has no earlier content to keep.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole_file(f"{folder}/page.html") as stream:
    ...         _ = stream.write(b"<p>")
    ...     os.listdir(folder)
    ['page.html']
    """
    target = Path(target)
    with cannot_write(target):
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            buffer = io.BytesIO()  # archives seek, which a pipe cannot
            yield buffer
            with open(target, "wb", buffering=0) as device:
                device.write(buffer.getvalue())
            return
        target = target.resolve()
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target)
        with staged_file(target) as (path, descriptor):
            with open(descriptor, "wb", closefd=False) as stream:
                yield stream
                stream.flush()
                if mode is not None:
                    os.chmod(path, stat.S_IMODE(mode))
                os.fsync(descriptor)
            os.replace(path, target)
            _sync_folder(target.parent)


def write_text(target: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    with whole_file(target) as stream:
        stream.write(text.encode("utf-8"))


def restore(target: Path) -> None:
    """Put an earlier save back that was set aside by a process which then died; only where there is nothing else."""
    if not os.path.lexists(target):
        for aside in set_aside(target)[:1]:
            os.rename(aside, target)


@contextmanager
def cannot_write(target: Path) -> Iterator[None]:
    """Whatever the system refuses is an error that names what was to be written."""
    try:
        yield
    except OSError as error:
        # A file inside a folder that is being written has a hidden name: the folder is what the user knows.
        cause = error.__cause__ if isinstance(error, CannotWriteError) else error
        if not isinstance(cause, OSError):
            raise
        reason = os.strerror(cause.errno) if cause.errno else str(cause)
        raise CannotWriteError(
            f"{target}: cannot be written ({reason}); nothing was changed: free space or choose another place"
        ) from error


def _mode(path: Path) -> int | None:
    try:
        return path.stat().st_mode
    except FileNotFoundError:
        return None


def _sync_tree(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            _sync(Path(place, name), os.O_RDONLY)
        _sync_folder(Path(place))


def _sync_folder(folder: Path) -> None:
    if os.name == "posix":  # elsewhere a folder cannot be opened
        _sync(folder, os.O_RDONLY)


def _sync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
