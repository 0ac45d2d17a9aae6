"""Program: everything ``holue bench`` measures, in one process, as one dictionary that is also a JSON file."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from holue.bench.chores import calibration, pooling, resampling
from holue.bench.latency import identify_latency
from holue.bench.machine import load, machine
from holue.bench.memory import peak_bytes
from holue.bench.rounds import time_in_turn
from holue.bench.sizes import FULL, Sizes
from holue.bench.start import start_seconds
from holue.bench.systems import SYSTEMS, missing
from holue.bench.world import Float32Array, mapped_directions, random_directions, random_probes
from holue.embedding.progress import Progress

Result = dict[str, Any]
Step = tuple[str, Callable[[], None]]

LARGEST_DENSE = 2 * 10**9
"""Bytes of one N×K float64 matrix above which the dense formulations are not attempted."""

MEASURES = ("sgemm", "holue", "faiss")
"""Those whose ratios are the point: they have three rounds at least."""


def run(
    *,
    sizes: Sizes = FULL,
    rounds: int = 9,
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Result:
    """Measure all systems at all ``sizes`` and return the numbers; with ``out`` also written there as JSON.

    The file is written after every step, so that an interrupted run leaves what it measured.

    >>> from holue.bench.sizes import Sizes
    >>> tiny = Sizes(100, (8,), (1,), (1,), (50,), (8,), (1,), 8, 0, 2, 0.01, 0, 0, 0, 0)
    >>> result = run(sizes=tiny, rounds=1)
    >>> sorted(result)
    ['chores', 'comparison', 'finished', 'growth', 'latency', 'machine', 'mapped', 'rounds', 'seconds', 'skipped', 'start']
    """
    started = time.perf_counter()
    skipped = {name: why for name in SYSTEMS if (why := missing(name)) is not None}
    result: Result = {"machine": machine() | {"load": load()}, "rounds": rounds, "finished": False, "skipped": skipped}
    result |= {"comparison": [], "growth": [], "mapped": None, "latency": None, "chores": [], "start": None}
    steps = list(_steps(result, sizes, rounds, seed))
    for number, (note, step) in enumerate(steps):
        if progress is not None:
            progress(number, len(steps), note)
        step()
        result["finished"] = number + 1 == len(steps)
        result["seconds"] = time.perf_counter() - started
        if out is not None:
            write(Path(out), result)
    return result


def write(path: Path, result: Result) -> None:
    """Write the numbers as JSON."""
    # First beside it: whoever interrupts the writing must not lose what was there.
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    part.replace(path)


class _Galleries:
    """The gallery of the moment: random, repeatable, and only one at a time in memory."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.shape: tuple[int, int] | None = None
        self.held: Float32Array = np.empty((0, 0), dtype=np.float32)

    def of(self, n_subjects: int, dim: int) -> Float32Array:
        if self.shape != (n_subjects, dim):
            self.held = np.empty((0, 0), dtype=np.float32)
            self.held = random_directions(np.random.default_rng([self.seed, n_subjects, dim]), n_subjects, dim)
            self.shape = n_subjects, dim
        return self.held


