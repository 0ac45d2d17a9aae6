"""Batching: a probe that finds the scan idle starts at once; those that arrive meanwhile form the next batch.

One scan of a gallery runs at a time. It reads every template once, whatever the number of probes, so that probes that have to
wait anyway share the next one. The thread that scans also finishes the answers, with one transaction of the audit log for all of
them: a request passes from the event loop to one thread and back. Whoever was just answered often asks again at once, so a scan
that follows another begins when as many wait as were there before, or nobody new has come for a moment.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response

from holue.live.version import GalleryVersion
from holue.service.galleries.answered import Answered
from holue.service.galleries.finishing import SMALL, Asked, Finish, finish_all
from holue.service.galleries.probes import Probes
from holue.service.http.metrics import Metrics
from holue.service.http.problems import ProblemError, overloaded
from holue.service.ledger.audit.audit_log import AuditLog
from holue.service.settings import LimitSettings

LARGEST = 1024
"""Probes from which a batch is not filled up further: beyond, one scan takes as long as two."""
QUIET_SHARE, LONGEST_QUIET, MOST_SHARE = 0.125, 0.002, 0.5
"""A scan that follows another begins when nobody new has come for a time: an eighth of the last batch's time, at most 2 ms.

At most half of the last batch's time is waited in all.
"""
TURNS = 3
"""Turns of the event loop that are waited, so that requests which have arrived can be read and queued."""


@dataclass(eq=False)
class _Waiting:
    probes: Probes
    top_k: int
    asked: Asked | None  # None: the caller makes the response
    finish: Finish | None
    since: float
    answered: asyncio.Future[Any]

    @property
    def kind(self) -> tuple[Any, ...]:
        """Requests of one kind can share a scan and get the answers they would get alone.

        One that came as files shares none: its answers say where in them each face is, and embedding took longer than a scan.
        """
        action = None if self.asked is None else self.asked.action
        return self.top_k, self.probes.rows.dtype, self.probes.concentration is None, action, self.probes.files

    @property
    def is_finished_here(self) -> bool:
        """Whether the scan's thread makes the response; not where nobody waits for it any more, or it is large."""
        return self.asked is not None and len(self.probes) <= SMALL and not self.answered.done()


