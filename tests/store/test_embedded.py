"""What only the embedded home promises: one writer, readers in other processes, bytes that are gone, damage that is named."""

from __future__ import annotations

import errno
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holue.errors import CorruptStoreError, InvalidParameterError, StoreError, StoreLockedError
from holue.store.sqlite.database import LOG_PAGES, connect_sqlite
from holue.store.sqlite.files import ranges
from holue.store.sqlite.files.disk import Disk
from holue.store.sqlite.reading import read_sample
from holue.store.sqlite.store import SqliteStore

DIM = 64


def embeddings(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, DIM)).astype(np.float32)


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few rows go to a segment file, a single one into the database."""
    monkeypatch.setattr(ranges, "SMALL_BYTES", 1000)


@pytest.fixture
def filled(tmp_path: Path, small_limits: None) -> Path:
    """A closed store: subjects 1 to 20 in a segment file, 21 in the database, a snapshot, an artifact."""
    with SqliteStore.create(tmp_path / "home", dim=DIM, model="m") as store:
        store.enroll(
            embeddings(20),
            [f"subject {i}" for i in range(1, 21)],
            metadata={"subject 3": {"room": "a long enough text"}},
        )
        store.put_artifact("calibration", bytes(range(256)) * 20)
        store.snapshot("one")
        store.enroll(embeddings(1, 1), ["subject 21"])
    return tmp_path / "home"


def in_another_process(code: str, *args: object) -> str:
    done = subprocess.run([sys.executable, "-c", code, *map(str, args)], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_a_second_writer_gets_a_clear_error(tmp_path: Path) -> None:
    with SqliteStore.create(tmp_path / "home", dim=DIM) as store:
        with pytest.raises(StoreLockedError, match=str(os.getpid())):
            SqliteStore.open(store.path)
        said = in_another_process(
            "import sys\nfrom holue.store.sqlite.store import SqliteStore\n"
            "try:\n    SqliteStore.open(sys.argv[1])\nexcept Exception as error:\n    print(type(error).__name__)",
            store.path,
        )
        assert said == "StoreLockedError"
    SqliteStore.open(tmp_path / "home").close()


def test_readers_in_another_process_see_each_new_version(tmp_path: Path) -> None:
    code = """
import sys
from holue.store.sqlite.store import SqliteStore
with SqliteStore.open(sys.argv[1], write=False) as store:
    print(store.version, flush=True)
    sys.stdin.readline()
    print(store.version, store.subject("b").number, len(store.at().everything()[0]), flush=True)
