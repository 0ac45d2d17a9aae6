"""Live: how long a living gallery takes to open, to change, and to answer while subjects come and go."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import numpy as np

import holue
from holue.bench.measuring import lack_of_room
from holue.bench.sections.section import Result, Row, Step
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import Float32Array, random_directions, random_probes
from holue.live.live_gallery import LiveGallery

BATCH = 50_000
PER_SECOND = 100
"""Subjects that come, and subjects that go, each in a change of its own."""
CALLERS = 4
"""Threads that change the gallery: one alone waits for the disk twice for each subject, and a slow disk would set the pace."""
CHANGES = 30
"""Changes of one subject that are timed."""
_OPEN = """
import json, sys, tempfile, time
import numpy as np
import holue
home, dim, openings = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
settings = dict(method="galue", threshold=0.5)
with holue.open(":memory:", dim=dim, **settings) as small:  # compiles
    small.enroll(np.eye(dim, dtype=np.float32)[:3], [1, 2, 3])
    small.identify(np.eye(dim, dtype=np.float32)[:1])
found = []
for _ in range(openings):
    start = time.perf_counter()
    gallery = holue.open(home, read_only=True)
    ready = time.perf_counter()
    gallery.identify(np.eye(dim, dtype=np.float32)[:1])
    found.append((ready - start, time.perf_counter() - ready))
    gallery.close()
print(json.dumps(found))
"""


def live_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """One step per size."""
    result["live"] = []
    for subjects in sizes.live_subjects:
        note = f"living gallery: K = {subjects}, d = {sizes.live_dim}"
        yield note, partial(_measure, result, subjects, sizes.live_dim, sizes.live_calls, rounds, seed)


def _measure(result: Result, subjects: int, dim: int, calls: int, rounds: int, seed: int) -> None:
    row: Row = {"subjects": subjects, "dim": dim}
    result["live"].append(row)
    why = lack_of_room(subjects * dim * 8)
    if why is not None:
        row["skipped"] = why
        return
    rng = np.random.default_rng([seed, subjects])
    with tempfile.TemporaryDirectory() as folder:
        home = str(Path(folder, "gallery"))
        some = _fill(row, home, subjects, dim, rng)
        found = _openings(home, dim, rounds)
        row["open_s"], row["first_answer_s"] = (float(np.median(found[:, column])) for column in (0, 1))
        with holue.open(home) as gallery:
            probes = random_probes(rng, some, 64)
            row["enroll_ms"], row["remove_ms"] = _changes(gallery, subjects, random_directions(rng, CHANGES, dim))
            row |= _while_changing(gallery, probes, random_directions(rng, 1000, dim), 2 * subjects, calls, rounds)


def _fill(row: Row, home: str, subjects: int, dim: int, rng: np.random.Generator) -> Float32Array:
    """Enrol everybody and close; some of the rows."""
    seconds, rows = 0.0, random_directions(rng, 1, dim)
    gallery = holue.open(home, create=True, dim=dim, method="galue", threshold=0.5)
    for first in range(0, subjects, BATCH):
        rows = random_directions(rng, min(BATCH, subjects - first), dim)
        ids = list(range(first, first + len(rows)))
        seconds += _seconds(partial(gallery.enroll, rows, ids))
    row["fill_s"], row["close_s"] = seconds, _seconds(gallery.close)
    return rows


def _openings(home: str, dim: int, rounds: int) -> np.ndarray:
    """Seconds until a gallery is open, and until its first answer, in a process that has compiled everything."""
    words = [sys.executable, "-c", _OPEN, home, str(dim), str(rounds)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True)
    return np.array(json.loads(ran.stdout))


def _changes(gallery: LiveGallery, first: int, new: Float32Array) -> tuple[float, float]:
    """Milliseconds of enrolling one subject and of removing one, durable and visible, in the median."""
    ids = range(first, first + len(new))
    enrolled = [_seconds(partial(gallery.enroll, row[None], [number])) for number, row in zip(ids, new)]
    removed = [_seconds(partial(gallery.remove, [number])) for number in ids]
    return 1e3 * float(np.median(enrolled)), 1e3 * float(np.median(removed))


def _while_changing(
    gallery: LiveGallery, probes: Float32Array, new: Float32Array, first: int, calls: int, rounds: int
) -> Row:
    """``identify`` of one probe, idle and while another thread enrols and removes, in turn; all calls of the rounds together."""
    seconds: dict[str, list[float]] = {"idle": [], "busy": []}
    rates = [0.0] * CALLERS
    numbers = count(first)

    def ask(found: list[float]) -> None:
        for call in range(calls):
            found.append(_seconds(partial(gallery.identify, probes[call % len(probes)][None])))

    ask([])
    for _ in range(rounds):
        ask(seconds["idle"])
        over = threading.Event()

        def come_and_go(caller: int, over: threading.Event) -> None:
            began = time.perf_counter()
            done = 0
            while not over.is_set():
                one = next(numbers)
                gallery.enroll(new[one % len(new)][None], [one])
                gallery.remove([one])
                done += 1
                over.wait(max(began + done * CALLERS / PER_SECOND - time.perf_counter(), 0))
            rates[caller] += done / (time.perf_counter() - began)

        writers = [threading.Thread(target=come_and_go, args=(caller, over)) for caller in range(CALLERS)]
        for writer in writers:
            writer.start()
        ask(seconds["busy"])
        over.set()
        for writer in writers:
            writer.join()
    row: Row = {"per_second": sum(rates) / rounds, "calls": len(seconds["idle"])}
    for name, taken in seconds.items():
        row[f"{name}_p50_ms"], row[f"{name}_p99_ms"] = (1e3 * float(q) for q in np.quantile(taken, [0.5, 0.99]))
    return row | {"p99_ratio": row["busy_p99_ms"] / row["idle_p99_ms"]}


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
