"""The other homes agree with the one in memory after any sequence of changes."""

from __future__ import annotations

import os
import tempfile
import uuid
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from holue.errors import InvalidInputError
from holue.store.memory import MemoryStore
from holue.store.postgres.store import PostgresStore
from holue.store.sqlite.files import ranges
from holue.store.sqlite.store import SqliteStore

DIM = 24
MANY = int(os.environ.get("HOLUE_STORE_EXAMPLES", "25"))
MEMORY = Path("/dev/shm")  # a test of meaning, not of durability, need not wait for a disk
NAMES = st.sampled_from(["ann", "bob", "cay", "dan", "eve", "fay"])


def state(store: Any, version: int) -> Any:
    view = store.at(version)
    samples, subjects, rows = view.everything()
    order = np.argsort(samples)
    named = {int(number): view.get(int(number)) for number in set(subjects.tolist())}
    return samples[order].tolist(), subjects[order].tolist(), rows[order].tobytes(), named


class TwoHomes(RuleBasedStateMachine):
    @initialize(small=st.booleans())
    def create(self, small: bool) -> None:
        self.folder = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        # Small limits make the few rows of this test go through files, through the database, and from one to the other.
        self.kept = ranges.SMALL_BYTES, ranges.TAIL_BYTES
        if small:
            ranges.SMALL_BYTES, ranges.TAIL_BYTES = 600, 1000
        self.rng = np.random.default_rng(0)
        self.memory = MemoryStore(dim=DIM)
        self.disk = self.made()
        self.snapshots = 0

    def made(self) -> Any:
        return SqliteStore.create(Path(self.folder.name) / "home", dim=DIM)

    def opened(self) -> Any:
        return SqliteStore.open(self.disk.path)

    def restored(self, name: str) -> Any:
        return SqliteStore.restore(self.disk.path / "snapshots" / name, Path(self.folder.name) / f"restored {name}")

    def both(self, verb: str, *args: Any, **settings: Any) -> None:
        results = []
        for store in (self.memory, self.disk):
            try:
                result = getattr(store, verb)(*args, **settings)
                results.append(result if isinstance(result, int) else "done")
            except InvalidInputError as error:
                results.append((type(error), str(error)))
        assert results[0] == results[1]

    def rows(self, n: int) -> np.ndarray:
        return self.rng.standard_normal((n, DIM)).astype(np.float32)

    @rule(names=st.lists(NAMES, min_size=1, max_size=4), retain=st.none() | st.integers(0, 9), skip=st.booleans())
    def enroll(self, names: list[str], retain: int | None, skip: bool) -> None:
        self.both("enroll", self.rows(len(names)), names, retain_until=retain, skip_bad=skip, time=1)

    @rule(names=st.lists(NAMES, min_size=1, max_size=8))
    def add_samples(self, names: list[str]) -> None:
        self.both("add_samples", self.rows(len(names)), names, time=1)

    @rule(name=NAMES)
    def replace(self, name: str) -> None:
        self.both("replace", self.rows(1), [name], time=1)

    @rule(names=st.lists(NAMES, min_size=1, max_size=2))
    def remove(self, names: list[str]) -> None:
        self.both("remove", names)

    @rule(samples=st.lists(st.integers(1, 12), min_size=1, max_size=2))
    def remove_samples(self, samples: list[int]) -> None:
        self.both("remove_samples", samples)

    @rule(old=NAMES, new=NAMES)
    def rename(self, old: str, new: str) -> None:
        self.both("rename", old, new)

    @rule(names=st.lists(NAMES, min_size=1, max_size=2), retain=st.none() | st.integers(0, 9))
    def update(self, names: list[str], retain: int | None) -> None:
        self.both("update", names, retain_until=retain, consent=f"form {retain}")

    @rule(names=st.lists(NAMES, min_size=1, max_size=2), into=NAMES)
    def merge(self, names: list[str], into: str) -> None:
        self.both("merge", names, into=into)

    @rule(old=NAMES, samples=st.lists(st.integers(1, 12), min_size=1, max_size=2), new=NAMES)
    def split(self, old: str, samples: list[int], new: str) -> None:
        self.both("split", old, samples, new=new)

    @rule(back=st.integers(0, 3))
    def undo(self, back: int) -> None:
        self.both("undo", max(self.memory.version - back, 0))

    @rule(name=NAMES)
    def erase(self, name: str) -> None:
        self.both("erase", [name])

    @rule(now=st.integers(0, 9))
    def purge(self, now: int) -> None:
        assert self.memory.purge(now=now, dry_run=True) == self.disk.purge(now=now, dry_run=True)
        self.both("purge", now=now)

    @rule(back=st.none() | st.integers(0, 3))
    def compact(self, back: int | None) -> None:
        oldest = self.memory.status().oldest_version
        forget = None if back is None else max(self.memory.version - back, oldest)
        self.both("compact", forget_before=forget)

    @rule()
    def snapshot(self) -> None:
        self.snapshots += 1
        self.both("snapshot", f"s{self.snapshots}")

    @rule()
    def reopen(self) -> None:
        self.disk.close()
        self.disk = self.opened()

    @invariant()
    def agree(self) -> None:
        if not hasattr(self, "disk"):
            return
        self.compare(self.disk)

    def compare(self, disk: Any) -> None:
        one, two = self.memory.status(), disk.status()
        assert (one.version, one.oldest_version, one.subjects, one.samples) == (
            two.version,
            two.oldest_version,
            two.subjects,
            two.samples,
        )
        assert self.memory.subjects() == disk.subjects()
        for version in range(max(one.oldest_version, one.version - 3), one.version + 1):
            assert state(self.memory, version) == state(disk, version)
        for mine, theirs in zip(self.memory.changes(one.oldest_version), disk.changes(one.oldest_version), strict=True):
            assert (mine.version, mine.kind, mine.undoes) == (theirs.version, theirs.kind, theirs.undoes)
            assert mine.subjects.tolist() == theirs.subjects.tolist()
            assert mine.samples.tolist() == theirs.samples.tolist()
            assert mine.moved_to.tolist() == theirs.moved_to.tolist()

    def teardown(self) -> None:
        if not hasattr(self, "disk"):
            return
        for number in range(1, self.snapshots + 1):
            snapshot = self.memory.restored(f"s{number}")
            with self.restored(f"s{number}") as other:
                assert state(snapshot, snapshot.version) == state(other, other.version)
                assert snapshot.subjects() == other.subjects()
        assert self.disk.verify() == []
        self.disk.close()
        ranges.SMALL_BYTES, ranges.TAIL_BYTES = self.kept
        self.folder.cleanup()


