"""A crash between a change and its row in the audit log leaves neither out: the row is added at the next start."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import holue
from holue.cli.app import app
from holue.cli.commands.gallery import service_ledger
from holue.service.app import create_app
from holue.service.ledger.audit import recovery
from holue.service.ledger.audit.audit_chain import Entry, Event
from holue.service.ledger.audit.recovery import BEGUN, NOT_DONE, RECOVERED
from holue.service.ledger.ledger import Ledger
from holue.service.roles import Role
from holue.service.service import Service
from holue.service.settings import ServiceSettings
from holue.store.memory import MemoryStore
from holue.store.reference import made_for

CRASH = """
import os, signal, sys
from starlette.testclient import TestClient
from holue.live.live_gallery import LiveGallery
from holue.service.app import create_app
from holue.service.ledger.audit.audit_log import AuditLog
from holue.service.roles import Role
from holue.service.service import Service
from holue.service.settings import ServiceSettings


def die(*given, **more):
    os.kill(os.getpid(), signal.SIGKILL)


def crash(place, what):
    service = Service(ServiceSettings(galleries=place)).open()
    name = next(iter(service.galleries)).name
    url, headers = f"/v1/galleries/{name}", {"x-api-key": service.first_key.text, "x-request-id": "the-request"}
    samples = [{"embedding": [1, 2, 3, 4]}]
    method, path, body = {
        "enroll": ("POST", f"{url}/subjects", {"subjects": [{"id": "eve", "samples": samples}]}),
        "change": ("PATCH", f"{url}/subjects/ann", {"purpose": "door"}),
        "add-samples": ("POST", f"{url}/subjects/ann/samples", {"samples": samples}),
        "merge": ("POST", f"{url}/subjects/ann/merge", {"subjects": ["bob"]}),
        "remove": ("DELETE", f"{url}/subjects/ann", None),
        "activate": ("POST", f"{url}/calibrations/1/activate", None),
        "change-settings": ("PATCH", url, {"filter_below": 0.2}),
        "snapshot": ("POST", f"{url}/snapshots", {"name": "monday"}),
        "erase": ("POST", "/v1/erasures", {"gallery": name, "subjects": ["ann"]}),
        "erase-in-the-store": ("POST", "/v1/erasures", {"gallery": name, "subjects": ["ann"]}),
    }[what]
    with TestClient(create_app(service=service), headers=headers) as client:
        # A row of the same request that stands for no change.
        assert client.post(f"{url}/identify", json={"probes": [[1, 0, 0, 0]]}).status_code == 200
        if what == "erase-in-the-store":
            LiveGallery.erase = die
        else:
            AuditLog.append = die
        client.request(method, path, json=body)


for place, what in zip(sys.argv[1::2], sys.argv[2::2]):
    child = os.fork()  # before any thread has begun
    if not child:
        try:
            crash(place, what)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL, what
"""


def crash(*places_and_actions: str) -> None:
    """Carry out an action in a service on each place, and kill it before the row is written."""
    done = subprocess.run(
        [sys.executable, "-c", CRASH, *places_and_actions], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr[-2000:]


def make(place: str) -> None:
    with holue.open(place, create=True, dim=4, method="galue", threshold=0.6) as gallery:
        gallery.enroll(np.eye(4), ["ann", "bob", "cay", "dan"])
        gallery.calibrate(np.eye(4), ["ann", "bob", "cay", "dan"])


def rows(ledger: Ledger) -> list[Entry]:
    return [entry for entry in ledger.audit_log.entries() if entry.action != "identify"]


def started(place: str) -> list[Entry]:
    service = Service(ServiceSettings(galleries=place)).open()
    try:
        return rows(service.ledger)
    finally:
        service.close()


ACTIONS = ["enroll", "change", "add-samples", "merge", "remove", "activate", "change-settings", "snapshot", "erase"]


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Galleries whose service was killed in the middle of each action."""
    folder = tmp_path_factory.mktemp("crashed")
    make(str(folder / "door"))
    places = {what: str(folder / what / "door") for what in [*ACTIONS, "erase-in-the-store", "remove-again"]}
    for place in places.values():
        shutil.copytree(folder / "door", place)
    crash(*(each for what, place in places.items() for each in (place, what.removesuffix("-again"))))
    return places


@pytest.mark.parametrize("what", ACTIONS)
def test_a_change_whose_row_a_crash_left_out_gets_it_at_the_next_start(what: str, crashed: dict[str, str]) -> None:
    place = crashed[what]
    with Ledger.open(place) as ledger:
        before = rows(ledger)
        assert [(one.action, one.decision) for one in before] == ([("erase", BEGUN)] if what == "erase" else [])
    found = started(place)
    assert [(one.action, one.decision) for one in found[len(before) :]] == [(what, RECOVERED)]
    assert found[-1].request_id == "the-request"
    assert found[-1].actor.endswith("/admin")
    assert found[-1].gallery == "door"
    with Ledger.open(place) as ledger:
        assert ledger.audit_log.verify() == []
    assert started(place) == found  # once is enough


def test_an_erasure_that_went_no_further_than_the_ledger_is_told_as_not_done(crashed: dict[str, str]) -> None:
    place = crashed["erase-in-the-store"]
    assert [(one.action, one.decision) for one in started(place)] == [("erase", BEGUN), ("erase", NOT_DONE)]
    assert len(started(place)) == 2
    with holue.open(place) as gallery:
        assert gallery.subject("ann") is not None