"""
    with SqliteStore.create(tmp_path / "home", dim=DIM) as store:
        store.enroll(embeddings(1), ["a"])
        reader = subprocess.Popen(
            [sys.executable, "-c", code, str(store.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert reader.stdin is not None
        assert reader.stdout is not None
        assert reader.stdout.readline() == "1\n"
        store.enroll(embeddings(300), [f"more {i}" for i in range(300)])
        store.enroll(embeddings(1), ["b"])
        store.compact()
        said, _ = reader.communicate("go\n")
        assert said == "3 302 302\n"


def test_a_reader_cannot_write(filled: Path) -> None:
    with SqliteStore.open(filled, write=False) as store:
        with pytest.raises(StoreError, match="write=True"):
            store.enroll(embeddings(1), ["x"])
        with pytest.raises(StoreError, match="write=True"):
            store.snapshot()


def test_dimension_and_model_are_fixed_at_creation(filled: Path) -> None:
    with pytest.raises(InvalidParameterError, match="dim=64"):
        SqliteStore.open(filled, dim=512)
    with pytest.raises(InvalidParameterError, match="model='m'"):
        SqliteStore.open(filled, model="another")
    with pytest.raises(StoreError, match="exists already"):
        SqliteStore.create(filled, dim=DIM)
    SqliteStore.open(filled, dim=DIM, model="m").close()


def test_a_directory_that_is_no_store_is_left_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(CorruptStoreError, match="does not exist"):
        SqliteStore.open(tmp_path / "nowhere")
    with pytest.raises(CorruptStoreError, match=r"has no gallery\.db"):
        SqliteStore.open(tmp_path)
    assert list(tmp_path.iterdir()) == []


def holds_window(data: bytes, form: bytes) -> bool:
    """The slow and obvious search: any 64 successive bytes of the form."""
    return any(form[i : i + 64] in data for i in range(len(form) - 63))


def test_after_an_erasure_no_file_holds_the_bytes(filled: Path) -> None:
    X = np.concatenate([embeddings(20), embeddings(1, 1)])
    with SqliteStore.open(filled) as store:
        store.rename("subject 3", "a former name of somebody")
        store.rename("a former name of somebody", "subject three")
        store.remove(["subject 21"])
        everything = b"".join(path.read_bytes() for path in filled.rglob("*") if path.is_file())
        assert all(holds_window(everything, row.tobytes()) for row in X)
        receipt = store.erase(["subject three", "subject 21"])
        assert receipt.clean
        assert receipt.samples == receipt.compared == 2
        searched = {entry.file for entry in receipt.files}
        for path in filled.rglob("*"):
            if path.is_file():
                assert str(path.relative_to(filled)) in searched
                data = path.read_bytes()
                for row in (X[2], X[20]):
                    unit = row / np.linalg.norm(row)
                    codes = np.rint(unit / np.abs(unit).max() * 127).astype(np.int8)
                    for form in (row, row.astype(np.float16), unit, unit.astype(np.float16), codes):
                        assert not holds_window(data, form.tobytes()), path
                for text in (b"subject three", b"subject 21", b"a former name", b"a long enough text"):
                    assert text not in data, path
        assert "subject three" not in str(receipt)
        assert store.verify() == []
        assert store.subject("subject 4").number == 4


def test_the_search_finds_any_window_at_any_offset(tmp_path: Path) -> None:
    from holue.store.windows import search_files

    rng = np.random.default_rng(3)
    row = embeddings(1, 9)[0]
    form = row.tobytes()
    for _ in range(50):
        start, before = rng.integers(0, len(form) - 63), rng.integers(0, 200)
        path = tmp_path / "file"
        path.write_bytes(rng.bytes(int(before)) + form[start : start + 64] + rng.bytes(77))
        assert search_files([path], tmp_path, row[None])[0].found
        path.write_bytes(rng.bytes(5000))
        assert not search_files([path], tmp_path, row[None])[0].found


def files_of(home: Path) -> list[str]:
    return sorted(str(path.relative_to(home)) for path in home.rglob("*") if path.is_file())


def notice(home: Path) -> tuple[str, tuple[int, ...]]:
    """What opening or verification says about damage; what else it did to the files is an error."""
    before = {name: (home / name).read_bytes() for name in files_of(home)}
    try:
        with SqliteStore.open(home, write=False) as store:
            problems = store.verify()
        said = "; ".join(f"{problem.file} {problem.what}" for problem in problems)
        subjects = tuple(number for problem in problems for number in problem.subjects)
    except CorruptStoreError as error:
        said, subjects = str(error), ()
    for name, data in before.items():
        if not name.endswith("-shm"):
            assert (home / name).read_bytes() == data, f"{name} was written over"
    return said, subjects


def test_a_flipped_bit_in_a_row_names_the_subject(filled: Path) -> None:
    path = filled / "segments" / "00000001.segment"
    data = bytearray(path.read_bytes())
    place = data.index(embeddings(20)[6].tobytes()) + 17
    data[place] ^= 4
    path.write_bytes(data)
    said, subjects = notice(filled)
    assert "00000001.segment" in said
    assert subjects == (7,)


def test_every_flipped_byte_is_noticed_or_harmless(filled: Path) -> None:
    """Bytes that nothing refers to (padding, free space of pages) may change unnoticed if everything reads as before."""
    choose = random.Random(5)

    def reading() -> Any:
        with SqliteStore.open(filled, write=False) as store:
            samples = [
                (s.number, s.subject, s.medium, s.embedding.tobytes(), s.concentration, s.time, s.origin, s.enrolled_by)
                for subject in store.subjects()
                for s in store.samples(subject.id)
            ]
            return store.subjects(), samples, store.artifact("calibration"), store.version

    expected = reading()
    noticed = 0
    for name in (
        "gallery.db",
        "segments/00000001.segment",
        "snapshots/one/gallery.db",
        "snapshots/one/segments/00000001.segment",
        "head",
    ):
        path = filled / name
        whole = path.read_bytes()
        for _ in range(40):
            place = choose.randrange(len(whole))
            data = bytearray(whole)
            data[place] ^= 1 << choose.randrange(8)
            path.write_bytes(data)
            said, _ = notice(filled)
            if said:
                noticed += 1
            else:
                assert reading() == expected, f"byte {place} of {name} changed what is read, and nobody noticed"
            path.write_bytes(whole)
    assert noticed > 60
    assert notice(filled) == ("", ())


@pytest.mark.parametrize(
    "name",
    ["gallery.db", "segments/00000001.segment", "snapshots/one/gallery.db", "snapshots/one/segments/00000001.segment"],
)
@pytest.mark.parametrize("how", ["gone", "cut", "empty"])
def test_a_missing_or_cut_file_is_named(filled: Path, name: str, how: str) -> None:
    path = filled / name
    if how == "gone":
        path.unlink()
    else:
        os.truncate(path, 0 if how == "empty" else path.stat().st_size * 2 // 3)
    said, _ = notice(filled)
    assert path.name in said
    if name.startswith("snapshots"):
        SqliteStore.open(filled).close()
    else:
        with pytest.raises(CorruptStoreError, match=path.name):
            SqliteStore.open(filled)


def test_the_rest_of_a_damaged_store_is_served_on_request(filled: Path) -> None:
    (filled / "segments" / "00000001.segment").unlink()
    with pytest.raises(CorruptStoreError, match="subject numbers 1, 2, 3, 4, 5 and 15 more"):
        SqliteStore.open(filled)
    with pytest.raises(InvalidParameterError, match="write=False"):
        SqliteStore.open(filled, damaged="serve")
    with SqliteStore.open(filled, write=False, damaged="serve") as store:
        view = store.at()
        assert view.missing == ((1, 20),)
        assert view.everything()[1].tolist() == [21]
        assert store.samples("subject 21")[0].embedding.tobytes() == embeddings(1, 1).tobytes()
        assert store.subject("subject 3").number == 3


@pytest.mark.parametrize("damage", ["gone", "cut", "flipped"])
def test_acknowledged_changes_lost_with_the_write_ahead_log_are_noticed(tmp_path: Path, damage: str) -> None:
    live = tmp_path / "live"
    with SqliteStore.create(live, dim=DIM) as store:
        for i in range(5):
            store.enroll(embeddings(1, i), [i])
        shutil.copytree(live, tmp_path / "copy")  # as a machine that stops would leave it
    wal = tmp_path / "copy" / "gallery.db-wal"
    assert wal.stat().st_size > 0
    if damage == "gone":
        wal.unlink()
    elif damage == "cut":
        os.truncate(wal, wal.stat().st_size - 5000)
    else:
        data = bytearray(wal.read_bytes())
        data[-3000] ^= 1
        wal.write_bytes(data)
    (tmp_path / "copy" / "gallery.db-shm").unlink()
    with pytest.raises(CorruptStoreError, match=r"acknowledged|cannot be read|not the database"):
        SqliteStore.open(tmp_path / "copy")


class FailingDisk(Disk):
    """A disk that fails from some write on."""

    def __init__(self, error: int) -> None:
        self.error = error
        self.failing = False

    def _write(self, path: Path, pieces: Any, *, sync: bool) -> None:
        if self.failing and sync:
            given = list(pieces)
            super()._write(path, [(given[0][0], bytes(memoryview(given[0][1]).cast("B")[:7]))], sync=False)
            raise OSError(self.error, os.strerror(self.error))
        super()._write(path, pieces, sync=sync)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EROFS, errno.EIO])
def test_a_write_that_fails_keeps_what_was_there(tmp_path: Path, small_limits: None, error: int) -> None:
    disk = FailingDisk(error)
    with SqliteStore.create(tmp_path / "home", dim=DIM, disk=disk) as store:
        store.enroll(embeddings(20), list(range(20)))
        disk.failing = True
        with pytest.raises(StoreError, match="nothing of this change was acknowledged"):
            store.enroll(embeddings(20, 1), list(range(100, 120)))
        assert store.version == 1
        assert store.subject(100) is None
        disk.failing = False
        store.enroll(embeddings(20, 2), list(range(100, 120)))
        assert store.samples(100)[0].embedding.tobytes() == embeddings(20, 2)[0].tobytes()
        assert store.verify() == []


def test_a_full_database_keeps_what_was_there(tmp_path: Path) -> None:
    with SqliteStore.create(tmp_path / "home", dim=DIM) as store:
        store.enroll(embeddings(2), ["a", "b"])
        pages = store._writer.database.one("PRAGMA page_count")
        store._writer.database.run(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(StoreError, match="full"):
            store.enroll(embeddings(500), [f"more {i}" for i in range(500)])
        enrolled = [subject.id for subject in store.subjects()]
        store._writer.database.run("PRAGMA max_page_count = 1000000")
        store.enroll(embeddings(1), ["z"])
        assert [subject.id for subject in store.subjects()] == [*enrolled, "z"]
        assert store.verify() == []


def test_a_store_on_a_read_only_disk_is_read_and_not_written(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    really = os.open

    def refuse(path: Any, flags: int, *rest: Any, **settings: Any) -> int:
        if str(path).startswith(str(filled)) and flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        return really(path, flags, *rest, **settings)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(StoreError, match="read_only=True"):
        SqliteStore.open(filled)
    with SqliteStore.open(filled, write=False) as store:
        assert store.subject("subject 3").number == 3


def test_what_an_interrupted_writer_left_is_cut_off(filled: Path) -> None:
    segment = filled / "segments" / "00000001.segment"
    size = segment.stat().st_size
    with segment.open("ab") as stream:
        stream.write(b"half a batch")
    (filled / "segments" / "00000009.segment").write_bytes(b"never named")
    (filled / "snapshots" / ".two.tmp").mkdir()
    with SqliteStore.open(filled) as store:
        assert segment.stat().st_size == size
        assert not (filled / "segments" / "00000009.segment").exists()
        assert store.status().snapshots == ("one",)
        assert not (filled / "snapshots" / ".two.tmp").exists()
        assert store.verify() == []


@pytest.mark.parametrize("step", ["write_durably", "vacuum", "search"])
def test_an_interrupted_erasure_is_completed_at_the_next_opening(
    filled: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    from holue.store.sqlite import database
    from holue.store.sqlite.upkeep import erasure

    def stop(*_: Any, **__: Any) -> Any:
        raise OSError(errno.EIO, "stopped")

    def stop_at(name: str) -> Callable[..., Any]:
        run = database.Database.run

        def stopping(self: Any, sql: str, values: Any = ()) -> Any:
            return stop() if sql == name else run(self, sql, values)

        return stopping

    with SqliteStore.open(filled) as store, monkeypatch.context() as patched:
        if step == "write_durably":
            patched.setattr(Disk, "write_durably", stop)
        elif step == "vacuum":
            patched.setattr(database.Database, "run", stop_at("VACUUM"))
        else:
            patched.setattr(erasure, "search_files", stop)
        with pytest.raises(StoreError):
            store.erase(["subject 3"])
    with SqliteStore.open(filled) as store:
        assert store.subject("subject 3") is None
        assert store.verify() == []
        receipt = store.receipts()[0]
        assert receipt.clean
        assert len(receipt.digests) == 1
        for path in filled.rglob("*"):
            if path.is_file():
                assert not holds_window(path.read_bytes(), embeddings(20)[2].tobytes()), path


def test_a_killed_writer_loses_nothing_it_acknowledged() -> None:
    program = Path(__file__).parents[1] / "torture" / "kill_store.py"
    done = subprocess.run(
        [sys.executable, program, "--times", "30", "--seed", "3", "--longest", "0.3"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "every promise held in 30 kills" in done.stdout, done.stderr


def test_power_loss_at_any_boundary_loses_nothing_acknowledged() -> None:
    pytest.importorskip("apsw")
    program = Path(__file__).parents[1] / "torture" / "lose_power.py"
    command = [sys.executable, program, "--changes", "15", "--seed", "2", "--samples", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "every promise held" in done.stdout, done.stderr


class CountingConnection:
    """A connection that counts the rows it gives."""

    def __init__(self, path: Path, mode: str) -> None:
        self._connection, self.given = connect_sqlite(path, mode), 0

    def execute(self, sql: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        rows = list(self._connection.execute(sql, values))
        self.given += len(rows)
        return rows

    def executemany(self, sql: str, rows: Any) -> None:
        self._connection.executemany(sql, rows)

    def close(self) -> None:
        self._connection.close()


def test_the_samples_of_one_subject_are_found_without_reading_all_ranges_or_words(tmp_path: Path) -> None:
    connections: list[CountingConnection] = []

    def connect(path: Path, mode: str) -> CountingConnection:
        connections.append(CountingConnection(path, mode))
        return connections[-1]

    def rows_given(store: SqliteStore) -> int:
        before = sum(one.given for one in connections)
        found = store.samples("7")
        assert [sample.medium for sample in found] == ["film 7", "more"]
        assert np.array_equal(found[0].embedding, X[7])
        return sum(one.given for one in connections) - before

    X = embeddings(300)
    with SqliteStore.create(tmp_path / "home", dim=DIM, connect=connect) as store:
        for i in range(10):
            store.enroll(X[i : i + 1], [str(i)], medium=f"film {i}")
        store.add_samples(X[:1], ["7"], medium="more")
        rows_given(store)  # what was read is kept
        few = rows_given(store)
        for i in range(10, 300):
            store.enroll(X[i : i + 1], [str(i)], medium=f"film {i}")
        assert rows_given(store) == few
        assert [sample.number for sample in store.samples("299")] == [301]


def test_samples_are_found_in_ranges_that_compaction_has_joined_and_cut(tmp_path: Path, small_limits: None) -> None:
    X = embeddings(120)
    with SqliteStore.create(tmp_path / "home", dim=DIM) as store:
        for first in range(0, 120, 20):
            store.enroll(X[first : first + 20], [str(i) for i in range(first, first + 20)])
        store.remove([str(i) for i in range(30, 50)])
        store.erase([str(i) for i in range(30, 45)])
        store.compact(forget_before=store.version)
        store.enroll(X[:1], ["new"])
        for i in (0, 29, 50, 119):
            assert np.array_equal(store.samples(str(i))[0].embedding, X[i])
        assert np.array_equal(store.samples("new")[0].embedding, X[0])
        with pytest.raises(CorruptStoreError, match="sample 31 is in no segment"):
            store._read(lambda home: read_sample(home, [31]))


def test_a_single_change_waits_for_the_disk_once(tmp_path: Path) -> None:
    pytest.importorskip("apsw")
    code = """
