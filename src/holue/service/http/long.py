"""Long work: calibrations, audits, erasures and snapshots, few at once, so that short requests always find a thread."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import anyio
import anyio.to_thread

from holue.service.http.problems import overloaded

T = TypeVar("T")
RUNNING, WAITING = 2, 8
"""Long requests that run at the same time, and that may wait for their turn."""


class LongWork:
    """Runs long work in threads of its own."""

    def __init__(self) -> None:
        self._limiter = anyio.CapacityLimiter(RUNNING)

    async def run(self, work: Callable[[], T]) -> T:
        """The result of the work; a problem where too much waits already."""
        if self._limiter.statistics().tasks_waiting >= WAITING:
            raise overloaded(
                f"{RUNNING} long requests run and {WAITING} wait", "ask again when they are done", seconds=30
            )
        return await anyio.to_thread.run_sync(work, limiter=self._limiter)
