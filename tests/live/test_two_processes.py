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
from holue.store.sqlite.files import ranges
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
        assert all((f"n{i}" in names) == (f"m{i}" in names) for i in range(CHANGES)), (version, names)
    assert len(seen) > 5


PAIR = ["n", "m"]


def enrolled_together(gallery: Any, people: Any) -> None:
    gallery.enroll(*_of_pair(people, [30, 31]))


def enrolled_one_after_the_other(gallery: Any, people: Any) -> None:
    gallery.enroll(people.samples(30, 3), ["n"] * 3)
    gallery.enroll(*people.several(range(40, 42), 2))
    gallery.enroll(people.samples(31, 3), ["m"] * 3)


def enrolled_and_given_more(gallery: Any, people: Any) -> None:
    enrolled_together(gallery, people)
    gallery.add_samples(people.samples(31, 2, seed=3), ["m"] * 2)
    gallery.enroll(*people.several(range(40, 42), 2))


def _of_pair(people: Any, persons: list[int]) -> tuple[Any, list[str]]:
    return np.concatenate([people.samples(person, 3) for person in persons]), [name for name in PAIR for _ in range(3)]


@pytest.mark.parametrize("few", [64, 0])
@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("way", [enrolled_together, enrolled_one_after_the_other, enrolled_and_given_more])
def test_no_reader_sees_half_of_an_erased_pair_wherever_the_erasure_falls(
    tmp_path: Path, people: Any, way: Any, known: bool, few: int
) -> None:
    """The pair is erased before each question that a reader asks of the database, on its way to a version that has the pair."""
    with mock.patch.object(follower, "FEW", few), mock.patch.object(ranges, "SMALL_BYTES", 1500):
        place = 0
        while erased_before_question(place, str(tmp_path / f"gallery {place}"), people, way, known):
            place += 1
    assert place > 2


def erased_before_question(place: int, home: str, people: Any, way: Any, known: bool) -> bool:
    """Let a reader follow while the pair is erased before its question number ``place``; False where it asks fewer."""
    with holue.open(home, create=True, dim=people.dim, method="galue", threshold=0.6) as writer:
        writer.enroll(*people.several(range(8), 2))
        with holue.open(home, read_only=True) as reader:
            way(writer, people)
            if known:
                reader.refresh()
                writer.enroll(*people.several(range(50, 52), 2))
            asked: list[Any] = []
            ask = reader.store._ask  # type: ignore[attr-defined]

            def erasing(question: Any) -> Any:
                asked.append(question)
                if len(asked) == place + 1:
                    writer.erase(PAIR)
                return ask(question)

            with mock.patch.object(reader.store, "_ask", erasing):
                reader.refresh()
            seen = names_of_pair(reader)
            assert seen in (set(), set(PAIR)), (place, reader.version, seen)
            reader.refresh()
            if len(asked) > place:
                assert names_of_pair(reader) == set()
            assert reader.version == writer.version
            return len(asked) > place


@pytest.mark.parametrize("few", [64, 0])
@pytest.mark.parametrize("known", [False, True])
def test_no_reader_sees_half_of_an_erased_pair_in_the_middle_of_an_erasure(
    tmp_path: Path, people: Any, known: bool, few: int
) -> None:
    """A reader follows, and another one opens, at every write, sync and deletion that an erasure makes."""
    home = str(tmp_path / "gallery")
    seen: list[set[str]] = []
    with (
        mock.patch.object(follower, "FEW", few),
        mock.patch.object(ranges, "SMALL_BYTES", 1500),
        holue.open(home, create=True, dim=people.dim, method="galue", threshold=0.6) as writer,
    ):
        writer.enroll(*people.several(range(8), 2))
        with holue.open(home, read_only=True) as reader:
            writer.enroll(people.samples(31, 3), ["m"] * 3)  # in the database
            X, others = people.several(range(60, 70), 3)
            writer.enroll(np.concatenate([people.samples(30, 3), X]), ["n"] * 3 + others)  # in a file
            if known:
                reader.refresh()
            disk = writer.store._disk  # type: ignore[attr-defined]

            def watched(name: str) -> Any:
                real = getattr(disk, name)

                def call(*args: Any, **options: Any) -> Any:
                    for _ in range(2):
                        reader.refresh()
                        seen.append(names_of_pair(reader))
                    with holue.open(home, read_only=True) as newcomer:
                        seen.append(names_of_pair(newcomer))
                    return real(*args, **options)

                return call

            steps = ("write", "write_durably", "sync_directory", "truncate", "remove")
            with mock.patch.multiple(disk, **{name: watched(name) for name in steps}):
                writer.erase(PAIR)
            reader.refresh()
            seen.append(names_of_pair(reader))
    assert seen[-1] == set()
    assert len(seen) > 3
    assert all(names in (set(), set(PAIR)) for names in seen), seen


def names_of_pair(gallery: Any) -> set[str]:
    return set(gallery.current.gallery.subjects.tolist()) & set(PAIR)
