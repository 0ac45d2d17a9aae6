"""BLAS: the matrix library under numpy, held to one thread while a scan brings its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from threadpoolctl import ThreadpoolController

_lock = threading.Lock()
_holders = 0
_original: object = None


@cache
def _controller() -> ThreadpoolController:
    # Looking for the loaded libraries takes milliseconds, and numpy's is there from the beginning: look once.
    return ThreadpoolController()


def _release() -> None:
    """Let any thread set the number of threads: newer threadpoolctl ignores all but the first that did, who may be gone."""
    for library in _controller().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


def _restore() -> None:
    global _original
    _release()
    _original.restore_original_limits()  # type: ignore[attr-defined]
    _release()
    _original = None


@contextmanager
def single_threaded() -> Iterator[None]:
    """Hold BLAS to one thread; the number of threads is one for the process, so the last of several holders restores it."""
    global _holders, _original
    with _lock:
        if _holders == 0:
            _release()
            _original = _controller().limit(limits=1, user_api="blas")
            _release()
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders = max(_holders - 1, 0)  # a fork inside may have forgotten this holder
            if _holders == 0 and _original is not None:
                _restore()


def _forget_holders() -> None:
    """Let go in the child of a fork: the threads that held BLAS are not there, and one may have held the lock."""
    global _holders, _lock
    _holders, _lock = 0, threading.Lock()
    if _original is not None:
        _restore()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_holders)
