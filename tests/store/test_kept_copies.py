"""With ``copy=keep`` the local copy of a PostgreSQL gallery outlives its process, and erasure reaches it."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holue.errors import InvalidParameterError
from holue.store.postgres.local.folder import NOTE
from holue.store.postgres.server import Server
from holue.store.postgres.store import PostgresStore
from holue.store.windows import search_files

psycopg = pytest.importorskip("psycopg")
DIM = 64


def embeddings(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, DIM)).astype(np.float32)


def contents(store: Any) -> dict[str, bytes]:
    view = store.at()
    return {view.get(int(number)).id: row.tobytes() for _, number, row in zip(*view.everything())}


def folder(store: PostgresStore) -> Path:
    return store._replica.copy.path  # type: ignore[union-attr]


def held(cache: Path, rows: np.ndarray) -> int:
    """How many blocks of the kept files hold bytes of these rows."""
    files = [path for path in cache.rglob("*") if path.is_file()]
    return sum(entry.found for entry in search_files(files, cache, rows))


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOLUE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def url(postgres: Any, cache: Path) -> str:
    plain = str(postgres.url(f"g{uuid.uuid4().hex[:12]}"))
    with PostgresStore.create(plain, dim=DIM) as store:
        store.enroll(embeddings(6), [f"subject {i}" for i in range(6)])
        store.remove(["subject 5"])
    return plain


def test_a_copy_is_deleted_unless_it_is_asked_to_stay(url: str, cache: Path) -> None:
    with PostgresStore.open(url) as store:
        path = folder(store)
    assert not path.exists()
    assert not cache.exists()
    with PostgresStore.open(f"{url}&copy=keep") as store:
        path = folder(store)
    assert cache in path.parents
    assert path.parent.stat().st_mode & 0o077 == 0
    assert path.stat().st_mode & 0o077 == 0
    assert held(cache, embeddings(6)[:1])


def test_a_kept_copy_is_used_again_and_follows_what_happened_since(url: str) -> None:
    with PostgresStore.open(f"{url}&copy=keep") as store:
        path = folder(store)
    with PostgresStore.open(url) as other:
        other.enroll(embeddings(2, 1), ["ann", "bob"])
        other.rename("subject 1", "eve")
        other.undo(2)
        other.merge(["subject 0", "subject 2"], into="subject 0")
        other.put_artifact("calibration", b"point")
        expected, changes = contents(other), other.changes(0)
    with PostgresStore.open(f"{url}&copy=keep") as store:
        assert folder(store) == path
        assert contents(store) == expected
        assert [change.version for change in store.changes(0)] == [change.version for change in changes]
        assert store.artifact("calibration") == b"point"
        assert store.verify() == []
        store.enroll(embeddings(1, 2), ["cay"])
    with PostgresStore.open(f"{url}&copy=keep") as store:
        assert folder(store) == path
        assert "cay" in contents(store)
        assert store.verify() == []


def test_opening_a_kept_copy_reads_no_row_that_it_has(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PostgresStore.open(f"{url}&copy=keep").close()
    with PostgresStore.open(url) as other:
        other.enroll(embeddings(1, 1), ["ann"])
    read = Server.copy_out
    counted: list[int] = []

    def count(self: Server, table: str, *question: Any) -> Iterator[list[Any]]:
        for columns in read(self, table, *question):
            counted.append(len(columns[0]))
            yield columns

    monkeypatch.setattr(Server, "copy_out", count)
    with PostgresStore.open(f"{url}&copy=keep") as store:
        assert set(contents(store)) >= {"ann", "subject 0"}
    assert counted == [1, 1, 1]  # a subject, a change, a sample with its embedding


def test_opening_overwrites_in_the_kept_copy_what_was_erased_meanwhile(
    url: str, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = embeddings(6)
    with PostgresStore.open(f"{url}&copy=keep") as store:
        path = folder(store)
        (path / "derived").mkdir()
        (path / "derived" / "templates").write_bytes(X[1].tobytes())
    monkeypatch.setenv("HOLUE_CACHE", str(tmp_path / "another machine"))
    with PostgresStore.open(url) as other:
        receipt = other.erase(["subject 1"])
    assert any("kept" in text for text in receipt.not_searched)
    assert held(cache, X[1:2])
    monkeypatch.setenv("HOLUE_CACHE", str(cache))
    with PostgresStore.open(f"{url}&copy=keep") as store:
        assert folder(store) == path
        assert not held(cache, X[1:2])
        assert held(cache, X[2:3])
        assert store.verify() == []
    assert not held(cache, X[1:2])


def test_an_erasure_deletes_the_kept_copy_that_nobody_uses(url: str, cache: Path) -> None:
    X = embeddings(6)
    PostgresStore.open(f"{url}&copy=keep").close()
    assert held(cache, X[1:2])
    with PostgresStore.open(url) as other:
        other.erase(["subject 1"])
    assert not held(cache, X)
    PostgresStore.open(f"{url}&copy=keep").close()
    PostgresStore.open(url).close()  # it has seen the erasure, so it stays
    assert held(cache, X[2:3])


def test_the_copy_of_a_killed_process_is_not_trusted(url: str, cache: Path) -> None:
    code = """
