"""What only the PostgreSQL home promises: several writers, copies that follow, a server that may go and come back."""

from __future__ import annotations

import builtins
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holue.errors import (
    CorruptStoreError,
    ErasureIncompleteError,
    InvalidParameterError,
    MissingDependencyError,
    StoreError,
    StoreUnavailableError,
)
from holue.store.postgres.address import Address
from holue.store.postgres.server import Server
from holue.store.postgres.store import PostgresStore
from holue.store.postgres.upkeep import erasure
from holue.store.windows import search_files

psycopg = pytest.importorskip("psycopg")
DIM = 64


def embeddings(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, DIM)).astype(np.float32)


def contents(store: Any) -> dict[str, bytes]:
    view = store.at()
    return {view.get(int(number)).id: row.tobytes() for _, number, row in zip(*view.everything())}


def held_in_tables(server: Any, rows: np.ndarray) -> int:
    """How many blocks of the server's table files hold bytes of these rows."""
    with psycopg.connect(server.database, autocommit=True) as connection:
        connection.execute("CHECKPOINT")  # rows reach the files, and files that are no longer used go
    files = [path for path in (server.folder / "base").rglob("*") if path.name[0].isdigit() and path.is_file()]
    return sum(entry.found for entry in search_files(files, server.folder, rows))


@pytest.fixture
def url(postgres: Any) -> str:
    return str(postgres.url(f"g{uuid.uuid4().hex[:12]}"))


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with PostgresStore.create(url, dim=DIM, model="m") as made:
        yield made


# Several writers


def test_writers_in_several_processes_make_one_sequence_of_versions(store: PostgresStore, url: str) -> None:
    code = """
import sys
import numpy as np
from holue.store.postgres.server import Server
from holue.store.postgres.store import PostgresStore
name = sys.argv[2]
with PostgresStore.open(sys.argv[1]) as store:
    for i in range(15):
        row = np.random.default_rng(i).standard_normal((1, 64))
        done = store.enroll(row, [f"{name} {i}"])
        assert store.subject(f"{name} {i}").number == done.subjects[0]
        print(done.version, done.subjects[0], done.samples[0])
"""
    writers = [
        subprocess.Popen([sys.executable, "-c", code, url, name], stdout=subprocess.PIPE, text=True)
        for name in ("a", "b", "c")
    ]
    said = [writer.communicate()[0] for writer in writers]
    assert all(writer.returncode == 0 for writer in writers)
    numbers = sorted(tuple(map(int, line.split())) for text in said for line in text.splitlines())
    assert numbers == [(i, i, i) for i in range(1, 46)]
    store.refresh()
    assert len(contents(store)) == 45
    assert [change.version for change in store.changes(0)] == list(range(1, 46))
    assert store.verify() == []


def test_a_change_of_another_process_wakes_whoever_waits(store: PostgresStore, url: str) -> None:
    with PostgresStore.open(url) as other:
        found: list[int] = []
        waiting = threading.Thread(target=lambda: found.append(other.wait(0, timeout=20)))
        waiting.start()
        store.enroll(embeddings(1), ["ann"])
        waiting.join(20)
        assert found == [1]
        assert contents(other) == contents(store)
        assert other.wait(1, timeout=0.01) == 1


def test_a_copy_that_was_left_behind_catches_up(store: PostgresStore, url: str) -> None:
    with PostgresStore.open(url) as other:
        other._listener.stop()  # type: ignore[union-attr]
        store.enroll(embeddings(3), ["a", "b", "c"])
        store.remove(["a"])
        assert other.version == 0
        other.refresh()
        assert contents(other) == contents(store)
        version = store.rename("b", "d")
        store.compact(forget_before=store.remove(["c"]))
        assert other.version < version
        other.refresh()  # what it lacks is no longer kept: it is filled anew
        assert contents(other) == contents(store)
        assert other.status().oldest_version == store.status().oldest_version
        assert other.verify() == []


def test_copies_of_killed_processes_are_deleted(store: PostgresStore, url: str) -> None:
    code = """
import os, sys
from holue.store.postgres.server import Server
from holue.store.postgres.store import PostgresStore
print(PostgresStore.open(sys.argv[1])._replica.copy.path, flush=True)
os.kill(os.getpid(), 9)
"""
    left = Path(subprocess.run([sys.executable, "-c", code, url], capture_output=True, text=True).stdout.strip())
    assert left.is_dir()
    assert left.stat().st_mode & 0o077 == 0
    mine = store._replica.copy.path  # type: ignore[union-attr]
    PostgresStore.open(url).close()
    assert not left.exists()
    assert mine.exists()


