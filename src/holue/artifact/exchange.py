"""Exchange: a folder takes the place of another in one step, where the system can."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

from holue.artifact.staging import ASIDE, hidden_name

_AT_FDCWD = -100
_SWAP = 2
"""RENAME_EXCHANGE of Linux's renameat2 and RENAME_SWAP of macOS's renamex_np are both 2."""
_UNSUPPORTED = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOENT}
_FILLED = {errno.ENOTEMPTY, errno.EEXIST}


def put_in_place(staged: Path, target: Path) -> None:
    """Give ``staged`` the name ``target``; an earlier folder of that name ends at ``staged``, or is removed.

    On Linux and macOS both names change in one step. On a file system that cannot do this (some network ones) the earlier folder
    is first set aside under a hidden name, and readers look for it there while there is nothing at ``target``.
    """
    aside: list[Path] = []
    try:
        while not _renamed(staged, target) and not _swapped(staged, target):
            hidden = hidden_name(target, ASIDE)
            with suppress(FileNotFoundError):  # another save took it away
                os.rename(target, hidden)
                aside.append(hidden)
    except BaseException:
        if aside and not os.path.lexists(target):
            os.rename(aside.pop(), target)
        raise
    finally:
        for hidden in aside:
            shutil.rmtree(hidden, ignore_errors=True)


def _renamed(staged: Path, target: Path) -> bool:
    """Whether ``staged`` has the name ``target`` now: in one step where there was nothing, or an empty folder."""
    try:
        os.rename(staged, target)
    except OSError as error:
        if error.errno not in _FILLED:
            raise
        return False
    return True


def _swapped(one: Path, other: Path) -> bool:
    """Whether the two folders have changed names; False where the file system cannot, or one is gone."""
    try:
        _swap(one, other)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
        return False
    return True


def _swap(one: Path, other: Path) -> None:
    library = ctypes.CDLL(None, use_errno=True)
    first, second = os.fsencode(one), os.fsencode(other)
    if hasattr(library, "renameat2"):
        failed = library.renameat2(_AT_FDCWD, first, _AT_FDCWD, second, _SWAP)
    elif hasattr(library, "renamex_np"):
        failed = library.renamex_np(first, second, _SWAP)
    else:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), str(one), None, str(other))


def _set_aside_and_rename(staged: Path, target: Path) -> None:
    aside = hidden_name(target, ASIDE)
    os.rename(target, aside)
    try:
        os.rename(staged, target)
    except OSError:
        os.rename(aside, target)
        raise
    shutil.rmtree(aside, ignore_errors=True)
