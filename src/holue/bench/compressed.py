"""Compressed benchmark: a scan of float16 and int8 codes in turn with the float32 scan of the same gallery."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from holue.bench.rounds import Timing, time_in_turn
from holue.bench.systems import SHARPNESS, Answer, holue_evidence
from holue.bench.world import TOP_K, Float32Array, random_directions, random_probes
from holue.evidence.compressed import scan_compressed
from holue.gallery.compressed import FORMS, CompressedGallery, compress

SHAPES = ((100_000, 512), (100_000, 128), (1_000_000, 128))
"""Subjects and dimensions."""
BATCHES, THREADS = (1, 16), (1, 2)
PAUSE = 0.25
"""Seconds before each call: long enough for every thread of the last one to sleep."""


def compressed_evidence(compressed: CompressedGallery, threads: int) -> Answer:
    """holue's answer from codes: the exact top five, and log-mass and mean score at κ and κ/20 with certified bounds."""
    return lambda probes: scan_compressed(probes, compressed, SHARPNESS, top_k=TOP_K, threads=threads)


def bench_compressed(
    *,
    shapes: tuple[tuple[int, int], ...] = SHAPES,
    batches: tuple[int, ...] = BATCHES,
    threads: tuple[int, ...] = THREADS,
    rounds: int = 15,
    seconds_each: float = 4.0,
    pause: float = PAUSE,
    seed: int = 0,
) -> list[dict[str, Any]]:
    """One row per size and form: its time, how many times faster it is than float32 round by round, and its bounds.

    >>> rows = bench_compressed(shapes=((200, 16),), batches=(1,), threads=(1,), rounds=1, pause=0.0)
    >>> [row["system"] for row in rows]
    ['holue', 'holue float16', 'holue int8']
    """
    rng = np.random.default_rng(seed)
    rows = []
    for n_subjects, dim in shapes:
        gallery = random_directions(rng, n_subjects, dim)
        codes = {form: compress(gallery, form) for form in FORMS}
        for n_probes in batches:
            probes = random_probes(rng, gallery, n_probes)
            for n_threads in threads:
                calls = {"holue": partial(holue_evidence(gallery, n_probes, n_threads), probes)}
                for form in FORMS:
                    calls[f"holue {form}"] = partial(compressed_evidence(codes[form], n_threads), probes)
                timings = time_in_turn(calls, rounds=rounds, seconds_each=seconds_each, pause=pause)
                place = {"subjects": n_subjects, "dim": dim, "probes": n_probes, "threads": n_threads}
                rows += [place | row for row in _rows(timings, gallery, codes, probes)]
    return rows


def _rows(
    timings: dict[str, Timing], gallery: Float32Array, codes: dict[Any, CompressedGallery], probes: Float32Array
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, timing in timings.items():
        row: dict[str, Any] = {"system": name} | timing.summary()
        row["times_faster"] = 1 / timing.ratio_to(timings["holue"])
        row["gallery_mb"] = gallery.nbytes / 1e6
        if name != "holue":
            compressed = codes[name.removeprefix("holue ")]
            row["gallery_mb"] = compressed.nbytes / 1e6
            bounds = scan_compressed(probes, compressed, SHARPNESS, top_k=TOP_K).precision
            if bounds is not None:
                row["largest_log_mass_bound"] = bounds.log_mass_bound.max(axis=0).tolist()
                row["largest_score_bound"] = float(bounds.score_bound.max())
        rows.append(row)
    return rows


def as_text(rows: list[dict[str, Any]]) -> str:
    """The rows as a plain table.

    >>> row = {"subjects": 10, "dim": 4, "probes": 1, "threads": 1, "system": "holue", "median_ms": 1.5, "times_faster": 1.0,
    ...        "gallery_mb": 0.2}
    >>> print(as_text([row]))
      subjects   dim  probes threads  system           median ms  faster      MB  bounds at κ, κ/T
            10     4       1       1  holue                 1.50    1.00     0.2
    """
    lines = [
        f"{'subjects':>10}{'dim':>6}{'probes':>8}{'threads':>8}  {'system':<15}{'median ms':>11}{'faster':>8}{'MB':>8}  "
        "bounds at κ, κ/T"
    ]
    for row in rows:
        bounds = ", ".join(f"{bound:.2g}" for bound in row.get("largest_log_mass_bound", []))
        line = (
            f"{row['subjects']:>10}{row['dim']:>6}{row['probes']:>8}{row['threads']:>8}  {row['system']:<15}"
            f"{row['median_ms']:>11.2f}{row['times_faster']:>8.2f}{row['gallery_mb']:>8.1f}  {bounds}"
        )
        lines.append(line.rstrip())
    return "\n".join(lines)
