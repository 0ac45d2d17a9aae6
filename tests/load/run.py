"""Run: the load test, from an empty folder to tables: ``python -m tests.load.run``.

Every system has the same vectors, the same processors and the same loops. All are started first and then asked in turn, one at a
time, in several rounds, so that whatever else the machine does meets all of them. The generator has processors of its own where
there are two or more.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import tempfile
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holue.bench.machine import load, machine

from . import systems
from .generator import Load
from .memory import resident
from .report import page
from .systems import Place, Running
from .world import World

CLIENTS = (1, 4, 16, 64, 256)
FRACTIONS = (0.25, 0.5, 0.75)
"""Of the highest rate of a system's closed loops, at which requests arrive in the open loop."""
BATCH = 64
LONGEST = 30.0
"""Seconds of a loop, however slow the answers are."""

Round = dict[str, Any]


def one_round(place: Place, all_of_them: dict[str, Running], seconds: float, seed: int) -> Round:
    """The library, then every number of clients, each system in turn."""
    found: Round = {"library": {str(batch): systems.library(place, batch, seconds) for batch in (1, BATCH)}}
    for clients in CLIENTS:
        for name, running in all_of_them.items():
            how = Load(clients, seconds, seed=seed, longest=LONGEST)
            found.setdefault(name, {})[str(clients)] = systems.measure(place, running, how)
    found["holue in batches"] = {
        str(n): systems.measure(place, all_of_them["holue"], Load(n, seconds, seed=seed), batch=BATCH) for n in (1, 4)
    }
    return found


def open_loops(
    place: Place, all_of_them: dict[str, Running], rounds: list[Round], seconds: float, seed: int
) -> dict[str, Any]:
    """Latencies where requests arrive at a fraction of what the closed loops reached, each system in turn."""
    found: dict[str, Any] = {}
    for part in FRACTIONS:
        for name, running in all_of_them.items():
            most = max(measured["rate"] for each in rounds for measured in each[name].values())
            how = Load(256, seconds, rate=part * most, seed=seed, longest=LONGEST)
            found.setdefault(name, {})[str(part)] = systems.measure(place, running, how)
    return found


def measure_all(place: Place, world: World, seconds: float, rounds: int, seed: int) -> dict[str, Any]:
    """Everything, with all systems up."""
    with systems.peer(place, "trivial") as running:
        most = systems.measure(place, running, Load(64, seconds))
    with ExitStack() as stack:
        all_of_them = {
            "holue": stack.enter_context(systems.service(place)),
            "faiss": stack.enter_context(systems.peer(place, "faiss", place.path("gallery.npy"))),
            "pgvector": stack.enter_context(systems.postgres(place, world)),
        }
        measured = [one_round(place, all_of_them, seconds, seed + number) for number in range(rounds)]
        found = {"trivial": most, "rounds": measured}
        found["open"] = open_loops(place, all_of_them, measured, seconds, seed)
        found["resident_bytes"] = resident(all_of_them["holue"].pid)
    return found


def others_busy(began: float, busy_before: float) -> float:
    """How many processors work that is not ours took since a time."""
    own = sum(
        used.ru_utime + used.ru_stime
        for used in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )
    return max(0.0, (_busy_seconds() - busy_before - own) / (time.time() - began))


def _busy_seconds() -> float:
    import psutil

    now = psutil.cpu_times()
    return float(sum(now[:3]) + sum(now[5:8]))  # all but idle and waiting for disks


def main() -> None:
    """Measure, print the page and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each loop")
    parser.add_argument("--rounds", type=int, default=3, help="in which every system is asked in turn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/load.json"))
    parser.add_argument("--page", type=Path, default=Path("runs/load.md"))
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    half = max(1, len(cores) // 2)
    before, began, busy = load(), time.time(), _busy_seconds()
    with tempfile.TemporaryDirectory(prefix="holue-load-") as folder:
        place = Place(Path(folder), cores[:half], cores[half:] or cores)
        world = World.random(given.subjects, given.dim, 4096, given.seed)
        systems.prepare(place, world)
        enrolled = time.time() - began
        found = measure_all(place, world, given.seconds, given.rounds, given.seed)
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine(), "load_before": before,
        "subjects": given.subjects, "dim": given.dim, "seconds": given.seconds, "seed": given.seed, "rounds": given.rounds,
        "server_processors": len(place.server_cores), "generator_processors": len(place.generator_cores),
        "enrolled_in_s": enrolled, "took_s": time.time() - began, "others_busy": others_busy(began, busy),
    }  # fmt: skip
    text = page(about, found)
    print(text)
    for path, content in ((given.out, json.dumps({"about": about, "found": found}, indent=1)), (given.page, text)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


if __name__ == "__main__":
    main()
