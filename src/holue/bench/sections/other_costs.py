"""Other costs: what a user waits for beside the scan: one answer, calibration, pooling, resampling, a new process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from holue.bench.measuring import identify_latency, peak_bytes, start_seconds
from holue.bench.sections.section import Result, Row, Step
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import random_directions, random_probes
from holue.datasets.simulated import simulate
from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.evaluation.intervals.intervals import bootstrap_metric, bootstrap_prr
from holue.gallery.pooling import pool
from holue.recognition.recognizer import OpenSetRecognizer

CALLS = 3
"""How often a cost is measured, whatever the rounds."""
RESAMPLES = 1000
PROBES_PER_PERSON = 4
SAMPLES_PER_SUBJECT = 10
ROWS_AT_ONCE = 50_000


def other_cost_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """Everything of this file, one after the other."""
    result.update({"latency": None, "other_costs": [], "start": None})
    dim = sizes.dims[0]

    def latency() -> None:
        rng = np.random.default_rng([seed, sizes.n_subjects, dim])
        gallery = random_directions(rng, sizes.n_subjects, dim)
        place = {"subjects": sizes.n_subjects, "dim": dim, "probes": 1}
        result["latency"] = place | identify_latency(gallery, random_probes(rng, gallery, 64), sizes.latency_calls)

    yield f"identify, one probe at a time: K = {sizes.n_subjects}, d = {dim}", latency

    def add(measure: Callable[[], Row | list[Row]]) -> None:
        rows = measure()
        result["other_costs"] += rows if isinstance(rows, list) else [rows]

    if sizes.calibration_probes > 0:
        yield "calibration", partial(add, partial(calibration, sizes.calibration_probes, dim, seed))
        yield "bootstrap", partial(add, partial(resampling, sizes.calibration_probes, seed))
    if sizes.pooled_samples > 0:
        yield "pooling", partial(add, partial(pooling, sizes.pooled_samples, sizes.pooled_dim, seed))

    def start() -> None:
        result["start"] = start_seconds(sizes.starts)

    if sizes.starts > 0:
        yield "the start of a new process", start


def calibration(n_probes: int, dim: int, seed: int = 0) -> Row:
    """The whole of ``calibrate`` with the paper's head, half of the people enrolled."""
    people = max(n_probes // PROBES_PER_PERSON, 4)
    world = simulate(
        n_subjects=people // 2,
        n_strangers=people - people // 2,
        dim=dim,
        concentration=60.0,
        probes_per_person=PROBES_PER_PERSON,
        look_alike_pairs=people // 8,
        rng=np.random.default_rng(seed),
    )
    gallery = world.gallery.X.astype(np.float32), world.gallery.y
    probes, kappa = world.probes.X.astype(np.float32), world.probes.concentration
    recognizer = OpenSetRecognizer(method="holue", random_state=seed).fit(*gallery)
    row = _timed(lambda: recognizer.calibrate(probes, world.probes.y, kappa))
    return {"cost": "calibrate", "probes": len(probes), "subjects": people // 2, "dim": dim} | row


def pooling(n_samples: int, dim: int, seed: int = 0) -> Row:
    """Samples of many subjects into one template each."""
    rng = np.random.default_rng(seed)
    subject = rng.integers(max(n_samples // SAMPLES_PER_SUBJECT, 1), size=n_samples)
    X = np.empty((n_samples, dim), dtype=np.float32)
    for first in range(0, n_samples, ROWS_AT_ONCE):
        X[first : first + ROWS_AT_ONCE] = random_directions(rng, len(X[first : first + ROWS_AT_ONCE]), dim)
    pool(X[:10], subject[:10])  # compiles
    return {"cost": "pool", "samples": n_samples, "dim": dim} | _timed(lambda: pool(X, subject))


def resampling(n_probes: int, seed: int = 0) -> list[Row]:
    """A metric, and a prediction rejection ratio, on resamples of the subjects."""
    rng = np.random.default_rng(seed)
    mated, accepted = rng.random(n_probes) < 0.5, rng.random(n_probes) < 0.6
    answers: dict[str, Any] = {
        "mated": mated,
        "accepted": accepted,
        "correct_subject": mated & (rng.random(n_probes) < 0.9),
    }
    person = np.arange(n_probes) // PROBES_PER_PERSON
    quality = rng.normal(size=n_probes) + answers["correct_subject"]
    resamples = SubjectBootstrap.draw(person, n_resamples=RESAMPLES, rng=seed)

    def metric() -> object:
        return bootstrap_metric("f1", resamples=resamples, **answers).interval()

    def ratio() -> object:
        return bootstrap_prr(quality, resamples=resamples, **answers).interval()

    rows = []
    for name, call in (("bootstrap of F1", metric), ("bootstrap of a PRR", ratio)):
        call()  # compiles
        rows.append({"cost": name, "probes": n_probes, "resamples": RESAMPLES} | _timed(call))
    return rows


def _timed(call: Callable[[], object]) -> Row:
    """Seconds and processor seconds of a call, the medians of some, and the memory that another one took, which is watched."""
    seconds, processor_seconds = [], []
    for _ in range(CALLS):
        start, processor = time.perf_counter(), time.process_time()
        call()
        seconds.append(time.perf_counter() - start)
        processor_seconds.append(time.process_time() - processor)
    peak = peak_bytes(call, every=0.01)
    row = {"seconds": float(np.median(seconds)), "processor_seconds": float(np.median(processor_seconds))}
    return row | {"peak_mb": None if peak is None else peak / 1e6}
