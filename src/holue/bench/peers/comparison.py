"""Comparison: the peers in turn, in a process of its own that is held to one processor.

A program: ``python -m holue.bench.peers.comparison '{"subjects": 1000, ...}'`` prints the numbers as JSON. With
``--open NAME PLACE DIM`` it prints the seconds from opening to the first answer.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from holue.bench.measuring import time_in_turn
from holue.bench.peers.chroma import Chroma
from holue.bench.peers.lance import Lance
from holue.bench.peers.living import Living
from holue.bench.peers.peer import TOP, Peer
from holue.bench.peers.pgvector import Pgvector
from holue.bench.peers.sqlite_vec import SqliteVec
from holue.bench.sections.section import Row
from holue.bench.worlds.world import random_directions, random_probes

PEERS: dict[str, Callable[[str, int], Peer]] = {
    "holue": Living,
    "LanceDB": Lance,
    "sqlite-vec": SqliteVec,
    "Chroma": Chroma,
    "pgvector": Pgvector,
}
NEEDED = {
    "holue": ("holue",),
    "LanceDB": ("lancedb",),
    "sqlite-vec": ("sqlite_vec", "apsw"),
    "Chroma": ("chromadb",),
    "pgvector": ("pgserver", "pgvector", "psycopg"),
}
MANY = 64
THREAD_SETTINGS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS", "LANCE_CPU_THREADS")


def absent(name: str) -> str | None:
    """Why a peer cannot be measured here, or None if it can."""
    gone = [module for module in NEEDED[name] if find_spec(module) is None]
    return f"{', '.join(gone)} is not installed; run: pip install 'holue[peers]'" if gone else None


def on_one_processor(words: list[str]) -> Any:
    """What this program prints when it is run in a process of its own."""
    environment = os.environ | dict.fromkeys(THREAD_SETTINGS, "1")
    ran = subprocess.run(
        [sys.executable, "-m", "holue.bench.peers.comparison", *words], env=environment, stdout=subprocess.PIPE, check=True
    )  # fmt: skip
    return json.loads(ran.stdout.splitlines()[-1])


def compare(names: list[str], subjects: int, dim: int, rounds: int, seed: int) -> list[Row]:
    """All peers with the same vectors: batches, questions, removals and openings, each in turn."""
    rng = np.random.default_rng([seed, subjects, dim])
    X = random_directions(rng, subjects, dim)
    probes = random_probes(rng, X, MANY)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        peers = {name: PEERS[name](str(Path(folder, name)), dim) for name in names}
        try:
            return list(_measured(peers, X, probes, rounds))
        finally:
            for peer in peers.values():
                peer.close()


def _measured(peers: dict[str, Peer], X: Any, probes: Any, rounds: int) -> list[Row]:
    subjects, dim = X.shape
    rows: dict[str, Row] = {
        name: {"system": name, "about": peer.about, "subjects": subjects, "dim": dim} for name, peer in peers.items()
    }

    def note(column: str, seconds: dict[str, list[float]], per: int = 1) -> None:
        for name, taken in seconds.items():
            rows[name][column] = float(np.median(taken)) / per

    def in_turn(call: Callable[[Peer, int], object], times: int) -> dict[str, list[float]]:
        seconds: dict[str, list[float]] = {name: [] for name in peers}
        for turn in range(times):
            for name, peer in peers.items():
                start = time.perf_counter()
                call(peer, turn)
                seconds[name].append(time.perf_counter() - start)
        return seconds

    batch, several = subjects // 10, max(subjects // 100, 1)

    def enroll(peer: Peer, turn: int) -> None:
        peer.enroll(list(range(turn * batch, (turn + 1) * batch)), X[turn * batch : (turn + 1) * batch])

    def remove(peer: Peer, turn: int) -> None:
        peer.remove(list(range((turn + 1) * several, (turn + 2) * several)))

    note("enroll_s", in_turn(enroll, 10), batch)
    truth = np.argsort(-(probes @ X.T), axis=1)[:, :TOP].tolist()
    for name, peer in peers.items():
        found = peer.ask(probes)
        rows[name]["found"] = float(np.mean([len(set(a) & set(b)) / TOP for a, b in zip(found, truth)]))
    for column, n in (("one_s", 1), ("many_s", MANY)):
        timed = time_in_turn(
            {name: (lambda peer=peer, n=n: peer.ask(probes[:n])) for name, peer in peers.items()},  # type: ignore[misc]
            rounds=rounds, seconds_each=1.0, pause=0.05,
        )  # fmt: skip
        note(column, {name: timing.seconds.tolist() for name, timing in timed.items()})
    note("remove_one_s", in_turn(lambda peer, i: peer.remove([i]), 4 * rounds))
    note("remove_s", in_turn(remove, rounds), several)
    living = peers.get("holue")
    if isinstance(living, Living):
        living.close()  # keeps the templates, as whoever closes does, and lets a reader be the first
    opened: dict[str, list[float]] = {name: [] for name in peers}
    for _ in range(rounds):
        for name, peer in peers.items():
            opened[name].append(on_one_processor(["--open", name, peer.place, str(dim)]))
    note("open_s", opened)
    for name, peer in peers.items():
        rows[name]["bytes"] = peer.size()
        rows[name]["version"] = version("pgvector" if name == "pgvector" else NEEDED[name][0].replace("_", "-"))
    if isinstance(living, Living):
        rows["holue"]["template_bytes"] = living.templates()
    return list(rows.values())


def opening_seconds(name: str, place: str, dim: int) -> float:
    """From opening to the first answer, in this process, with everything imported and compiled before."""
    probe = random_directions(np.random.default_rng(0), 1, dim)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if name != "pgvector":  # imports what it needs, and compiles
            other = PEERS[name](str(Path(folder, "small")), dim)
            other.enroll([0, 1, 2, 3, 4, 5], random_directions(np.random.default_rng(1), 6, dim))
            other.ask(probe)
            other.close()
        else:
            import psycopg  # noqa: F401
        start = time.perf_counter()
        peer = PEERS[name](place, dim)
        peer.ask(probe)
        seconds = time.perf_counter() - start
        peer.close()
    return seconds


def main(words: list[str]) -> None:
    """Hold this process to one processor, measure, print."""
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    if words[0] == "--open":
        print(json.dumps(opening_seconds(words[1], words[2], int(words[3]))))
    else:
        print(json.dumps(compare(**json.loads(words[0]))))


if __name__ == "__main__":
    main(sys.argv[1:])
