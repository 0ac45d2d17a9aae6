"""Subjects over HTTP: enrolled, changed, removed, undone and erased, whatever their names are."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from holue.service.app import create_app

from .conftest import DIM, Api, People

BASE = "/v1/galleries/office/subjects"


def body(people: People, person: int, name: Any, n: int = 2) -> dict[str, Any]:
    samples = [{"embedding": row.tolist()} for row in people.samples(person, n)]
    return {"subjects": [{"id": name, "samples": samples}]}


def at(name: str) -> str:
    return f"{BASE}/{quote(name, safe='')}"


def who(api: Api, people: People, person: int) -> Any:
    probe = people.samples(person, 1, seed=9).tolist()
    return api.post("/v1/galleries/office/identify", json={"probes": probe}).json()["answers"][0]["subject"]


def test_a_subject_is_enrolled_found_changed_removed_and_brought_back(api: Api, people: People) -> None:
    made = api.post(BASE, json=body(people, 50, "ann"))
    assert made.status_code == 201
    assert who(api, people, 50) == "ann"
    changed = api.patch(at("ann"), json={"id": "anna", "metadata": {"badge": 7}, "consent": "form"})
    assert changed.status_code == 200, changed.text
    told = api.get(at("anna")).json()
    assert (told["metadata"], told["consent"], told["purpose"]) == ({"badge": 7}, "form", None)
    assert api.get(at("ann")).status_code == 404
    gone = api.delete(at("anna")).json()
    assert who(api, people, 50) != "anna"
    back = api.post(f"/v1/operations/{gone['operation']}/undo")
    assert back.status_code == 200
    assert who(api, people, 50) == "anna"
    kinds = [event["kind"] for event in api.get("/v1/events?gallery=office").json()["events"]]
    assert kinds[-5:] == ["enroll", "update", "rename", "remove", "undo"]


def test_samples_are_added_replaced_and_removed(api: Api, people: People) -> None:
    api.post(BASE, json=body(people, 50, "ann", n=1))
    rows = [{"embedding": row.tolist(), "origin": "desk"} for row in people.samples(50, 2, seed=3)]
    added = api.post(f"{at('ann')}/samples", json={"samples": rows})
    assert added.status_code == 201
    listed = api.get(f"{at('ann')}/samples").json()["samples"]
    assert [each["origin"] for each in listed] == [None, "desk", "desk"]
    assert listed[1]["enrolled_by"].endswith("/admin")
    assert [api.get(f"{at('ann')}/samples/{each['number']}").json() for each in listed] == listed
    assert api.get(f"{at('p1')}/samples/{listed[0]['number']}").status_code == 404, "it is somebody else's"
    assert api.delete(f"{at('ann')}/samples/{listed[0]['number']}").status_code == 200
    assert api.delete(f"{at('ann')}/samples/{listed[0]['number']}").status_code == 404
    assert api.put(f"{at('ann')}/samples", json={"samples": rows[:1]}).status_code == 200
    assert len(api.get(f"{at('ann')}/samples").json()["samples"]) == 1
    last = api.get(f"{at('ann')}/samples").json()["samples"][0]["number"]
    refused = api.delete(f"{at('ann')}/samples/{last}")
    assert refused.status_code == 422
    assert "without a sample" in refused.json()["detail"]


def test_subjects_are_merged_and_split(api: Api, people: People) -> None:
    api.post(BASE, json=body(people, 50, "ann"))
    merged = api.post(f"{at('p1')}/merge", json={"subjects": ["ann"]})
    assert merged.status_code == 200
    assert api.get(at("ann")).status_code == 404
    numbers = [each["number"] for each in api.get(f"{at('p1')}/samples").json()["samples"]]
    assert len(numbers) == 4
    assert api.post(f"{at('p1')}/split", json={"samples": numbers[2:], "new": "ann"}).status_code == 200
    assert who(api, people, 50) == "ann"


def test_pages_follow_each_other_without_gaps(api: Api) -> None:
    seen: list[Any] = []
    cursor: str | None = None
    while True:
        page = api.get(BASE, params={"limit": 7, **({} if cursor is None else {"cursor": cursor})}).json()
        seen += [each["id"] for each in page["subjects"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == [f"p{person}" for person in range(20)]
    assert api.get(BASE, params={"cursor": "ä"}).status_code == 422


def test_a_change_of_what_has_changed_meanwhile_is_refused(api: Api) -> None:
    tag = api.get(at("p3")).headers["etag"]
    first = api.patch(at("p3"), json={"purpose": "one"}, headers={"if-match": tag})
    assert first.status_code == 200
    second = api.patch(at("p3"), json={"purpose": "two"}, headers={"if-match": tag})
    assert second.status_code == 412
    assert second.headers["etag"] == first.headers["etag"] == api.get(at("p3")).headers["etag"]
    assert api.delete(at("p3"), headers={"if-match": first.headers["etag"]}).status_code == 200


def test_an_enrolment_is_all_or_nothing(api: Api, people: People) -> None:
    good, bad = body(people, 50, "ann")["subjects"], body(people, 51, "p3")["subjects"]
    assert api.post(BASE, json={"subjects": good + bad}).status_code == 409
    zero = {"id": "zoe", "samples": [{"embedding": [0.0] * DIM}]}
    assert api.post(BASE, json={"subjects": [*good, zero]}).status_code == 422
    assert api.get(at("ann")).status_code == 404


NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=NAMES)
@example("a/b")
@example("../../etc/passwd")
@example("<script>alert(1)</script>")
@example("a\r\nSet-Cookie: x=1")
@example("%2F")
@example("?x=1#y")
@example(" ")
@example("..")
@example("名前")
def test_any_name_can_be_enrolled_found_and_removed(api: Api, people: People, name: str) -> None:
    if name in (".", ".."):
        return  # clients take these out of paths before they are sent
    made = api.post(BASE, json=body(people, 60, name))
    assert made.status_code == 201, made.text
    found = api.get(at(name))
    assert found.json()["id"] == name
    assert not any(name in value for header, value in found.headers.items() if len(name) > 3)
    assert api.delete(at(name)).status_code == 200
    assert api.get(at(name)).status_code == 404


@pytest.mark.parametrize("path", ["%FF", "a%00b", "%ED%A0%80", "..%2F..%2Fgallery.db", "%2e%2e"])
def test_a_path_that_can_be_no_name_names_nobody(api: Api, path: str) -> None:
    assert api.get(f"{BASE}/{path}").status_code == 404
    assert api.get(f"/v1/galleries/{path}").status_code in (403, 404)


def test_ids_may_be_whole_numbers(api: Api, people: People) -> None:
    assert (
        api.post("/v1/galleries", json={"name": "numbers", "dim": DIM, "threshold": 0.6, "method": "galue"}).status_code
        == 201
    )
    url = "/v1/galleries/numbers/subjects"
    for number in (7, -8):
        made = api.post(url, json=body(people, abs(number), number))
        assert made.status_code == 201, made.text
    assert api.get(f"{url}/7").json()["id"] == 7
    assert api.get(f"{url}/-8").json()["id"] == -8
    assert api.get(f"{url}/9").status_code == 404
    assert api.post(url, json=body(people, 9, "nine")).status_code == 422


def test_an_erased_subject_is_in_no_file_and_the_receipt_can_be_read_again(
    api: Api, people: People, folder: Path
) -> None:
    api.post(BASE, json=body(people, 50, "ann"))
    rows = [row.astype("<f4").tobytes() for row in people.samples(50, 2)]
    assert any(row in path.read_bytes() for row in rows for path in folder.rglob("*") if path.is_file())
    made = api.post("/v1/erasures", json={"gallery": "office", "subjects": ["ann"]})
    assert made.status_code == 201, made.text
    assert made.json()["clean"] is True
    assert not any(row in path.read_bytes() for row in rows for path in folder.rglob("*") if path.is_file())
    again = api.get(f"/v1/erasures/{made.json()['id']}")
    assert again.json() == made.json()
    assert "ann" not in again.text
    assert api.get("/v1/erasures/office.99").status_code == 404


def test_a_repeated_request_is_carried_out_once(api: Api, people: People) -> None:
    key = {"idempotency-key": "enrol-ann"}
    first = api.post(BASE, json=body(people, 50, "ann"), headers=key)
    again = api.post(BASE, json=body(people, 50, "ann"), headers=key)
    assert (first.status_code, first.json()) == (again.status_code, again.json()) == (201, first.json())
    assert again.headers["idempotency-replayed"] == "true"
    assert api.post(BASE, json=body(people, 51, "bob"), headers=key).status_code == 409
    failed = {"idempotency-key": "enrol-p3"}
    assert [api.post(BASE, json=body(people, 3, "p3"), headers=failed).status_code for _ in range(2)] == [409, 409]
    made = api.post("/v1/keys", json={"role": "viewer"}, headers={"idempotency-key": "key"})
    assert made.status_code == 201
    assert api.post("/v1/keys", json={"role": "viewer"}, headers={"idempotency-key": "key"}).status_code == 409
    secret = made.json()["key"].encode()
    home = api.service.settings.galleries
    assert not any(secret in path.read_bytes() for path in Path(home).rglob("*") if path.is_file())


def test_a_snapshot_is_taken_and_listed(api: Api) -> None:
    url = "/v1/galleries/office/snapshots"
    assert api.post(url, json={"name": "monday"}).status_code == 201
    assert api.post(url, json={"name": "monday"}).status_code == 409
    assert api.post(url, json={"name": "../monday"}).status_code == 422
    assert api.get(url).json() == {"snapshots": [{"name": "monday"}], "next": None}


def test_an_audit_finds_who_is_enrolled_twice(api: Api, people: People) -> None:
    rows = [{"embedding": row.tolist()} for row in people.samples(3, 2)]
    api.post(BASE, json={"subjects": [{"id": "again", "samples": rows}]})
    found = api.post("/v1/galleries/office/audit", json={}).json()["report"]["duplicates"]
    assert {"again", "p3"} in [{each["first"], each["second"]} for each in found]
    assert np.isfinite([each["score"] for each in found]).all()


def test_the_list_on_the_page_counts_samples_without_reading_them(
    api: Api, people: People, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert api.post(BASE, json=body(people, 50, "ann", 3)).status_code == 201
    visitor = TestClient(create_app(service=api.service))
    assert visitor.post("/sign-in", data={"key": api.key("viewer")["x-api-key"]}).status_code == 200
    store = api.service.galleries.get("office").live.store
    monkeypatch.setattr(store, "samples", lambda *_: pytest.fail("the samples of a row were read"))
    page = visitor.get("/galleries/office/subjects").text
    row = next(part for part in page.split("<tr") if ">ann<" in part)
    assert ">3<" in row
