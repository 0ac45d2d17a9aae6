"""Strangers: probes of nobody enrolled, kept for a stated time where that is allowed, and enrolled from a group."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter
from starlette.requests import Request

from holue.errors import ConflictError
from holue.service.http import cursors
from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.cursors import Cursor, Limit
from holue.service.http.paths import GalleryName
from holue.service.roles import Permission
from holue.service.routes.subjects import changed
from holue.service.schemas.reviews import (
    EnrolledStranger,
    EnrollStrangerBody,
    StrangerGroupDocument,
    StrangersDocument,
)
from holue.service.service import service_of

router = APIRouter(route_class=StrictRoute, tags=["strangers"])

BASE = "/v1/galleries/{gallery:segment}/strangers"


@router.get(BASE)
def strangers(
    request: Request,
    gallery: GalleryName,
    asker: Annotated[Asker, allowed(Permission.REVIEW)],
    cursor: Cursor = None,
    limit: Limit = 100,
) -> StrangersDocument:
    """Who seems to have come without being enrolled, a page at a time; empty where strangers are not kept.

    A group that grows between two pages may move to a page before.
    """
    service = service_of(request)
    opened = service.galleries.get(gallery)
    state = opened.live.current.state
    kept = opened.ledger.strangers
    kept.purge()
    groups = (
        []
        if state is None or state.operating_point is None
        else kept.groups(state.operating_point.threshold, model=opened.live.model)
    )
    found, following = cursors.page(groups, cursor, limit, lambda group: (-len(group.members), group.number))
    return StrangersDocument(
        groups=[StrangerGroupDocument(**{**vars(group), "members": list(group.members)}) for group in found],
        next=following,
        kept_days=service.settings.strangers.days,
    )


@router.post(BASE + "/enroll", status_code=201)
def enroll_strangers(
    request: Request,
    gallery: GalleryName,
    asker: Annotated[Asker, allowed(Permission.ENROLL)],
    body: EnrollStrangerBody,
) -> EnrolledStranger:
    """Enrol a group of strangers as a subject; their probes are then no longer kept as strangers'."""
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    with opened.changing:
        found = opened.ledger.strangers.read(body.members)
        if opened.live.subject(body.subject) is not None:
            raise ConflictError(f"{body.subject!r} is enrolled already; choose another id")
        done = opened.live.enroll(
            found.embeddings, [body.subject] * len(found.numbers), concentration=found.concentration,
            consent=body.consent, purpose=body.purpose, origin="stranger", by=asker.actor,
        )  # fmt: skip
        opened.ledger.strangers.remove(found.numbers.tolist())
    service.record(asker, "enroll-stranger", started, opened, gallery_version=done.version)
    return EnrolledStranger(**changed(opened, done.version), subject=body.subject, samples=done.samples.tolist())
