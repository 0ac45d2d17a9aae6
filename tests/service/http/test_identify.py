"""Identification over HTTP answers as the open gallery does, in every form that probes can be sent in."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from holue.live.opening import open as open_gallery
from holue.service.app import create_app
from holue.service.schemas.answers import AnswersDocument, VerificationDocument

from .conftest import DIM, Api, People, Start

URL = "/v1/galleries/office/identify"


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=False)
    return stream.getvalue()


def probes_of(people: People, n: int = 6) -> np.ndarray:
    known = [people.samples(person, 1, seed=9) for person in range(n)]
    return np.concatenate([*known, people.samples(300, 2, seed=9)])


def test_an_answer_is_what_the_open_gallery_says(api: Api, folder: Path, people: People) -> None:
    probes = probes_of(people)
    sent = api.post(URL, content=npy(probes), headers={"content-type": "application/x-npy"})
    assert sent.status_code == 200, sent.text
    AnswersDocument.model_validate(sent.json())
    with open_gallery(folder / "office", read_only=True) as gallery:
        expected = gallery.identify(probes)
    for answer, told in zip(expected, sent.json()["answers"], strict=True):
        own = answer.to_dict()
        candidates = own.pop("candidates")
        assert told["reasons"][:1] == ([own.pop("reason")] if answer.reason else [own.pop("reason")][:0])
        assert {name: told[name] for name in own} == own
        assert [{name: c[name] for name in candidates[0]} for c in told["candidates"]] == candidates


def test_every_form_of_probes_gets_the_same_answer(api: Api, people: People) -> None:
    probes = probes_of(people)
    kappa = np.full(len(probes), 80.0, np.float32)
    plain = api.post(URL, json={"probes": probes.tolist(), "concentration": kappa.tolist(), "top_k": 3})
    with_kappa = np.column_stack([probes, kappa])
    forms = [
        ("application/x-npy", npy(with_kappa)),
        ("application/x-npy", npy(np.asfortranarray(with_kappa))),
        ("application/octet-stream", with_kappa.astype("<f4").tobytes()),
    ]
    names = [answer["subject"] for answer in plain.json()["answers"]]
    assert names[:6] == [f"p{person}" for person in range(6)]
    for kind, body in forms:
        sent = api.post(URL, params={"concentration": "last", "top_k": 3}, content=body, headers={"content-type": kind})
        assert [answer["subject"] for answer in sent.json()["answers"]] == names
        assert {len(answer["candidates"]) for answer in sent.json()["answers"]} == {3}


def test_the_best_sample_is_the_enrolled_one_that_is_closest(api: Api, people: People) -> None:
    answer = api.post(URL, json={"probes": people.samples(4, 2)[1:].tolist()}).json()["answers"][0]
    numbers = [s["number"] for s in api.get("/v1/galleries/office/subjects/p4/samples").json()["samples"]]
    assert answer["candidates"][0]["sample"] == numbers[1]


def test_of_a_candidate_with_one_sample_no_embedding_is_read(api: Api, people: People) -> None:
    """Reading five rows that nothing is done with took as long as the rest of an answer, after a scan of a large gallery."""
    probe = people.samples(100, 1)
    body = {"subjects": [{"id": "single", "samples": [{"embedding": probe[0].tolist()}]}]}
    assert api.post("/v1/galleries/office/subjects", json=body).status_code == 201
    [sample] = api.get("/v1/galleries/office/subjects/single/samples").json()["samples"]
    store, asked = api.service.galleries.get("office").live.store, []
    read = store.embeddings
    store.embeddings = lambda subjects: asked.extend(subjects) or read(subjects)
    answer = api.post(URL, json={"probes": probe.tolist(), "top_k": 3}).json()["answers"][0]
    assert answer["candidates"][0]["subject"] == "single"
    assert answer["candidates"][0]["sample"] == sample["number"]
    assert sorted(asked) == sorted(each["subject"] for each in answer["candidates"][1:])


def test_probes_that_arrive_during_a_scan_share_the_next_one(start: Start, people: People) -> None:
    api = start()
    sizes: list[int] = []
    api.service.metrics.observe_scan = lambda gallery, seconds, probes: sizes.append(probes)  # type: ignore[method-assign]
    asked = [people.samples(person, 1, seed=9) for person in range(20)]
    alone = [api.post(URL, json={"probes": probe.tolist()}).json()["answers"][0] for probe in asked]
    sizes.clear()

    async def ask() -> list[Any]:
        transport = httpx.ASGITransport(create_app(service=api.service))
        headers = dict(api.client.headers)
        async with httpx.AsyncClient(transport=transport, base_url="http://test", headers=headers) as client:
            return await asyncio.gather(*(client.post(URL, json={"probes": probe.tolist()}) for probe in asked))

    together = [response.json()["answers"][0] for response in asyncio.run(ask())]
    assert sum(sizes) == len(asked)
    assert len(sizes) < len(asked), "no probe has shared a scan"
    for one, other in zip(alone, together):
        assert (one["subject"], one["score"]) == (other["subject"], other["score"])


def test_a_bad_request_does_not_spoil_those_that_share_its_scan(api: Api, people: People) -> None:
    good = {"probes": people.samples(3, 1).tolist()}
    bad = {"probes": [[0.0] * DIM]}
    assert api.post(URL, json=bad).status_code == 422
    assert api.post(URL, json=good).json()["answers"][0]["subject"] == "p3"


@pytest.mark.parametrize(
    ("claimed", "person", "decision"), [("p3", 3, "accepted"), ("p4", 3, "rejected"), ("p3", 300, "rejected")]
)
def test_a_claim_is_accepted_only_for_the_subject_itself(
    api: Api, people: People, claimed: str, person: int, decision: str
) -> None:
    probe = people.samples(person, 1, seed=9)[0]
    told = api.post("/v1/galleries/office/verify", json={"subject": claimed, "probe": probe.tolist()})
    VerificationDocument.model_validate(told.json())
    assert told.json()["decision"] == decision


def test_a_claim_to_be_somebody_who_is_not_enrolled_is_not_found(api: Api, people: People) -> None:
    body = {"subject": "nobody", "probe": people.samples(3, 1)[0].tolist()}
    assert api.post("/v1/galleries/office/verify", json=body).status_code == 404
    assert api.post("/v1/galleries/office/verify", json={**body, "subject": 7}).status_code == 422


def test_too_many_waiting_probes_are_refused_with_a_time_to_try_again(start: Start, people: People) -> None:
    api = start(limits={"waiting_probes": 2})
    sent = api.post(URL, json={"probes": people.samples(3, 3).tolist()})
    assert sent.status_code == 503
    assert sent.headers["retry-after"] == "1"
    assert api.post(URL, json={"probes": people.samples(3, 2).tolist()}).status_code == 200


def test_every_answer_is_in_the_log(api: Api, people: People) -> None:
    sent = api.post(URL, json={"probes": people.samples(3, 2).tolist()}, headers={"x-request-id": "my-id.7"})
    assert sent.headers["x-request-id"] == "my-id.7"
    log = api.service.galleries.get("office").log
    rows = log.of_request("my-id.7")
    assert [row.decision for row in rows] == [answer["decision"] for answer in sent.json()["answers"]]
    assert log.is_answer(rows[1].sequence, sent.json()["answers"][1])
    assert log.is_input(rows[0].sequence, people.samples(3, 2)[0].astype("<f4").tobytes())