class Batcher:
    """The scans of one gallery, and the responses that are made of their answers."""

    def __init__(
        self,
        name: str,
        current: Callable[[], GalleryVersion],
        log: AuditLog,
        limits: LimitSettings,
        metrics: Metrics,
    ) -> None:
        self._name, self._current, self._log, self._limits, self._metrics = name, current, log, limits, metrics
        self._queue: deque[_Waiting] = deque()
        self._waiting = 0  # probes in the queue
        self._running = False
        self._gathering: _Gathering | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=f"scan-{name}")

    async def identify(self, probes: Probes, top_k: int) -> Answered:
        """The answers to some probes; a problem where too many wait, or the answer takes too long."""
        answered: Answered = await self._submit(probes, top_k, None, None)
        return answered

    async def respond(self, probes: Probes, top_k: int, asked: Asked, finish: Finish) -> Response:
        """The response to a request, once its rows are durable in the audit log.

        Requests with one ``asked.action`` are finished together, by the ``finish`` of the first of them.
        """
        done = await self._submit(probes, top_k, asked, finish)
        if isinstance(done, Answered):  # too large to be finished between two scans
            [done] = await run_in_threadpool(self._finish, finish, done, probes, [asked])
            if isinstance(done, Exception):
                raise done
        response: Response = done
        return response

    @property
    def waiting(self) -> int:
        """Probes in the queue."""
        return self._waiting

    def close(self) -> None:
        """Finish the scan under way."""
        self._thread.shutdown(wait=True)

    async def _submit(self, probes: Probes, top_k: int, asked: Asked | None, finish: Finish | None) -> Any:
        if self._waiting + len(probes) > self._limits.waiting_probes:
            self._metrics.refused.labels(self._name).inc()
            raise overloaded(
                f"{self._waiting} probes wait for a scan of {self._name!r}, at most {self._limits.waiting_probes} may",
                "ask again later, in smaller batches, or with more processes",
            )
        loop = asyncio.get_running_loop()
        waiting = _Waiting(probes, top_k, asked, finish, time.perf_counter(), loop.create_future())
        self._queue.append(waiting)
        self._waiting += len(probes)
        gathering = self._gathering
        if not self._running and (gathering is None or gathering.is_over(loop, len(self._queue))):
            self._start(loop)
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await waiting.answered
        except TimeoutError:
            raise ProblemError(
                503, "timeout", f"no answer within {self._limits.seconds:g} seconds", rule=f"{self._limits.seconds:g} seconds",
                way_out="ask with fewer probes, or raise limits.seconds", headers={"Retry-After": "1"},
            ) from None  # fmt: skip

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        self._gathering = None
        batch = self._next_batch()
        self._running = bool(batch)
        if batch:
            self._thread.submit(self._run, loop, batch)

    def _next_batch(self) -> list[_Waiting]:
        """The oldest request and all that can share its scan; those whose askers have left are dropped."""
        batch: list[_Waiting] = []
        rest: deque[_Waiting] = deque()
        size, kind = 0, None
        for waiting in self._queue:
            if waiting.answered.done():
                self._waiting -= len(waiting.probes)
            elif not batch or (waiting.kind == kind and size + len(waiting.probes) <= LARGEST):
                kind = waiting.kind
                batch.append(waiting)
                size += len(waiting.probes)
            else:
                rest.append(waiting)
        self._queue = rest
        self._waiting -= size
        return batch

    def _run(self, loop: asyncio.AbstractEventLoop, batch: list[_Waiting]) -> None:
        started = time.perf_counter()
        results = self._carry_out(batch)
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._deliver, loop, batch, results, time.perf_counter() - started)

    def _carry_out(self, batch: list[_Waiting]) -> Sequence[Any]:
        """A response, answers or an error for each; where a scan fails, each is scanned alone, so that none spoils the others."""
        try:
            probes = _joined([waiting.probes for waiting in batch])
            answered = self._scan(batch, probes)
        except Exception as error:
            return [error] if len(batch) == 1 else [self._carry_out([waiting])[0] for waiting in batch]
        ends = np.cumsum([len(waiting.probes) for waiting in batch]).tolist()
        places = [slice(end - len(waiting.probes), end) for waiting, end in zip(batch, ends)]
        here = dict.fromkeys(number for number, waiting in enumerate(batch) if waiting.is_finished_here)
        began = time.perf_counter() - answered.scanned
        results: list[Any] = [
            None if number in here else answered.part(places[number], began - waiting.since)
            for number, waiting in enumerate(batch)
        ]
        if here:
            rows = [row for number in here for row in range(places[number].start, places[number].stop)]
            whole = len(rows) == len(probes)
            asked = [own for number in here if (own := batch[number].asked) is not None]
            finished = self._finish(
                batch[next(iter(here))].finish, answered if whole else answered.part(rows, answered.waited),
                probes if whole else probes.take(rows), asked,
            )  # fmt: skip
            for number, response in zip(here, finished):
                results[number] = response
        return results

    def _scan(self, batch: list[_Waiting], probes: Probes) -> Answered:
        started, version = time.perf_counter(), self._current()
        answers = version.identify(probes.rows, probes.concentration, top_k=batch[0].top_k)
        scanned = time.perf_counter() - started
        self._metrics.observe_scan(self._name, scanned, len(probes))
        for waiting in batch:
            self._metrics.waits.observe(started - waiting.since)
        return Answered(version, answers, started - batch[0].since, scanned, len(probes))

    def _finish(
        self, finish: Finish | None, answered: Answered, probes: Probes, asked: list[Asked]
    ) -> list[Response | Exception]:
        assert finish is not None
        with self._metrics.writes.time():
            return finish_all(self._log, finish, answered, probes, asked)

    def _deliver(
        self, loop: asyncio.AbstractEventLoop, batch: list[_Waiting], results: Sequence[Any], seconds: float
    ) -> None:
        for waiting, result in zip(batch, results):
            if waiting.answered.done():  # the request was given up during the scan
                continue
            if isinstance(result, Exception):
                waiting.answered.set_exception(result)
            else:
                waiting.answered.set_result(result)
        self._running = False
        self._gathering = _Gathering(loop, len(batch) + len(self._queue), seconds)
        loop.call_soon(self._wait, self._gathering)  # once the answers are written

    def _wait(self, gathering: _Gathering) -> None:
        gathering.seen = len(self._queue)
        gathering.loop.call_later(gathering.quiet, self._look, gathering, TURNS)

    def _look(self, gathering: _Gathering, turns: int) -> None:
        if self._gathering is not gathering:  # the scan has begun
            return
        if turns:
            gathering.loop.call_soon(self._look, gathering, turns - 1)
        elif len(self._queue) > gathering.seen and time.perf_counter() < gathering.ends:
            self._wait(gathering)
        else:
            self._start(gathering.loop)


class _Gathering:
    """Between two scans: whoever was just answered often asks again at once, and a scan of all takes hardly longer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, expected: int, seconds: float) -> None:
        self.loop, self.expected = loop, expected  # requests in the queue once everybody who was answered asks again
        self.quiet = min(QUIET_SHARE * seconds, LONGEST_QUIET)
        self.ends = time.perf_counter() + MOST_SHARE * seconds
        self.seen = 0  # requests at the last look

    def is_over(self, loop: asyncio.AbstractEventLoop, waiting: int) -> bool:
        """Whether everybody asks again; or the request is on another event loop, which no timer of this one would wake."""
        return waiting >= self.expected or loop is not self.loop


def _joined(several: list[Probes]) -> Probes:
    if len(several) == 1:
        return several[0]
    kappas = [probes.concentration for probes in several if probes.concentration is not None]
    return Probes(np.concatenate([probes.rows for probes in several]), np.concatenate(kappas) if kappas else None)
