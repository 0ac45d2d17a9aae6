"""Requests that share a scan: all their rows are durable before one of them is answered, and none spoils another."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from holue.service.app import create_app

from .conftest import THRESHOLD, Api, People, Start
from .test_socket import ready, served

G = "/v1/galleries/office"
RAW = {"content-type": "application/octet-stream"}


def ask_together(api: Api, requests: list[tuple[str, dict[str, Any]]]) -> list[httpx.Response]:
    """The responses to requests that are all waiting before the scan of the second batch begins."""
    batcher = api.service.galleries.get("office").batcher
    go, current = threading.Event(), batcher._current

    def held() -> Any:
        go.wait(30)
        return current()

    batcher._current = held

    async def ask() -> list[httpx.Response]:
        transport = httpx.ASGITransport(create_app(service=api.service))
        headers = dict(api.client.headers)
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            asked = [asyncio.create_task(client.post(path, **body)) for path, body in requests]
            while len(batcher._queue) < len(requests) - 1:  # the first one's scan is held
                await asyncio.sleep(0.005)
            go.set()
            return await asyncio.gather(*asked)

    return asyncio.run(ask())


def probe(people: People, person: int, request_id: str) -> tuple[str, dict[str, Any]]:
    body = people.samples(person, 1, seed=9).tobytes()
    return f"{G}/identify", {"content": body, "headers": {**RAW, "x-request-id": request_id}}


def test_all_rows_of_a_batch_are_durable_before_any_of_its_answers_leaves(api: Api, people: People) -> None:
    opened = api.service.galleries.get("office")
    sizes: list[int] = []
    api.service.metrics.observe_scan = lambda gallery, seconds, probes: sizes.append(probes)  # type: ignore[method-assign]
    commits, deliver, logged = [], opened.batcher._deliver, []
    commit = opened.ledger.database._commit
    opened.ledger.database._queue._commit = lambda: (commits.append(1), commit())  # type: ignore[assignment,return-value]

    def delivering(loop: Any, batch: Any, results: Any, seconds: float) -> None:
        rows = [len(opened.log.of_request(waiting.asked.request_id)) for waiting in batch]
        logged.append((len(batch), rows))
        deliver(loop, batch, results, seconds)

    opened.batcher._deliver = delivering  # type: ignore[method-assign]
    answers = ask_together(api, [probe(people, n % 20, f"r{n}") for n in range(41)])
    assert [answer.json()["answers"][0]["subject"] for answer in answers] == [f"p{n % 20}" for n in range(41)]
    assert sizes == [1, 40]
    assert logged == [(1, [1]), (40, [1] * 40)]
    assert len(commits) == 2, "one transaction of the log for each batch"
    for n, answer in enumerate(answers):
        [row] = opened.log.of_request(f"r{n}")
        assert opened.log.is_answer(row.sequence, answer.json()["answers"][0])
        assert opened.log.is_input(row.sequence, people.samples(n % 20, 1, seed=9).tobytes())
    assert opened.log.verify() == []


def test_no_answer_leaves_where_the_log_cannot_be_written(api: Api, people: People) -> None:
    opened = api.service.galleries.get("office")

    def fails(events: Any) -> Any:
        from holue.errors import StoreUnavailableError

        raise StoreUnavailableError("the ledger cannot be reached (disk full); try again")

    opened.log.append = fails  # type: ignore[method-assign]
    answers = ask_together(api, [probe(people, n % 20, f"r{n}") for n in range(9)])
    assert {answer.status_code for answer in answers} == {503}
    assert {answer.headers["retry-after"] for answer in answers} == {"1"}
    assert not any("p3" in answer.text for answer in answers)


def test_a_claim_that_fails_does_not_spoil_those_that_share_its_scan(api: Api, people: People) -> None:
    claims = [(n % 20, f"p{n % 20}" if n % 3 else "nobody") for n in range(12)]
    asked = [
        (f"{G}/verify", {"json": {"subject": subject, "probe": people.samples(person, 1, seed=9)[0].tolist()}})
        for person, subject in claims
    ]
    answers = ask_together(api, asked)
    assert [answer.status_code for answer in answers] == [404 if subject == "nobody" else 200 for _, subject in claims]
    assert {answer.json()["decision"] for answer in answers if answer.status_code == 200} == {"accepted"}
    log = api.service.galleries.get("office").log
    assert sum(entry.action == "verify" for entry in log.entries()) == sum(subject != "nobody" for _, subject in claims)


def test_documents_that_fail_together_are_made_one_by_one(
    api: Api, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holue.service.routes import identify

    make = identify.answer_documents

    def fails_for_one(opened: Any, version: Any, probes: Any, answers: Any, request_ids: Any) -> Any:
        if "r5" in request_ids:
            raise RuntimeError("something unexpected")
        return make(opened, version, probes, answers, request_ids)

    monkeypatch.setattr(identify, "answer_documents", fails_for_one)
    answers = ask_together(api, [probe(people, n % 20, f"r{n}") for n in range(9)])
    assert [answer.status_code for answer in answers] == [500 if n == 5 else 200 for n in range(9)]
    log = api.service.galleries.get("office").log
    assert [len(log.of_request(f"r{n}")) for n in range(9)] == [int(n != 5) for n in range(9)]


def test_reviews_and_strangers_of_a_batch_carry_the_ids_of_their_own_requests(start: Start, people: People) -> None:
    api = start(reviews={"share": 1.0}, strangers={"days": 1})
    shown = [n if n % 2 else 300 + n for n in range(11)]
    answers = ask_together(api, [probe(people, person, f"r{n}") for n, person in enumerate(shown)])
    ledger = api.service.galleries.get("office").ledger
    for n, answer in enumerate(answers):
        [told] = answer.json()["answers"]
        item = ledger.reviews.get(int(told["review_id"].rpartition(".")[2]))
        assert (item.request_id, item.probe) == (f"r{n}", 0)
        assert np.array_equal(item.embedding, people.samples(shown[n], 1, seed=9)[0])
    groups = ledger.strangers.groups(THRESHOLD, model=None)
    rejected = sum(answer.json()["answers"][0]["decision"] == "rejected" for answer in answers)
    assert sum(len(group.members) for group in groups) == rejected > 0


def test_the_next_scan_waits_for_those_just_answered_and_never_for_long(api: Api, people: People) -> None:
    batcher = api.service.galleries.get("office").batcher
    ask_together(api, [probe(people, n, f"r{n}") for n in range(5)])
    assert batcher._gathering is None or batcher._gathering.expected == 4
    path, body = probe(people, 3, "alone")
    assert api.post(path, **body).json()["answers"][0]["subject"] == "p3"  # nobody else comes back
    assert batcher._gathering is None or batcher._gathering.expected == 1


def test_three_hundred_clients_at_once_are_answered_rightly_or_told_to_come_back(folder: Path, people: People) -> None:
    async def ask(address: str, key: str) -> list[tuple[int, httpx.Response]]:
        limits = httpx.Limits(max_connections=300)
        headers = {"x-api-key": key, **RAW}
        async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60, limits=limits) as client:

            async def one(number: int) -> tuple[int, httpx.Response]:
                body = people.samples(number % 20, 1, seed=number).tobytes()
                return number, await client.post(f"{G}/identify", content=body)

            return await asyncio.gather(*(one(number) for number in range(300)))

    with served(folder / "office", "--json") as running, running.client() as client:
        ready(client)
        assert running.key is not None
        answers = asyncio.run(ask(running.address, running.key))
        logged = client.get("/v1/log", params={"gallery": "office", "limit": 1000})
    counts = Counter(answer.status_code for _, answer in answers)
    assert set(counts) <= {200, 429, 503}
    assert counts[200] > 0
    for number, answer in answers:
        if answer.status_code == 200:
            [told] = answer.json()["answers"]
            assert told["candidates"][0]["subject"] == f"p{number % 20}"
            assert (told["decision"] == "accepted") == (told["score"] >= THRESHOLD)
        else:
            assert int(answer.headers["retry-after"]) >= 1
    assert sum(row["action"] == "identify" for row in logged.json()["entries"]) == counts[200]
