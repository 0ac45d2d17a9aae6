"""Chores: what a user waits for beside the scan: calibration, pooling, resampling."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from holue.bench.memory import peak_bytes
from holue.bench.world import random_directions
from holue.datasets.simulated import simulate
from holue.evaluation.bootstrap import SubjectBootstrap
from holue.evaluation.intervals import bootstrap_metric, bootstrap_prr
from holue.gallery.pooling import pool
from holue.recognition.recognizer import OpenSetRecognizer

Row = dict[str, Any]

RESAMPLES = 1000
PROBES_PER_PERSON = 4
SAMPLES_PER_SUBJECT = 10
ROWS_AT_ONCE = 50_000


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
    return {"chore": "calibrate", "probes": len(probes), "subjects": people // 2, "dim": dim} | row


def pooling(n_samples: int, dim: int, seed: int = 0) -> Row:
    """Samples of many subjects into one template each."""
    rng = np.random.default_rng(seed)
    subject = rng.integers(max(n_samples // SAMPLES_PER_SUBJECT, 1), size=n_samples)
    X = np.empty((n_samples, dim), dtype=np.float32)
    for first in range(0, n_samples, ROWS_AT_ONCE):
        X[first : first + ROWS_AT_ONCE] = random_directions(rng, len(X[first : first + ROWS_AT_ONCE]), dim)
    pool(X[:10], subject[:10])  # compiles
    return {"chore": "pool", "samples": n_samples, "dim": dim} | _timed(lambda: pool(X, subject))


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
        rows.append({"chore": name, "probes": n_probes, "resamples": RESAMPLES} | _timed(call))
    return rows


def _timed(call: Callable[[], object]) -> Row:
    """Seconds and processor seconds of one call, and the memory it took."""
    taken: dict[str, float] = {}

    def watched() -> None:
        start, processor = time.perf_counter(), time.process_time()
        call()
        taken["seconds"] = time.perf_counter() - start
        taken["processor_seconds"] = time.process_time() - processor

    peak = peak_bytes(watched, every=0.01)
    return taken | {"peak_mb": None if peak is None else peak / 1e6}
