"""A gallery moves from a directory to a server and back, and stays the same gallery."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holue
from holue.errors import CorruptStoreError, StoreError
from holue.live.opening import restore
from holue.store.postgres.address import Address
from holue.store.postgres.store import PostgresStore
from holue.store.postgres.upkeep import moving
from holue.store.sqlite.store import SqliteStore
from holue.store.windows import search_files

pytest.importorskip("psycopg")
DIM = 48


def embeddings(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, DIM)).astype(np.float32)


def live_a_while(store: Any) -> None:
    """All kinds of change, with words, numbers and missing values in every column."""
    store.enroll(
        embeddings(12), [f"person {i} ü" for i in range(12)], medium=["face", "voice"] * 6, concentration=np.arange(1, 13),
        time=7.5, origin=[None, "a.png", ""] * 4, by="desk", metadata={"person 1 ü": {"room": 4}},
        retain_until={"person 2 ü": 9.25}, consent="form", purpose={"person 3 ü": "door"},
    )  # fmt: skip
    store.add_samples(embeddings(2, 1), ["person 1 ü", "person 4 ü"])
    store.remove(["person 5 ü"])
    store.undo()
    store.remove(["person 6 ü"])
    store.rename("person 7 ü", "someone")
    store.merge(["person 8 ü"], into="person 9 ü")
    store.split("person 4 ü", [14], new="another")
    store.replace(embeddings(1, 2), ["person 10 ü"])
    store.erase(["person 0 ü"])
    store.put_artifact("calibration", b"\x00\xffpoint")
    store.undo(store.rename("someone", "nobody"))


def picture(store: Any) -> Any:
    """All that can be read of every version."""
    versions = []
    for version in range(store.status().oldest_version, store.version + 1):
        view = store.at(version)
        samples, subjects, rows = view.everything()
        order = np.argsort(samples)
        found = [(int(n), view.get(int(n))) for n in np.unique(subjects)]
        versions.append((samples[order].tolist(), subjects[order].tolist(), rows[order].tobytes(), found))
    samples_of = [[(*vars(s).items(),) for s in _plain(store.samples(who.id))] for who in store.subjects()]
    changes = [
        (c.version, c.kind, c.time, c.by, c.subjects.tolist(), c.samples.tolist(), c.moved_to.tolist(), c.undoes)
        for c in store.changes(store.status().oldest_version)
    ]
    operations = [(entry.number, entry.verb, entry.detail) for entry in store.operations()]
    return store.dim, store.model, store.subjects(), versions, samples_of, changes, operations, store.receipts()


def _plain(samples: list[Any]) -> list[Any]:
    import dataclasses
    from types import SimpleNamespace

    return [SimpleNamespace(**{**dataclasses.asdict(s), "embedding": s.embedding.tobytes()}) for s in samples]


@pytest.fixture
def url(postgres: Any) -> str:
    return str(postgres.url(f"g{uuid.uuid4().hex[:12]}"))


def test_a_gallery_is_the_same_after_moving_to_a_server_and_back(tmp_path: Path, url: str) -> None:
    with SqliteStore.create(tmp_path / "one", dim=DIM, model="m") as store:
        live_a_while(store)
        expected = picture(store)
        moving.restore(str(tmp_path / "one"), url)  # while it is open
    with PostgresStore.open(url) as moved:
        assert picture(moved) == expected
        assert moved.artifact("calibration") == b"\x00\xffpoint"
        assert moved.verify() == []
        moving.restore(url, str(tmp_path / "two"))
        later = moved.enroll(embeddings(1, 5), ["late"])
    with SqliteStore.open(tmp_path / "two") as back:
        assert picture(back) == expected
        assert back.artifact("calibration") == b"\x00\xffpoint"
        assert back.verify() == []
        here = back.enroll(embeddings(1, 5), ["late"])
        assert (here.version, here.subjects, here.samples) == (later.version, later.subjects, later.samples)


def test_a_snapshot_on_a_server_becomes_a_directory(tmp_path: Path, url: str) -> None:
    with PostgresStore.create(url, dim=DIM) as store:
        live_a_while(store)
        expected = picture(store)[:-2]
        snapshot = store.snapshot("monday")
        store.remove(["another"])
    moving.restore(snapshot, str(tmp_path / "monday"))
    with SqliteStore.open(tmp_path / "monday") as back:
        assert picture(back)[:-2] == expected


def test_a_gallery_moves_between_servers(own_postgres: Any, url: str) -> None:
    with PostgresStore.create(url, dim=DIM) as store:
        live_a_while(store)
        expected = picture(store)
    with PostgresStore.restore(url, own_postgres.url("moved")) as moved:
        assert picture(moved) == expected
        assert moved.verify() == []


def test_what_was_erased_does_not_move(tmp_path: Path, url: str) -> None:
    X = embeddings(12)
    with PostgresStore.create(url, dim=DIM) as store:
        live_a_while(store)
    moving.restore(url, str(tmp_path / "one"))
    files = [path for path in (tmp_path / "one").rglob("*") if path.is_file()]
    assert not sum(entry.found for entry in search_files(files, tmp_path, X[:1]))
    assert sum(entry.found for entry in search_files(files, tmp_path, X[1:2]))


def test_answers_are_the_same_in_both_homes(tmp_path: Path, url: str) -> None:
    X = embeddings(40, 3)
    with holue.open(tmp_path / "one", create=True, dim=DIM, method="galue", threshold=0.5) as gallery:
        gallery.enroll(X[:30], [f"s{i}" for i in range(30)])
        before = gallery.identify(X)
    with restore(tmp_path / "one", url) as gallery:
        there = gallery.identify(X)
    with restore(url, tmp_path / "two") as gallery:
        back = gallery.identify(X)
    for answers in (there, back):
        assert answers.subject.tolist() == before.subject.tolist()
        assert answers.uncertainty.tobytes() == before.uncertainty.tobytes()


def test_nothing_is_written_over(tmp_path: Path, url: str) -> None:
    with SqliteStore.create(tmp_path / "one", dim=DIM) as store:
        store.enroll(embeddings(1), ["ann"])
    PostgresStore.create(url, dim=DIM).close()
    with pytest.raises(StoreError, match="exists already"):
        moving.restore(str(tmp_path / "one"), url)
    with pytest.raises(StoreError, match="exists already"):
        moving.restore(url, str(tmp_path / "one"))
    missing = f"{url.partition('gallery=')[0]}gallery=nobody"
    with pytest.raises(CorruptStoreError, match="no gallery"):
        moving.restore(missing, str(tmp_path / "two"))
    with pytest.raises(StoreError, match="no snapshot"):
        moving.to_directory(Address.parse(f"{url}&snapshot=never"), tmp_path / "two")
    assert not (tmp_path / "two").exists()


def test_a_gallery_that_is_open_is_restored_with_its_last_change(tmp_path: Path) -> None:
    with SqliteStore.create(tmp_path / "one", dim=DIM) as store:
        store.enroll(embeddings(1), ["ann"])
        with SqliteStore.restore(tmp_path / "one", tmp_path / "two") as again:
            assert [subject.id for subject in again.subjects()] == ["ann"]