class PostgresAndMemory(TwoHomes):
    """The same with a server, and with a second process's copy, which follows a few changes at a time."""

    server: Any

    def made(self) -> Any:
        self.url = self.server.url(f"g{uuid.uuid4().hex[:12]}")
        made = PostgresStore.create(self.url, dim=DIM)
        self.follower = PostgresStore.open(self.url)
        assert self.follower._listener is not None
        self.follower._listener.stop()
        return made

    def opened(self) -> Any:
        return PostgresStore.open(self.url)

    def restored(self, name: str) -> Any:
        return PostgresStore.restore(f"{self.url}&snapshot={name}", f"{self.url}-{name}")

    @rule()
    def follow(self) -> None:
        self.follower.refresh()
        self.compare(self.follower)

    def teardown(self) -> None:
        if hasattr(self, "disk"):
            self.follow()
            self.follower.close()
        super().teardown()


TestTwoHomes = TwoHomes.TestCase
TestTwoHomes.settings = settings(
    max_examples=MANY, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)


def test_a_server_and_a_copy_that_follows_it_agree_with_memory(postgres: Any) -> None:
    machine = type("Machine", (PostgresAndMemory,), {"server": postgres})
    few = settings(TestTwoHomes.settings, max_examples=max(MANY // 6, 1))
    run_state_machine_as_test(machine, settings=few)
