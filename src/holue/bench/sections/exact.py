"""Exact benchmark: the whole answer beside the bare product and bare searches, and how it grows."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from holue.bench.measuring import lack_of_room, peak_bytes, time_in_turn
from holue.bench.sections.section import Result, Row, Step
from holue.bench.systems import SYSTEMS, missing
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import Float32Array, mapped_directions, random_directions, random_probes

LARGEST_DENSE = 2 * 10**9
"""Bytes of one N×K float64 matrix above which the dense formulations are not attempted."""

MEASURES = ("sgemm", "holue", "faiss")
"""Those whose ratios are the point: they have three rounds at least."""


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


def exact_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """The comparison, growth, and a gallery on disk, in the order in which a gallery is made only once."""
    skipped = {name: why for name in SYSTEMS if (why := missing(name)) is not None}
    result.update({"skipped": skipped, "comparison": [], "growth": [], "mapped": None})
    galleries, rng = _Galleries(seed), np.random.default_rng(seed)

    def compare(place: str, n_subjects: int, dim: int, n_probes: int, threads: int, names: list[str]) -> None:
        gallery = galleries.of(n_subjects, dim)
        probes = random_probes(rng, gallery, n_probes)
        result[place] += _compare(gallery, probes, names, threads, rounds, sizes)

    everyone = [name for name in SYSTEMS if name not in skipped]
    for dim in sizes.dims:
        for threads in sizes.threads:
            for n_probes in sizes.batches:
                note = f"K = {sizes.n_subjects}, d = {dim}, {n_probes} probes, {threads} threads"
                yield note, partial(compare, "comparison", sizes.n_subjects, dim, n_probes, threads, everyone)
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


def _compare(
    gallery: Float32Array, probes: Float32Array, names: list[str], threads: int, rounds: int, sizes: Sizes
) -> list[Row]:
    names = [n for n in names if n != "numpy float64" or 8 * len(probes) * len(gallery) <= LARGEST_DENSE]
    calls = {name: partial(SYSTEMS[name](gallery, len(probes), threads), probes) for name in names}
    peaks, first = {}, {}
    for name, call in calls.items():
        start = time.perf_counter()
        peaks[name] = peak_bytes(call)
        first[name] = time.perf_counter() - start
    timings = time_in_turn(
        calls, rounds=rounds, seconds_each=sizes.seconds_each, pause=sizes.pause, first=first, again=MEASURES
    )
    place = {"subjects": len(gallery), "dim": gallery.shape[1], "probes": len(probes), "threads": threads}
    rows = []
    for name, timing in timings.items():
        row: Row = place | {"system": name} | timing.summary()
        for other in ("sgemm", "faiss"):
            if other in timings:
                row[f"ratio_to_{other}"] = timing.ratio_to(timings[other])
        peak = peaks[name]
        row["peak_mb"] = None if peak is None else peak / 1e6
        rows.append(row)
    return rows


def _mapped(rng: np.random.Generator, sizes: Sizes, rounds: int) -> Result:
    """The same scan of a gallery on disk, larger than one would hold in memory."""
    lack = lack_of_room(4 * sizes.mapped_subjects * sizes.growth_dim)
    if lack is not None:
        return {"skipped": lack}
    rows = []
    with tempfile.TemporaryDirectory() as directory:
        gallery = mapped_directions(rng, Path(directory) / "gallery.f32", sizes.mapped_subjects, sizes.growth_dim)
        for n_probes in sizes.growth_batches:
            probes = random_probes(rng, gallery, n_probes)
            rows += _compare(gallery, probes, ["holue"], max(sizes.threads), min(rounds, 3), sizes)
        del gallery
    return {"rows": rows}
