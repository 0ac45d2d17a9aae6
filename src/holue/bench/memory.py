"""Memory: how much of its own a call takes, beside what was there before."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

_STATUS = Path("/proc/self/status")


def own_bytes() -> int | None:
    """Resident memory of this process without mapped files (``RssAnon``); None where the system does not tell."""
    if not _STATUS.exists():
        return None
    for line in _STATUS.read_text("ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return None


def peak_bytes(call: Callable[[], object], *, every: float = 0.001) -> int | None:
    """The most a call takes beside what was resident before, looked at every millisecond; pages of mapped files do not count.

    A call that is over within a millisecond or that reuses memory freed earlier shows less than it needs.
    """
    before = own_bytes()
    if before is None:
        return None
    highest, over = before, threading.Event()

    def watch() -> None:
        nonlocal highest
        while not over.wait(every):
            highest = max(highest, own_bytes() or 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
    finally:
        over.set()
        watcher.join()
    return max(highest, own_bytes() or 0) - before
