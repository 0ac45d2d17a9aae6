"""Team: the threads that share the work of one scan.

A new or woken thread begins on the processor that started it, and it takes the operating system some milliseconds to notice that
another is idle: as long as a few probes need for a whole gallery. So each member of a team first moves away from the caller's
processor; after that it is free to run wherever the system sends it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Protocol, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


class Share(Protocol):
    """How work is shared: like ``list(map(work, parts))``, the first part in the calling thread."""

    def __call__(self, work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
        """The results in the order of the parts."""
        ...


@contextmanager
def team(workers: int) -> Iterator[Share]:
    """As many threads as ``workers``, the caller among them.

    >>> with team(2) as share:
    ...     share(abs, [-1, 2, -3])
    [1, 2, 3]
    """
    if workers == 1:
        yield lambda work, parts: [work(part) for part in parts]
        return
    with ThreadPoolExecutor(workers - 1) as pool:

        def share(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
            here = _processor()

            def elsewhere(part: Part) -> Result:
                _leave(here)
                return work(part)

            others = [pool.submit(elsewhere, part) for part in parts[1:]]
            return [work(part) for part in parts[:1]] + [other.result() for other in others]

        yield share


if sys.platform == "linux":

    def _processor() -> int | None:
        """The processor the calling thread runs on, or None where the system does not say."""
        ask = _sched_getcpu()
        found = -1 if ask is None else ask()
        return None if found < 0 else found

    def _leave(processor: int | None) -> None:
        """Move the calling thread to another of the processors it may use, if there is one, and let it go on from there."""
        allowed = os.sched_getaffinity(0)
        others = allowed - {processor}
        if others and others != allowed:
            try:
                os.sched_setaffinity(0, others)
                os.sched_setaffinity(0, allowed)
            except OSError:  # some containers forbid it; the work is the same wherever it runs
                return

    @cache
    def _sched_getcpu() -> Callable[[], int] | None:
        import ctypes

        return getattr(ctypes.CDLL(None), "sched_getcpu", None)

else:

    def _processor() -> int | None:
        """Unknown here."""
        return None

    def _leave(processor: int | None) -> None:
        """Elsewhere the system is trusted."""