def test_verifying_the_log_tells_of_rows_that_are_missing_and_of_rows_that_were_added(
    crashed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    place = crashed["remove-again"]
    monkeypatch.setattr(service_ledger, "IN_FLIGHT_SECONDS", 0.0)
    told = CliRunner().invoke(app, ["log", place, "--verify"])
    assert told.exit_code == 0
    assert "1 changes have no row yet" in told.output
    started(place)
    told = CliRunner().invoke(app, ["log", place, "--verify"])
    assert "no row yet" not in told.output
    assert "1 of them were added at a start" in told.output
    listed = CliRunner().invoke(app, ["log", place]).output
    assert listed.count("remove, 1 subject") == 1
    assert not [line for line in listed.splitlines() if line.split("  ")[1].startswith("change")]
    assert "no row was changed" in told.output


def test_on_a_server_rows_of_others_are_awaited_and_then_added(postgres: Any) -> None:
    place = postgres.url("crashed")
    make(place)
    crash(place, "remove")
    with holue.open(place) as gallery, Ledger.open(place) as ledger, Ledger.open(place) as other:
        young = time.time() - 600
        assert ledger.recovery.recover("crashed", gallery.store, before=young) == []
        [added] = ledger.recovery.recover("crashed", gallery.store)
        assert (added.action, added.decision, added.request_id) == ("remove", RECOVERED, "the-request")
        assert other.recovery.recover("crashed", gallery.store) == []
        assert ledger.audit_log.verify() == []


def test_a_change_of_the_ledger_and_its_row_are_one_transaction(tmp_path: Path) -> None:
    with Ledger.open(tmp_path) as ledger:
        log = ledger.audit_log
        with log.beside(lambda made: Event("create-key", "aa/admin", "r1", 1.0, 2.0)):
            ledger.keys.first()
        assert [(one.action, one.sequence) for one in log.entries()] == [("create-key", 1)]

        def broken(made: Any) -> Event:
            raise RuntimeError("the process dies here")

        prefix = ledger.keys.create(Role.VIEWER).key.prefix
        with pytest.raises(Exception, match="dies here"), log.beside(broken):
            ledger.keys.revoke(prefix)
        assert not any(key.revoked for key in ledger.keys.all())
        with (
            pytest.raises(holue.errors.HolueError),
            log.beside(lambda _: Event("revoke-key", "aa/admin", "r", 1.0, 2.0)),
        ):
            ledger.keys.revoke("0" * 12)  # there is none: no row
        ledger.keys.revoke(prefix)  # outside of the block: no row
        assert len(list(log.entries())) == 1
        assert log.verify() == []


def test_the_same_request_id_twice_hides_no_missing_row(tmp_path: Path) -> None:
    """Callers may name their requests as they like, all the same too."""
    store = MemoryStore(dim=2)
    with Ledger.open(tmp_path) as ledger:
        with made_for("same"):
            began = time.time()
            store.enroll([[1, 0]], ["ann"], by="aa/enroller")
            ledger.audit_log.append([Event("enroll", "aa/enroller", "same", began, time.time(), gallery_version=1)])
            time.sleep(0.002)
            store.enroll([[0, 1]], ["bob"], by="aa/enroller")
        assert [one.gallery_version for one in ledger.recovery.recover("door", store)] == [2]


def test_a_kill_before_the_first_row_was_noted_beside_the_ledger_is_no_tampering(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Ledger.open(tmp_path) as ledger:
        monkeypatch.setattr(ledger.audit_log, "note", lambda _: None)  # killed after the commit
        ledger.audit_log.append([Event("identify", "aa/operator", "r", 1.0, 2.0)])
    with Ledger.open(tmp_path) as ledger:
        assert ledger.audit_log.verify() == []
        (tmp_path / "service" / "head").unlink()
    with Ledger.open(tmp_path) as ledger:
        assert [found.kind for found in ledger.audit_log.verify()] == ["replaced"], "a file that was removed is told"


def test_a_new_gallery_has_one_row_that_says_so(tmp_path: Path) -> None:
    service = Service(ServiceSettings(galleries=str(tmp_path))).open()
    assert service.first_key is not None
    with TestClient(create_app(service=service), headers={"x-api-key": service.first_key.text}) as client:
        assert client.post("/v1/galleries", json={"name": "door", "dim": 4}).status_code == 201
    service.close()
    for _ in range(2):
        service = Service(ServiceSettings(galleries=str(tmp_path))).open()
        assert [(one.action, one.decision) for one in service.galleries.get("door").log.entries()] == [("create", None)]
        service.close()


def test_many_operations_are_looked_at_a_part_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovery, "PAGE", 3)
    store = MemoryStore(dim=2)
    with Ledger.open(tmp_path) as ledger:
        for number in range(8):
            with made_for(f"r{number}"):
                began = time.time()
                store.enroll([[1, number]], [f"p{number}"], by="aa/enroller")
                if number % 2:
                    ledger.audit_log.append([Event("enroll", "aa/enroller", f"r{number}", began, time.time())])
        assert len(ledger.recovery.missing("door", store)) == 4
        assert [one.request_id for one in ledger.recovery.recover("door", store)] == ["r0", "r2", "r4", "r6"]
        assert ledger.recovery.recover("door", store) == ledger.recovery.missing("door", store) == []
        assert ledger.problems() == []


def test_an_erasure_that_began_long_ago_and_was_made_just_now_is_awaited(tmp_path: Path) -> None:
    store = MemoryStore(dim=2)
    store.enroll([[1, 0]], ["ann"])
    with Ledger.open(tmp_path) as ledger:
        began = time.time() - 700
        ledger.audit_log.append([Event("erase", "aa/enroller", "r1", began, began, decision=BEGUN)])
        with made_for("r1"):
            store.erase(["ann"], by="aa/enroller")
        assert ledger.recovery.recover("door", store, before=time.time() - 600) == []
        assert [one.decision for one in ledger.recovery.recover("door", store)] == [RECOVERED]