# The server goes and comes back


def test_reads_go_on_while_the_server_is_gone(own_postgres: Any) -> None:
    with PostgresStore.create(own_postgres.url("g"), dim=DIM) as store:
        store.enroll(embeddings(3), ["a", "b", "c"])
        store.put_artifact("calibration", b"point")
        expected = contents(store)
        own_postgres.crash()
        time.sleep(0.3)
        assert contents(store) == expected
        assert store.subject("b").number == 2  # type: ignore[union-attr]
        assert store.artifact("calibration") == b"point"
        age = store.status().age
        assert age is not None
        assert age >= 0.3
        with pytest.raises(StoreUnavailableError, match=r"copy was current .* s ago"):
            store.enroll(embeddings(1), ["d"])
        with pytest.raises(StoreUnavailableError):
            store.refresh()
        with pytest.raises(StoreUnavailableError):
            PostgresStore.open(own_postgres.url("g"))
        assert contents(store) == expected
        assert store.version == 1
        own_postgres.start()
        store.enroll(embeddings(1, 1), ["d"])
        assert set(contents(store)) == {"a", "b", "c", "d"}
        assert store.status().age < age  # type: ignore[operator]


def test_no_acknowledged_write_is_lost_when_the_server_crashes_under_load(own_postgres: Any) -> None:
    acknowledged: dict[str, bytes] = {}
    refused: dict[str, bytes] = {}
    unexpected: list[BaseException] = []
    stop = threading.Event()

    def write(store: PostgresStore, name: str) -> None:
        count = 0
        while not stop.is_set():
            count += 1
            subject, row = f"{name} {count}", embeddings(1, 1000 * int(name) + count)
            try:
                store.enroll(row, [subject])
                acknowledged[subject] = row.tobytes()
            except StoreUnavailableError:
                refused[subject] = row.tobytes()
                stop.wait(0.02)
            except BaseException as error:
                unexpected.append(error)
                return

    url = own_postgres.url("g")
    with PostgresStore.create(url, dim=DIM) as one, PostgresStore.open(url) as two:
        threads = [threading.Thread(target=write, args=(store, f"{i}")) for i, store in enumerate((one, one, one, two))]
        for thread in threads:
            thread.start()
        for _ in range(3):
            before = len(acknowledged)
            while len(acknowledged) < before + 20 and not unexpected:
                time.sleep(0.01)
            own_postgres.crash()
            own_postgres.start()
        stop.set()
        for thread in threads:
            thread.join()
        assert not unexpected
        one.refresh()
        two.refresh()
        found = contents(one)
        assert found == contents(two)
        assert acknowledged.items() <= found.items()
        assert found.items() <= (acknowledged | refused).items()
        assert [change.version for change in one.changes(0)] == list(range(1, one.version + 1))
        assert one.verify() == []


