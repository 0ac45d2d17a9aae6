"""Latency: one probe after the other through the whole of ``identify``."""

from __future__ import annotations

import time

import numpy as np

from holue.bench.world import CONCENTRATION, Float32Array
from holue.recognition.recognizer import OpenSetRecognizer


def identify_latency(gallery: Float32Array, probes: Float32Array, calls: int) -> dict[str, float | int]:
    """Median and 99th percentile in milliseconds of ``OpenSetRecognizer.identify`` of one probe, in a loop."""
    recognizer = OpenSetRecognizer(method="galue", threshold=0.5).fit(gallery, np.arange(len(gallery)))
    kappa = np.full(1, CONCENTRATION)
    seconds = []
    for call in range(-3, calls):
        probe = probes[call % len(probes)][None]
        start = time.perf_counter()
        recognizer.identify(probe, concentration=kappa)
        seconds.append(time.perf_counter() - start)
    p50, p99 = (1e3 * float(q) for q in np.quantile(seconds[3:], [0.5, 0.99]))
    return {"p50_ms": p50, "p99_ms": p99, "calls": calls}
