"""Kill a writer at random moments, many times, and check what it leaves behind.

A child process changes a store at random (enrol, add, replace, update, remove, rename, merge, split, undo, erase, snapshot,
compact) and tells its parent before and after each change. The parent kills it with SIGKILL at a random moment, also
while it opens the store; then it opens the store itself and compares it with a store in memory that made the
acknowledged changes. The change under way must be whole or absent; bytes of erased embeddings must be in no file. With
``--home postgres`` the store is in a server that the package pgserver starts; the files are those of its tables.

    python tests/torture/kill_store.py --times 1000 --seed 7
    python tests/torture/kill_store.py --times 100 --seed 7 --home postgres --longest 2
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from holue.errors import HolueError, InvalidInputError
from holue.store.memory import MemoryStore
from holue.store.postgres.store import PostgresStore
from holue.store.sqlite.files import ranges
from holue.store.sqlite.store import SqliteStore
from holue.store.windows import search_files

DIM = 40
NAMES = [f"subject {i}" for i in range(30)]
CHANGES_AT_MOST = 400
"""After so many changes a new store is begun, so that opening and comparing stay quick."""


def rows(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, DIM)).astype(np.float32)


def draw(choose: random.Random, store: Any) -> dict[str, Any]:
    """A random change that fits the store as it is."""
    enrolled = [subject.id for subject in store.subjects()]
    free = [name for name in NAMES if name not in enrolled]
    seed = choose.randrange(2**31)
    verbs = {"enroll": 8 if free else 0, "snapshot": 0.6, "compact": 1.5, "artifact": 0.5}
    if enrolled:
        verbs |= {"add_samples": 3, "replace": 1, "update": 1, "remove": 2, "undo": 2, "erase": 0.7}
    if len(enrolled) > 1:
        verbs |= {"merge": 1}
    if enrolled and free:
        verbs |= {"rename": 1, "split": 1}
    verb = choose.choices(list(verbs), list(verbs.values()))[0]
    some = choose.sample(enrolled, min(len(enrolled), choose.choice([1, 1, 3])))
    if verb == "enroll":
        names = choose.sample(free, min(len(free), choose.choice([1, 1, 2, 12])))
        return {"verb": verb, "names": [name for name in names for _ in range(choose.choice([1, 2]))], "seed": seed}
    if verb in ("add_samples", "replace"):
        return {"verb": verb, "names": some * choose.choice([1, 1, 8]), "seed": seed}
    if verb == "rename":
        return {"verb": verb, "old": some[0], "new": free[0]}
    if verb == "split":
        samples = [sample.number for sample in store.samples(some[0])]
        return {"verb": verb, "old": some[0], "samples": samples[: len(samples) // 2], "new": free[0]}
    if verb == "undo":
        return {"verb": verb, "version": max(store.version - choose.randrange(3), 1)}
    if verb == "snapshot":
        return {"verb": verb, "name": f"s{seed}"}
    if verb == "compact":
        oldest = store.status().oldest_version
        return {"verb": verb, "forget": choose.choice([None, max(oldest, store.version - 5)])}
    return {"verb": verb, "names": some, "seed": seed}


def perform(store: Any, change: dict[str, Any]) -> None:
    """Make a change; one that the store refuses is refused by every store."""
    verb = change["verb"]
    try:
        if verb in ("enroll", "add_samples", "replace"):
            names = change["names"]
            getattr(store, verb)(rows(change["seed"], len(names)), names, time=1, origin="file of " + names[0])
        elif verb == "update":
            store.update(change["names"], purpose=f"purpose {change['seed']}")
        elif verb == "rename":
            store.rename(change["old"], change["new"])
        elif verb == "merge":
            store.merge(change["names"], into=change["names"][0])
        elif verb == "split":
            store.split(change["old"], change["samples"], new=change["new"])
        elif verb == "undo":
            store.undo(change["version"])
        elif verb == "snapshot":
            store.snapshot(change["name"])
        elif verb == "compact":
            store.compact(forget_before=change["forget"])
        elif verb == "artifact":
            store.put_artifact("calibration", str(change["seed"]).encode())
        else:
            getattr(store, verb)(change["names"])
    except InvalidInputError:
        return


class SqliteHome:
    """Stores in a directory each."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.made = folder, 0

    def create(self) -> Path:
        self.made += 1
        path = self.folder / f"home-{self.made}"
        SqliteStore.create(path, dim=DIM).close()
        return path

    def open(self, path: Path) -> Any:
        return SqliteStore.open(path)

    def restore(self, path: Path, name: str) -> Any:
        self.made += 1
        return SqliteStore.restore(path / "snapshots" / name, self.folder / f"restored-{self.made}")

    def files(self, path: Path) -> list[Path]:
        return [file for file in path.rglob("*") if file.is_file()]

    def delete(self, path: Path) -> None:
        shutil.rmtree(path)

    def stop(self) -> None:
        return


