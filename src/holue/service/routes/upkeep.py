"""Upkeep: snapshots of a gallery, and audits of who is in it."""

from __future__ import annotations

import time
from pathlib import PurePath
from typing import Annotated, Any

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from holue.errors import ConflictError
from holue.live.calibration.expected_errors import ExpectedErrors, Rate
from holue.service.http import cursors
from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.cursors import Cursor, Limit
from holue.service.http.paths import GalleryName
from holue.service.roles import Permission
from holue.service.routes.common import document
from holue.service.schemas.calibrations import ExpectedErrorsDocument, KeptDocument, RateDocument
from holue.service.schemas.operations import (
    AuditBody,
    AuditDocument,
    SnapshotBody,
    SnapshotDocument,
    SnapshotsDocument,
)
from holue.service.service import service_of

PLACES = 100
"""Places of the curve of expected errors."""

router = APIRouter(route_class=StrictRoute, tags=["upkeep"])


@router.post("/v1/galleries/{gallery:segment}/snapshots", status_code=201)
async def take_snapshot(
    request: Request, gallery: GalleryName, asker: Annotated[Asker, allowed(Permission.SNAPSHOT)], body: SnapshotBody
) -> SnapshotDocument:
    """Copy the gallery as it is now, calibrations included, into its home, where erasures reach it."""
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)

    def work() -> SnapshotDocument:
        with opened.changing:
            name = body.name or f"version-{opened.live.version}"
            if name in opened.live.store.status().snapshots:
                raise ConflictError(f"there is a snapshot {name!r} already; choose another name")
            version = opened.live.version
            opened.live.snapshot(name, by=asker.actor)
        service.record(asker, "snapshot", started, opened, gallery_version=version)
        return SnapshotDocument(name=name)

    return await service.long.run(work)


@router.get("/v1/galleries/{gallery:segment}/snapshots")
def snapshots(
    request: Request,
    gallery: GalleryName,
    asker: Annotated[Asker, allowed(Permission.VIEW)],
    cursor: Cursor = None,
    limit: Limit = 100,
) -> SnapshotsDocument:
    """The snapshots of a gallery, a page at a time."""
    names = [PurePath(name).name for name in service_of(request).galleries.get(gallery).live.store.status().snapshots]
    found, following = cursors.page(names, cursor, limit, lambda name: (name,))
    return SnapshotsDocument(snapshots=[SnapshotDocument(name=name) for name in found], next=following)


@router.get("/v1/galleries/{gallery:segment}/expected-errors")
async def expected_errors(
    request: Request, gallery: GalleryName, asker: Annotated[Asker, allowed(Permission.VIEW)]
) -> ExpectedErrorsDocument:
    """Error rates at this gallery's size, and what filtering would leave: every sample is asked about, itself left out."""
    service = service_of(request)
    opened = service.galleries.get(gallery)
    return await service.long.run(lambda: _expected(opened.live.expected_errors()))


def _expected(found: ExpectedErrors) -> ExpectedErrorsDocument:
    shares = [place / PLACES for place in range(1, PLACES + 1) if len(found) and place * len(found) >= PLACES]
    kept = [(share, *found.kept(share)) for share in shares]
    return ExpectedErrorsDocument(
        gallery_version=found.version, calibration=found.calibration, source=found.source,
        fpir=_rate(found.fpir), fnir=_rate(found.fnir),
        curve=[
            KeptDocument(
                kept=share, errors=_rate(errors), uncertainty=uncertainty, filter_below=found.filter_at(share)
            )
            for share, errors, uncertainty in kept
        ],
    )  # fmt: skip


def _rate(rate: Rate) -> RateDocument:
    return RateDocument(wrong=rate.wrong, answers=rate.answers, share=rate.share, lower=rate.lower, upper=rate.upper)


@router.post("/v1/galleries/{gallery:segment}/audit", responses={200: {"model": AuditDocument}})
async def audit(
    request: Request, gallery: GalleryName, asker: Annotated[Asker, allowed(Permission.AUDIT)], body: AuditBody
) -> Response:
    """Who is enrolled twice, under a wrong name, with a poor sample, or looks like somebody else."""
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    options: dict[str, Any] = body.model_dump(exclude_none=True)

    def work() -> Response:
        version = opened.live.version
        report = opened.live.audit(**options).to_dict()
        service.record(asker, "audit", started, opened, gallery_version=version)
        return document({"gallery": opened.name, "gallery_version": version, "report": report})

    return await service.long.run(work)
