"""Operations: what changed in a gallery, and undoing it."""

from __future__ import annotations

import time
from typing import Annotated

import anyio
from fastapi import APIRouter, Path, Query
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from holue.errors import ConflictError, InvalidParameterError
from holue.service.http import cursors
from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.cursors import Cursor, Limit
from holue.service.http.problems import not_found
from holue.service.roles import Permission
from holue.service.routes.subjects import changed
from holue.service.schemas.common import Changed, operation_of
from holue.service.schemas.operations import EventDocument, EventsPage
from holue.service.service import service_of
from holue.store.values import NOBODY, Change

router = APIRouter(route_class=StrictRoute, tags=["operations"])

GalleryQuery = Annotated[str, Query(min_length=1, max_length=100, description="The gallery.", examples=["demo"])]
LOOK_SECONDS = 0.2


@router.post("/v1/operations/{operation:segment}/undo")
def undo(
    request: Request,
    operation: Annotated[str, Path(description="The id of a change.", examples=["demo.1"])],
    asker: Annotated[Asker, allowed(Permission.ENROLL)],
) -> Changed:
    """Put back everything that a change touched; itself a change, which can be undone."""
    service, started = service_of(request), time.time()
    gallery, number = numbered(operation, "operation")
    asker.require(Permission.ENROLL, gallery)
    opened = service.galleries.writable(gallery)
    with opened.changing:
        if not 0 < number <= opened.live.version:
            raise not_found("operation", operation, "changes are listed by GET /v1/events")
        try:
            version = opened.live.undo(number, by=asker.actor)
        except InvalidParameterError as error:
            raise ConflictError(str(error)) from error
    service.record(asker, "undo", started, opened, gallery_version=version)
    return Changed(**changed(opened, version))


@router.get("/v1/events")
async def events(
    request: Request,
    asker: Annotated[Asker, allowed(Permission.VIEW)],
    gallery: GalleryQuery,
    cursor: Cursor = None,
    limit: Limit = 100,
    wait: Annotated[float, Query(ge=0, le=30, description="Seconds to wait for a change where there is none yet.")] = 0,
) -> EventsPage:
    """What changed in a gallery since a cursor, oldest first."""
    asker.require(Permission.VIEW, gallery)
    opened = service_of(request).galleries.get(gallery)
    since = cursors.decode(cursor)
    until = time.monotonic() + wait
    while opened.live.version <= since and time.monotonic() < until:
        await anyio.sleep(LOOK_SECONDS)

    def read() -> list[Change]:
        oldest = opened.live.store.status().oldest_version
        return opened.live.changes(max(since, oldest))[:limit] if since < opened.live.version else []

    found = await run_in_threadpool(read)
    return EventsPage(
        events=[
            EventDocument(
                gallery=gallery,
                version=change.version,
                operation=operation_of(gallery, change.version),
                kind=change.kind,
                time=change.time,
                by=change.by,
                subjects=sorted({*change.subjects.tolist(), *change.moved_to.tolist()} - {NOBODY}),
                samples=len(change.samples),
                undoes=change.undoes,
            )
            for change in found
        ],
        next=cursors.encode(found[-1].version) if found else cursor,
    )


def numbered(text: str, what: str) -> tuple[str, int]:
    """The gallery and the number in an id like ``office.7``, or a problem."""
    gallery, _, number = text.rpartition(".")
    if not gallery or not number.isdecimal() or len(number) > 18:
        raise not_found(what, text, "an id is the gallery's name, a dot and a number")
    return gallery, int(number)
