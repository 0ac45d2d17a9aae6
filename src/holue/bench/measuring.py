"""Measuring: calls timed in turn, memory of a call, latency of one probe, the start of a process, free disk."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from holue.bench.worlds.world import CONCENTRATION, Float32Array
from holue.recognition.recognizer import OpenSetRecognizer

PAUSE = 0.2
"""Seconds before each call: the threads of OpenBLAS were seen to keep a processor busy for 0.12 s after their work."""

WARM = 0.25
"""A call that takes fewer seconds is made once more, uncounted, right before: after a pause caches and processors are cold."""

SLOW = 3
"""A call that takes so many times the seconds it may take in all is made once."""


@dataclass(frozen=True)
class Timing:
    """Seconds of the calls of one system, in the order of the rounds."""

    seconds: npt.NDArray[np.float64]

    def summary(self) -> dict[str, float | int]:
        """Median and quartiles in milliseconds, and the number of calls."""
        low, median, high = (1e3 * float(q) for q in np.quantile(self.seconds, [0.25, 0.5, 0.75]))
        return {"median_ms": median, "q1_ms": low, "q3_ms": high, "calls": len(self.seconds)}

    def ratio_to(self, other: Timing) -> float:
        """Median over the rounds both have of this time over the other's: a disturbance of a whole round cancels."""
        n = min(len(self.seconds), len(other.seconds))
        return float(np.median(self.seconds[:n] / other.seconds[:n]))


def time_in_turn(
    calls: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    seconds_each: float,
    pause: float = PAUSE,
    first: Mapping[str, float] | None = None,
    again: Collection[str] = (),
) -> dict[str, Timing]:
    """Time every call ``rounds`` times in turn, warm, after one unmeasured call.

    A call that used up its seconds stops after three rounds. One whose first call took several times its seconds is not called
    again, and that call counts. Neither holds for those to be called ``again`` in every round, whatever they take. Whoever made
    the first calls already tells how long they took in ``first``.
    """
    if first is None:
        first = {name: _seconds(call) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    slow = [name for name in calls if first[name] > SLOW * seconds_each and name not in again]
    for turn in range(rounds):
        for name, call in calls.items():
            enough = turn >= 3 and sum(seconds[name]) > seconds_each and name not in again
            if name in slow or enough:
                continue
            time.sleep(pause)
            if first[name] < WARM:
                call()
            seconds[name].append(_seconds(call))
    return {name: Timing(np.array([first[name]] if name in slow else taken)) for name, taken in seconds.items()}


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


_STATUS = Path("/proc/self/status")


def own_bytes() -> int | None:
    """Resident memory of this process without mapped files (``RssAnon``); None where the system does not tell."""
    if not _STATUS.exists():
        return None
    for line in _STATUS.read_text("ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    return None


def peak_bytes(call: Callable[[], object], *, every: float = 0.001) -> int | None:
    """The most a call takes beside what was resident before, looked at every millisecond; pages of mapped files do not count.

    A call that is over within a millisecond or that reuses memory freed earlier shows less than it needs.
    """
    before = own_bytes()
    if before is None:
        return None
    highest, over = before, threading.Event()

    def watch() -> None:
        nonlocal highest
        while not over.wait(every):
            highest = max(highest, own_bytes() or 0)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        call()
    finally:
        over.set()
        watcher.join()
    return max(highest, own_bytes() or 0) - before


def identify_latency(gallery: Float32Array, probes: Float32Array, calls: int) -> dict[str, float | int]:
    """Median and 99th percentile in milliseconds of ``OpenSetRecognizer.identify`` of one probe, in a loop."""
    recognizer = OpenSetRecognizer(method="galue", threshold=0.5).fit(gallery, np.arange(len(gallery)))
    kappa = np.full(1, CONCENTRATION)
    seconds = []
    for call in range(-3, calls):
        probe = probes[call % len(probes)][None]
        start = time.perf_counter()
        recognizer.identify(probe, concentration=kappa)
        seconds.append(time.perf_counter() - start)
    p50, p99 = (1e3 * float(q) for q in np.quantile(seconds[3:], [0.5, 0.99]))
    return {"p50_ms": p50, "p99_ms": p99, "calls": calls}


_START_PROGRAM = """
import json, time
seconds, last = {}, time.perf_counter()
def lap(name):
    global last
    now = time.perf_counter()
    seconds[name], last = now - last, time.perf_counter()
import holue
lap("import holue")
import sklearn.base
lap("import scikit-learn")
from holue import OpenSetRecognizer
lap("import the recogniser")
import numpy as np
gallery = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)
recognizer = OpenSetRecognizer(method="galue", threshold=0.5).fit(gallery, np.arange(1000))
lap("first fit")
recognizer.identify(gallery[:1], concentration=np.full(1, 400.0))
lap("first identify")
recognizer.identify(gallery[:1], concentration=np.full(1, 400.0))
lap("second identify")
print(json.dumps(seconds))
"""


def start_seconds(starts: int) -> dict[str, dict[str, float]]:
    """Seconds of each step of a start: ``compiling`` with nothing compiled yet, ``cached`` the median of ``starts`` others."""
    with tempfile.TemporaryDirectory() as place:
        environment = os.environ | {"NUMBA_CACHE_DIR": place}
        compiling = _one_start(environment)
        cached = [_one_start(environment) for _ in range(starts)]
    return {"compiling": compiling, "cached": {step: median(one[step] for one in cached) for step in compiling}}


def _one_start(environment: dict[str, str]) -> dict[str, float]:
    ran = subprocess.run(
        [sys.executable, "-c", _START_PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    seconds: dict[str, float] = json.loads(ran.stdout)
    return seconds


def lack_of_room(n_bytes: int) -> str | None:
    """Why a file of so many bytes cannot be made, or None if it can.

    >>> lack_of_room(10**18)[:45]
    'it takes 1000000000.0 GB of the temporary dir'
    """
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free >= 1.2 * n_bytes:
        return None
    return f"it takes {n_bytes / 1e9:.1f} GB of the temporary directory, which has {free / 1e9:.1f} GB free"
