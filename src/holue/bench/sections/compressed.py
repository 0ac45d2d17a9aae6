"""Compressed benchmark: a scan of float16 and int8 codes in turn with the float32 scan of the same gallery, and FAISS."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from holue.bench.measuring import Timing, time_in_turn
from holue.bench.sections.section import Result, Row, Step
from holue.bench.systems import SHARPNESS, Answer, faiss_flat, holue_evidence, missing
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import TOP_K, Float32Array, random_directions, random_probes
from holue.evidence.quantized.scan import scan_compressed
from holue.gallery.compressed import FORMS, CompressedGallery, compress

Codes = dict[Any, CompressedGallery]

MOST_SCORES = 110_000_000
"""Subjects times probes of the largest case: some seconds a call."""


def compressed_evidence(compressed: CompressedGallery, threads: int) -> Answer:
    """holue's answer from codes: the exact top five, and log-mass and mean score at κ and κ/20 with certified bounds."""
    return lambda probes: scan_compressed(probes, compressed, SHARPNESS, top_k=TOP_K, threads=threads)


def compressed_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """One step per size: a row for each form, its time, how many times faster than float32 round by round, and its bounds.

    >>> from dataclasses import replace
    >>> from holue.bench.worlds.sizes import QUICK
    >>> sizes = replace(QUICK, compressed_shapes=((200, 16),), compressed_batches=(1,), threads=(1,), pause=0.0)
    >>> result = {}
    >>> for note, measure in compressed_steps(result, sizes, rounds=1, seed=0):
    ...     measure()
    >>> [row["system"] for row in result["compressed"] if row["system"] != "faiss"]
    ['holue', 'holue float16', 'holue int8']
    """
    result["compressed"] = []
    rng = np.random.default_rng(seed)
    held: dict[tuple[int, int], tuple[Float32Array, Codes]] = {}

    def measure(shape: tuple[int, int], n_probes: int) -> None:
        if shape not in held:
            held.clear()
            gallery = random_directions(rng, *shape)
            held[shape] = gallery, {form: compress(gallery, form) for form in FORMS}
        gallery, codes = held[shape]
        probes = random_probes(rng, gallery, n_probes)
        for threads in sizes.threads:
            calls = {"holue": partial(holue_evidence(gallery, n_probes, threads), probes)}
            calls |= {f"holue {form}": partial(compressed_evidence(codes[form], threads), probes) for form in codes}
            if missing("faiss") is None:
                calls["faiss"] = partial(faiss_flat(gallery, n_probes, threads), probes)
            timings = time_in_turn(calls, rounds=rounds, seconds_each=4 * sizes.seconds_each, pause=sizes.pause)
            place = {"subjects": shape[0], "dim": shape[1], "probes": n_probes, "threads": threads}
            result["compressed"] += [place | row for row in _rows(timings, gallery, codes, probes)]

    for shape in sizes.compressed_shapes:
        for n_probes in (n for n in sizes.compressed_batches if n * shape[0] <= MOST_SCORES):
            note = f"compressed: K = {shape[0]}, d = {shape[1]}, {n_probes} probes"
            yield note, partial(measure, shape, n_probes)


def _rows(timings: dict[str, Timing], gallery: Float32Array, codes: Codes, probes: Float32Array) -> list[Row]:
    rows: list[Row] = []
    for name, timing in timings.items():
        row: Row = {"system": name} | timing.summary()
        row["times_faster"] = 1 / timing.ratio_to(timings["holue"])
        row["gallery_mb"] = gallery.nbytes / 1e6
        if name.startswith("holue "):
            compressed = codes[name.removeprefix("holue ")]
            row["gallery_mb"] = compressed.nbytes / 1e6
            bounds = scan_compressed(probes, compressed, SHARPNESS, top_k=TOP_K).precision
            if bounds is not None:
                row["largest_log_mass_bound"] = bounds.log_mass_bound.max(axis=0).tolist()
                row["largest_score_bound"] = float(bounds.score_bound.max())
        rows.append(row)
    return rows


def as_text(rows: list[Row]) -> str:
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
