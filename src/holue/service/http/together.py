"""Together: a thread that carries out at once what several requests wait for.

A hop of its own into a thread costs a request more than most work that is done there, since threads take turns in Python. So
all that waits when the thread is free is handed over in one list. Nobody waits for company.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Together(Generic[Item, Result]):
    """``work(items)`` gives a result, or an error, for each item in order; it runs in one thread.

    >>> doubled = Together(lambda items: [2 * item for item in items], "doubling")
    >>> asyncio.run(doubled.submit(7))
    14
    """

    def __init__(self, work: Callable[[list[Item]], Sequence[Result | Exception]], name: str) -> None:
        self._work = work
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._lock = threading.Lock()
        self._waiting: list[tuple[Item, asyncio.Future[Result]]] = []

    async def submit(self, item: Item) -> Result:
        """The result for an item, or its error."""
        answered: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.append((item, answered))
            alone = len(self._waiting) == 1
        if alone:
            self._thread.submit(self._run)
        return await answered

    def close(self) -> None:
        """Finish what waits."""
        self._thread.shutdown(wait=True)

    def _run(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        results: Sequence[Result | Exception]
        try:
            results = self._work([item for item, _ in waiting])
        except Exception as error:
            results = [error] * len(waiting)
        loops: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], Result | Exception]]] = {}
        for (_, answered), result in zip(waiting, results):
            loops.setdefault(answered.get_loop(), []).append((answered, result))
        for loop, answers in loops.items():
            if not loop.is_closed():
                loop.call_soon_threadsafe(_deliver, answers)


def _deliver(answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for answered, result in answers:
        if answered.done():  # the asker has left
            continue
        if isinstance(result, Exception):
            answered.set_exception(result)
        else:
            answered.set_result(result)
