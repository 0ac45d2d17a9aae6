"""Homes under test: each entry of HOMES makes, reopens and restores stores; a further home is one more entry."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import pytest

from holue.store.memory import MemoryStore
from holue.store.sqlite.store import SqliteStore


class Home(Protocol):
    def create(self, dim: int, model: str | None = None) -> Any: ...

    def reopen(self, store: Any) -> Any: ...

    def restore(self, store: Any, snapshot: Any) -> Any: ...


class MemoryHome:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self, dim: int, model: str | None = None) -> MemoryStore:
        return MemoryStore(dim=dim, model=model)

    def reopen(self, store: MemoryStore) -> MemoryStore:
        return store

    def restore(self, store: MemoryStore, snapshot: str) -> MemoryStore:
        return store.restored(snapshot)


class SqliteHome:
    def __init__(self, folder: Path) -> None:
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


HOMES = {"memory": MemoryHome, "sqlite": SqliteHome}


@pytest.fixture(params=sorted(HOMES))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    made: Home = HOMES[request.param](tmp_path)  # type: ignore[abstract]
    return made
