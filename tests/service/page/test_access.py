"""Who sees what: every screen for every role, forms of other sites, and the headers of every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sql
from fastapi.routing import APIRoute
from starlette.testclient import TestClient

from holue.service.app import create_app
from holue.service.ledger.audit.audit_chain import Event
from holue.service.page.page import SCREENS
from holue.service.page.visitor import COOKIE
from holue.service.roles import Role
from holue.service.service import Service

ALL = {role.value for role in Role}
OPERATOR, ENROLLER, REVIEWER, AUDITOR, ADMIN = (
    {role, "admin"} for role in ("operator", "enroller", "reviewer", "auditor", "admin")
)
G = "/galleries/{gallery}"
TABLE: list[tuple[str, str, set[str], dict[str, Any]]] = [
    ("GET", "/", ALL, {}),
    ("GET", "/galleries", ALL, {}),
    ("POST", "/sign-out", ALL, {}),
    ("GET", "/try", OPERATOR, {}),
    ("POST", "/try/answer", OPERATOR, {}),
    ("GET", f"{G}/identify", OPERATOR, {}),
    ("POST", f"{G}/identify", OPERATOR, {}),
    ("GET", f"{G}/review", REVIEWER, {}),
    ("POST", f"{G}/review/{{number}}", REVIEWER, {"kind": "skip"}),
    ("POST", f"{G}/review/{{number}}/undo", REVIEWER, {}),
    ("GET", f"{G}/subjects", ALL, {}),
    ("GET", f"{G}/subjects/{{number}}", ALL, {}),
    ("GET", f"{G}/enrol", ENROLLER, {}),
    ("POST", f"{G}/enrol", ENROLLER, {"name": "x"}),
    ("POST", f"{G}/subjects/{{number}}/rename", ENROLLER, {"name": "x"}),
    ("POST", f"{G}/subjects/{{number}}/details", ENROLLER, {}),
    ("POST", f"{G}/subjects/{{number}}/merge", ENROLLER, {"into": "x"}),
    ("POST", f"{G}/subjects/{{number}}/samples", ENROLLER, {"action": "remove", "sample": "9999"}),
    ("POST", f"{G}/subjects/{{number}}/remove", ENROLLER, {}),
    ("POST", f"{G}/subjects/{{number}}/erase", ENROLLER, {}),
    ("POST", f"{G}/undo", ENROLLER, {"version": "9999"}),
    ("GET", f"{G}/pictures/{{kind}}/{{number}}", ENROLLER | REVIEWER | AUDITOR, {}),
    ("GET", f"{G}/audit", AUDITOR, {}),
    ("POST", f"{G}/audit/run", AUDITOR, {}),
    ("POST", f"{G}/audit/answer", ADMIN, {"action": "dismiss", "kind": "hub", "first": "1", "second": "0"}),
    ("GET", f"{G}/calibration", ALL, {}),
    ("POST", f"{G}/calibration/measure", ALL, {}),
    ("POST", f"{G}/calibration/new", REVIEWER, {"source": "reviews"}),
    ("POST", f"{G}/calibration/filter", ADMIN, {"below": "x"}),
    ("GET", f"{G}/calibration/{{number}}", REVIEWER, {}),
    ("POST", f"{G}/calibration/{{number}}/activate", ADMIN, {}),
    ("GET", f"{G}/log", AUDITOR, {}),
    ("GET", f"{G}/cluster", ALL, {}),
    ("GET", "/keys", ADMIN, {}),
    ("POST", "/keys", ADMIN, {"holder": "x", "role": "viewer"}),
    ("POST", "/keys/{prefix}", ADMIN, {"action": "revoke"}),
]
WITHOUT_KEY = {("GET", "/sign-in"), ("POST", "/sign-in")}
FILLED = {"gallery": "demo", "number": "999999", "kind": "sample", "prefix": "0a1b2c3d4e5f"}


class Visit:
    """A browser without a screen: cookies, forms and nothing else."""

    def __init__(self, service: Service, role: str | None) -> None:
        self.client = TestClient(create_app(service=service), follow_redirects=False)
        self.token = ""
        if role is not None:
            assert service.access.keys is not None
            made = service.access.keys.create(Role.parse(role))
            answer = self.client.post("/sign-in", data={"key": made.text})
            assert answer.status_code == 303, answer.text
            session = service.sessions.find(self.client.cookies[COOKIE])
            assert session is not None
            self.token = session.form_token

    def send(self, method: str, path: str, form: dict[str, Any]) -> Any:
        address = path.format(**FILLED)
        if method == "GET":
            return self.client.get(address)
        if path == "/try/answer":
            return self.client.post(address, json={"kind": "choose"}, headers={"x-form-token": self.token})
        if path.endswith(("/identify", "/enrol")):
            files = {"files": ("wrong.png", b"no image")}
            return self.client.post(address, data={**form, "form_token": self.token}, files=files)
        return self.client.post(address, data={**form, "form_token": self.token})


@pytest.fixture
def visits(service: Service) -> Iterator[dict[str | None, Visit]]:
    return {role: Visit(service, role) for role in [*(role.value for role in Role), None]}


def test_every_screen_has_a_row() -> None:
    routes = {
        (method, route.path_format)
        for each in SCREENS
        for route in each.router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    assert routes == {(method, path) for method, path, _, _ in TABLE} | WITHOUT_KEY


def test_every_screen_is_tried_with_every_role_and_without_a_key(visits: dict[str | None, Visit]) -> None:
    wrong = []
    for method, path, roles, form in TABLE:
        if path == "/sign-out":
            continue
        for role, visit in visits.items():
            status = visit.send(method, path, form).status_code
            if role is None:
                fine = status in (303, 401)
            elif role in roles:
                fine = status not in (401, 403) and status < 500
            else:
                fine = status == 403
            if not fine:
                wrong.append((method, path, role, status))
    assert not wrong


def test_a_form_without_the_token_or_from_another_site_is_refused(service: Service) -> None:
    visit = Visit(service, "admin")
    number = service.galleries.get("demo").live.subjects(limit=1)[0].number
    address = f"/galleries/demo/subjects/{number}/remove"
    before = service.galleries.get("demo").live.version
    assert visit.client.post(address, data={}).status_code == 403
    assert visit.client.post(address, data={"form_token": "guess"}).status_code == 403
    for headers in ({"origin": "https://elsewhere.example"}, {"sec-fetch-site": "cross-site"}):
        answer = visit.client.post(address, data={"form_token": visit.token}, headers=headers)
        assert answer.status_code == 403
    assert service.galleries.get("demo").live.version == before
    assert visit.client.post(address, data={"form_token": visit.token}).status_code == 303


def test_pages_are_ours_alone_and_the_cookie_is_out_of_reach_of_scripts(service: Service) -> None:
    visit = Visit(service, "viewer")
    for path in ("/sign-in", "/galleries/demo/subjects", "/galleries/demo/subjects/999999", "/keys"):
        headers = visit.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["cache-control"] == "no-store"
        assert headers["x-frame-options"] == "DENY"
    assert service.access.keys is not None
    made = service.access.keys.create(Role.VIEWER)
    cookie = TestClient(create_app(service=service), follow_redirects=False).post("/sign-in", data={"key": made.text})
    assert "HttpOnly" in cookie.headers["set-cookie"]
    assert "SameSite=strict" in cookie.headers["set-cookie"]


def test_signing_in_leads_back_inside_only(service: Service) -> None:
    visit = Visit(service, None)
    assert service.access.keys is not None
    made = service.access.keys.create(Role.VIEWER)
    for address in ("https://elsewhere.example", "//elsewhere.example", "/\\elsewhere.example"):
        answer = visit.client.post("/sign-in", data={"key": made.text, "next": address})
        assert answer.headers["location"] == "/"


def test_wrong_keys_are_slowed_down(service: Service) -> None:
    visit = Visit(service, None)
    statuses = [visit.client.post("/sign-in", data={"key": f"hk_0123456789ab_{n:064d}"}).status_code for n in range(30)]
    assert statuses[0] == 403
    assert 429 in statuses


def test_no_page_names_another_host() -> None:
    from holue.service.page.rendering import HERE

    for file in [*(HERE / "static").iterdir(), *(HERE / "templates").iterdir()]:
        text = file.read_text("utf-8").replace("http://www.w3.org/2000/svg", "")
        assert not re.search("https?:", text), file


def test_a_page_of_the_log_claims_only_what_was_checked(service: Service) -> None:
    log, visit = service.galleries.get("demo").log, Visit(service, "auditor")
    written = "as it was written", "as they were written"
    if not log.head().sequence:
        assert "Nothing was asked or changed yet." in visit.send("GET", "/galleries/demo/log", {}).text
    log.append([Event("identify", "0a1b2c3d4e5f/operator", f"r{n}", 1.0, 1.2) for n in range(120)])
    assert any(claim in visit.send("GET", "/galleries/demo/log", {}).text for claim in written)
    database = service.galleries.get("demo").ledger.database
    database.writing(
        lambda connection: connection.execute(sql.text("UPDATE audit SET decision = 'x' WHERE sequence = 3"))
    )
    assert "row 3 was changed" in visit.send("GET", "/galleries/demo/log", {}).text
    second = visit.send("GET", "/galleries/demo/log?before=50", {})
    assert second.status_code == 200
    assert not any(claim in second.text for claim in written)


def test_a_subject_shows_pictures_to_those_alone_who_may_see_them(visits: dict[str | None, Visit]) -> None:
    listed = visits["admin"].client.get("/galleries/demo/subjects").text
    address = re.findall(r'"(/galleries/demo/subjects/\d+)"', listed)[0]
    for role in sorted(ALL):
        client = visits[role].client
        shown = client.get(address).text
        pictures = re.findall(r'src="(/galleries/demo/pictures/[^"]+)"', shown)
        assert bool(pictures) == (role in ENROLLER | REVIEWER | AUDITOR), role
        assert ("not for your role" in shown) == (not pictures), role
        assert all(client.get(picture).status_code == 200 for picture in pictures), role
