"""Galleries: which there are, and new ones."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Response
from starlette.requests import Request

from holue.live.kept_settings import DEFAULTS
from holue.recognition.saved.recognizer_folder import plain_settings
from holue.service.galleries.opened import Opened
from holue.service.http import cursors
from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.cursors import Cursor, Limit
from holue.service.http.etags import IfMatch, check_tag, tag_of
from holue.service.http.paths import GalleryName
from holue.service.http.problems import ProblemError
from holue.service.roles import Permission
from holue.service.schemas.galleries import (
    FpirDocument,
    GalleriesDocument,
    GalleryDocument,
    GalleryPatch,
    NewGallery,
    PointDocument,
)
from holue.service.service import Service, service_of

router = APIRouter(route_class=StrictRoute, tags=["galleries"])


@router.get("/v1/galleries")
def galleries(
    request: Request,
    asker: Annotated[Asker, allowed(Permission.VIEW)],
    cursor: Cursor = None,
    limit: Limit = 100,
) -> GalleriesDocument:
    """The galleries that the key may see, in numbers, a page at a time."""
    service = service_of(request)
    seen = [opened for opened in service.galleries if asker.may_see(opened.name)]
    found, following = cursors.page(seen, cursor, limit, lambda opened: (opened.name,))
    return GalleriesDocument(galleries=[gallery_document(service, opened) for opened in found], next=following)


@router.get("/v1/galleries/{gallery:segment}")
def gallery(
    request: Request, response: Response, gallery: GalleryName, asker: Annotated[Asker, allowed(Permission.VIEW)]
) -> GalleryDocument:
    """A gallery in numbers: who is enrolled, the calibration that answers, and why it may no longer fit."""
    service = service_of(request)
    opened = service.galleries.get(gallery)
    response.headers["ETag"] = _tag(opened)
    return gallery_document(service, opened)


@router.patch("/v1/galleries/{gallery:segment}")
def change_gallery(
    request: Request,
    response: Response,
    gallery: GalleryName,
    asker: Annotated[Asker, allowed(Permission.MANAGE_GALLERIES)],
    body: GalleryPatch,
    if_match: IfMatch = None,
) -> GalleryDocument:
    """Change settings of a gallery; the ETag is that of its settings."""
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    given = {
        name: DEFAULTS[name] if value is None else value for name, value in body.model_dump(exclude_unset=True).items()
    }
    with opened.changing:
        check_tag(_tag(opened), if_match, "the gallery's settings are")
        if given:
            opened.live.change_settings(by=asker.actor, **given)
    service.record(asker, "change-settings", started, opened, gallery_version=opened.live.version)
    response.headers["ETag"] = _tag(opened)
    return gallery_document(service, opened)


def _tag(opened: Opened) -> str:
    return tag_of(plain_settings(opened.live.settings))


@router.post("/v1/galleries", status_code=201)
def create_gallery(
    request: Request,
    response: Response,
    asker: Annotated[Asker, allowed(Permission.MANAGE_GALLERIES)],
    body: NewGallery,
) -> GalleryDocument:
    """Create an empty gallery, where the service runs on a directory of galleries."""
    service, started = service_of(request), time.time()
    asker.require(Permission.MANAGE_GALLERIES, body.name)
    chosen: dict[str, Any] = body.model_dump(exclude={"name", "dim", "model", "keep_images"}, exclude_none=True)
    most = service.settings.limits.dimension
    if body.dim > most:
        raise ProblemError(
            422, "too-many-dimensions", f"an embedding of {body.dim} numbers", field="dim", rule=f"at most {most}",
            value=body.dim, way_out="use a smaller embedding, or raise limits.dimension",
        )  # fmt: skip
    opened = service.galleries.create(body.name, dim=body.dim, model=body.model, **chosen)
    if body.keep_images:
        opened.ledger.images.start_keeping()
    service.record(asker, "create", started, opened, gallery_version=opened.live.version)
    response.headers["Location"] = f"/v1/galleries/{body.name}"
    return gallery_document(service, opened)


def gallery_document(service: Service, opened: Opened) -> GalleryDocument:
    """A gallery as it is now."""
    status = opened.live.status()
    embedder = service.embedder
    return GalleryDocument(
        name=opened.name,
        dim=status.store.dim,
        model=status.store.model,
        version=status.version,
        oldest_version=status.store.oldest_version,
        subjects=status.subjects,
        samples=status.store.samples,
        bytes=status.store.bytes,
        calibration=PointDocument(
            number=status.calibration,
            made_at=status.calibrated_at,
            threshold=status.threshold,
            target_fpir=status.target_fpir,
            achieved_fpir=status.achieved_fpir,
            expected_fpir=None if status.expected_fpir is None else FpirDocument(**vars(status.expected_fpir)),
            shortfall=status.shortfall,
            fits=status.threshold is not None and not status.doubts,
            doubts=list(status.doubts),
        ),
        settings=status.settings,
        embedder=embedder.kind if embedder is not None and embedder.model == status.store.model else None,
        keep_images=opened.ledger.images.kept,
    )
