"""A process reads a gallery that another one changes: it follows with ``refresh`` and sees whole versions only."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest

import holue
from holue.live import follower
from holue.live.templates import Gathered, built
from holue.store.sqlite.store import SqliteStore

CHANGES = 60
WRITER = """
import json, sys
import numpy as np
import holue
from holue.store.sqlite.files import ranges

home, changes = sys.argv[1], int(sys.argv[2])
ranges.SMALL_BYTES, ranges.TAIL_BYTES = 1500, 6000  # few rows are enough for every path
rng = np.random.default_rng(0)
with holue.open(home) as gallery:
    def tell(erased=()):
        names = sorted(gallery.current.gallery.subjects.tolist())
        print(json.dumps([gallery.version, names, gallery.current.calibration, erased]), flush=True)
    tell()
    for i in range(changes):
        pair = [f"n{i}", f"m{i}"]
        gallery.enroll(rng.standard_normal((6, 16)), pair * 3)
        tell()
        if i % 3 == 1:
            gallery.remove([f"n{i - 1}", f"m{i - 1}"])
            tell()
        if i % 4 == 3:
            gallery.erase([f"n{i - 1}", f"m{i - 1}"])
            tell([f"n{i - 1}", f"m{i - 1}"])
        if i % 5 == 4:
            gallery.compact(forget_before=gallery.version if i % 2 else None)
        if i % 20 == 19:
            gallery.calibrate()
            tell()
"""


@pytest.fixture
def home(tmp_path: Path, people: Any) -> str:
    """Twenty subjects in a segment file."""
    path = str(tmp_path / "gallery")
    with holue.open(path, create=True, dim=people.dim, method="galue", threshold=0.6) as gallery:
        gallery.enroll(*people.several(range(20), 3))
        gallery.compact()
    return path


@pytest.mark.parametrize("chosen", [None, {2, 3}])
def test_whoever_is_erased_while_a_version_is_read_is_left_out_and_nobody_takes_the_name(
    home: str, chosen: set[int] | None
) -> None:
    with holue.open(home) as writer, SqliteStore.open(home, write=False) as reader:
        view = reader.at()
        writer.erase(["p1"])
        gathered, names = Gathered.with_names(view, chosen)
        numbers, _ = gathered.pooled("uniform")
        left = {
            subject.number: subject.id for subject in writer.subjects() if chosen is None or subject.number in chosen
        }
        assert names == left
        assert numbers.tolist() == sorted(left)
        gallery = built(view, "uniform")
        now = writer.current.gallery
        assert gallery is not None
        assert now is not None
        assert gallery.subjects.tolist() == now.subjects.tolist()
        assert np.array_equal(gallery.directions, now.directions)


def test_files_that_are_replaced_while_they_are_read_are_looked_for_again(home: str) -> None:
    with holue.open(home) as writer, SqliteStore.open(home, write=False) as reader:
        writer.remove(["p1"])
        asked = []

        def question(opened: Any) -> int:
            entries = opened.ranges.all()
            if not asked:
                asked.append(True)
                writer.compact(forget_before=writer.version)
            return sum(len(opened.ranges.read(entry)) for entry in entries)

        assert reader._read(question) == 57


@pytest.mark.parametrize("few", [64, 0])
def test_a_reader_in_another_process_sees_whole_versions_only(tmp_path: Path, people: Any, few: int) -> None:
    home = str(tmp_path / "gallery")
    with holue.open(home, create=True, dim=people.dim) as gallery:
        gallery.enroll(*people.several(range(20), 3))
        gallery.calibrate()
    writer = subprocess.Popen([sys.executable, "-c", WRITER, home, str(CHANGES)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    told: list[list[Any]] = []
    listening = threading.Thread(target=lambda: told.extend(map(json.loads, writer.stdout)))  # type: ignore[arg-type]
    listening.start()
    seen: dict[int, set[str]] = {}
    with mock.patch.object(follower, "FEW", few), holue.open(home, read_only=True) as reader:
        running = True
        while running:
            running = writer.poll() is None  # the last look comes after the last change
            reader.refresh()
            now = reader.current
            assert now.gallery is not None
            answers = now.identify(people.probes())
            assert set(answers.subject.tolist()) <= {*now.gallery.subjects.tolist(), holue.UNKNOWN}
            assert np.allclose(np.linalg.norm(now.gallery.directions, axis=1), 1, atol=1e-5)
            seen[now.version] = set(now.gallery.subjects.tolist())
        listening.join()
        assert writer.wait() == 0
        assert reader.version == told[-1][0]
        assert reader.current.calibration == told[-1][2] == 1 + CHANGES // 20
    expected = {version: set(names) for version, names, _, _ in told}
    for version, names in seen.items():
        # An erasure reaches the versions before it: a reader that comes to one of them later does not see who was erased.
        erased = {name for later, _, _, gone in told if later > version for name in gone}
        assert expected[version] - erased <= names <= expected[version], (version, names ^ expected[version], erased)
    assert len(seen) > 5
