"""Homes under test: each entry of HOMES makes, reopens and restores stores; a further home is one more entry."""

from __future__ import annotations

import subprocess
import tempfile
import uuid
import warnings
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


class PostgresServer:
    """A real server in a temporary directory, from the package pgserver; it listens on a socket only."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="holue-pg-"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where XDG_RUNTIME_DIR is not set
            import pgserver
        self._run = pgserver.get_server(self.folder, cleanup_mode="delete")

    def url(self, gallery: str) -> str:
        return f"{self._run.get_uri()}&gallery={gallery}"

    @property
    def database(self) -> str:
        return str(self._run.get_uri())

    def crash(self) -> None:
        """Kill the server without letting it write anything."""
        import psutil

        main = psutil.Process(self._run.get_pid())
        others = main.children(recursive=True)
        main.kill()  # its own processes end by themselves when it is gone
        psutil.wait_procs([main, *others], timeout=30)

    def start(self) -> None:
        self._run.ensure_postgres_running()

    def stop(self) -> None:
        self._run.cleanup()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests of a session."""
    yield from running_server()


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A server that a test may kill."""
    yield from running_server()


def running_server() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    pytest.importorskip("pgserver", reason="pgserver is not installed: no PostgreSQL to test with")
    try:
        server = PostgresServer()
    except (OSError, subprocess.SubprocessError) as error:
        pytest.skip(f"pgserver cannot start PostgreSQL here: {error}")
    yield server
    server.stop()


HOMES = {"memory": MemoryHome, "sqlite": SqliteHome, "postgres": PostgresHome}


@pytest.fixture(params=sorted(HOMES))
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    made: Home = HOMES[request.param](tmp_path, request)  # type: ignore[abstract]
    yield made
    made.close()
