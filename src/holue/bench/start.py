"""Start: how long a new Python process takes until holue has answered its first probe."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from statistics import median

_PROGRAM = """
import json, time
seconds, last = {}, time.perf_counter()
def lap(name):
    global last
    now = time.perf_counter()
    seconds[name], last = now - last, time.perf_counter()
import holue
lap("import holue")
import sklearn.base
lap("import scikit-learn")
from holue import OpenSetRecognizer
lap("import the recogniser")
import numpy as np
gallery = np.random.default_rng(0).normal(size=(1000, 64)).astype(np.float32)
recognizer = OpenSetRecognizer(method="galue", threshold=0.5).fit(gallery, np.arange(1000))
lap("first fit")
recognizer.identify(gallery[:1], concentration=np.full(1, 400.0))
lap("first identify")
recognizer.identify(gallery[:1], concentration=np.full(1, 400.0))
lap("second identify")
print(json.dumps(seconds))
"""


def start_seconds(starts: int) -> dict[str, dict[str, float]]:
    """Seconds of each step of a start: ``compiling`` with nothing compiled yet, ``cached`` the median of ``starts`` others."""
    with tempfile.TemporaryDirectory() as place:
        environment = os.environ | {"NUMBA_CACHE_DIR": place}
        compiling = _one(environment)
        cached = [_one(environment) for _ in range(starts)]
    return {"compiling": compiling, "cached": {step: median(one[step] for one in cached) for step in compiling}}


def _one(environment: dict[str, str]) -> dict[str, float]:
    ran = subprocess.run([sys.executable, "-c", _PROGRAM], env=environment, capture_output=True, text=True, check=True)
    seconds: dict[str, float] = json.loads(ran.stdout)
    return seconds
