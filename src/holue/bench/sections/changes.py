"""Changes: what enrolling or removing one subject costs in every search, the next question, and a scan when a tenth has left."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from holue.bench.sections.section import Result, Row, Step
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import CONCENTRATION, TEMPERATURE, Float32Array, random_directions, random_probes
from holue.gallery.gallery import Gallery
from holue.recognition.search.prepared_segments import PreparedSegments
from holue.recognition.search.search import SEARCHES, SearchKind

SHARPNESS = [CONCENTRATION, CONCENTRATION / TEMPERATURE]
SHARE_GONE = 0.1
SCANNED_PROBES = (1, 64)
CALLS_AT_ONCE = 5


def change_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """One step per search."""
    result["changes"] = []
    if sizes.changed_subjects == 0:
        return
    held: list[tuple[Gallery, Float32Array]] = []

    def measure(kind: SearchKind) -> None:
        if not held:
            rng = np.random.default_rng([seed, sizes.changed_subjects])
            rows = random_directions(rng, sizes.changed_subjects, sizes.changed_dim)
            held.append((Gallery.of(np.arange(len(rows)), rows), random_probes(rng, rows, max(SCANNED_PROBES))))
        result["changes"].append(changed(kind, *held[0], sizes.changes, rounds, seed))
        if kind == SEARCHES[-1]:
            held.clear()

    for kind in SEARCHES:
        note = f"changes, {kind}: K = {sizes.changed_subjects}, d = {sizes.changed_dim}"
        yield note, partial(measure, kind)


def changed(kind: SearchKind, gallery: Gallery, probes: Float32Array, changes: int, rounds: int, seed: int) -> Row:
    """Enrol and remove in turn, one subject at a time, with questions of one probe between; all on one thread."""
    rng = np.random.default_rng([seed, 1])
    segments, clean = PreparedSegments(), gallery
    ids, new = gallery.subjects, random_directions(rng, changes + 2, gallery.dim)
    seconds: dict[str, list[float]] = {name: [] for name in ("enroll", "remove", "next", "before")}

    def ask(version: Gallery, some: Float32Array = probes[:1]) -> None:
        search = segments.search(kind, version, _keep)
        search.scan(some, SHARPNESS, top_k=5, threads=1)

    def timed(name: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        value = call()
        seconds[name].append(time.perf_counter() - start)
        return value

    ask(gallery)
    gallery = gallery.enroll(new[-1:], [len(ids) + changes]).remove(ids[-1])  # compiles, and makes the index of ids
    ask(gallery)
    for i in range(changes):
        timed("before", partial(ask, gallery))
        gallery = timed("enroll", partial(gallery.enroll, new[i : i + 1], [len(ids) + i]))
        timed("next", partial(ask, gallery))
        timed("before", partial(ask, gallery))
        gallery = timed("remove", partial(gallery.remove, ids[i * (len(ids) // (2 * changes))]))
        timed("next", partial(ask, gallery))
    row: Row = {"search": kind, "subjects": len(ids), "dim": gallery.dim, "changes": 2 * changes}
    for name, taken in seconds.items():
        row[f"{name}_ms"] = 1e3 * float(np.median(taken))
    for name, share in (("ratio", 0.5), ("ratio_p99", 0.99)):
        row[name] = float(np.quantile(seconds["next"], share) / np.quantile(seconds["before"], share))
    row["enroll_mb"] = _traced(lambda: gallery.enroll(new[-2:-1], [len(ids) + changes + 1])) / 1e6
    row["remove_mb"] = _traced(lambda: gallery.remove(ids[1])) / 1e6
    row["gone"] = _with_some_gone(clean, rng, ask, probes, rounds)
    return row


def _with_some_gone(
    clean: Gallery,
    rng: np.random.Generator,
    ask: Callable[[Gallery, Float32Array], None],
    probes: Float32Array,
    rounds: int,
) -> list[Row]:
    """Scans of a gallery that a tenth has left beside the same before, in turn."""
    left = clean.remove(rng.choice(clean.subjects, int(SHARE_GONE * len(clean)), replace=False))
    rows = []
    for n in SCANNED_PROBES:
        seconds: dict[str, list[float]] = {"clean": [], "left": []}
        for _ in range(rounds):
            for name, version in (("clean", clean), ("left", left)):
                ask(version, probes[:n])  # the forms of this version are made here
                start = time.perf_counter()
                for _ in range(CALLS_AT_ONCE if n == 1 else 1):
                    ask(version, probes[:n])
                seconds[name].append(time.perf_counter() - start)
        before, after = np.array(seconds["clean"]), np.array(seconds["left"])
        rows.append({"probes": n, "ratio": float(np.median(after / before))})
    return rows


def _traced(call: Callable[[], object]) -> int:
    """The most bytes a call takes at once; it is slower while they are counted."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _keep(*_: object) -> bool:
    """Segments stay as they are while they are measured."""
    return True
