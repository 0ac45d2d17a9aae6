"""Batching without waiting: a probe that finds the scan idle starts at once; those that arrive meanwhile form the next batch.

One scan of a gallery runs at a time. It reads every template once, whatever the number of probes, so that probes that have to
wait anyway share the next one. Nobody waits for company.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np

from holue.live.version import GalleryVersion
from holue.recognition.answer.identifications import Identifications
from holue.service.galleries.probes import Probes
from holue.service.http.metrics import Metrics
from holue.service.http.problems import ProblemError, overloaded
from holue.service.settings import LimitSettings

LARGEST = 1024
"""Probes from which a batch is not filled up further: beyond, one scan takes as long as two."""


@dataclass(frozen=True, eq=False)
class Answered:
    """The answers to one request's probes, and the version that gave them."""

    version: GalleryVersion
    answers: Identifications
    waited: float  # seconds until the scan began
    scanned: float  # seconds of the scan
    batch: int  # probes that shared it


@dataclass(eq=False)
class _Waiting:
    probes: Probes
    top_k: int
    since: float
    answered: asyncio.Future[Answered]

    @property
    def kind(self) -> tuple[Any, ...]:
        """Requests of one kind can share a scan and get the answers they would get alone."""
        return self.top_k, self.probes.rows.dtype, self.probes.concentration is None


class Batcher:
    """The scans of one gallery."""

    def __init__(
        self, name: str, current: Callable[[], GalleryVersion], limits: LimitSettings, metrics: Metrics
    ) -> None:
        self._name, self._current, self._limits, self._metrics = name, current, limits, metrics
        self._queue: deque[_Waiting] = deque()
        self._waiting = 0  # probes in the queue
        self._running = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"scan-{name}")

    async def identify(self, probes: Probes, top_k: int) -> Answered:
        """The answers to some probes; a problem where too many wait, or the answer takes too long."""
        if self._waiting + len(probes) > self._limits.waiting_probes:
            self._metrics.refused.labels(self._name).inc()
            raise overloaded(
                f"{self._waiting} probes wait for a scan of {self._name!r}, at most {self._limits.waiting_probes} may",
                "ask again later, in smaller batches, or with more processes",
            )
        loop = asyncio.get_running_loop()
        waiting = _Waiting(probes, top_k, time.perf_counter(), loop.create_future())
        self._queue.append(waiting)
        self._waiting += len(probes)
        if not self._running:
            self._start(loop)
        try:
            return await asyncio.wait_for(waiting.answered, self._limits.seconds)
        except TimeoutError:
            raise ProblemError(
                503, "timeout", f"no answer within {self._limits.seconds:g} seconds", rule=f"{self._limits.seconds:g} seconds",
                way_out="ask with fewer probes, or raise limits.seconds", headers={"Retry-After": "1"},
            ) from None  # fmt: skip

    @property
    def waiting(self) -> int:
        """Probes in the queue."""
        return self._waiting

    def close(self) -> None:
        """Finish the scan under way."""
        self._thread.shutdown(wait=True)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        batch = self._next_batch()
        self._running = bool(batch)
        if not batch:
            return
        scan = loop.run_in_executor(self._thread, self._scan, batch)
        scan.add_done_callback(lambda done: self._finish(loop, batch, done))

    def _next_batch(self) -> list[_Waiting]:
        """The oldest request and all that can share its scan; those whose askers have left are dropped."""
        batch: list[_Waiting] = []
        rest: deque[_Waiting] = deque()
        size = 0
        for waiting in self._queue:
            if waiting.answered.done():
                self._waiting -= len(waiting.probes)
            elif not batch or (waiting.kind == batch[0].kind and size + len(waiting.probes) <= LARGEST):
                batch.append(waiting)
                size += len(waiting.probes)
            else:
                rest.append(waiting)
        self._queue = rest
        self._waiting -= size
        return batch

    def _scan(self, batch: list[_Waiting]) -> list[Answered | Exception]:
        """Answers in the order of the batch; where it fails, each request is scanned alone, so that none spoils the others."""
        try:
            return list(self._answers(batch))
        except Exception as error:
            return [error] if len(batch) == 1 else [self._scan([waiting])[0] for waiting in batch]

    def _answers(self, batch: list[_Waiting]) -> list[Answered]:
        started = time.perf_counter()
        version = self._current()
        if len(batch) == 1:
            rows, kappa = batch[0].probes.rows, batch[0].probes.concentration
        else:
            rows = np.concatenate([waiting.probes.rows for waiting in batch])
            kappas = [waiting.probes.concentration for waiting in batch if waiting.probes.concentration is not None]
            kappa = np.concatenate(kappas) if kappas else None
        answers = version.identify(rows, kappa, top_k=batch[0].top_k)
        scanned = time.perf_counter() - started
        self._metrics.observe_scan(self._name, scanned, len(rows))
        ends = np.cumsum([len(waiting.probes) for waiting in batch]).tolist()
        return [
            Answered(version, answers[end - len(waiting.probes) : end], started - waiting.since, scanned, len(rows))
            for waiting, end in zip(batch, ends)
        ]

    def _finish(
        self,
        loop: asyncio.AbstractEventLoop,
        batch: list[_Waiting],
        done: asyncio.Future[list[Answered | Exception]],
    ) -> None:
        for waiting, result in zip(batch, done.result()):
            if waiting.answered.done():  # given up meanwhile
                continue
            if isinstance(result, Exception):
                waiting.answered.set_exception(result)
            else:
                waiting.answered.set_result(result)
        self._start(loop)
