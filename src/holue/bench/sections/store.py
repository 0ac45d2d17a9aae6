"""Store: what a durable enrolment costs, in batches, one by one beside a bare append-and-sync, and by several callers at once."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from holue.bench.sections.section import Result, Row, Step
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import Float32Array, random_directions
from holue.store.sqlite.store import SqliteStore

CALLERS = 8
SINGLES = 40
"""Enrolments of one subject in a round, and for each caller."""


def store_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """Batches; single enrolments; several callers."""
    result["store"] = {}
    if sizes.store_batch == 0:
        return
    X = random_directions(np.random.default_rng(seed), sizes.store_batch, sizes.store_dim)
    for name, measure in (("batches", _batches), ("singles", _singles), ("callers", _callers)):
        note = f"durable enrolments, {name}: d = {sizes.store_dim}"
        yield note, lambda name=name, measure=measure: result["store"].update({name: measure(X, rounds)})  # type: ignore[misc]


def _batches(X: Float32Array, rounds: int) -> Row:
    """Batches into one store, and the same bytes written and synced to a file, in turn; the first of each is not counted."""
    n, dim = X.shape
    processor: list[float] = []

    def enroll(turn: int) -> None:
        start = time.process_time()
        store.enroll(X, list(range(turn * n, (turn + 1) * n)))
        processor.append(time.process_time() - start)

    with tempfile.TemporaryDirectory() as folder, SqliteStore.create(Path(folder, "store"), dim=dim) as store:
        bare = _BareFile(Path(folder, "bare"))
        taken = _in_turn([enroll, lambda i: bare.append(X.data.cast("B"))], rounds + 1)[:, 1:]
        bare.close()
    rate, bytes_only = n / np.median(taken, axis=1)
    return {
        "batch": n,
        "dim": dim,
        "rows_per_second": float(rate),
        "bare_rows_per_second": float(bytes_only),
        "processor_us": 1e6 * float(np.median(processor[1:])) / n,
    }


def _singles(X: Float32Array, rounds: int) -> Row:
    """One subject at a time, and the same bytes appended to a file and synced, in turn."""
    with tempfile.TemporaryDirectory() as folder, SqliteStore.create(Path(folder, "store"), dim=X.shape[1]) as store:
        bare = _BareFile(Path(folder, "bare"))
        row = X[:1].data.cast("B")
        processor = time.process_time()
        own, other = _in_turn([lambda i: store.enroll(X[:1], [i]), lambda i: bare.append(row)], rounds * SINGLES)
        processor = time.process_time() - processor
        bare.close()
    ratio = np.median(own.reshape(rounds, -1), axis=1) / np.median(other.reshape(rounds, -1), axis=1)
    return {
        "dim": X.shape[1],
        "median_ms": 1e3 * float(np.median(own)),
        "bare_ms": 1e3 * float(np.median(other)),
        "ratio": float(np.median(ratio)),
        "processor_ms": 1e3 * processor / (rounds * SINGLES),
    }


def _callers(X: Float32Array, rounds: int) -> Row:
    """Subjects a second by one caller and by several, in turn."""
    rates: dict[int, list[float]] = {1: [], CALLERS: []}
    with tempfile.TemporaryDirectory() as folder, SqliteStore.create(Path(folder, "store"), dim=X.shape[1]) as store:
        given = 0
        for _ in range(rounds):
            for callers, found in rates.items():
                found.append(_rate(store, X[:1], callers, given))
                given += callers * SINGLES
    one, many = (np.array(found) for found in rates.values())
    return {
        "callers": CALLERS,
        "one_per_second": float(np.median(one)),
        "many_per_second": float(np.median(many)),
        "times": float(np.median(many / one)),
    }


def _rate(store: SqliteStore, row: Float32Array, callers: int, first: int) -> float:
    def call(caller: int) -> None:
        for i in range(SINGLES):
            store.enroll(row, [first + caller * SINGLES + i])

    threads = [threading.Thread(target=call, args=(caller,)) for caller in range(callers)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return callers * SINGLES / (time.perf_counter() - start)


class _BareFile:
    """Appends and waits for the disk, and nothing else."""

    def __init__(self, path: Path) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def append(self, data: memoryview) -> None:
        rest = data
        while rest:
            rest = rest[os.write(self._handle, rest) :]
        os.fdatasync(self._handle)

    def close(self) -> None:
        os.close(self._handle)


def _in_turn(calls: list[Callable[[int], object]], times: int) -> np.ndarray:
    seconds = np.empty((len(calls), times))
    for turn in range(times):
        for which, call in enumerate(calls):
            start = time.perf_counter()
            call(turn)
            seconds[which, turn] = time.perf_counter() - start
    return seconds
