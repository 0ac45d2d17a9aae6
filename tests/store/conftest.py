"""Homes under test: each entry of HOMES makes, reopens and restores stores; a further home is one more entry."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest

from holue.store.memory import MemoryStore
from holue.store.postgres.store import PostgresStore
from holue.store.sqlite.store import SqliteStore


class Home(Protocol):
    def create(self, dim: int, model: str | None = None) -> Any: ...

    def reopen(self, store: Any) -> Any: ...

    def restore(self, store: Any, snapshot: Any) -> Any: ...

    def close(self) -> None: ...


class MemoryHome:
    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self.folder = folder

    def create(self, dim: int, model: str | None = None) -> MemoryStore:
        return MemoryStore(dim=dim, model=model)

    def reopen(self, store: MemoryStore) -> MemoryStore:
        return store

    def restore(self, store: MemoryStore, snapshot: str) -> MemoryStore:
        return store.restored(snapshot)

    def close(self) -> None:
        return


class SqliteHome:
    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self.folder = folder
        self.made = 0

    def create(self, dim: int, model: str | None = None) -> SqliteStore:
        return SqliteStore.create(self._path(), dim=dim, model=model)

    def reopen(self, store: SqliteStore) -> SqliteStore:
        store.close()
        return SqliteStore.open(store.path)

    def restore(self, store: SqliteStore, snapshot: Path) -> SqliteStore:
        return SqliteStore.restore(snapshot, self._path())

    def _path(self) -> Path:
        self.made += 1
        return self.folder / f"gallery-{self.made}"

    def close(self) -> None:
        return


class PostgresHome:
    def __init__(self, folder: Path, request: pytest.FixtureRequest) -> None:
        self.server = request.getfixturevalue("postgres")
        self.opened: list[Any] = []

    def create(self, dim: int, model: str | None = None) -> PostgresStore:
        return self._note(PostgresStore.create(self.url(), dim=dim, model=model))

    def reopen(self, store: PostgresStore) -> PostgresStore:
        store.close()
        return self._note(PostgresStore.open(self.server.url(store.address.gallery)))

    def restore(self, store: PostgresStore, snapshot: str) -> PostgresStore:
        return self._note(PostgresStore.restore(snapshot, self.url()))

    def url(self) -> str:
        return self.server.url(f"g{uuid.uuid4().hex[:12]}")

    def close(self) -> None:
        for store in self.opened:
            store.close()

    def _note(self, store: PostgresStore) -> PostgresStore:
        self.opened.append(store)
        return store


HOMES = {"memory": MemoryHome, "sqlite": SqliteHome, "postgres": PostgresHome}


@pytest.fixture(params=sorted(HOMES))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    made: Home = HOMES[request.param](tmp_path, request)  # type: ignore[abstract]
    yield made
    made.close()
