"""Thread pool: the worker threads that all scans of a process share.

A scan of one probe takes milliseconds and starting a thread can take one of them, so workers are kept. There is one fewer than
the processors the process may use, because the calling thread works too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from holue.evidence.threads.processors import available_processors

Part = TypeVar("Part")
Result = TypeVar("Result")

_pool: ThreadPoolExecutor | None = None
_lock = threading.Lock()


def parallel_map(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """``[work(part) for part in parts]``, the first part in the calling thread and the others in the pool.

    The caller takes over every part that no worker has begun, so it never waits for a worker that is busy with another scan, and
    ``work`` may call this function itself. When it returns or raises, no worker is still running ``work``.

    >>> parallel_map(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    pool = _workers() if len(parts) > 1 else None
    if pool is None:
        return [work(part) for part in parts]
    futures: list[Future[Result]] = [pool.submit(work, part) for part in parts[1:]]
    try:
        own = {0: work(parts[0])}
        for number in range(len(futures), 0, -1):  # from the end: workers take the first that waits
            if futures[number - 1].cancel():
                own[number] = work(parts[number])
    finally:
        wait([future for future in futures if not future.cancel()])
    return [own[number] if number in own else futures[number - 1].result() for number in range(len(parts))]


def slices(n: int, workers: int) -> list[slice]:
    """``n`` probes in parts of about one size, one for each worker; one empty part of none.

    >>> slices(5, 2)
    [slice(0, 3, None), slice(3, 6, None)]
    """
    each = max(-(-n // workers), 1)
    return [slice(i, i + each) for i in range(0, max(n, 1), each)]


def _workers() -> ThreadPoolExecutor | None:
    """The pool, made on first use; None where the process may use one processor only."""
    global _pool
    with _lock:
        if _pool is None and (workers := available_processors() - 1):
            _pool = ThreadPoolExecutor(workers, thread_name_prefix="holue")
        return _pool


def _forget() -> None:
    """Start anew in the child of a fork: threads are not copied, and another thread may have held the lock."""
    global _pool, _lock
    _pool, _lock = None, threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
