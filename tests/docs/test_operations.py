"""The page on operations is true: its commands are carried out against a running service, and its rules name real metrics."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tests.service.http.process import ready, served

import holue
from holue.service.http.metrics import Metrics
from holue.service.ledger.audit.audit_chain import Event
from holue.service.ledger.ledger import Ledger

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text("utf-8")
COMMANDS = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
RULES = next(
    block for block in re.findall(r"^```text\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL) if "groups:" in block
)


def programs() -> str:
    """A PATH with holue, python and the programs of PostgreSQL."""
    places = [str(Path(sys.executable).parent)]
    try:
        import pgserver
    except ImportError:
        pass
    else:
        places.append(str(Path(pgserver.__file__).parent / "pginstall" / "bin"))
    return os.pathsep.join([*places, os.environ["PATH"]])


def test_every_command_of_the_page_works_as_it_stands(tmp_path: Path, postgres: Any) -> None:
    import psycopg

    path = programs()
    for program in ("bash", "curl", "sqlite3", "pg_dump", "pg_restore"):
        if shutil.which(program, path=path) is None:
            pytest.skip(f"needs {program}")
    make(str(tmp_path / "office"))
    make(postgres.url("office"))
    database = postgres.database
    with Ledger.open(postgres.url("office")) as ledger:
        ledger.audit_log.append([Event("identify", "aa/operator", "r1", 1.0, 2.0)])
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE DATABASE restored")
    restored = database.replace("/postgres?", "/restored?")
    with served(tmp_path / "office") as running:
        with running.client() as client:
            ready(client)
        environment = {
            **os.environ, "PATH": path, "KEY": running.key or "", "ADDRESS": running.address, "DATABASE": database,
            "RESTORED": restored, "RESTORED_GALLERY": f"{restored}&gallery=office",
        }  # fmt: skip
        for block in COMMANDS:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", block], cwd=tmp_path, env=environment, capture_output=True, text=True
            )
            assert done.returncode == 0, f"{block}\n{done.stdout}\n{done.stderr}"
    for place in (str(tmp_path / "restored" / "office"), f"{restored}&gallery=office"):
        with holue.open(place, read_only=True) as gallery:
            assert [subject.id for subject in gallery.subjects()] == ["ann", "bob", "cay", "dan"]
            assert gallery.identify(np.eye(4)).subject.tolist() == ["ann", "bob", "cay", "dan"]
    key = (tmp_path / "admin.key").read_text("utf-8").strip()
    with served(tmp_path / "restored" / "office") as again, again.client(running.key) as client:
        ready(client)
        assert again.key is None, "the keys came back too"
        assert client.get("/v1/galleries/office").json()["subjects"] == 4
        assert client.get("/v1/galleries/office", headers={"x-api-key": key}).status_code == 401, "it was made later"


def make(place: str) -> None:
    with holue.open(place, create=True, dim=4, method="galue", threshold=0.6) as gallery:
        gallery.enroll(np.eye(4), ["ann", "bob", "cay", "dan"])


def test_the_rules_for_prometheus_name_metrics_that_there_are() -> None:
    rules = yaml.safe_load(RULES)["groups"][0]["rules"]
    known = {sample.name for family in Metrics().registry.collect() for sample in family.samples}
    known |= {family.name for family in Metrics().registry.collect()}
    known |= {f"{name}_{end}" for name in known for end in ("total", "bucket")}
    named = {name for rule in rules for name in re.findall(r"holue_[a-z_]+", rule["expr"])}
    assert named <= known, named - known
    assert {rule["alert"] for rule in rules} >= {"HolueDown", "HolueDoubts", "HolueOverloaded"}
    assert set(re.findall(r"`(holue_[a-z_]+)", PAGE)) <= known