class PostgresHome:
    """Stores in a server of their own."""

    def __init__(self, folder: Path) -> None:
        import pgserver

        self.folder, self.made = folder / "server", 0
        folder.chmod(0o755)
        self.server = pgserver.get_server(self.folder, cleanup_mode="delete")
        self.url = self.server.get_uri()
        # Writers are killed here, not the machine: what the server has written is there without a sync.
        self._sql("ALTER SYSTEM SET fsync = off")
        self._sql("SELECT pg_reload_conf()")
        oid = self._sql("SELECT oid FROM pg_database WHERE datname = current_database()")
        self.tables = self.folder / "base" / str(oid)

    def create(self) -> str:
        self.made += 1
        PostgresStore.create(self.gallery(), dim=DIM).close()
        return self.gallery()

    def gallery(self) -> str:
        return f"{self.url}&gallery=g{self.made}"

    def open(self, url: str) -> Any:
        store = PostgresStore.open(url)
        # The killed process's transaction may be ending only now; whoever has had the lock has waited for it.
        store.purge(dry_run=True)
        return store

    def restore(self, url: str, name: str) -> Any:
        self.made += 1
        return PostgresStore.restore(f"{url}&snapshot={name}", self.gallery())

    def files(self, url: str) -> list[Path]:
        self._sql("CHECKPOINT")  # until then files that are no longer used may come and go
        return [file for file in self.tables.iterdir() if file.name[0].isdigit()]

    def _sql(self, statement: str) -> Any:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            done = connection.execute(statement)
            return done.fetchone()[0] if done.description else None

    def delete(self, url: str) -> None:
        names = self._sql("SELECT array_agg(nspname) FROM pg_namespace WHERE nspname LIKE 'holue\\_%'")
        for name in names:  # restored ones too
            self._sql(f'DROP SCHEMA "{name}" CASCADE')

    def stop(self) -> None:
        self.server.cleanup()


HOMES = {"sqlite": SqliteHome, "postgres": PostgresHome}


def write_until_killed(home: Any, place: Any, seed: int, pipe: int) -> None:
    choose = random.Random(seed)
    store = home.open(place)
    while True:
        change = draw(choose, store)
        os.write(pipe, (json.dumps(change) + "\n").encode())
        perform(store, change)
        os.write(pipe, b"done\n")


def run_and_kill(home: Any, place: Any, seed: int, seconds: float) -> list[str]:
    """What the child said before it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        try:
            write_until_killed(home, place, seed, writing)
        except BaseException as error:
            os.write(writing, f"error {error!r}\n".encode())
        os._exit(1)
    os.close(writing)
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    said = b""
    while part := os.read(reading, 1 << 16):
        said += part
    os.close(reading)
    return said.decode().splitlines()


def picture(store: Any) -> Any:
    """All that can be read of the newest versions, and the snapshots' names."""
    status = store.status()
    versions = []
    for version in range(max(status.oldest_version, status.version - 2), status.version + 1):
        view = store.at(version)
        samples, subjects, found = view.everything()
        order = np.argsort(samples)
        named = sorted((int(n), view.get(int(n)).id) for n in set(subjects.tolist()))
        versions.append((version, samples[order].tolist(), subjects[order].tolist(), found[order].tobytes(), named))
    artifact = store.artifact("calibration")
    return status.version, status.oldest_version, store.subjects(), versions, status.snapshots, artifact


