"""The service on PostgreSQL: the same answers as in a directory, and two services that agree within a second."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from starlette.testclient import TestClient

import holue
from holue.live.calibration.calibrations import Calibrations
from holue.service.app import create_app
from holue.service.service import Service
from holue.service.settings import ServiceSettings

from .conftest import DIM, THRESHOLD, People
from .process import ready, served


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


def seen_after(reader: httpx.Client, url: str, version: int, began: float) -> float:
    """Seconds until a service tells of a version."""
    while reader.get(url).json()["version"] < version:
        assert time.monotonic() - began < 20, "the other service never saw the change"
        time.sleep(0.01)
    return time.monotonic() - began


def test_two_processes_on_one_server_agree_within_a_second(postgres: Any, people: People) -> None:
    """Of subjects, calibrations and keys; both write."""
    place, url = postgres.url("shared"), "/v1/galleries/shared"
    with holue.open(place, create=True, dim=DIM, method="galue", threshold=THRESHOLD) as gallery:
        gallery.enroll(np.concatenate([people.samples(person, 1) for person in range(100, 104)]), list("abcd"))
        rows = np.concatenate([people.samples(person, 1, seed=5) for person in range(100, 104)])
        for _ in range(2):
            gallery.calibrate(rows, list("abcd"), activate=False)
    with served(place) as first, served(place) as second, first.client() as one, second.client(first.key) as other:
        ready(one)
        ready(other)
        waits = []
        for person, (writer, reader) in enumerate([(one, other), (other, one)] * 3):
            sample = {"embedding": people.samples(person, 1)[0].tolist()}
            made = writer.post(f"{url}/subjects", json={"subjects": [{"id": f"p{person}", "samples": [sample]}]})
            assert made.status_code == 201, made.text
            waits.append(seen_after(reader, url, made.json()["version"], time.monotonic()))
        for number, (writer, reader) in ((1, (one, other)), (2, (other, one))):
            assert writer.post(f"{url}/calibrations/{number}/activate").status_code == 200
            began = time.monotonic()
            while reader.get(url).json()["calibration"]["number"] != number:
                assert time.monotonic() - began < 20, "the other service never saw the calibration"
                time.sleep(0.01)
            waits.append(time.monotonic() - began)
        assert one.patch(url, json={"filter_below": 0.25}).status_code == 200
        began = time.monotonic()
        while other.get(url).json()["settings"]["filter_below"] != 0.25:
            assert time.monotonic() - began < 20, "the other service never saw the settings"
            time.sleep(0.01)
        waits.append(time.monotonic() - began)
        assert max(waits) < 1.0, waits
        key = one.post("/v1/keys", json={"role": "viewer"}).json()
        held = {"x-api-key": key["key"]}
        assert other.get(url, headers=held).status_code == 200
        assert one.delete(f"/v1/keys/{key['prefix']}").status_code == 200
        assert other.get(url, headers=held).status_code == 401


def test_of_two_processes_that_choose_a_calibration_at_once_no_choice_is_lost(postgres: Any, people: People) -> None:
    place, url = postgres.url("chosen"), "/v1/galleries/chosen"
    rows = np.concatenate([people.samples(person, 1) for person in range(4)])
    with holue.open(place, create=True, dim=DIM, method="galue", threshold=THRESHOLD) as gallery:
        gallery.enroll(rows, list("abcd"))
        for _ in range(2):
            gallery.calibrate(rows, list("abcd"), activate=False)
    statuses: list[int] = []
    with running(place) as one, running(place, one.headers["x-api-key"]) as other:

        def choose(client: Any, number: int) -> None:
            for _ in range(10):
                answer = client.post(f"{url}/calibrations/{number}/activate")
                statuses.append(answer.status_code)
                if answer.status_code == 409:
                    assert "choose again" in answer.json()["detail"]

        threads = [threading.Thread(target=choose, args=each) for each in ((one, 1), (other, 2))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert set(statuses) <= {200, 409}
    with holue.open(place) as gallery:
        assert len(Calibrations(gallery.store).activations()) == statuses.count(200)
