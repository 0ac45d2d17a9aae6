"""The container files keep the rules that matter: no root, no secret, health by /readyz, data on volumes, pinned images."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from holue.service.server import FINISH_SECONDS
from holue.service.settings import ServiceSettings

dockerfile_parse = pytest.importorskip("dockerfile_parse")

ROOT = Path(__file__).resolve().parents[2]
PINNED = re.compile(r"[a-z0-9./-]+:[0-9][A-Za-z0-9._-]*")


@pytest.fixture(scope="module")
def steps() -> list[dict[str, Any]]:
    parser = dockerfile_parse.DockerfileParser(str(ROOT / "Dockerfile"), cache_content=True)
    found: list[dict[str, Any]] = [step for step in parser.structure if step["instruction"] != "COMMENT"]
    return found


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))
    return found


def of(steps: list[dict[str, Any]], instruction: str) -> list[str]:
    return [step["value"] for step in steps if step["instruction"] == instruction]


def last_stage(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    start = max(place for place, step in enumerate(steps) if step["instruction"] == "FROM")
    return steps[start:]


def environment(steps: list[dict[str, Any]]) -> dict[str, str]:
    words = [word for value in of(steps, "ENV") for word in value.split()]
    return dict(word.split("=", 1) for word in words)  # type: ignore[misc]


def test_every_image_is_pinned_to_a_version(steps: list[dict[str, Any]], compose: dict[str, Any]) -> None:
    bases = [value.split()[0] for value in of(steps, "FROM")]
    bought = [service["image"] for service in compose["services"].values() if "build" not in service]
    assert bases
    assert bought
    assert [image for image in bases + bought if not PINNED.fullmatch(image)] == []


def test_the_service_does_not_run_as_root(steps: list[dict[str, Any]]) -> None:
    users = of(last_stage(steps), "USER")
    assert users
    assert users[-1].split(":")[0] not in ("0", "root")
    kinds = [step["instruction"] for step in last_stage(steps)]
    assert kinds.index("USER") < kinds.index("ENTRYPOINT")
    assert "RUN" not in kinds[kinds.index("USER") :], "a step after USER cannot install anything"


def test_no_file_holds_a_secret(steps: list[dict[str, Any]], compose: dict[str, Any]) -> None:
    secret = re.compile(r"password|secret|token|api_?key", re.IGNORECASE)
    given = {**environment(steps), **dict.fromkeys(of(steps, "ARG"), "")}
    assert [name for name in given if secret.search(name)] == []
    for service in compose["services"].values():
        for name, value in service.get("environment", {}).items():
            assert not secret.search(name) or re.fullmatch(r"\$\{[A-Z_]+:\?[^}]+\}", value), name
        for word in [*service.get("command", [])]:
            assert not re.search(r"://[^/@]*:[^/@]*@", word), "a URL holds a password"


def test_health_is_readiness_and_the_check_is_a_program(steps: list[dict[str, Any]]) -> None:
    [check] = of(last_stage(steps), "HEALTHCHECK")
    command = json.loads(check.partition("CMD ")[2])
    assert command[:2] == ["python", "-c"]
    ast.parse(command[2])
    port = environment(last_stage(steps))["HOLUE_SERVICE_PORT"]
    assert f":{port}/readyz" in command[2]
    assert of(last_stage(steps), "EXPOSE") == [port]


def test_the_settings_in_the_image_are_settings_of_the_service(steps: list[dict[str, Any]]) -> None:
    given = environment(last_stage(steps))
    settings = ServiceSettings.load(None, environment=given, galleries="/var/lib/holue/galleries")
    assert str(settings.tls_cert) == given["HOLUE_SERVICE_TLS_CERT"], (
        "beyond the container nothing travels in the clear"
    )


def test_what_is_copied_into_the_image_is_there_and_not_ignored(steps: list[dict[str, Any]]) -> None:
    copied = [word for value in of(steps, "COPY") if "--from" not in value for word in value.split()[:-1]]
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    assert {name.removeprefix("./") for name in copied} == kept
    assert all((ROOT / name).exists() for name in copied)


def test_data_is_on_volumes_and_ports_are_this_machines_alone(
    steps: list[dict[str, Any]], compose: dict[str, Any]
) -> None:
    service, database = compose["services"]["holue"], compose["services"]["postgres"]
    [place] = of(last_stage(steps), "VOLUME")
    mounted = dict(volume.split(":")[:2] for volume in [*service["volumes"], *database["volumes"]])
    assert place in mounted.values()
    named = {name for name in mounted if not name.startswith(".")}
    assert named == set(compose["volumes"])
    assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    assert "ports" not in database


def test_the_service_waits_for_the_database_and_has_time_to_finish(compose: dict[str, Any]) -> None:
    service = compose["services"]["holue"]
    assert service["depends_on"]["postgres"]["condition"] == "service_healthy"
    assert "healthcheck" in compose["services"]["postgres"]
    assert int(service["stop_grace_period"].removesuffix("s")) > FINISH_SECONDS
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
