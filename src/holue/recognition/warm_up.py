"""WarmUp: every inner loop compiled now, so that no first call of a later process waits for it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba.core.event import install_recorder

from holue.evidence.ivf.index import SMALLEST_GALLERY
from holue.evidence.kernels.exponential_sums import sweep
from holue.recognition.calibration.doubts import CalibrationWarning
from holue.recognition.quality import SCORES
from holue.recognition.recognizer import OpenSetRecognizer
from holue.recognition.search.search import SEARCHES, SearchKind
from holue.sphere import compiled
from holue.sphere.compile_notice import NOTICE

SUBJECTS, DIM, PROBES_PER_PERSON = 48, 8, 4
LARGE = ("approximate", "binary")
"""Searches that read a large gallery in other loops than a small one."""
FEW, MANY = 1, 2 * SUBJECTS
"""Probes that are read one by one, and probes that go through the matrix library."""

Progress = Callable[[int, int, str], None]
Way = tuple[str, SearchKind, type[np.floating]]


@dataclass(frozen=True)
class WarmUp:
    """How many functions were compiled now (0: all had been before), how long it took, and where the code is kept."""

    compiled: int
    seconds: float
    place: str
    kept: bool


def warm_up(progress: Progress | None = None) -> WarmUp:
    """Enrol, calibrate and identify made-up people in every way there is; later processes find the compiled code.

    ``kept`` is False where no directory for it can be written: then only this process gains.
    """
    started = time.perf_counter()
    NOTICE.said = True  # who calls this knows, and has a progress bar
    ways: list[Way] = [(method, "exact", np.float32) for method in SCORES]
    ways += [("galue", search, np.float32) for search in SEARCHES if search != "exact"] + [
        ("galue", "exact", np.float64)
    ]
    with install_recorder("numba:compile") as recorder, warnings.catch_warnings():
        # Made-up people are few, and nobody relies on these answers.
        warnings.simplefilter("ignore", CalibrationWarning)
        for number, way in enumerate(ways):
            _use(*way)
            if progress is not None:
                progress(number + 1, len(ways), way[0])
    functions = {event.data["dispatcher"] for _, event in recorder.buffer if event.is_start}
    own = sum(function.py_func.__module__.startswith("holue.") for function in functions)
    return WarmUp(own, time.perf_counter() - started, compiled.cache_directory(sweep), compiled.kept)


def _use(method: str, search: SearchKind, dtype: type[np.floating]) -> None:
    rng = np.random.default_rng(0)
    enrolled = SMALLEST_GALLERY if search in LARGE else SUBJECTS
    people = rng.normal(size=(enrolled + SUBJECTS, DIM))
    who = np.repeat(np.arange(enrolled - SUBJECTS, len(people)), PROBES_PER_PERSON)
    probes = (people[who] + 0.6 * rng.normal(size=(len(who), DIM))).astype(dtype)
    concentration = rng.uniform(5.0, 50.0, size=len(who))
    recognizer = OpenSetRecognizer(method=method, search=search, target_fpir=0.1)
    recognizer.fit(people[:enrolled].astype(dtype), np.arange(enrolled))
    recognizer.calibrate(probes, who, concentration)
    for count in (FEW, MANY):
        recognizer.identify(probes[:count], concentration=concentration[:count])
    recognizer.predict_set(probes[:FEW], 0.5)
