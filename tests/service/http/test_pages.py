"""Lists come in pages: every list route takes a cursor and a limit, and its pages follow each other without gaps."""

from __future__ import annotations

from typing import Any

import pytest

from holue.service.http import cursors
from holue.service.http.problems import ProblemError

from .conftest import Api, People, Start

G = "/v1/galleries/office"
NOT_PAGED = {
    "/v1/galleries/{gallery}/cluster": "as many replicas as the cluster has",
    "/v1/galleries/{gallery}/subjects/{subject}": "one subject",
    "/v1/galleries/{gallery}": "one gallery",
    "/v1/galleries/{gallery}/calibrations/{number}": "one calibration",
    "/v1/erasures/{erasure}": "one receipt",
    "/v1/reviews/{review}": "one review",
    "/v1/galleries/{gallery}/expected-errors": "at most a hundred places of a curve",
    "/v1/log/verification": "what is wrong with the log",
}


def pages(api: Api, path: str, name: str, limit: int) -> list[Any]:
    found: list[Any] = []
    cursor: str | None = None
    while True:
        given = {"limit": limit} | ({} if cursor is None else {"cursor": cursor})
        page = api.get(path, params=given).json()
        assert len(page[name]) <= limit
        found += page[name]
        cursor = page["next"]
        if cursor is None:
            return found


def several_of_everything(api: Api, people: People) -> None:
    for name in ("attic", "zoo"):
        assert api.post("/v1/galleries", json={"name": name, "dim": 4}).status_code == 201
    rows = [{"embedding": row.tolist()} for row in people.samples(0, 3, seed=5)]
    assert api.post(f"{G}/subjects/p0/samples", json={"samples": rows}).status_code == 201
    for name in ("b", "a", "c"):
        api.key("viewer")
        assert api.post(f"{G}/snapshots", json={"name": name}).status_code == 201
        assert api.post(f"{G}/calibrations", json={}).status_code == 201
    probes = [row.tolist() for person in (300, 301, 301, 302) for row in people.samples(person, 1, seed=person)]
    assert api.post(f"{G}/identify", json={"probes": probes}).status_code == 200


def test_pages_of_every_list_follow_each_other_without_gaps(start: Start, people: People) -> None:
    api = start(strangers={"days": 1})
    several_of_everything(api, people)
    for path, name, least in [
        ("/v1/galleries", "galleries", 3), ("/v1/keys", "keys", 4), (f"{G}/subjects/p0/samples", "samples", 5),
        (f"{G}/snapshots", "snapshots", 3), (f"{G}/calibrations", "calibrations", 3), (f"{G}/strangers", "groups", 3),
    ]:  # fmt: skip
        whole = api.get(path).json()
        assert len(whole[name]) >= least, path
        assert whole["next"] is None, path
        for limit in (1, 2, 1000):
            assert pages(api, path, name, limit) == whole[name], (path, limit)
        wrong = [api.get(path, params={"cursor": each}) for each in ("ä", "MTAw", "WyJhIiwgWzFdXQ", "W3t9XQ")]
        assert [(each.status_code, each.json()["errors"][0]["field"]) for each in wrong] == [(422, "cursor")] * 4


def test_every_list_of_the_description_has_pages(api: Api) -> None:
    described = api.get("/openapi.json").json()
    for path, methods in described["paths"].items():
        if not path.startswith("/v1/") or "get" not in methods or path in NOT_PAGED:
            continue
        given = {each["name"] for each in methods["get"].get("parameters", ())}
        answer = methods["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        fields = described["components"]["schemas"][answer["$ref"].rpartition("/")[2]]["properties"]
        if any(field.get("type") == "array" for field in fields.values()):
            assert {"cursor", "limit"} <= given, path
            assert "next" in fields, path


def test_a_cursor_stays_valid_where_its_entry_has_gone() -> None:
    names = ["ann", "bob", "cay"]
    _, following = cursors.page(names, None, 2, lambda name: (name,))
    assert cursors.page(["ann", "cay"], following, 2, lambda name: (name,)) == (["cay"], None)
    with pytest.raises(ProblemError, match="no cursor"):
        cursors.page([1, 2], following, 2, lambda number: (number,))
