"""Replica: one shard on one node, as this process sees it: how to call it, what it holds, and whether it answers."""

from __future__ import annotations

import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

KEPT_FAILURES = 50


class Failures:
    """The last failures of all replicas, the newest last, and how many there were."""

    def __init__(self) -> None:
        self.last: deque[str] = deque(maxlen=KEPT_FAILURES)
        self.count = 0

    def note(self, what: str) -> None:
        """One more."""
        self.last.append(what)
        self.count += 1


@dataclass(eq=False)
class Replica:
    """Calls return futures. A replica that failed to answer is ``suspect`` until it answers again."""

    shard: int
    node: str
    handle: Any
    noted: Failures = field(default_factory=Failures)
    known: tuple[str, ...] = ()  # versions, as far as it has told
    suspect: bool = False
    failures: int = 0
    last_failure: str = ""
    # One step at a time, and a replica that hangs holds up no other.
    feeder: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1, thread_name_prefix="holue-feed"))

    def call(self, method: str, *arguments: Any) -> Future[Any]:
        """Ask, without waiting."""
        future: Future[Any] = getattr(self.handle, method).remote(*arguments).future()
        return future

    def failed(self, error: BaseException | str) -> None:
        """It did not answer, or not in time."""
        self.suspect, self.failures = True, self.failures + 1
        what = type(error).__name__ if isinstance(error, BaseException) else error
        now = time.strftime("%Y-%m-%dT%H:%M:%S%z")
        self.last_failure = f"{now} {what}"
        self.noted.note(f"{now} shard {self.shard} on node {self.node[:8]}: {what}")
        self.known = ()

    def answered(self, known: tuple[str, ...]) -> None:
        """It answered, and holds these versions."""
        self.suspect, self.known = False, known

    def forget(self) -> None:
        """It is gone: start no further step."""
        self.feeder.shutdown(wait=False, cancel_futures=True)
