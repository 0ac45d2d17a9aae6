"""Program: everything ``holue bench`` measures, in one process, as one dictionary that is also a JSON file."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from holue.bench.latency import identify_latency
from holue.bench.machine import machine
from holue.bench.memory import peak_bytes
from holue.bench.rounds import time_in_turn
from holue.bench.sizes import FULL, Sizes
from holue.bench.systems import SYSTEMS, missing
from holue.bench.world import Float32Array, mapped_directions, random_directions, random_probes

Result = dict[str, Any]
Report = Callable[[str], None]

LARGEST_DENSE = 2 * 10**9
"""Bytes of one N×K float64 matrix above which the dense formulations are not attempted."""


def run(
    *,
    sizes: Sizes = FULL,
    rounds: int = 15,
    out: str | os.PathLike[str] | None = None,
    seed: int = 0,
    report: Report = lambda line: None,
) -> Result:
    """Measure all systems at all ``sizes`` and return the numbers; with ``out`` also written there as JSON.

    ``report`` is told each step before it is taken.

    >>> from holue.bench.sizes import Sizes
    >>> tiny = Sizes(100, (8,), (1,), (1,), (50,), (8,), (1,), 8, 0, 2, 0.01)
    >>> sorted(run(sizes=tiny, rounds=1))
    ['comparison', 'growth', 'latency', 'machine', 'mapped', 'skipped']
    """
    rng = np.random.default_rng(seed)
    skipped = {name: why for name in SYSTEMS if (why := missing(name)) is not None}
    result: Result = {"machine": machine(), "skipped": skipped, "comparison": [], "growth": []}
    for dim in sizes.dims:
        gallery = random_directions(rng, sizes.n_subjects, dim)
        names = [name for name in SYSTEMS if name not in skipped]
        for threads in sizes.threads:
            for n_probes in sizes.batches:
                report(f"K = {sizes.n_subjects}, d = {dim}, {n_probes} probes, {threads} threads")
                probes = random_probes(rng, gallery, n_probes)
                result["comparison"] += _compare(gallery, probes, names, threads, rounds, sizes.seconds_each)
    dim = sizes.dims[0]
    report(f"identify, one probe at a time: K = {sizes.n_subjects}, d = {dim}")
    gallery = random_directions(rng, sizes.n_subjects, dim)
    probes = random_probes(rng, gallery, 64)
    result["latency"] = _place(gallery, 1) | identify_latency(gallery, probes, sizes.latency_calls)
    shapes = [(k, sizes.growth_dim) for k in sizes.growth_subjects]
    shapes += [(sizes.n_subjects, d) for d in sizes.growth_dims if (sizes.n_subjects, d) not in shapes]
    for n_subjects, dim in shapes:
        gallery = random_directions(rng, n_subjects, dim)
        for n_probes in sizes.growth_batches:
            report(f"growth: K = {n_subjects}, d = {dim}, {n_probes} probes")
            probes = random_probes(rng, gallery, n_probes)
            names = ["sgemm", "holue"] if 4 * n_probes * n_subjects <= LARGEST_DENSE else ["holue"]
            result["growth"] += _compare(gallery, probes, names, max(sizes.threads), rounds, sizes.seconds_each)
    result["mapped"] = _mapped(rng, sizes, rounds, report)
    if out is not None:
        Path(out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return result


def _compare(
    gallery: Float32Array, probes: Float32Array, names: list[str], threads: int, rounds: int, seconds_each: float
) -> list[Result]:
    names = [n for n in names if n != "numpy float64" or 8 * len(probes) * len(gallery) <= LARGEST_DENSE]
    calls = {name: partial(SYSTEMS[name](gallery, len(probes), threads), probes) for name in names}
    peaks = {name: peak_bytes(call) for name, call in calls.items()}
    timings = time_in_turn(calls, rounds=rounds, seconds_each=seconds_each)
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


def _mapped(rng: np.random.Generator, sizes: Sizes, rounds: int, report: Report) -> Result | None:
    """The same scan of a gallery on disk, larger than one would hold in memory; None where it is not asked for."""
    if sizes.mapped_subjects == 0:
        return None
    needed = 4 * sizes.mapped_subjects * sizes.growth_dim
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < 1.2 * needed:
        why = f"it takes {needed / 1e9:.1f} GB under {tempfile.gettempdir()}, where {free / 1e9:.1f} GB are free"
        report(f"no memory-mapped gallery: {why}")
        return {"skipped": why}
    with tempfile.TemporaryDirectory() as directory:
        report(f"writing a gallery of {sizes.mapped_subjects} subjects")
        gallery = mapped_directions(rng, Path(directory) / "gallery.f32", sizes.mapped_subjects, sizes.growth_dim)
        rows = []
        for n_probes in sizes.growth_batches:
            report(f"memory-mapped: K = {sizes.mapped_subjects}, d = {sizes.growth_dim}, {n_probes} probes")
            probes = random_probes(rng, gallery, n_probes)
            rows += _compare(gallery, probes, ["holue"], max(sizes.threads), min(rounds, 3), sizes.seconds_each)
        del gallery
    return {"rows": rows}
