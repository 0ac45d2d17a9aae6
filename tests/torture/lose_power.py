"""Lose power at every boundary of a script of changes, in the manner of ALICE, and check what is left.

Every write below the store is recorded: SQLite's through a VFS of apsw, ours through the one object that writes files.
Then the disk is built again as it could be after power loss just before each sync, and after the last write: what was
synced is there; of what was not, nothing, all, or random parts, also torn at sector boundaries. Each of these disks is
opened; every acknowledged change must be there, the one under way whole or absent, and no byte of what was erased.

    python tests/torture/lose_power.py --changes 200 --seed 1
"""

from __future__ import annotations

import argparse
import random
import shutil
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import apsw
import numpy as np
from kill_store import DIM, Model, draw, perform, picture

from holue.store.sqlite.files import ranges
from holue.store.sqlite.files.disk import Disk
from holue.store.sqlite.store import SqliteStore
from holue.store.windows import search_files

SECTOR = 512


@dataclass
class Event:
    """One step on the disk, or (``kind`` "done") the acknowledgement of a change."""

    kind: str  # write, truncate, sync, remove, rename (to ``data``), sync directory, done
    file: str = ""
    offset: int = 0
    data: bytes = b""


class Recorder(Disk):
    """Passes writes on, and remembers them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.events: list[Event] = []

    def note(self, kind: str, path: Any, offset: int = 0, data: Any = b"") -> None:
        file = Path(path)
        if file.is_relative_to(self.root) and not file.name.endswith("-shm"):
            self.events.append(Event(kind, str(file.relative_to(self.root)), offset, bytes(data)))

    def truncate(self, path: Path, size: int) -> None:
        super().truncate(path, size)
        self.note("truncate", path, size)
        self.note("sync", path)

    def remove(self, path: Path) -> None:
        super().remove(path)
        self.note("remove", path)

    def rename(self, source: Path, target: Path) -> None:
        super().rename(source, target)
        self.note("rename", source, data=str(target.relative_to(self.root)).encode())

    def sync(self, path: Path) -> None:
        super().sync(path)
        self.note("sync", path)

    def sync_directory(self, path: Path) -> None:
        super().sync_directory(path)
        self.note("sync directory", path)

    def _write(self, path: Path, pieces: Any, *, sync: bool) -> None:
        given = [(offset, bytes(data)) for offset, data in pieces]
        super()._write(path, given, sync=sync)
        for offset, data in given:
            self.note("write", path, offset, data)
        if sync:
            self.note("sync", path)


class RecordingVFS(apsw.VFS):
    """SQLite's own VFS, with writes noted."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        super().__init__("recording", "")

    def xOpen(self, name: Any, flags: Any) -> Any:
        return RecordingFile(self.recorder, name, flags)

    def xDelete(self, name: str, sync_directory: bool) -> None:
        super().xDelete(name, sync_directory)
        self.recorder.note("remove", name)
        if sync_directory:
            self.recorder.note("sync", name)


class RecordingFile(apsw.VFSFile):
    def __init__(self, recorder: Recorder, name: Any, flags: Any) -> None:
        self.recorder = recorder
        self.name = name.filename() if isinstance(name, apsw.URIFilename) else name or ""
        super().__init__("", name, flags)

    def xWrite(self, data: Any, offset: int) -> None:
        super().xWrite(data, offset)
        self.recorder.note("write", self.name, offset, data)

    def xTruncate(self, size: int) -> None:
        super().xTruncate(size)
        self.recorder.note("truncate", self.name, size)

    def xSync(self, flags: int) -> None:
        super().xSync(flags)
        self.recorder.note("sync", self.name)


def connect_recording(path: Path, mode: str) -> Any:
    flags = {
        "ro": apsw.SQLITE_OPEN_READONLY,
        "rw": apsw.SQLITE_OPEN_READWRITE,
        "rwc": apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE,
    }
    return apsw.Connection(str(path), flags=flags[mode], vfs="recording")


@dataclass
class File:
    """A file as it is on disk for certain, and the steps that may or may not have reached it."""

    durable: bytes | None = None
    pending: list[Event] = field(default_factory=list)

    def after(self, chosen: list[Event]) -> bytes | None:
        there, data = self.durable is not None, bytearray(self.durable or b"")
        for event in chosen:
            there = event.kind != "remove"
            if event.kind == "remove":
                data.clear()
            elif event.kind == "truncate":
                del data[event.offset :]
                data.extend(bytes(event.offset - len(data)))
            else:
                data.extend(bytes(max(event.offset + len(event.data) - len(data), 0)))
                data[event.offset : event.offset + len(event.data)] = event.data
        return bytes(data) if there else None


