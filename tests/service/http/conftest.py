"""A small service under test: a directory with the gallery ``office``, keys of every role, and an admin's client."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from starlette.testclient import TestClient

import holue
from holue.service.app import create_app
from holue.service.roles import Role
from holue.service.service import Service
from holue.service.settings import ServiceSettings

DIM = 16
THRESHOLD = 0.6


@dataclass(frozen=True)
class People:
    """``samples(i, n)`` are noisy views of person ``i``."""

    centres: npt.NDArray[np.float64]

    def samples(self, person: int, n: int, seed: int = 0) -> npt.NDArray[np.float32]:
        rng = np.random.default_rng([person, seed])
        return (self.centres[person] + 0.35 * rng.standard_normal((n, DIM))).astype(np.float32)


@pytest.fixture(scope="session")
def people() -> People:
    return People(np.random.default_rng(1).standard_normal((400, DIM)))


@pytest.fixture
def folder(tmp_path: Path, people: People) -> Path:
    """A directory of galleries with one in it."""
    with holue.open(
        tmp_path / "galleries" / "office", create=True, dim=DIM, method="galue", threshold=THRESHOLD
    ) as gallery:
        for person in range(20):
            gallery.enroll(people.samples(person, 2), [f"p{person}"] * 2)
    return tmp_path / "galleries"


@dataclass
class Api:
    """A client with an admin's key, and what it talks to."""

    client: TestClient
    service: Service

    def key(self, role: str, gallery: str | None = None) -> dict[str, str]:
        """Headers with a new key of a role."""
        keys = self.service.access.keys
        assert keys is not None
        return {"x-api-key": keys.create(Role.parse(role), gallery=gallery).text}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)


Start = Callable[..., Api]


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Starts a service on the directory, with settings; all are stopped at the end."""
    running: list[tuple[TestClient, Service]] = []

    def started(**settings: Any) -> Api:
        service = Service(ServiceSettings(**{"galleries": str(folder), **settings})).open()
        headers = {} if service.first_key is None else {"x-api-key": service.first_key.text}
        client = TestClient(create_app(service=service), headers=headers, raise_server_exceptions=True)
        client.__enter__()
        running.append((client, service))
        return Api(client, service)

    yield started
    for client, service in running:
        client.__exit__(None, None, None)
        service.close()


@pytest.fixture
def api(start: Start) -> Api:
    return start()
