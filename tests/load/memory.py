"""Memory: whether the service's memory stays flat over many requests: ``python -m tests.load.memory --requests 100000``.

The gallery is small, so that many requests fit into minutes: what could grow with requests (queues, caches, logs, metrics) does
not depend on the gallery's size.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from . import systems
from .generator import Load
from .systems import Place
from .world import World

PARTS = 40


def resident(pid: int) -> int:
    """Bytes of a process that are in memory and its own."""
    import psutil

    memory = psutil.Process(pid).memory_full_info()
    return int(memory.uss)


def growth(seen: list[dict[str, Any]]) -> float:
    """Bytes per request over the second half of the requests, by least squares: caches fill in the first half."""
    half = seen[-1]["requests"] / 2
    later = [each for each in seen if each["requests"] >= half]
    slope, _ = np.polyfit([each["requests"] for each in later], [each["bytes"] for each in later], 1)
    return float(slope)


def watched(requests: int, subjects: int, seconds: float) -> list[dict[str, Any]]:
    """Requests so far and resident bytes, until there were so many requests or the seconds are over."""
    ends = time.monotonic() + seconds
    with tempfile.TemporaryDirectory(prefix="holue-load-") as folder:
        place = Place(Path(folder), [0], [1])
        systems.prepare(place, World.random(subjects, 512, 4096, 0))
        with systems.service(place) as running:
            seen = [{"requests": 0, "bytes": resident(running.pid)}]
            while seen[-1]["requests"] < requests:
                part = Load(64, seconds / PARTS, warm_up=0.0, seed=seen[-1]["requests"])
                told = systems.measure(place, running, part)
                seen.append({"requests": seen[-1]["requests"] + told["served"], "bytes": resident(running.pid)})
                print(json.dumps(seen[-1]), flush=True)
                if time.monotonic() > ends:
                    break
    return seen


def main() -> None:
    """Watch, and write the numbers down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--subjects", type=int, default=5_000)
    parser.add_argument(
        "--seconds", type=float, default=480.0, help="after which it stops, however many requests there were"
    )
    parser.add_argument("--out", type=Path, default=Path("runs/load-memory.json"))
    given = parser.parse_args()
    seen = watched(given.requests, given.subjects, given.seconds)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    slope = growth(seen)
    found = {"subjects": given.subjects, "dim": 512, "seen": seen, "bytes_per_request": slope}
    given.out.write_text(json.dumps(found, indent=1))
    print(f"{seen[-1]['requests']:,} requests; over the second half memory grew by {slope:.1f} bytes a request")


if __name__ == "__main__":
    main()
