"""Keys: who may ask; made, rotated and revoked here."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from holue.errors import ConflictError, InvalidParameterError
from holue.service.http.paths import GalleryName
from holue.service.ledger.keys import Key, Keys
from holue.service.page.rendering import day, render
from holue.service.page.visitor import PageRoute, Visiting, Visitor
from holue.service.roles import Permission, Role
from holue.service.service import service_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)
DAY = 86_400.0
OVERLAP = DAY
"""Seconds for which a key that was rotated stays valid."""


@router.get("/keys")
def keys(request: Request, visitor: Visiting) -> Response:
    """Every key that was ever made."""
    visitor.asker.require(Permission.MANAGE_KEYS, None)
    return _screen(request, visitor)


@router.post("/keys")
def make(
    request: Request,
    visitor: Visiting,
    holder: Annotated[str, Form(max_length=200)],
    role: Annotated[str, Form(max_length=20)],
    gallery: Annotated[str, Form(max_length=40)] = "",
    days: Annotated[str, Form(max_length=8)] = "",
) -> Response:
    """A new key, shown once."""
    visitor.asker.require(Permission.MANAGE_KEYS, None)
    service, started = service_of(request), time.time()
    if gallery:
        service.galleries.get(gallery)
    if days and not days.isdecimal():
        raise InvalidParameterError(
            f"days must be a whole number, got {days!r}; leave it empty for a key without an end"
        )
    expires = started + int(days) * DAY if days else None
    with service.recording(visitor.asker, "create-key", started):
        made = _keys(request).create(
            Role.parse(role),
            gallery=gallery or None,
            holder=holder.strip() or None,
            expires=expires,
            by=visitor.asker.actor,
        )
    return _screen(request, visitor, made.text)


@router.post("/keys/{prefix:segment}")
def change(
    request: Request, visitor: Visiting, prefix: GalleryName, action: Annotated[str, Form(max_length=10)]
) -> Response:
    """A key is rotated or revoked."""
    visitor.asker.require(Permission.MANAGE_KEYS, None)
    service, started = service_of(request), time.time()
    if action == "rotate":
        with service.recording(visitor.asker, "rotate-key", started):
            made = _keys(request).rotate(prefix, overlap=OVERLAP, by=visitor.asker.actor)
        return _screen(request, visitor, made.text)
    with service.recording(visitor.asker, "revoke-key", started):
        _keys(request).revoke(prefix)
    return _screen(request, visitor)


def _keys(request: Request) -> Keys:
    found = service_of(request).access.keys
    if found is None:
        raise ConflictError("keys are switched off; switch them on in the settings")
    return found


def _screen(request: Request, visitor: Visitor, made: str | None = None) -> Response:
    now = time.time()
    names = [each.name for each in service_of(request).galleries]
    roles = [
        {"name": role.value, "text": "; ".join(sorted(permission.value for permission in role.permissions))}
        for role in Role
    ]
    return render(
        request, "keys.html.jinja", visitor, title="Keys", made=made, roles=roles, galleries=names,
        keys=[_row(key, now) for key in _keys(request).all()],
    )  # fmt: skip


def _row(key: Key, now: float) -> dict[str, object]:
    state = "revoked" if key.revoked is not None else ("valid" if key.valid(now) else "expired")
    return {
        "prefix": key.prefix, "holder": key.holder, "role": key.role.value, "gallery": key.gallery,
        "created": day(key.created), "expires": day(key.expires), "state": state, "valid": key.valid(now),
    }  # fmt: skip
