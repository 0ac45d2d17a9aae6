"""Pictures of samples and of reviewed probes, where the gallery keeps them."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from holue.service.galleries.opened import Opened
from holue.service.http.paths import GalleryName
from holue.service.http.problems import not_found
from holue.service.ledger.images import Of
from holue.service.page.screens import address_of
from holue.service.page.visitor import PageRoute, Visiting, Visitor
from holue.service.roles import Permission
from holue.service.service import service_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)
SEEN_BY = (Permission.ENROLL, Permission.REVIEW, Permission.AUDIT)
"""Whoever has one of these may see pictures of samples; those of probes are for reviewers alone."""


@router.get("/galleries/{gallery:segment}/pictures/{kind}/{number:int}")
def picture(
    request: Request, visitor: Visiting, gallery: GalleryName, kind: Literal["sample", "review"], number: int
) -> Response:
    """One picture."""
    of = Of(kind)
    if of is Of.REVIEW or not sees_samples(visitor, gallery):
        visitor.asker.require(Permission.REVIEW, gallery)
    found = service_of(request).galleries.get(gallery).ledger.images.get(of, number)
    if found is None:
        raise not_found("picture", number, "the gallery keeps none of it")
    return Response(found.content, media_type=found.media_type)


def sees_samples(visitor: Visitor, gallery: str) -> bool:
    """Whether the visitor may see pictures of samples."""
    return any(visitor.may(permission, gallery) for permission in SEEN_BY)


def sample_picture(opened: Opened, number: int | None) -> str | None:
    """The address of a sample's picture, where there is one."""
    return _address(opened, Of.SAMPLE, number)


def review_picture(opened: Opened, number: int) -> str | None:
    """The address of a reviewed probe's picture, where there is one."""
    return _address(opened, Of.REVIEW, number)


def _address(opened: Opened, of: Of, number: int | None) -> str | None:
    if number is None or not opened.ledger.images.present(of, [number]):
        return None
    return address_of(opened.name, "pictures", of.value, number)