def some(pending: list[Event], choose: random.Random) -> list[Event]:
    """A random part of the pending steps, in their order, some of them torn."""
    keep = choose.random()
    chosen = []
    for event in pending:
        if choose.random() > keep:
            continue
        if event.kind == "write" and len(event.data) > SECTOR and choose.random() < 0.3:
            cut = choose.randrange(1, len(event.data) // SECTOR + 1) * SECTOR
            if choose.random() < 0.5:
                event = Event("write", event.file, event.offset, event.data[:cut])
            else:
                event = Event("write", event.file, event.offset + cut, event.data[cut:])
        chosen.append(event)
    return chosen


def record(folder: Path, changes: int, seed: int) -> tuple[list[Event], list[Any], list[list[np.ndarray]]]:
    """Run the script: what reached the disk, the state after each change, and what was erased by then."""
    choose = random.Random(seed)
    root = folder / "recorded"
    recorder = Recorder(root)
    vfs = RecordingVFS(recorder)
    SqliteStore.create(root, dim=DIM).close()
    for path in sorted(root.rglob("*")):  # creation is not under test here: a store that is half made has no name
        if path.is_file():
            recorder.note("write", path, 0, path.read_bytes())
            recorder.note("sync", path)
    model = Model()
    states, erased = [picture(model.store)], [list(model.erased)]
    with SqliteStore.open(root, disk=recorder, connect=connect_recording) as store:
        for _ in range(changes):
            change = draw(choose, model.store)
            perform(store, change)
            recorder.events.append(Event("done"))
            model.make(change)
            states.append(picture(model.store))
            erased.append(list(model.erased))
            assert picture(store) == states[-1]
    del vfs
    return recorder.events, states, erased


def build(files: dict[str, File], renames: list[Event], target: Path, how: str, choose: random.Random) -> None:
    (target / "segments").mkdir(parents=True)
    (target / "snapshots").mkdir()
    made = [event for event in renames if how == "all" or (how == "part" and choose.random() < 0.5)]
    for name, file in renamed(files, made).items():
        chosen = {"nothing": [], "all": file.pending}.get(how)
        data = file.after(some(file.pending, choose) if chosen is None else chosen)
        if data is not None:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            (target / name).write_bytes(data)
            if name.startswith("snapshots/"):  # a snapshot is a home of its own
                for folder in ("segments", "snapshots"):
                    (target / Path(*Path(name).parts[:2]) / folder).mkdir(exist_ok=True)


def renamed(files: dict[str, File], renames: list[Event]) -> dict[str, File]:
    """The files after directories were renamed."""
    for event in renames:
        old, new = event.file + "/", event.data.decode() + "/"
        files = {new + name.removeprefix(old) if name.startswith(old) else name: file for name, file in files.items()}
    return files


def check(target: Path, states: list[Any], erased: list[list[np.ndarray]], done: int, why: str) -> str:
    with SqliteStore.open(target) as store:
        found = picture(store)
        allowed = states[done : done + 2]
        assert found in allowed, f"{why}: after {done} changes the store is in neither state"
        problems = store.verify()
        assert not problems, f"{why}: {problems}"
        reached = done + allowed.index(found)
    gone = erased[reached]
    if gone:
        files = [path for path in target.rglob("*") if path.is_file()]
        held = [entry for entry in search_files(files, target, np.array(gone[-40:])) if entry.found]
        assert not held, f"{why}: erased bytes are in {held}"
    return "change under way whole" if reached > done else "no change under way, or absent"


def lose_power(folder: Path, changes: int, seed: int, samples: int) -> Counter[str]:
    """Check every boundary of a recorded script; counts of what was found."""
    ranges.SMALL_BYTES, ranges.TAIL_BYTES = 1500, 6000
    events, states, erased = record(folder, changes, seed)
    choose = random.Random(seed)
    counts: Counter[str] = Counter(f"recorded {event.kind}" for event in events)
    files: dict[str, File] = {}
    renames: list[Event] = []  # that may or may not have reached the disk
    done = 0
    for place, event in enumerate([*events, Event("sync", "the end")]):
        if event.kind == "done":
            done += 1
            continue
        if event.kind == "rename":
            renames.append(event)
            continue
        if event.kind in ("sync", "sync directory"):
            started = "gallery.db" in files and files["gallery.db"].durable is not None
            for how in ("nothing", "all", *["part"] * samples) if started else ():
                target = folder / "after"
                build(files, renames, target, how, choose)
                counts[check(target, states, erased, done, f"event {place} of seed {seed}, {how} of the rest")] += 1
                counts[f"disks with {how} of what was not synced"] += 1
                shutil.rmtree(target)
            counts["boundaries"] += bool(started)
            if event.kind == "sync directory":
                files = renamed(files, [other for other in renames if str(Path(other.file).parent) == event.file])
                renames = [other for other in renames if str(Path(other.file).parent) != event.file]
                for name, file in files.items():
                    if str(Path(name).parent) == event.file and file.pending and file.pending[-1].kind == "remove":
                        file.durable, file.pending = None, []
                continue
            if event.file in files:
                file = files[event.file]
                file.durable, file.pending = file.after(file.pending), []
            continue
        files.setdefault(event.file, File()).pending.append(event)
    assert done == changes
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=2, help="random parts per boundary")
    given = parser.parse_args()
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="lose-power-", dir=memory if memory.is_dir() else None))
    start = time.monotonic()
    counts = lose_power(folder, given.changes, given.seed, given.samples)
    shutil.rmtree(folder)
    for what, count in sorted(counts.items()):
        print(f"{count:6d}  {what}")
    print(
        f"every promise held at {counts['boundaries']} boundaries, seed {given.seed}, {time.monotonic() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
