"""The OpenAPI description is complete, and the service keeps to it whatever is sent."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable

import holue
from holue.service.app import create_app
from holue.service.service import Service
from holue.service.settings import ServiceSettings

schemathesis = pytest.importorskip("schemathesis")
from schemathesis import GenerationMode  # noqa: E402
from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

CASES = int(os.environ.get("HOLUE_API_CASES", "6"))
"""Cases for each operation; `make torture` raises it."""
MANY = 120
"""From so many on, there are ten thousand in all."""
COUNTED: Counter[tuple[str, str]] = Counter()
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder: Path = tmp_path_factory.mktemp("galleries")
    with holue.open(folder / "demo", create=True, dim=4, method="galue", threshold=0.6, filter_below=0.5) as gallery:
        gallery.enroll(np.eye(4), ["ann", "bob", "cay", "dan"])
    settings = ServiceSettings.load(galleries=str(folder), reviews={"share": 0.5}, strangers={"days": 1.0})
    service = Service(settings).open()
    yield service
    service.close()


@pytest.fixture(scope="module")
def api_schema(service: Service) -> Any:
    return schemathesis.openapi.from_asgi("/openapi.json", create_app(service=service))


OPERATIONS = [
    (method.upper(), path)
    for path, operations in create_app(ServiceSettings(galleries="nowhere")).openapi()["paths"].items()
    for method in operations
]


@pytest.mark.parametrize(("method", "path"), OPERATIONS, ids=[" ".join(each) for each in OPERATIONS])
def test_the_service_keeps_to_its_description(service: Service, api_schema: Any, method: str, path: str) -> None:
    assert service.first_key is not None
    headers = {"x-api-key": service.first_key.text}

    for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
        strategy = api_schema[path][method].as_strategy(generation_mode=mode)

        @settings(
            max_examples=CASES, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=strategy)
        def sent(case: Any) -> None:
            COUNTED[method, path] += 1
            case.call_and_validate(headers=headers, checks=CHECKS)

        with suppress(Unsatisfiable, SkipTest):  # nothing about this operation can be wrong
            sent()


def test_as_many_cases_were_sent_as_were_asked_for() -> None:
    """Runs after the others, and tells how many there were."""
    print(f"{sum(COUNTED.values())} cases were sent to {len(COUNTED)} operations")
    assert sum(COUNTED.values()) > 0
    if CASES >= MANY:
        assert sum(COUNTED.values()) >= 10_000


def test_every_field_and_parameter_is_described_with_an_example(service: Service) -> None:
    described = create_app(service=service).openapi()
    missing = [
        f"{name}.{field}"
        for name, schema in described["components"]["schemas"].items()
        for field, about in schema.get("properties", {}).items()
        if "description" not in about and "$ref" not in about and "allOf" not in about
    ]
    missing += [
        f"{name}.{field} has no example"
        for name, schema in described["components"]["schemas"].items()
        for field, about in schema.get("properties", {}).items()
        if not ({"examples", "example", "$ref", "allOf"} & about.keys()) and "$ref" not in str(about)
    ]
    for path, operations in described["paths"].items():
        for method, operation in operations.items():
            missing += [] if operation.get("description") else [f"{method} {path}"]
            missing += [
                f"{method} {path}: {each['name']}"
                for each in operation.get("parameters", [])
                if "description" not in each
            ]
    assert not missing
