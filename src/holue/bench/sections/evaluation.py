"""Evaluation benchmark: a whole evaluation at the size of IJB-C, on simulated embeddings."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from holue.bench.sections.section import Result, Step
from holue.bench.worlds.sizes import Sizes
from holue.datasets.simulated import simulate
from holue.evaluation.comparison.study import evaluate
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery

IJBC_EVALUATION = {"n_subjects": 3531, "n_strangers": 1469}
"""With four probes per person: 3531 enrolled and 20 000 probes."""
IJBC_DEVELOPMENT = {"n_subjects": 1772, "n_strangers": 1759}
"""The size of the paper's MS1MV2 validation set: 1772 enrolled and 14 124 probes."""


def simulated_part(rng: np.random.Generator, *, first_subject: int = 0, **world: Any) -> ProtocolPart:
    """One part of a protocol from a simulated world, with every quality column; κ_x is true, the others are noisy views of it."""
    drawn = simulate(first_subject=first_subject, rng=rng, **world)
    kappa = drawn.probes.concentration

    def view() -> np.ndarray[Any, np.dtype[np.float64]]:
        return kappa * np.exp(0.3 * rng.normal(size=len(kappa)))

    return ProtocolPart(
        Gallery.from_samples(drawn.gallery.X.astype(np.float32), drawn.gallery.y.astype(np.int64)),
        Embeddings.from_samples(drawn.probes.X.astype(np.float32), kappa),
        drawn.probes.person,
        qualities={"concentration": kappa, "pfe": -1 / view(), "scale": view(), "quality": view()},
    )


def simulated_protocol(
    seed: int = 0,
    *,
    development: dict[str, int] = IJBC_DEVELOPMENT,
    evaluation: dict[str, int] = IJBC_EVALUATION,
    dim: int = 512,
    concentration: float = 400.0,
    look_alike_pairs: int = 100,
    probes_per_person: int = 4,
) -> IdentificationProtocol:
    """A protocol whose development and evaluation people differ, by default of the size of IJB-C.

    >>> people = {"n_subjects": 20, "n_strangers": 10}
    >>> simulated_protocol(development=people, evaluation=people, dim=16, look_alike_pairs=2).evaluation
    ProtocolPart(20 subjects enrolled, 80 mated and 40 non-mated probes, d=16)
    """
    rng = np.random.default_rng(seed)
    shared: dict[str, Any] = {
        "dim": dim,
        "concentration": concentration,
        "look_alike_pairs": look_alike_pairs,
        "probes_per_person": probes_per_person,
        "enrolled_samples": 1,
    }
    return IdentificationProtocol(
        "simulated",
        simulated_part(rng, first_subject=1_000_000, **development, **shared),
        simulated_part(rng, **evaluation, **shared),
    )


def evaluation_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """One evaluation, of one size, done once."""
    result.pop("evaluation", None)

    def evaluation() -> None:
        result["evaluation"] = bench_evaluation(seed=seed)

    yield "a whole evaluation at IJB-C's size", evaluation


def bench_evaluation(n_resamples: int = 1000, seed: int = 0) -> dict[str, Any]:
    """Time and peak memory of all methods at three operating points; the limits are two minutes and 2 GB on two cores.

    Peak memory is that of the whole process so far, the simulated world included.
    """
    protocol = simulated_protocol(seed)
    laps: list[tuple[float, str]] = []
    started, cpu = time.perf_counter(), time.process_time()
    results = evaluate(
        protocol,
        n_resamples=n_resamples,
        seed=seed,
        progress=lambda done, total, note="": laps.append((time.perf_counter(), note)),
    )
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    counts = protocol.evaluation.counts
    return {
        "benchmark": "evaluation at the size of IJB-C",
        "gallery_subjects": counts["gallery_subjects"],
        "probes": counts["mated_probes"] + counts["non_mated_probes"],
        "dim": counts["dim"],
        "methods": [method.key for method in results.methods],
        "operating_points": list(results.settings.fpir),
        "resamples": n_resamples,
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "peak_rss_bytes": int(peak),
        "steps": [{"step": note, "started_at": round(at - started, 2)} for at, note in laps if note],
    }
