"""A writer killed at any moment has lost nothing it acknowledged, and the gallery answers."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import holue

WRITER = """
import sys
import numpy as np
import holue

home, first = sys.argv[1], int(sys.argv[2])
with holue.open(home) as gallery:
    for number in range(first, 10**9):
        row = np.random.default_rng(number).standard_normal((1, 16))
        gallery.enroll(row, [f"n{number}"])
        print("enrolled", number, flush=True)
        if number % 3 == 0:
            gallery.remove([f"n{number}"])
            print("removed", number, flush=True)
        if number % 7 == 0:
            gallery.compact()
"""
KILLS = 24


def test_acknowledged_changes_survive_being_killed(tmp_path: Path, people: Any) -> None:
    home, rng = str(tmp_path / "gallery"), random.Random(5)
    with holue.open(home, create=True, dim=16, method="galue", threshold=0.6) as gallery:
        gallery.enroll(*people.several(range(3), 2))
    there, gone, unsure, first = set(), set(), set(), 1
    for _ in range(KILLS):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, home, str(first)], stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        told = [writer.stdout.readline()]
        time.sleep(rng.uniform(0, 0.05))
        writer.kill()
        told += writer.stdout.read().splitlines()
        writer.wait()
        for line in told:
            match line.split():
                case ["enrolled", number]:
                    there.add(int(number))
                case ["removed", number]:
                    there.discard(int(number))
                    gone.add(int(number))
        with holue.open(home, read_only=True) as gallery:
            names = set(gallery.current.gallery.subjects.tolist())  # type: ignore[union-attr]
            last = max([*there, *gone, first])
            unsure |= {last, last + 1}  # the change after the last one told may have been made too
            assert {f"n{number}" for number in there - unsure} <= names
            assert not {f"n{number}" for number in gone} & names
            some = sorted(there - unsure)[-20:]
            if some:
                rows = np.concatenate([np.random.default_rng(number).standard_normal((1, 16)) for number in some])
                assert gallery.identify(rows).subject.tolist() == [f"n{number}" for number in some]
            assert len(gallery) == len(names)
        first = last + 2
    assert len(there) > KILLS / 2
