"""Faults on a real socket: overload, slow and vanished clients, kills; each holds nobody else up and loses nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

import holue
from holue.service.ledger.ledger import Ledger

from .conftest import DIM, THRESHOLD, People
from .process import Running, ready, served

G = "/v1/galleries/office"
REQUESTS, UPLOAD_SECONDS = 8, 2.0
PATIENCE = 10.0


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory, people: People) -> Iterator[Running]:
    """A service that takes few requests at once, and bodies that arrive in time."""
    home = tmp_path_factory.mktemp("faults") / "office"
    with holue.open(home, create=True, dim=DIM, method="galue", threshold=THRESHOLD) as gallery:
        gallery.enroll(
            np.concatenate([people.samples(person, 2) for person in range(20)]),
            [f"p{i}" for i in range(20) for _ in "ab"],
        )
    with served(home, requests=REQUESTS, upload_seconds=UPLOAD_SECONDS, waiting_probes=4096) as running:
        with running.client() as client:
            ready(client)
        yield running


@pytest.fixture
def body(people: People) -> dict[str, Any]:
    return {"probes": people.samples(3, 1).tolist()}


def recovered(client: httpx.Client, body: dict[str, Any]) -> None:
    """As many requests at once as the service takes: none of its places is still held."""
    until, statuses = time.monotonic() + PATIENCE, [0]
    while statuses != [200] * REQUESTS and time.monotonic() < until:
        statuses.clear()
        threads = [
            threading.Thread(target=lambda: statuses.append(client.post(f"{G}/identify", json=body).status_code))
            for _ in range(REQUESTS)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert statuses == [200] * REQUESTS


def test_too_many_requests_are_refused_at_once_and_the_service_recovers(running: Running, body: dict[str, Any]) -> None:
    with running.client() as client, ExitStack() as held:
        for _ in range(REQUESTS):
            connection = held.enter_context(closing(running.connection()))
            connection.sendall(running.head(f"{G}/identify", 1000) + b"{")
        until, answer = time.monotonic() + PATIENCE, client.get(G)
        while answer.status_code != 503 and time.monotonic() < until:  # until all have arrived
            answer = client.get(G)
        began = time.monotonic()
        refused = client.post(f"{G}/identify", json=body)
        assert time.monotonic() - began < 1.0
        assert refused.status_code == 503
        assert refused.headers["retry-after"].isdecimal()
        assert refused.json()["type"].endswith("overloaded")
        assert f"{REQUESTS} requests" in refused.json()["detail"]
        assert "limits.requests" in refused.json()["errors"][0]["way_out"]
        assert client.get("/livez").status_code == 200
        assert client.get("/readyz").status_code == 200
    with running.client() as client:
        recovered(client, body)


def test_too_many_probes_are_refused_with_the_time_to_wait_and_the_others_are_answered(
    running: Running, people: People, body: dict[str, Any]
) -> None:
    probes = np.repeat(people.samples(3, 1), 3000, axis=0).tobytes()
    replies: list[httpx.Response] = []

    def ask() -> None:
        kind = {"content-type": "application/octet-stream"}
        with running.client() as client:
            replies.append(client.post(f"{G}/identify", content=probes, headers=kind))

    threads = [threading.Thread(target=ask) for _ in range(REQUESTS - 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = [reply.status_code for reply in replies]
    assert set(statuses) == {200, 503}, statuses
    for reply in replies:
        if reply.status_code == 503:
            assert reply.headers["retry-after"] == "1"
        else:
            assert len(reply.json()["answers"]) == 3000
    with running.client() as client:
        recovered(client, body)


def test_a_client_that_trickles_holds_nobody_up_and_is_sent_away(running: Running, body: dict[str, Any]) -> None:
    stopped = threading.Event()
    told: list[bytes] = []

    def trickle() -> None:
        with closing(running.connection()) as connection:
            connection.sendall(running.head(f"{G}/identify", 10_000))
            connection.settimeout(0.1)
            while not stopped.is_set():
                with suppress(OSError):
                    connection.sendall(b" ")
                try:
                    answer = connection.recv(4096)
                except TimeoutError:
                    continue
                except OSError:
                    return
                if not answer:
                    told.append(b"closed")
                    return
                told.append(answer[:12])

    threads = [threading.Thread(target=trickle) for _ in range(REQUESTS - 2)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    waits = []
    with running.client() as client:
        while time.monotonic() - began < UPLOAD_SECONDS:
            asked = time.monotonic()
            assert client.post(f"{G}/identify", json=body).json()["answers"][0]["subject"] == "p3"
            waits.append(time.monotonic() - asked)
        for thread in threads:
            thread.join(PATIENCE)
        stopped.set()
        assert told.count(b"HTTP/1.1 408") == len(threads)
        assert not any(thread.is_alive() for thread in threads), "they were told, and the connections stayed open"
        assert np.median(waits) < 0.5
        recovered(client, body)


def test_a_head_without_an_end_is_not_kept(running: Running, body: dict[str, Any]) -> None:
    """From somebody without a key; one endless header, and headers without end."""
    for piece in (b"a" * 65_536, b"x-more: " + b"a" * 1000 + b"\r\n"):
        with closing(running.connection()) as connection:
            connection.sendall(b"GET /livez HTTP/1.1\r\nhost: x\r\nx-first: ")
            sent = 0
            with suppress(OSError):
                while sent < 64 * 2**20:
                    connection.sendall(piece)
                    sent += len(piece)
            assert sent < 16 * 2**20, "the service took it all"  # the sockets' buffers hold a few megabytes
            with suppress(OSError):  # the connection may be reset before the status is read
                assert connection.recv(64).startswith(b"HTTP/1.1 431")
    with running.client() as client:
        ordinary = client.post(f"{G}/identify", json=body, headers={"x-note": "a" * 8000})
        assert ordinary.status_code == 200
        large = {"probes": body["probes"] * 1000}  # a body is no head, however much of it comes at once
        assert client.post(f"{G}/identify", json=large).status_code == 200
        recovered(client, body)


def test_clients_that_vanish_leave_nothing_behind(running: Running, body: dict[str, Any], people: People) -> None:
    """In the middle of the head, of the body, before the answer, and in the middle of a large answer."""
    whole = json.dumps(body).encode()
    large = json.dumps({"probes": np.repeat(people.samples(3, 1), 1500, axis=0).tolist(), "top_k": 20}).encode()
    head, rest = running.head(f"{G}/identify", len(whole)), running.head(f"{G}/identify", len(large))
    for _ in range(3):
        for sent, read in ((head[:40], 0), (head + whole[:20], 0), (head + whole, 0), (rest + large, 1)):
            with closing(running.connection()) as connection:
                connection.sendall(sent)
                if read:
                    assert connection.recv(read) == b"H"
                # A reset, not an orderly end: the peer is gone.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    with running.client() as client:
        recovered(client, body)
        assert running.process.poll() is None


def test_a_client_that_does_not_read_its_answer_holds_no_place(
    running: Running, body: dict[str, Any], people: People
) -> None:
    large = json.dumps({"probes": np.repeat(people.samples(3, 1), 1500, axis=0).tolist(), "top_k": 20}).encode()
    with ExitStack() as open_connections, running.client() as client:
        for _ in range(REQUESTS + 2):
            connection = open_connections.enter_context(closing(running.connection()))
            connection.sendall(running.head(f"{G}/identify", len(large)) + large)
            assert connection.recv(1) == b"H"  # and nothing more of several megabytes
        recovered(client, body)


def test_a_changed_gallery_asked_for_by_a_vanished_client_is_whole(running: Running, people: People) -> None:
    """A client that is gone before the answer has changed the gallery or has not; what it asked for is never half done."""
    sample = {"embedding": people.samples(200, 1)[0].tolist()}
    for number in range(6):
        text = json.dumps({"subjects": [{"id": f"gone{number}", "samples": [sample] * 3}]}).encode()
        with closing(running.connection()) as connection:
            connection.sendall(running.head(f"{G}/subjects", len(text)) + text)
    with running.client() as client:
        time.sleep(0.3)
        for number in range(6):
            found = client.get(f"{G}/subjects/gone{number}/samples")
            assert found.status_code == 404 or len(found.json()["samples"]) == 3
        assert client.get("/v1/log/verification").json()["intact"]


def test_wrong_keys_are_slowed_down_with_the_time_to_wait(running: Running) -> None:
    with httpx.Client(base_url=running.address, headers={"x-api-key": f"hk_{'0' * 12}_{'0' * 64}"}) as client:
        replies = [client.get(G) for _ in range(8)]
    assert replies[0].status_code == 401
    assert replies[-1].status_code == 429
    assert int(replies[-1].headers["retry-after"]) >= 1


def write_until_killed(running: Running, key: str, people: People, start: int, done: set[str]) -> None:
    with running.client(key) as client, suppress(httpx.TransportError):
        for number in range(start, start + 100_000):
            sample = {"embedding": people.samples(number % 300, 1, seed=number)[0].tolist()}
            made = client.post(f"{G}/subjects", json={"subjects": [{"id": f"n{number}", "samples": [sample]}]})
            if made.status_code == 201:
                done.add(f"n{number}")


def test_kills_under_a_load_of_writes_lose_no_acknowledged_write_and_no_row_of_the_log(
    folder: Path, people: People
) -> None:
    home, key = folder / "office", ""
    done: set[str] = set()
    for kill in range(3):
        before = len(done)
        with served(home) as running:
            key = key or running.key or ""
            with running.client(key) as client:
                ready(client)
            threads = [
                threading.Thread(
                    target=write_until_killed, args=(running, key, people, 10**6 * (1 + 4 * kill + each), done)
                )
                for each in range(4)
            ]
            for thread in threads:
                thread.start()
            until = time.monotonic() + PATIENCE
            while len(done) < before + 10 * (kill + 1) and time.monotonic() < until:
                time.sleep(0.01)
            os.kill(running.process.pid, signal.SIGKILL)
            for thread in threads:
                thread.join()
        assert len(done) > before
        with holue.open(home) as gallery, Ledger.open(home) as ledger:
            names = {subject.id for subject in gallery.subjects(limit=10**6)}
            ledger.recovery.recover("office", gallery.store)  # as the next start would
            logged = {row.gallery_version for row in ledger.audit_log.entries() if row.action == "enroll"}
            enrolled = {change.version for change in gallery.changes(0) if change.by is not None}
            assert (gallery.verify(), ledger.problems()) == ([], [])
        assert done <= names
        assert enrolled == logged
