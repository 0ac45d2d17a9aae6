"""Generator: closed and open loops of clients, in a process of its own; reads what to do as JSON and writes what it measured."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .connections import Connection, HttpConnection, VectorConnection, http_requests

Open = Callable[[], Awaitable[Connection]]


@dataclass(frozen=True)
class Load:
    """What to send: ``clients`` in a closed loop, or arrivals at ``rate`` per second in an open one."""

    clients: int
    seconds: float
    warm_up: float = 1.0
    rate: float | None = None
    seed: int = 0
    longest: float = 40.0  # seconds in all, however slow the answers are


@dataclass
class Measured:
    """Seconds of every answer within the window, and how long the window was."""

    window: float = 0.0
    seconds: list[float] = field(default_factory=list)
    failed: int = 0
    served: int = 0  # answers in all, those before and after the window too
    busy: float = 0.0  # the share of a processor that the generator itself used

    def summary(self) -> dict[str, float | int]:
        """Rate per second, and percentiles in milliseconds."""
        n = len(self.seconds)
        p50, p99 = (1e3 * float(q) for q in np.quantile(self.seconds, [0.5, 0.99])) if n else (np.nan, np.nan)
        rate = n / self.window if self.window else 0.0
        return {
            "rate": rate, "p50_ms": p50, "p99_ms": p99, "answers": n, "failed": self.failed, "window_s": self.window,
            "generator_busy": self.busy, "served": self.served,
        }  # fmt: skip


async def closed_loop(open_one: Open, load: Load) -> Measured:
    """Every client asks again as soon as it is answered.

    The window opens after the warm-up and once every client has had an answer. It closes after ``seconds`` and once every client
    has had another one, or when ``longest`` is over.
    """
    connections = [await open_one() for _ in range(load.clients)]
    began = time.perf_counter()
    opened: float | None = None
    served = [0] * load.clients
    at_opening = list(served)
    measured, over, cpu = Measured(), False, time.process_time()

    async def client(place: int) -> None:
        nonlocal opened, over, at_opening, cpu
        number = load.seed + place * 7919
        while not over:
            number += 1
            start = time.perf_counter()
            good = await connections[place].ask(number)
            now = time.perf_counter()
            served[place] += 1
            if over:
                return
            if opened is None:
                if now - began >= load.warm_up and (min(served) > 0 or now - began > load.longest / 2):
                    opened, at_opening, cpu = now, list(served), time.process_time()
                continue
            if good:
                measured.seconds.append(now - start)
            else:
                measured.failed += 1
            everybody = all(later > before for later, before in zip(served, at_opening))
            if (now - opened >= load.seconds and everybody) or now - began >= load.longest:
                over = True
                measured.window = now - opened
                measured.busy = (time.process_time() - cpu) / measured.window

    tasks = [asyncio.create_task(client(place)) for place in range(load.clients)]
    await asyncio.wait(tasks, timeout=2 * load.longest)
    measured.served = sum(served)
    for connection in connections:
        await connection.close()
    return measured


async def open_loop(open_one: Open, load: Load) -> Measured:
    """Requests arrive as a Poisson process, whatever the answers do; a latency counts from the arrival that was planned."""
    assert load.rate is not None, "an open loop needs a rate"
    rng = np.random.default_rng(load.seed)
    count = max(1, round(load.rate * (load.warm_up + load.seconds)))
    arrivals = np.cumsum(rng.exponential(1 / load.rate, count))
    idle: list[Connection] = [await open_one() for _ in range(load.clients)]
    free = asyncio.Semaphore(load.clients)
    measured, began, cpu = Measured(), time.perf_counter(), time.process_time()

    async def one(number: int, planned: float) -> None:
        async with free:
            connection = idle.pop()
            good = await connection.ask(load.seed + number)
            measured.served += 1
            idle.append(connection)
        if planned >= load.warm_up:
            if good:
                measured.seconds.append(time.perf_counter() - began - planned)
            else:
                measured.failed += 1

    tasks = []
    for number, planned in enumerate(arrivals.tolist()):
        wait = planned - (time.perf_counter() - began)
        if wait > 0:
            await asyncio.sleep(wait)
        tasks.append(asyncio.create_task(one(number, planned)))
    await asyncio.wait(tasks, timeout=load.longest)
    measured.window = time.perf_counter() - began - load.warm_up
    measured.busy = (time.process_time() - cpu) / (measured.window + load.warm_up)
    for connection in idle:
        await connection.close()
    return measured


def opener(target: dict[str, Any]) -> Open:
    """How to connect to a system."""
    probes = np.load(target["probes"])
    if "database" in target:
        from pgvector import Vector

        vectors = [Vector(row) for row in probes]
        return lambda: VectorConnection.open(target["database"], vectors)
    requests = http_requests(target["path"], target["headers"], probes, target["batch"])
    return lambda: HttpConnection.open(target["host"], target["port"], requests)


async def run(target: dict[str, Any], load: Load) -> Measured:
    """One measurement."""
    return await (closed_loop if load.rate is None else open_loop)(opener(target), load)


def spec(target: dict[str, Any], load: Load, cores: list[int]) -> str:
    """What :func:`main` reads."""
    return json.dumps({"target": target, "load": asdict(load), "cores": cores})


def main() -> None:
    """Measure as standard input says."""
    import uvloop

    given = json.load(sys.stdin)
    os.sched_setaffinity(0, given["cores"])
    measured = uvloop.run(run(given["target"], Load(**given["load"])))
    json.dump(measured.summary(), sys.stdout)


if __name__ == "__main__":
    main()