@pytest.mark.parametrize("made", [True, False])
def test_a_connection_lost_during_the_commit_is_cleared_up(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    server = store._replica.server  # type: ignore[union-attr]
    run = server.run

    def lose(sql: str, values: Any = ()) -> Any:
        if sql != "COMMIT":
            return run(sql, values)
        monkeypatch.setattr(server, "run", run)
        if made:
            run("COMMIT")
        server.close()
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(server, "run", lose)
    if made:
        assert store.enroll(embeddings(1), ["ann"]).version == 1
    else:
        with pytest.raises(StoreUnavailableError):
            store.enroll(embeddings(1), ["ann"])
    assert set(contents(store)) == ({"ann"} if made else set())
    assert store.enroll(embeddings(1, 1), ["bob"]).version == (2 if made else 1)
    assert store.verify() == []


def test_a_change_that_the_copy_cannot_take_is_said_to_be_made(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = store._replica.copy  # type: ignore[union-attr]

    def fail() -> None:
        monkeypatch.undo()
        raise OSError("no space left on device")

    monkeypatch.setattr(copy, "commit", fail)
    with pytest.raises(StoreError, match=r"version 1 is on the server.*no space"):
        store.enroll(embeddings(1), ["ann"])
    assert store.refresh() == 1
    assert set(contents(store)) == {"ann"}
    assert store.enroll(embeddings(1, 1), ["bob"]).version == 2


# Erasure


def test_erased_bytes_are_in_no_file_of_the_tables_and_in_no_copy(own_postgres: Any) -> None:
    X = embeddings(50)
    url = own_postgres.url("g")
    with PostgresStore.create(url, dim=DIM) as store, PostgresStore.open(url) as other:
        store.enroll(X, [f"subject {i}" for i in range(50)])
        store.snapshot("one")
        store.remove(["subject 3"])
        with psycopg.connect(own_postgres.database, autocommit=True) as connection:
            connection.execute("ANALYZE")
        assert held_in_tables(own_postgres, X[3:5])
        receipt = store.erase(["subject 3", "subject 4"])
        assert receipt.clean
        assert (receipt.samples, receipt.compared) == (2, 2)
        assert any(entry.file.startswith("server: base/") for entry in receipt.files)
        assert any("write-ahead log" in text for text in receipt.not_searched)
        assert held_in_tables(own_postgres, X[3:5]) == 0
        assert held_in_tables(own_postgres, X[5:6])
        other.wait(receipt.version - 1, timeout=20)
        copy = other._replica.copy  # type: ignore[union-attr]
        other.refresh()
        assert not sum(entry.found for entry in search_files(copy.files(), copy.path, X[3:5]))
        assert sum(entry.found for entry in search_files(copy.files(), copy.path, X[5:6]))
        assert other.receipts() == [receipt]


@pytest.mark.parametrize(
    "keeps",
    [
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ; SELECT 1",  # it may look at the rows yet
        "SELECT pg_current_xact_id()",  # it writes
    ],
)
def test_an_erasure_that_was_interrupted_is_completed_at_the_next_opening(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch, postgres: Any, keeps: str
) -> None:
    X = embeddings(2, seed=77)
    store.enroll(X, ["ann", "bob"])
    monkeypatch.setattr(erasure, "OLD_READER_SECONDS", 0.2)
    with psycopg.connect(postgres.database) as old:
        old.execute(keeps)
        with pytest.raises(ErasureIncompleteError, match="older than the erasure"):
            store.erase(["ann"])
        assert store.subject("ann") is None
        assert not store.receipts()[0].files
        store.close()
        with PostgresStore.open(url) as meanwhile:
            assert not meanwhile.receipts()[0].clean
    with PostgresStore.open(url) as again:
        assert again.receipts()[0].clean
        assert again.receipts()[0].compared == 0
        assert held_in_tables(postgres, X[:1]) == 0


def test_a_receipt_says_that_somebody_else_was_enrolled_with_the_same_direction(store: PostgresStore) -> None:
    X = embeddings(1, seed=78)
    store.enroll(3 * X, ["ann"])
    given = (3 * X).astype(np.float64)
    store.enroll(given / np.linalg.norm(given), ["bob"])
    receipt = store.erase(["ann"])
    assert not receipt.clean
    assert {entry.file.split()[0] for entry in receipt.files if entry.found} == {"local", "rows:", "server:"}


def test_a_user_without_rights_to_files_gets_a_receipt_that_says_so(postgres: Any) -> None:
    name = f"g{uuid.uuid4().hex[:12]}"
    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"GRANT CREATE ON DATABASE postgres TO {name}")
    url = postgres.url(name).replace("postgres:@", f"{name}@")
    with PostgresStore.create(url, dim=DIM) as store:
        store.enroll(embeddings(2), ["ann", "bob"])
        receipt = store.erase(["ann"])
        assert receipt.clean
        assert [entry.file for entry in receipt.files if entry.file.startswith("server")] == []
        assert any(entry.file.startswith("rows: ") for entry in receipt.files)
        said = " ".join(receipt.not_searched)
        assert "may not read them" in said
        assert "may not run CHECKPOINT" in said


def test_rights_on_the_tables_outlive_an_erasure(store: PostgresStore, postgres: Any) -> None:
    name, schema = f"r{uuid.uuid4().hex[:12]}", store.address.schema
    store.enroll(embeddings(3), ["ann", "bob", "cay"])
    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name}")
        connection.execute(f'GRANT USAGE ON SCHEMA "{schema}" TO {name}')
        connection.execute(f'GRANT SELECT ON "{schema}".embedding TO {name}')
        assert store.erase(["ann"]).clean
        assert store.erase(["bob"]).clean
        connection.execute(f"SET ROLE {name}")
        assert connection.execute(f'SELECT count(*) FROM "{schema}".embedding').fetchone() == (1,)


# Borders


