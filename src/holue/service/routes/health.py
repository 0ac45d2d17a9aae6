"""Health: whether the service lives, is ready, and what it measures."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.problems import ProblemError
from holue.service.roles import Permission
from holue.service.schemas.common import Document
from holue.service.service import service_of

router = APIRouter(route_class=StrictRoute, tags=["health"])


class Alive(Document):
    """The service answers."""

    status: str = Field(description="`ok`.", examples=["ok"])


@router.get("/livez")
async def livez() -> Alive:
    """Whether the process answers at all; needs no key."""
    return Alive(status="ok")


@router.get("/readyz")
def readyz(request: Request) -> Alive:
    """Whether the galleries and the ledger can be read; needs no key."""
    service = service_of(request)
    if not service.ready:
        raise ProblemError(503, "not-ready", "the service is starting or stopping", headers={"Retry-After": "1"})
    service.ledger.database.meta("version")
    for opened in service.galleries:
        opened.live.store.subjects(limit=1)
    return Alive(status="ok")


@router.get(
    "/metrics", response_class=Response, responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
)
def metrics(request: Request, asker: Annotated[Asker, allowed(Permission.VIEW)]) -> Response:
    """Measures for Prometheus: latency by stage, batch sizes, decisions, doubts; they are of all galleries."""
    asker.require(Permission.VIEW, None)
    return Response(service_of(request).measure(), media_type="text/plain; version=0.0.4; charset=utf-8")
