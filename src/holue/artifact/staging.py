"""Staging: a hidden entry beside a target, where a save is written before it takes the target's place.

The process that writes holds a lock on its entry until it is done. The system releases the lock when the process dies, so an
entry whose lock is free is a leftover, and the next save of the same target removes it.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # no such locks on Windows: leftovers stay there
    fcntl = None  # type: ignore[assignment]

STAGED, ASIDE = "tmp", "old"


def hidden_name(target: Path, kind: str = STAGED) -> Path:
    """A new name beside ``target``: hidden, and of no other process."""
    return target.with_name(f".{target.name}.{secrets.token_hex(8)}.{kind}")


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """A new empty folder beside ``target``, locked; what is still there at the end is removed."""
    path, descriptor = _made(target, _make_folder)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)
        os.close(descriptor)


@contextmanager
def staged_file(target: Path) -> Iterator[tuple[Path, int]]:
    """A new empty file beside ``target`` with its descriptor, locked; what is still there at the end is removed."""
    path, descriptor = _made(target, _make_file)
    try:
        yield path, descriptor
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def remove_leftovers(target: Path) -> None:
    """Remove what dead processes left beside ``target``; what a live one is writing is locked, and stays."""
    for path in _hidden(target, STAGED):
        try:
            descriptor = os.open(path, os.O_RDONLY)
        except OSError:
            continue
        try:
            if _lock(descriptor, wait=False):
                _remove(path)
        finally:
            os.close(descriptor)
    if target.exists():
        for path in set_aside(target):
            _remove(path)


def set_aside(target: Path) -> list[Path]:
    """Earlier saves of ``target`` that were set aside and are still there, the latest first."""
    return sorted(_hidden(target, ASIDE), key=_changed, reverse=True)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_ctime  # when it got its hidden name
    except OSError:
        return 0.0


def _hidden(target: Path, kind: str) -> list[Path]:
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.{kind}")
    try:
        return [target.with_name(name) for name in os.listdir(target.parent) if pattern.fullmatch(name)]
    except OSError:
        return []


def _made(target: Path, make: Callable[[Path], int | None]) -> tuple[Path, int]:
    while True:
        path = hidden_name(target)
        descriptor = make(path)
        if descriptor is None:
            continue
        _lock(descriptor, wait=True)
        # Between making and locking, another process may have taken it for a leftover.
        if _is_at(descriptor, path):
            return path, descriptor
        os.close(descriptor)


def _make_folder(path: Path) -> int | None:
    path.mkdir()
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:  # taken for a leftover already
        return None


def _make_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)


def _lock(descriptor: int, *, wait: bool) -> bool:
    """Whether the lock was taken; False where another process holds it, or where the file system has no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except (OSError, AttributeError):
        return False
    return True


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except OSError:
        return False


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