def vectors_of(store: Any, change: dict[str, Any]) -> list[np.ndarray]:
    return [sample.embedding for name in change["names"] for sample in store.samples(name)]


class Model:
    """The store in memory that makes every acknowledged change, with the embeddings that were erased."""

    def __init__(self) -> None:
        self.store = MemoryStore(dim=DIM)
        self.erased: list[np.ndarray] = []

    def make(self, change: dict[str, Any]) -> None:
        if change["verb"] == "erase":
            self.erased += vectors_of(self.store, change)
        perform(self.store, change)


def check(home: Any, place: Any, model: Model, under_way: dict[str, Any] | None) -> str:
    """Open the store after the kill and compare it; says what became of the change under way."""
    became = "none"
    with home.open(place) as store:
        found = picture(store)
        if found != picture(model.store):
            assert under_way is not None, f"acknowledged changes are missing or damaged: version {store.version}"
            model.make(under_way)
            assert found == picture(model.store), f"half a change is there: {under_way}"
            became = "whole"
        elif under_way is not None:
            became = "absent"
        problems = store.verify()
        assert not problems, problems
        if model.erased:
            files = home.files(place)
            held = [entry for entry in search_files(files, home.folder, np.array(model.erased[-200:])) if entry.found]
            assert not held, f"erased bytes are in {held}"
    return became


def check_snapshots(home: Any, place: Any, model: Model) -> int:
    with home.open(place) as store:
        for name in store.status().snapshots:
            expected = model.store.restored(name)
            with home.restore(place, name) as restored:
                assert picture(restored)[:4] == picture(expected)[:4], f"snapshot {name} differs"
        return len(store.status().snapshots)


def torture(home: Any, times: int, seed: int, longest: float) -> Counter[str]:
    """Kill so many writers; counts of what happened."""
    choose = random.Random(seed)
    ranges.SMALL_BYTES, ranges.TAIL_BYTES = 1500, 6000  # few rows are enough for every path
    counts: Counter[str] = Counter()
    model, place = Model(), home.create()
    for kill in range(times):
        said = run_and_kill(home, place, choose.randrange(2**31), choose.random() ** 2 * longest)
        under_way: dict[str, Any] | None = None
        for line in said:
            if line.startswith("error"):
                raise AssertionError(f"kill {kill}: the writer failed: {line}")
            if line == "done":
                assert under_way is not None
                model.make(under_way)
                counts[f"acknowledged {under_way['verb']}"] += 1
                under_way = None
            else:
                under_way = json.loads(line)
        if not said:
            counts["killed while opening"] += 1
        try:
            became = check(home, place, model, under_way)
        except (AssertionError, HolueError) as error:
            raise AssertionError(f"kill {kill} of seed {seed}, store kept in {place}: {error}") from error
        if under_way is not None:
            counts[f"killed under {under_way['verb']}: {became}"] += 1
        counts["kills"] += 1
        if counts["kills"] % 100 == 0:
            print(f"{counts['kills']} kills", flush=True)
        if model.store.version > CHANGES_AT_MOST or kill == times - 1:
            counts["snapshots restored"] += check_snapshots(home, place, model)
            home.delete(place)
            model, place = Model(), home.create()
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=0.4, help="seconds that a writer lives at most")
    parser.add_argument("--folder", help="where to keep the stores; a temporary directory by default")
    parser.add_argument("--home", choices=sorted(HOMES), default="sqlite")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="kill-store-", dir=given.folder))
    began = time.monotonic()
    home = HOMES[given.home](folder)
    counts = torture(home, given.times, given.seed, given.longest)
    home.stop()
    shutil.rmtree(folder)
    for what, count in sorted(counts.items()):
        print(f"{count:6d}  {what}")
    print(f"every promise held in {counts['kills']} kills, seed {given.seed}, {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    sys.exit(main())
