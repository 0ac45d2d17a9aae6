"""The service on PostgreSQL: the same answers as in a directory, and two services that agree within a second."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from starlette.testclient import TestClient

import holue
from holue.service.app import create_app
from holue.service.service import Service
from holue.service.settings import ServiceSettings

from .conftest import DIM, THRESHOLD, People


@contextmanager
def running(place: str, key: str | None = None) -> Iterator[TestClient]:
    service = Service(ServiceSettings(galleries=place)).open()
    key = key or (service.first_key.text if service.first_key else None)
    try:
        with TestClient(create_app(service=service), headers={"x-api-key": key or ""}) as client:
            yield client
    finally:
        service.close()


def script(client: TestClient, gallery: str, people: People) -> list[Any]:
    """One sequence of requests, and everything that is told."""
    url, told = f"/v1/galleries/{gallery}", []
    body = [
        {"id": f"p{person}", "samples": [{"embedding": row.tolist(), "time": 1.0} for row in people.samples(person, 2)]}
        for person in range(12)
    ]
    told.append(client.post(f"{url}/subjects", json={"subjects": body}).json())
    told.append(client.patch(f"{url}/subjects/p1", json={"id": "one/1", "metadata": {"a": 1}}).json())
    told.append(client.post(f"{url}/subjects/p2/merge", json={"subjects": ["p3"]}).json())
    removed = client.delete(f"{url}/subjects/p4").json()
    told.append(removed)
    probes = np.concatenate([people.samples(person, 1, seed=9) for person in [*range(12), 300]])
    answers = client.post(f"{url}/identify", json={"probes": probes.tolist()}).json()["answers"]
    told += [{**answer, "request_id": None} for answer in answers]
    told.append(client.get(f"{url}/subjects").json())
    told.append(client.get(f"{url}/subjects/one%2F1/samples").json()["samples"][0]["number"])
    told.append(client.post(f"/v1/operations/{removed['operation']}/undo").json()["version"])
    told.append([event["kind"] for event in client.get(f"/v1/events?gallery={gallery}").json()["events"]])
    return told


def test_both_homes_give_the_same_answers(tmp_path: Path, postgres: Any, people: People) -> None:
    told = []
    settings: dict[str, Any] = {"dim": DIM, "method": "galue", "threshold": THRESHOLD}
    name = f"g{uuid.uuid4().hex[:12]}"
    for place, gallery in ((str(tmp_path / name), name), (postgres.url(name), name)):
        holue.open(place, create=True, **settings).close()
        with running(place) as client:
            told.append(script(client, gallery, people))
    assert told[0] == told[1]


def test_two_services_on_one_server_agree_within_a_second(postgres: Any, people: People) -> None:
    place = postgres.url("shared")
    holue.open(place, create=True, dim=DIM, method="galue", threshold=THRESHOLD).close()
    url = "/v1/galleries/shared"
    with running(place) as one, running(place, one.headers["x-api-key"]) as other:
        for person, (writer, reader) in enumerate([(one, other), (other, one)] * 3):
            sample = {"embedding": people.samples(person, 1)[0].tolist()}
            made = writer.post(f"{url}/subjects", json={"subjects": [{"id": f"p{person}", "samples": [sample]}]})
            assert made.status_code == 201, made.text
            began = time.monotonic()
            while reader.get(url).json()["version"] < made.json()["version"]:
                assert time.monotonic() - began < 5, "the other service never saw the change"
                time.sleep(0.02)
        key = one.post("/v1/keys", json={"role": "viewer"}).json()
        held = {"x-api-key": key["key"]}
        assert other.get(url, headers=held).status_code == 200
        assert one.delete(f"/v1/keys/{key['prefix']}").status_code == 200
        assert other.get(url, headers=held).status_code == 401
