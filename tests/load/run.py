"""Run: the load test, from an empty folder to tables: ``python -m tests.load.run``.

Every system has the same vectors, the same processors and the same loops, and answers alone. The generator has processors of its
own where there are two or more.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holue.bench.machine import load, machine

from . import systems
from .generator import Load
from .memory import resident
from .report import page
from .systems import Place
from .world import World

CLIENTS = (1, 4, 16, 64, 256)
FRACTIONS = (0.25, 0.5, 0.75)
"""Of the highest rate of a system's closed loops, at which requests arrive in the open loop."""
BATCH = 64


def closed_loops(place: Place, target: dict[str, Any], seconds: float, seed: int) -> dict[str, Any]:
    """Rate and latencies for each number of clients."""
    return {
        str(clients): systems.measure(place, target, Load(clients, seconds, seed=seed, longest=60))
        for clients in CLIENTS
    }


def open_loops(
    place: Place, target: dict[str, Any], closed: dict[str, Any], seconds: float, seed: int
) -> dict[str, Any]:
    """Latencies where requests arrive at a fraction of what the closed loops reached."""
    most = max(measured["rate"] for measured in closed.values())
    return {
        str(part): systems.measure(place, target, Load(256, seconds, rate=part * most, seed=seed)) for part in FRACTIONS
    }


def both(place: Place, target: dict[str, Any], seconds: float, seed: int) -> dict[str, Any]:
    """The closed and the open loops of a system."""
    closed = closed_loops(place, target, seconds, seed)
    return {"closed": closed, "open": open_loops(place, target, closed, seconds, seed)}


def measure_all(place: Place, world: World, seconds: float, seed: int) -> dict[str, Any]:
    """Everything, one system after the other."""
    found: dict[str, Any] = {"library": {str(batch): systems.library(place, batch, seconds) for batch in (1, BATCH)}}
    with systems.peer(place, "trivial") as running:
        found["trivial"] = {"closed": {"64": systems.measure(place, running.target, Load(64, seconds))}}
    with systems.service(place) as running:
        found["holue"] = both(place, running.target, seconds, seed)
        found["holue"]["resident_bytes"] = resident(running.pid)
        batches = {**running.target, "batch": BATCH}
        found["holue in batches"] = {
            "closed": {str(n): systems.measure(place, batches, Load(n, seconds, seed=seed)) for n in (1, 4)}
        }
    with systems.peer(place, "faiss", place.path("gallery.npy")) as running:
        found["faiss"] = both(place, running.target, seconds, seed)
    with systems.postgres(place, world) as running:
        found["pgvector"] = both(place, running.target, seconds, seed)
    return found


def main() -> None:
    """Measure, print the page and write it down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--subjects", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=5.0, help="of each loop")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs/load.json"))
    parser.add_argument("--page", type=Path, default=Path("runs/load.md"))
    given = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    half = max(1, len(cores) // 2)
    before = load()
    with tempfile.TemporaryDirectory(prefix="holue-load-") as folder:
        place = Place(Path(folder), cores[:half], cores[half:] or cores)
        world = World.random(given.subjects, given.dim, 4096, given.seed)
        began = time.time()
        systems.prepare(place, world)
        enrolled = time.time() - began
        found = measure_all(place, world, given.seconds, given.seed)
    about = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine(), "load_before": before,
        "subjects": given.subjects, "dim": given.dim, "seconds": given.seconds, "seed": given.seed,
        "server_processors": len(place.server_cores), "generator_processors": len(place.generator_cores),
        "enrolled_in_s": enrolled,
    }  # fmt: skip
    text = page(about, found)
    print(text)
    for path, content in ((given.out, json.dumps({"about": about, "found": found}, indent=1)), (given.page, text)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


if __name__ == "__main__":
    main()
