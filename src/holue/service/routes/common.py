"""Common parts of routes: the problems they may answer with, and encoded documents."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

from holue.service.http.problems import MEDIA_TYPE

STATUSES = (400, 401, 403, 404, 408, 409, 412, 413, 415, 422, 429, 500, 501, 503, 507)
PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {
        "description": HTTPStatus(status).phrase,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }
    for status in STATUSES
}
"""What any route may answer in place of its own document."""


def document(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A response of plain values; what JSON has no number for becomes null."""
    return Response(to_json(content, inf_nan_mode="null"), status, headers=headers, media_type="application/json")
