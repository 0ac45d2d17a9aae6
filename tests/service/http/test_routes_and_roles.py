"""Every route, every role and no key: each cell of the table is tried, and a route without a row fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

import holue
from holue.service.app import ROUTERS, create_app
from holue.service.roles import Role
from holue.service.service import Service
from holue.service.settings import ServiceSettings

VIEWING = {"viewer", "operator", "enroller", "reviewer", "auditor", "admin"}
EVERYBODY = {*VIEWING, "nobody"}
OPERATOR, ENROLLER, REVIEWER, AUDITOR = ({role, "admin"} for role in ("operator", "enroller", "reviewer", "auditor"))
ADMIN = {"admin"}
G, S = "/v1/galleries/{gallery}", "/v1/galleries/{gallery}/subjects/{subject}"
PROBE = [0.6, 0.8, 0.0, 0.0]
SAMPLES = {"samples": [{"embedding": PROBE}]}

TABLE: list[tuple[str, str, set[str], Any]] = [
    ("GET", "/livez", EVERYBODY, None),
    ("GET", "/readyz", EVERYBODY, None),
    ("GET", "/metrics", VIEWING, None),
    ("GET", "/v1/galleries", VIEWING, None),
    ("POST", "/v1/galleries", ADMIN, {"name": "-", "dim": 4}),
    ("GET", G, VIEWING, None),
    ("PATCH", G, ADMIN, {}),
    ("GET", f"{G}/cluster", VIEWING, None),
    ("POST", f"{G}/identify", OPERATOR, {"probes": [PROBE]}),
    ("POST", f"{G}/verify", OPERATOR, {"subject": "ann", "probe": PROBE}),
    ("GET", f"{G}/subjects", VIEWING, None),
    ("POST", f"{G}/subjects", ENROLLER, {"subjects": [{"id": "ann", **SAMPLES}]}),
    ("GET", S, VIEWING, None),
    ("PATCH", S, ENROLLER, {"purpose": "tests"}),
    ("DELETE", S, ENROLLER, None),
    ("POST", f"{S}/merge", ENROLLER, {"subjects": ["bob"]}),
    ("POST", f"{S}/split", ENROLLER, {"samples": [1], "new": "dan"}),
    ("GET", f"{S}/samples", VIEWING, None),
    ("POST", f"{S}/samples", ENROLLER, SAMPLES),
    ("POST", f"{S}/files", ENROLLER, {}),
    ("PUT", f"{S}/samples", ENROLLER, SAMPLES),
    ("GET", f"{S}/samples/{{sample}}", VIEWING, None),
    ("DELETE", f"{S}/samples/{{sample}}", ENROLLER, None),
    ("POST", "/v1/operations/{operation}/undo", ENROLLER, None),
    ("GET", "/v1/events?gallery=office", VIEWING, None),
    ("POST", "/v1/erasures", ENROLLER, {"gallery": "office", "subjects": ["nobody there"]}),
    ("GET", "/v1/erasures/{erasure}", VIEWING, None),
    ("POST", f"{G}/purge", ENROLLER, {}),
    ("GET", f"{G}/snapshots", VIEWING, None),
    ("POST", f"{G}/snapshots", ENROLLER, {}),
    ("GET", f"{G}/expected-errors", VIEWING, None),
    ("POST", f"{G}/audit", AUDITOR, {}),
    ("GET", f"{G}/calibrations", VIEWING, None),
    ("GET", f"{G}/calibrations/{{number}}", VIEWING, None),
    ("POST", f"{G}/calibrations", REVIEWER, {}),
    ("POST", f"{G}/calibrations/{{number}}/preview", REVIEWER, {}),
    ("POST", f"{G}/calibrations/{{number}}/certify", REVIEWER, {"target": 0.1}),
    ("POST", f"{G}/calibrations/{{number}}/activate", ADMIN, None),
    ("POST", f"{G}/calibrate", ADMIN, {}),
    ("GET", "/v1/reviews?gallery=office", REVIEWER, None),
    ("POST", "/v1/reviews/claim", REVIEWER, {"gallery": "office"}),
    ("GET", "/v1/reviews/{review}", REVIEWER, None),
    ("POST", "/v1/reviews/{review}/decision", REVIEWER, {"kind": "skip"}),
    ("DELETE", "/v1/reviews/{review}/decision", REVIEWER, None),
    ("GET", f"{G}/promise", VIEWING, None),
    ("GET", f"{G}/strangers", REVIEWER, None),
    ("POST", f"{G}/strangers/enroll", ENROLLER, {"members": [1], "subject": "eve"}),
    ("GET", "/v1/keys", ADMIN, None),
    ("POST", "/v1/keys", ADMIN, {"role": "viewer"}),
    ("POST", "/v1/keys/{prefix}/rotate", ADMIN, {}),
    ("DELETE", "/v1/keys/{prefix}", ADMIN, None),
    ("GET", "/v1/log?gallery=office", AUDITOR, None),
    ("GET", "/v1/log/verification?gallery=office", AUDITOR, None),
]
FILLED = {
    "gallery": "office", "subject": "cay", "sample": "999", "operation": "office.999", "erasure": "office.999",
    "review": "office.999", "number": "999", "prefix": "0a1b2c3d4e5f",
}  # fmt: skip
ROLES = [*(role.value for role in Role), "nobody"]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("galleries")
    for name in ("office", "other"):
        with holue.open(folder / name, create=True, dim=4, method="galue", threshold=0.6) as gallery:
            gallery.enroll(np.eye(4)[:3], ["ann", "bob", "cay"])
    service = Service(ServiceSettings(galleries=str(folder))).open()
    yield service
    service.close()


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[TestClient]:
    with TestClient(create_app(service=service)) as client:
        yield client


@pytest.fixture(scope="module")
def headers(service: Service) -> dict[str, dict[str, str]]:
    """Of a key of every role, and of nobody."""
    keys = service.access.keys
    assert keys is not None
    return {**{role.value: {"x-api-key": keys.create(role).text} for role in Role}, "nobody": {}}


def ask(client: TestClient, method: str, path: str, body: Any, headers: dict[str, str]) -> int:
    url = path.format(**FILLED)
    return client.request(method, url, headers=headers, **({} if body is None else {"json": body})).status_code


def test_every_route_has_a_row() -> None:
    routes = {
        (method, route.path_format)
        for router in ROUTERS
        for route in router.router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    rows = {(method, path.partition("?")[0]) for method, path, _, _ in TABLE}
    assert routes == rows


@pytest.mark.parametrize(("method", "path", "able", "body"), TABLE, ids=[f"{m} {p}" for m, p, _, _ in TABLE])
def test_a_route_answers_those_who_may_ask_and_nobody_else(
    client: TestClient,
    headers: dict[str, dict[str, str]],
    method: str,
    path: str,
    able: set[str],
    body: Any,
) -> None:
    for role in ROLES:
        status = ask(client, method, path, body, headers[role])
        if role in able:
            assert status not in (401, 403), f"{role} may ask, and got {status}"
        else:
            assert status == (401 if role == "nobody" else 403), f"{role} may not ask, and got {status}"


@pytest.mark.parametrize(("method", "path", "able", "body"), TABLE, ids=[f"{m} {p}" for m, p, _, _ in TABLE])
def test_a_key_of_another_gallery_opens_nothing_of_this_one(
    client: TestClient, service: Service, method: str, path: str, able: set[str], body: Any
) -> None:
    keys = service.access.keys
    assert keys is not None
    other = {"x-api-key": keys.create(Role.ADMIN, gallery="other").text}
    status = ask(client, method, path, body, other)
    shared = ("/livez", "/readyz", "/v1/galleries")
    if (method, path) in [("GET", each) for each in shared]:
        assert status == 200
    else:
        assert status == 403


def test_the_list_of_galleries_shows_a_key_its_own_alone(client: TestClient, service: Service) -> None:
    keys = service.access.keys
    assert keys is not None
    other = {"x-api-key": keys.create(Role.VIEWER, gallery="other").text}
    assert [each["name"] for each in client.get("/v1/galleries", headers=other).json()["galleries"]] == ["other"]


def test_a_key_works_as_a_bearer_token_and_not_after_it_was_revoked(client: TestClient, service: Service) -> None:
    keys = service.access.keys
    assert keys is not None
    made = keys.create(Role.VIEWER)
    bearer = {"authorization": f"Bearer {made.text}"}
    assert client.get("/v1/galleries", headers=bearer).status_code == 200
    keys.revoke(made.key.prefix)
    refused = client.get("/v1/galleries", headers=bearer)
    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")


def test_wrong_keys_slow_an_address_down(client: TestClient, service: Service) -> None:
    wrong = {"x-api-key": "hk_000000000000_" + "0" * 64}
    statuses = [client.get("/v1/galleries", headers=wrong).status_code for _ in range(8)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert int(client.get("/v1/galleries", headers=wrong).headers["retry-after"]) >= 1
