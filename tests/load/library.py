"""Library: the rate of ``holue.open(…).identify`` itself: ``python -m tests.load.library GALLERY PROBES BATCH SECONDS``."""

from __future__ import annotations

import json
import sys
import time

import numpy as np

import holue

from .generator import Measured


def main() -> None:
    """Ask in a loop, and print rate and percentiles of a call; the rate counts probes."""
    home, probes, batch, seconds = sys.argv[1], np.load(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    measured = Measured()
    with holue.open(home, read_only=True) as gallery:
        for call in range(-3, 10**9):
            first = call * batch % (len(probes) - batch + 1)
            if call == 0:
                began, cpu = time.perf_counter(), time.process_time()
            start = time.perf_counter()
            gallery.identify(probes[first : first + batch])
            now = time.perf_counter()
            if call >= 0:
                measured.seconds.append(now - start)
                if now - began >= seconds:
                    break
    measured.window = now - began
    cpu_ms = 1e3 * (time.process_time() - cpu) / (batch * len(measured.seconds))
    found = measured.summary()
    json.dump({**found, "rate": found["rate"] * batch, "cpu_ms": cpu_ms}, sys.stdout)


if __name__ == "__main__":
    main()
