"""Ledgers under test: in a file, and beside a gallery in PostgreSQL."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holue.service.ledger.database import Database

Open = Callable[[], Database]


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a gallery is: a directory or a URL."""
    if request.param == "file":
        return str(tmp_path)
    server: Any = request.getfixturevalue("postgres")
    return str(server.url(f"g{uuid.uuid4().hex[:12]}"))


@pytest.fixture
def open_ledger(place: str) -> Iterator[Open]:
    """Opens the same ledger as often as wanted, as several processes would."""
    opened: list[Database] = []

    def again() -> Database:
        opened.append(Database.of_gallery(place))
        return opened[-1]

    yield again
    for database in opened:
        database.close()


@pytest.fixture
def database(open_ledger: Open) -> Database:
    return open_ledger()


@pytest.fixture
def file_database(tmp_path: Path) -> Iterator[Database]:
    with Database.of_gallery(tmp_path) as database:
        yield database
