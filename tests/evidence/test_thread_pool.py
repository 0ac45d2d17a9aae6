"""Tests of the threads that scans share."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from holue.evidence.evidence import Evidence
from holue.evidence.ivf.index import ApproximateIndex
from holue.evidence.quantized.scan import scan_compressed
from holue.evidence.scan import scan
from holue.evidence.threads import processors, thread_pool
from holue.evidence.threads.thread_pool import parallel_map
from holue.gallery.compressed import compress

Float32Array = npt.NDArray[np.float32]


@pytest.fixture(params=[1, 2, 4])
def n_processors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """A process that may use so many processors, with a pool of its own."""
    monkeypatch.setattr(thread_pool, "available_processors", lambda: request.param)
    monkeypatch.setattr(thread_pool, "_pool", None)
    return int(request.param)


@pytest.mark.parametrize("n_parts", [0, 1, 2, 5, 40])
def test_results_come_in_the_order_of_the_parts(n_processors: int, n_parts: int) -> None:
    assert parallel_map(lambda part: part * part, range(n_parts)) == [part * part for part in range(n_parts)]


def test_there_are_never_more_threads_than_processors(n_processors: int) -> None:
    working = threading.Semaphore(n_processors)

    def work(part: int) -> int:
        assert working.acquire(blocking=False), "more threads work than there are processors"
        threading.Event().wait(0.001)
        working.release()
        return threading.get_ident()

    threads = set(parallel_map(work, range(50)))
    assert threading.get_ident() in threads
    assert len(threads) <= n_processors


def test_many_callers_share_one_pool() -> None:
    before = threading.active_count()

    def call(number: int) -> list[int]:
        return parallel_map(lambda part: 10 * number + part, range(4))

    with ThreadPoolExecutor(8) as callers:
        assert list(callers.map(call, range(200))) == [[10 * n + part for part in range(4)] for n in range(200)]
    assert threading.active_count() <= before + processors.available_processors()


def test_a_worker_may_use_the_pool_itself(n_processors: int) -> None:
    def nested(part: int) -> list[int]:
        return parallel_map(lambda inner: 10 * part + inner, range(3))

    assert parallel_map(nested, range(3)) == [[0, 1, 2], [10, 11, 12], [20, 21, 22]]


@pytest.mark.parametrize("bad", range(3))
def test_an_error_in_any_part_reaches_the_caller_when_nobody_works_any_more(n_processors: int, bad: int) -> None:
    working: list[int] = []

    def work(part: int) -> int:
        if part == bad:
            raise ValueError(f"part {part}")
        working.append(part)
        threading.Event().wait(0.01)
        working.remove(part)
        return part

    with pytest.raises(ValueError, match=f"part {bad}"):
        parallel_map(work, range(3))
    assert working == []
    assert parallel_map(abs, [-5, -6]) == [5, 6]


def test_an_idle_worker_keeps_nothing_in_memory(n_processors: int) -> None:
    class Part:
        """Something large."""

    parts = [Part(), Part()]
    seen = [weakref.ref(part) for part in parts]
    parallel_map(lambda part: None, parts)
    parallel_map(lambda part: None, [0, 0])  # when it has begun this, it is done with that
    parts.clear()
    gc.collect()
    assert [part() for part in seen] == [None, None]


@pytest.mark.parametrize(
    ("content", "expected"),
    [("max 100000", 8), ("150000 100000", 2), ("50000 100000", 1), ("nonsense", 8), ("1 0", 8), (None, 8)],
)
def test_a_quota_of_the_container_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, expected: int
) -> None:
    quota = tmp_path / "cpu.max"
    if content is not None:
        quota.write_text(content + "\n")
    monkeypatch.setattr(processors, "_QUOTA", quota)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    processors._processors_of_quota.cache_clear()
    try:
        assert processors.available_processors() == expected
    finally:
        processors._processors_of_quota.cache_clear()


def world() -> tuple[Float32Array, Float32Array]:
    rng = np.random.default_rng(0)
    gallery, probes = (
        rng.standard_normal((10_000, 16), dtype=np.float32),
        rng.standard_normal((80, 16), dtype=np.float32),
    )
    return (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (gallery, probes))  # type: ignore[return-value]


def test_scans_of_every_kind_agree_with_themselves_in_concurrent_threads() -> None:
    gallery, probes = world()
    index = ApproximateIndex.build(gallery, n_lists=40, n_probe=5, seed=0)
    forms = [compress(gallery, "int8"), compress(gallery, "float16")]

    def search(kind: int) -> Evidence:
        own = probes[: (1, 7, 80)[kind // 5 % 3]]
        if kind % 5 < 2:
            return scan(own.astype((np.float32, np.float64)[kind % 5]), gallery, [30.0], threads=2)
        if kind % 5 < 4:
            return scan_compressed(own, forms[kind % 5 - 2], [30.0], threads=2)
        return index.scan(own, [30.0], threads=2)

    kinds = list(range(15))
    alone = [search(kind) for kind in kinds]
    with ThreadPoolExecutor(6) as callers:
        together = list(callers.map(search, kinds * 4))
    for number, seen in enumerate(together):
        expected = alone[number % 15]
        for name in ("top_scores", "top_index", "log_mass", "mean_score"):
            np.testing.assert_array_equal(getattr(seen, name), getattr(expected, name))


FORKS = """
import faulthandler, os, threading, numpy as np
from holue.evidence.scan import scan
from holue.evidence.quantized.scan import scan_compressed
from holue.evidence.ivf.index import ApproximateIndex
from holue.evidence.threads.blas import single_threaded
from holue.gallery.compressed import compress

rng = np.random.default_rng(0)
x = rng.standard_normal((10_000, 16), dtype=np.float32)
x /= np.linalg.norm(x, axis=1, keepdims=True)
index, codes = ApproximateIndex.build(x, n_lists=40, n_probe=5, seed=0), compress(x, "int8")

def search():
    found = [scan(x[:n].astype(dtype), x, [30.0], threads=2) for n in (1, 80) for dtype in (np.float32, np.float64)]
    found += [scan_compressed(x[:9], codes, [30.0], threads=2), index.scan(x[:40], [30.0], threads=2)]
    return [seen.top_scores.tobytes() + seen.log_mass.tobytes() for seen in found]

expected, stop = search(), threading.Event()

def keep_searching():
    while not stop.is_set():
        with single_threaded():
            search()

busy = threading.Thread(target=keep_searching)
busy.start()
for _ in range(5):
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        os._exit(0 if search() == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
stop.set()
busy.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked on Unix only")
def test_a_process_forked_in_the_middle_of_a_scan_scans_too() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKS], check=True, timeout=240)
