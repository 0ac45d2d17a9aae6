"""Team: the threads that share the work of one scan.

A scan of one probe takes milliseconds, and starting a thread can take one of them. So helpers are kept: whoever needs some takes
idle ones, hires what is missing, and gives them back. A woken thread would begin on the processor of its caller, and it takes
the operating system some milliseconds to notice that another is idle; so a helper is told where not to wake, and once awake it
is free to run wherever the system sends it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")

_idle: list[_Helper] = []


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
    helpers = [_hired() for _ in range(workers - 1)]

    def share(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
        if not helpers:
            return [work(part) for part in parts]
        for number, part in enumerate(parts[1:]):
            helpers[number % len(helpers)].begin(work, part)
        try:
            done = [work(part) for part in parts[:1]]
        finally:  # whatever happens here, nobody goes on with work that was given up
            others = [helpers[number % len(helpers)].end() for number in range(len(parts) - 1)]
        return done + [_result(other) for other in others]

    try:
        yield share
    finally:
        for helper in helpers:
            helper.release()


def _hired() -> _Helper:
    try:
        return _idle.pop()
    except IndexError:
        return _Helper()


def _result(other: tuple[Any, BaseException | None]) -> Any:
    value, error = other
    if error is not None:
        raise error
    return value


class _Helper:
    """One thread that does what it is given, in that order."""

    def __init__(self) -> None:
        self._owed = 0  # results that were not fetched yet
        self._given: SimpleQueue[tuple[Callable[[Any], Any], Any, set[int]] | None] = SimpleQueue()
        self._done: SimpleQueue[tuple[Any, BaseException | None]] = SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name="holue", daemon=True)
        self._thread.start()

    def begin(self, work: Callable[[Part], Result], part: Part) -> None:
        """Give it work."""
        self._owed += 1
        self._given.put((work, part, _keep_away(self._thread.native_id)))

    def end(self) -> tuple[Any, BaseException | None]:
        """Wait for the next result, or for the error that came instead."""
        result = self._done.get()
        self._owed -= 1
        return result

    def release(self) -> None:
        """Keep it for the next team; or let it go, if an interrupted caller left a result that the next one would get."""
        if self._owed:
            self._given.put(None)
        else:
            _idle.append(self)

    def _serve(self) -> None:
        while given := self._given.get():
            work, part, allowed = given
            try:
                _move(0, allowed)
                self._done.put((work(part), None))
            except BaseException as error:  # it belongs to the caller, whatever it is
                self._done.put((None, error))
            del given, work, part  # an idle thread keeps no gallery in memory


if sys.platform == "linux":
    # The threads of a process do not follow its copy.
    os.register_at_fork(after_in_child=_idle.clear)

    def _keep_away(thread: int | None) -> set[int]:
        """Let a sleeping thread wake on another processor than this one; return those it may use after that, if it was moved."""
        here, allowed = _processor(), os.sched_getaffinity(0)
        others = allowed - {here}
        if thread is None or not others or others == allowed:
            return set()
        _move(thread, others)
        return allowed

    def _move(thread: int, processors: set[int]) -> None:
        if processors:
            try:
                os.sched_setaffinity(thread, processors)
            except OSError:  # some containers forbid it; the work is the same wherever it runs
                return

    def _processor() -> int | None:
        """The processor the calling thread runs on, or None where the system does not say."""
        ask = _sched_getcpu()
        found = -1 if ask is None else ask()
        return None if found < 0 else found

    @cache
    def _sched_getcpu() -> Callable[[], int] | None:
        import ctypes

        return getattr(ctypes.CDLL(None), "sched_getcpu", None)

else:

    def _keep_away(thread: int | None) -> set[int]:
        """Elsewhere the system is trusted."""
        return set()

    def _move(thread: int, processors: set[int]) -> None:
        """Nowhere."""