def test_damage_on_the_server_is_named_with_the_subjects(store: PostgresStore, postgres: Any) -> None:
    store.enroll(embeddings(3), ["a", "b", "c"])
    store.snapshot("one")
    schema = store.address.schema
    with psycopg.connect(postgres.database, autocommit=True) as connection:
        flip = f'UPDATE "{schema}".embedding SET data = set_byte(data, 5, get_byte(data, 5) # 1) WHERE number = 2'
        connection.execute(flip)
        connection.execute(f"UPDATE \"{schema}\".subject SET purpose = 'other' WHERE number = 3")
        connection.execute(f'DELETE FROM "{schema}".embedding WHERE number = 1')
    problems = store.verify()
    assert {problem.subjects for problem in problems} == {(1,), (2,), (3,)}
    assert {problem.file for problem in problems} == {"server"}


def test_dimension_and_model_are_enforced(store: PostgresStore, url: str) -> None:
    with pytest.raises(InvalidParameterError, match=f"dim={DIM}"):
        PostgresStore.open(url, dim=DIM + 1)
    with pytest.raises(InvalidParameterError, match="model='m'"):
        PostgresStore.open(url, model="n")
    with pytest.raises(StoreError, match="exists already"):
        PostgresStore.create(url, dim=DIM)
    with pytest.raises(CorruptStoreError, match="no gallery 'nobody'"):
        PostgresStore.open(url.partition("gallery=")[0] + "gallery=nobody")
    with pytest.raises(StoreError, match="no snapshot 'never'"):
        PostgresStore.restore(f"{url}&snapshot=never", url + "2")


@pytest.mark.parametrize("wrong", ["mysql://host/db?gallery=a", "postgresql://host/db", 'postgresql://h/d?gallery=a"b'])
def test_a_url_that_names_no_gallery_is_refused(wrong: str) -> None:
    with pytest.raises(InvalidParameterError, match="gallery"):
        PostgresStore.open(wrong)


def test_an_error_does_not_show_the_password() -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        PostgresStore.open("postgresql://ann:secret@127.0.0.1:1/db?gallery=door")
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(Address.parse("postgresql://ann:secret@127.0.0.1:1/db?gallery=door"))


def test_a_missing_driver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    importing = builtins.__import__

    def refuse(name: str, *args: Any, **settings: Any) -> Any:
        if name == "psycopg":
            raise ImportError(name)
        return importing(name, *args, **settings)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(MissingDependencyError, match=r"pip install 'holue\[postgres\]'"):
        PostgresStore.open("postgresql://ann@127.0.0.1:1/db?gallery=door")


def test_a_killed_writer_loses_nothing_it_acknowledged(postgres: Any) -> None:
    pytest.importorskip("pgserver", reason="the program starts a server of its own from pgserver")
    program = Path(__file__).parents[1] / "torture" / "kill_store.py"
    command = [sys.executable, program, "--times", "6", "--seed", "3", "--longest", "2", "--home", "postgres"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "every promise held in 6 kills" in done.stdout, done.stderr


def test_writing_goes_on_while_an_erasure_writes_the_rows_anew(
    store: PostgresStore, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.enroll(embeddings(20), [f"subject {i}" for i in range(20)])
    run = Server.run
    with PostgresStore.open(url) as other:

        def write_in_between(self: Server, sql: str, values: Any = ()) -> Any:
            found = run(self, sql, values)
            if sql.startswith("INSERT INTO embedding_new SELECT * FROM embedding ORDER"):
                other.enroll(embeddings(1, 5), ["late"])
            return found

        monkeypatch.setattr(Server, "run", write_in_between)
        receipt = store.erase(["subject 3"])
        monkeypatch.undo()
        assert receipt.clean
        assert set(contents(other)) == {"late", *(f"subject {i}" for i in range(20) if i != 3)}
        other.refresh()
        assert contents(other) == contents(store)
        assert store.erase(["late"]).clean
        assert store.verify() == []
    with PostgresStore.open(url) as again:
        assert contents(again) == contents(store)


def test_an_erasure_lets_readers_finish_and_writers_go_first(store: PostgresStore, url: str) -> None:
    store.enroll(embeddings(20), [f"subject {i}" for i in range(20)])
    reader = Server(Address.parse(url))
    with PostgresStore.open(url) as other:
        erasing = threading.Thread(target=lambda: store.erase(["subject 3"]))
        with reader.reading():
            erasing.start()
            while other.version < 2:  # the rows are deleted; the table cannot be exchanged yet
                other.wait(1, timeout=1)
            for i in range(5):
                other.enroll(embeddings(1, 100 + i), [f"late {i}"])
            assert reader.one("SELECT count(*) FROM embedding") == 24
        erasing.join(60)
        assert not erasing.is_alive()
        assert store.receipts()[0].clean
        store.refresh()
        assert len(contents(store)) == 24
        assert store.verify() == []
    reader.close()