def _steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """Every measurement with its name, in the order in which a gallery is made only once."""
    galleries, rng = _Galleries(seed), np.random.default_rng(seed)

    def compare(place: str, n_subjects: int, dim: int, n_probes: int, threads: int, names: list[str]) -> None:
        gallery = galleries.of(n_subjects, dim)
        probes = random_probes(rng, gallery, n_probes)
        result[place] += _compare(gallery, probes, names, threads, rounds, sizes.seconds_each)

    everyone = [name for name in SYSTEMS if name not in result["skipped"]]
    for dim in sizes.dims:
        for threads in sizes.threads:
            for n_probes in sizes.batches:
                note = f"K = {sizes.n_subjects}, d = {dim}, {n_probes} probes, {threads} threads"
                yield note, partial(compare, "comparison", sizes.n_subjects, dim, n_probes, threads, everyone)
    dim = sizes.dims[0]

    def latency() -> None:
        gallery = galleries.of(sizes.n_subjects, dim)
        probes = random_probes(rng, gallery, 64)
        result["latency"] = _place(gallery, 1) | identify_latency(gallery, probes, sizes.latency_calls)

    yield f"identify, one probe at a time: K = {sizes.n_subjects}, d = {dim}", latency
    shapes = [(k, sizes.growth_dim) for k in sizes.growth_subjects]
    shapes += [(sizes.n_subjects, d) for d in sizes.growth_dims if (sizes.n_subjects, d) not in shapes]
    for n_subjects, width in shapes:
        for n_probes in sizes.growth_batches:
            names = ["sgemm", "holue"] if 4 * n_probes * n_subjects <= LARGEST_DENSE else ["holue"]
            note = f"growth: K = {n_subjects}, d = {width}, {n_probes} probes"
            yield note, partial(compare, "growth", n_subjects, width, n_probes, max(sizes.threads), names)

    def mapped() -> None:
        galleries.of(0, 1)
        result["mapped"] = _mapped(rng, sizes, rounds)

    if sizes.mapped_subjects > 0:
        yield f"a gallery of {sizes.mapped_subjects} subjects, memory-mapped from disk", mapped

    def add(measure: Callable[[], Result | list[Result]]) -> None:
        galleries.of(0, 1)
        rows = measure()
        result["chores"] += rows if isinstance(rows, list) else [rows]

    if sizes.calibration_probes > 0:
        yield "calibration", partial(add, partial(calibration, sizes.calibration_probes, dim, seed))
        yield "bootstrap", partial(add, partial(resampling, sizes.calibration_probes, seed))
    if sizes.pooled_samples > 0:
        yield "pooling", partial(add, partial(pooling, sizes.pooled_samples, sizes.pooled_dim, seed))

    def start() -> None:
        result["start"] = start_seconds(sizes.starts)

    if sizes.starts > 0:
        yield "the start of a new process", start


def _compare(
    gallery: Float32Array, probes: Float32Array, names: list[str], threads: int, rounds: int, seconds_each: float
) -> list[Result]:
    names = [n for n in names if n != "numpy float64" or 8 * len(probes) * len(gallery) <= LARGEST_DENSE]
    calls = {name: partial(SYSTEMS[name](gallery, len(probes), threads), probes) for name in names}
    peaks, first = {}, {}
    for name, call in calls.items():
        start = time.perf_counter()
        peaks[name] = peak_bytes(call)
        first[name] = time.perf_counter() - start
    timings = time_in_turn(calls, rounds=rounds, seconds_each=seconds_each, first=first, again=MEASURES)
    rows = []
    for name, timing in timings.items():
        row = _place(gallery, len(probes)) | {"threads": threads, "system": name} | timing.summary()
        for other in ("sgemm", "faiss"):
            if other in timings:
                row[f"ratio_to_{other}"] = timing.ratio_to(timings[other])
        peak = peaks[name]
        row["peak_mb"] = None if peak is None else peak / 1e6
        rows.append(row)
    return rows


def _place(gallery: Float32Array, n_probes: int) -> Result:
    return {"subjects": len(gallery), "dim": gallery.shape[1], "probes": n_probes}


def _mapped(rng: np.random.Generator, sizes: Sizes, rounds: int) -> Result:
    """The same scan of a gallery on disk, larger than one would hold in memory."""
    needed = 4 * sizes.mapped_subjects * sizes.growth_dim
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < 1.2 * needed:
        return {
            "skipped": f"it takes {needed / 1e9:.1f} GB of the temporary directory, which has {free / 1e9:.1f} GB free"
        }
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        gallery = mapped_directions(rng, Path(directory) / "gallery.f32", sizes.mapped_subjects, sizes.growth_dim)
        for n_probes in sizes.growth_batches:
            probes = random_probes(rng, gallery, n_probes)
            rows += _compare(gallery, probes, ["holue"], max(sizes.threads), min(rounds, 3), sizes.seconds_each)
        del gallery
    return {"rows": rows}