import sys
from pathlib import Path
import numpy as np
sys.path.insert(0, sys.argv[1])
from lose_power import Recorder, RecordingVFS, connect_recording
from holue.store.sqlite.store import SqliteStore
home = Path(sys.argv[2])
recorder = Recorder(home)
vfs = RecordingVFS(recorder)
with SqliteStore.create(home, dim=512, disk=recorder, connect=connect_recording) as store:
    store.enroll(np.ones((1, 512)), ["first"])
    recorder.events.clear()
    for i in range(20):
        store.enroll(np.full((1, 512), i + 1), [f"subject {i}"])
        store.remove([f"subject {i}"])
    print(sum(event.kind.startswith("sync") for event in recorder.events))
"""
    assert in_another_process(code, Path(__file__).parents[1] / "torture", tmp_path / "home") == "40"


def test_many_single_changes_write_over_the_log_instead_of_growing_it(tmp_path: Path) -> None:
    log, page = tmp_path / "home" / "gallery.db-wal", 4096 + 24
    with SqliteStore.create(tmp_path / "home", dim=512) as store:
        sizes = []
        for i in range(350):
            store.enroll(np.full((1, 512), i + 1), [i])
            sizes.append(log.stat().st_size)
    # A change is about ten pages, and the log begins anew with the change after the one that filled it; 350 changes: 3500 pages.
    assert sizes[50] < sizes[90] < sizes[-1] <= (LOG_PAGES + 20) * page


def test_counters_kept_between_transactions_survive_a_change_that_failed(tmp_path: Path) -> None:
    with SqliteStore.create(tmp_path / "home", dim=DIM) as store:
        store.enroll(embeddings(2), ["a", "b"])
        database = store._writing_home().database
        run, fail = database.run, [True]

        def failing(sql: str, values: Any = ()) -> Any:
            if sql == "COMMIT" and fail.pop():
                raise OSError("no space left on device")
            return run(sql, values)

        database.run = failing  # type: ignore[method-assign]
        with pytest.raises(StoreError, match="no space left"):
            store.enroll(embeddings(1), ["c"])
        database.run = run  # type: ignore[method-assign]
        enrolled = store.enroll(embeddings(1), ["d"])
        assert (enrolled.version, enrolled.subjects.tolist(), enrolled.samples.tolist()) == (2, [3], [3])
    with SqliteStore.open(tmp_path / "home") as store:
        assert [subject.id for subject in store.subjects()] == ["a", "b", "d"]
