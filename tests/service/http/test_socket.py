"""The service as a process on a socket: it answers as the library does, finishes what it accepted, and loses nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from starlette.testclient import TestClient

import holue
from holue.errors import InvalidParameterError
from holue.service.app import create_app
from holue.service.server import check_binding
from holue.service.service import Service
from holue.service.settings import ServiceSettings

from .conftest import DIM, People
from .process import ready, served

G = "/v1/galleries/office"


def plain(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{**answer, "request_id": None} for answer in answers]


def test_the_library_the_application_and_the_socket_give_the_same_answers(folder: Path, people: People) -> None:
    """Exactly: every number of every answer."""
    home = folder / "office"
    probes = np.concatenate([people.samples(person, 2, seed=9) for person in [*range(20), *range(300, 310)]])
    kind = {"content-type": "application/octet-stream"}
    with holue.open(home) as gallery:
        expected = gallery.identify(probes, top_k=4)
    service = Service(ServiceSettings(galleries=str(home))).open()
    assert service.first_key is not None
    key = service.first_key.text
    with TestClient(create_app(service=service), headers={"x-api-key": key}) as client:
        inside = client.post(f"{G}/identify?top_k=4", content=probes.tobytes(), headers=kind).json()["answers"]
    service.close()
    with served(home) as running, running.client(key) as client:
        ready(client)
        outside = client.post(f"{G}/identify?top_k=4", content=probes.tobytes(), headers=kind).json()["answers"]
    assert plain(outside) == plain(inside)
    for answer, told in zip(expected, inside, strict=True):
        own = answer.to_dict()
        assert [reason for reason in [own.pop("reason")] if reason] == told["reasons"]
        candidates = own.pop("candidates")
        assert {name: told[name] for name in own} == own
        assert [{name: each[name] for name in candidates[0]} for each in told["candidates"]] == candidates


def enrolled(client: httpx.Client, people: People, number: int) -> httpx.Response:
    sample = {"embedding": people.samples(number % 300, 1, seed=number)[0].tolist()}
    return client.post(f"{G}/subjects", json={"subjects": [{"id": f"n{number}", "samples": [sample]}]})


def test_sigterm_finishes_what_was_accepted(folder: Path, people: People) -> None:
    done: list[int] = []
    broken: list[int] = []
    with served(folder / "office") as running:
        with running.client() as client:
            ready(client)

        def write(first: int) -> None:
            with running.client() as client:
                for number in range(first, first + 1000):
                    try:
                        answer = enrolled(client, people, number)
                    except httpx.ConnectError:
                        return  # not accepted
                    except httpx.TransportError:
                        broken.append(number)  # accepted, and no answer came
                        return
                    if answer.status_code == 201:
                        done.append(number)

        threads = [threading.Thread(target=write, args=(10_000 * each,)) for each in range(1, 5)]
        for thread in threads:
            thread.start()
        time.sleep(0.7)
        running.process.send_signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        assert running.process.wait(timeout=40) in (0, -signal.SIGTERM)
    assert len(done) > 4
    with holue.open(folder / "office") as gallery:  # the lock is free, and everything is there
        names = {subject.id for subject in gallery.subjects(limit=10**6)}
    assert {f"n{number}" for number in done} <= names
    # A connection that was idle may be closed while its next request is on the way: such a request was not carried out.
    assert not {f"n{number}" for number in broken} & names


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"host": "0.0.0.0"}, "in the clear"),
        ({"host": "::", "proxy": "10.0.0.1", "keys": False}, "for this machine alone"),
        ({"tls_cert": "nowhere.pem"}, "belong together"),
        ({"tls_cert": "nowhere.pem", "tls_key": "nowhere.pem"}, "is no file"),
    ],
)
def test_a_start_that_is_not_safe_is_refused(settings: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidParameterError, match=told):
        check_binding(ServiceSettings(galleries="office", **settings))
    check_binding(ServiceSettings(galleries="office", host="0.0.0.0", proxy="10.0.0.1"))


def test_a_refused_start_is_one_line(folder: Path) -> None:
    command = [sys.executable, "-m", "holue", "serve", str(folder / "office"), "--port", "0", "--host", "0.0.0.0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ended.returncode == 2
    assert "--tls-cert" in ended.stderr or "tls_cert" in ended.stderr
    assert ended.stderr.count("\n") == 1


def test_the_key_is_printed_once_and_the_directory_of_galleries_works(folder: Path) -> None:
    with served(folder) as running, running.client() as client:
        ready(client)
        made = client.post("/v1/galleries", json={"name": "second", "dim": DIM})
        assert made.status_code == 201
        assert [each["name"] for each in client.get("/v1/galleries").json()["galleries"]] == ["office", "second"]
        first = running.key
    with served(folder) as running, running.client(first) as client:
        ready(client)
        assert running.key is None
        assert [each["name"] for each in client.get("/v1/galleries").json()["galleries"]] == ["office", "second"]
