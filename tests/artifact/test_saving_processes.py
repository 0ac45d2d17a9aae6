"""Processes that save, load and die at the same time: every load gives one save, whole.

``HOLUE_KILLS`` sets how many processes are killed while they save, ``HOLUE_LOADS`` how many loads meet a process that saves.
"""

import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from holue import OpenSetRecognizer

KILLS = int(os.environ.get("HOLUE_KILLS", "30"))
LOADS = int(os.environ.get("HOLUE_LOADS", "300"))

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fork")


def recognizer(name: str, sign: int) -> OpenSetRecognizer:
    rows = sign * np.random.default_rng(0).standard_normal((300, 16), dtype=np.float32)[::sign]
    return OpenSetRecognizer("galue", threshold=0.5 + 0.1 * sign).fit(rows, [f"{name}{i:03}" for i in range(300)])


A, B = recognizer("a", 1), recognizer("b", -1)


def which(loaded: OpenSetRecognizer) -> str:
    """``a`` or ``b`` where every part is of that save."""
    name = str(loaded.gallery_.subjects[0])[0]
    saved = {"a": A, "b": B}[name]
    np.testing.assert_array_equal(loaded.gallery_.subjects, saved.gallery_.subjects)
    np.testing.assert_array_equal(loaded.gallery_.directions, saved.gallery_.directions)
    assert loaded.threshold == saved.threshold
    return name


def saving_process(path: Path) -> int:
    """A process that saves B and A in turn for as long as it lives."""
    child = os.fork()
    if child == 0:
        try:
            while True:
                B.save(path)
                A.save(path)
        finally:
            os._exit(1)
    return child


def kill(child: int) -> None:
    """Kill a process that must be alive until then."""
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, "a save failed"


@pytest.fixture(params=["on disk", "in memory"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "on disk":
        yield tmp_path
        return
    if not os.access("/dev/shm", os.W_OK):
        pytest.skip("no file system in memory here")
    place = tempfile.mkdtemp(dir="/dev/shm")
    yield Path(place)
    shutil.rmtree(place)


def test_a_load_during_saves_gives_one_of_them_whole(folder: Path) -> None:
    path = folder / "saved"
    A.save(path)
    children = [saving_process(path) for _ in range(2)]
    try:
        seen = Counter(which(OpenSetRecognizer.load(path)) for _ in range(LOADS))
    finally:
        for child in children:
            kill(child)
    assert set(seen) == {"a", "b"}, "the saves never met a load"


def test_a_process_killed_while_saving_leaves_the_earlier_save_or_the_new_one(folder: Path) -> None:
    path, rng, seen = folder / "saved", random.Random(0), Counter[str]()
    A.save(path)
    for _ in range(KILLS):
        child = saving_process(path)
        time.sleep(rng.uniform(0.001, 0.03))
        kill(child)
        seen[which(OpenSetRecognizer.load(path))] += 1
        assert len(list(folder.iterdir())) <= 2, "leftovers pile up"
    print(dict(seen))
    A.save(path)
    assert os.listdir(folder) == ["saved"]


def test_a_first_save_that_is_killed_is_no_save_and_the_next_one_is(folder: Path) -> None:
    rng = random.Random(1)
    for n in range(KILLS // 3):
        path = folder / f"saved-{n}"
        child = saving_process(path)
        time.sleep(rng.uniform(0, 0.005))
        kill(child)
        if path.exists():
            which(OpenSetRecognizer.load(path))
        A.save(path)
        assert which(OpenSetRecognizer.load(path)) == "a"
    assert all(not name.startswith(".") for name in os.listdir(folder))
