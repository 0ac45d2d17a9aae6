"""Rounds: systems timed in turn, again and again, so that what disturbs the machine disturbs all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

PAUSE = 0.2
"""Seconds before each call: the threads of OpenBLAS were seen to keep a processor busy for 0.12 s after their work."""

WARM = 0.25
"""A call that takes fewer seconds is made once more, uncounted, right before: after a pause caches and processors are cold."""

SLOW = 3
"""A call that takes so many times the seconds it may take in all is made once."""


@dataclass(frozen=True)
class Timing:
    """Seconds of the calls of one system, in the order of the rounds."""

    seconds: npt.NDArray[np.float64]

    def summary(self) -> dict[str, float | int]:
        """Median and quartiles in milliseconds, and the number of calls."""
        low, median, high = (1e3 * float(q) for q in np.quantile(self.seconds, [0.25, 0.5, 0.75]))
        return {"median_ms": median, "q1_ms": low, "q3_ms": high, "calls": len(self.seconds)}

    def ratio_to(self, other: Timing) -> float:
        """Median over the rounds both have of this time over the other's: a disturbance of a whole round cancels."""
        n = min(len(self.seconds), len(other.seconds))
        return float(np.median(self.seconds[:n] / other.seconds[:n]))


def time_in_turn(
    calls: Mapping[str, Callable[[], object]],
    *,
    rounds: int,
    seconds_each: float,
    pause: float = PAUSE,
    first: Mapping[str, float] | None = None,
    again: Collection[str] = (),
) -> dict[str, Timing]:
    """Time every call ``rounds`` times in turn, warm, after one unmeasured call.

    A call that used up its seconds stops after three rounds. One whose first call took several times its seconds is not called
    again, and that call counts. Neither holds for those to be called ``again`` in every round, whatever they take. Whoever made
    the first calls already tells how long they took in ``first``.
    """
    if first is None:
        first = {name: _seconds(call) for name, call in calls.items()}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    slow = [name for name in calls if first[name] > SLOW * seconds_each and name not in again]
    for turn in range(rounds):
        for name, call in calls.items():
            enough = turn >= 3 and sum(seconds[name]) > seconds_each and name not in again
            if name in slow or enough:
                continue
            time.sleep(pause)
            if first[name] < WARM:
                call()
            seconds[name].append(_seconds(call))
    return {name: Timing(np.array([first[name]] if name in slow else taken)) for name, taken in seconds.items()}


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