import os, sys
from holue.store.postgres.store import PostgresStore
print(PostgresStore.open(sys.argv[1])._replica.copy.path, flush=True)
os.kill(os.getpid(), 9)
"""
    command = [sys.executable, "-c", code, f"{url}&copy=keep"]
    left = Path(subprocess.run(command, capture_output=True, text=True).stdout.strip())
    assert left.is_dir()
    assert cache in left.parents
    with PostgresStore.open(f"{url}&copy=keep") as store:
        assert folder(store) != left
    assert not left.exists()


@pytest.mark.parametrize("damage", ["cut", "gone", "note", "database"])
def test_a_damaged_copy_is_made_again(url: str, damage: str) -> None:
    with PostgresStore.open(f"{url}&copy=keep") as store:
        store.enroll(np.random.default_rng(3).standard_normal((2000, DIM)), [f"other {i}" for i in range(2000)])
        path, expected = folder(store), contents(store)
    segment = next((path / "segments").iterdir())
    if damage == "cut":
        os.truncate(segment, segment.stat().st_size - 1)
    elif damage == "gone":
        segment.unlink()
    elif damage == "note":
        (path / NOTE).write_text((path / NOTE).read_text() + " ")
    else:
        os.truncate(path / "gallery.db", 8192)
    with PostgresStore.open(f"{url}&copy=keep") as store:
        assert folder(store) != path
        assert contents(store) == expected
        assert store.verify() == []
    assert not path.exists()


def test_a_copy_of_another_past_is_made_again(url: str, postgres: Any) -> None:
    """A server that was restored from a backup may have gone on differently, under the same numbers."""
    with PostgresStore.open(f"{url}&copy=keep") as store:
        path, schema = folder(store), store.address.schema
    with psycopg.connect(postgres.database, autocommit=True) as connection:
        connection.execute(
            f'UPDATE "{schema}".edit SET token = %s WHERE number = (SELECT edit FROM "{schema}".head)', ["x"]
        )
    with PostgresStore.open(f"{url}&copy=keep") as store:
        assert folder(store) != path
        assert len(contents(store)) == 5


def test_processes_at_the_same_time_have_copies_of_their_own_and_one_is_kept(url: str, cache: Path) -> None:
    with PostgresStore.open(f"{url}&copy=keep") as one, PostgresStore.open(f"{url}&copy=keep") as two:
        assert folder(one) != folder(two)
        one.enroll(embeddings(1, 9), ["ann"])
        two.refresh()
        assert contents(one) == contents(two)
    assert len(list(cache.glob(f"copies/*/*/{NOTE}"))) == 1
    assert len(list(cache.glob("copies/*/*"))) == 1


def test_copy_is_keep_or_nothing(url: str) -> None:
    with pytest.raises(InvalidParameterError, match="copy in the URL"):
        PostgresStore.open(f"{url}&copy=always")
