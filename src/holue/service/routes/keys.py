"""Keys: who may ask; and the log of who did."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.requests import Request

from holue.errors import ConflictError
from holue.service.http import cursors
from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.cursors import Cursor, Limit
from holue.service.ledger.audit.audit_chain import Witness
from holue.service.ledger.audit.audit_log import AuditLog
from holue.service.ledger.keys import Key, Keys, NewKey
from holue.service.roles import Permission, Role
from holue.service.schemas.keys import (
    KeyDocument,
    KeysDocument,
    LogEntry,
    LogPage,
    NewKeyBody,
    NewKeyDocument,
    RotateBody,
    Verified,
)
from holue.service.service import Service, service_of

router = APIRouter(route_class=StrictRoute, tags=["keys and log"])

Admin = Annotated[Asker, allowed(Permission.MANAGE_KEYS)]
Auditor = Annotated[Asker, allowed(Permission.READ_LOG)]
Prefix = Annotated[str, Path(pattern="^[0-9a-f]{12}$", description="The prefix of a key.", examples=["0a1b2c3d4e5f"])]
OfGallery = Annotated[
    str | None,
    Query(max_length=100, description="The gallery whose log; the service's own by default.", examples=["demo"]),
]


@router.get("/v1/keys")
def keys(request: Request, asker: Admin, cursor: Cursor = None, limit: Limit = 100) -> KeysDocument:
    """Every key that was ever made, without secrets, a page at a time."""
    asker.require(Permission.MANAGE_KEYS, None)
    made = _keys(service_of(request)).all()
    found, following = cursors.page(made, cursor, limit, lambda key: (key.created, key.prefix))
    return KeysDocument(keys=[KeyDocument(**_plain(key)) for key in found], next=following)


@router.post("/v1/keys", status_code=201)
def create_key(request: Request, asker: Admin, body: NewKeyBody) -> NewKeyDocument:
    """Make a key; it is shown once."""
    service, started = service_of(request), time.time()
    asker.require(Permission.MANAGE_KEYS, None)
    if body.gallery is not None:
        service.galleries.get(body.gallery)
    with service.recording(asker, "create-key", started):
        made = _keys(service).create(
            Role.parse(body.role), gallery=body.gallery, holder=body.holder, expires=body.expires, by=asker.actor
        )
    return _shown(made)


@router.post("/v1/keys/{prefix}/rotate", status_code=201)
def rotate_key(request: Request, prefix: Prefix, asker: Admin, body: RotateBody) -> NewKeyDocument:
    """Make a new key in place of one."""
    service, started = service_of(request), time.time()
    asker.require(Permission.MANAGE_KEYS, None)
    with service.recording(asker, "rotate-key", started):
        made = _keys(service).rotate(prefix, overlap=body.overlap, by=asker.actor)
    return _shown(made)


@router.delete("/v1/keys/{prefix}")
def revoke_key(request: Request, prefix: Prefix, asker: Admin) -> KeyDocument:
    """A key is not valid any more, from the next request on."""
    service, started = service_of(request), time.time()
    asker.require(Permission.MANAGE_KEYS, None)
    with service.recording(asker, "revoke-key", started):
        revoked = _keys(service).revoke(prefix)
    return KeyDocument(**_plain(revoked))


@router.get("/v1/log")
def log(
    request: Request, asker: Auditor, gallery: OfGallery = None, cursor: Cursor = None, limit: Limit = 100
) -> LogPage:
    """Who asked what of which version, and a digest of what was answered."""
    chosen = _log(request, asker, gallery)
    found = list(chosen.entries(cursors.decode(cursor), limit + 1))
    following = cursors.encode(found[limit - 1].sequence) if len(found) > limit else None
    return LogPage(
        entries=[LogEntry(**entry.to_dict()) for entry in found[:limit]], next=following, head=str(chosen.head())
    )


@router.get("/v1/log/verification")
async def verify_log(
    request: Request,
    asker: Auditor,
    gallery: OfGallery = None,
    head: Annotated[
        str | None, Query(max_length=100, description="A head that was noted earlier.", examples=[None])
    ] = None,
) -> Verified:
    """Whether any row was changed, dropped or reordered."""
    chosen = _log(request, asker, gallery)
    witness = None if head is None else Witness.parse(head)

    def work() -> Verified:
        now = str(chosen.head())
        found = [str(each) for each in chosen.verify(witness)]
        return Verified(intact=not found, problems=found, head=now)

    return await service_of(request).long.run(work)


def _log(request: Request, asker: Asker, gallery: str | None) -> AuditLog:
    service = service_of(request)
    asker.require(Permission.READ_LOG, gallery)
    return service.log if gallery is None else service.galleries.get(gallery).log


def _keys(service: Service) -> Keys:
    if service.access.keys is None:
        raise ConflictError("this service runs without keys; start it with keys = true")
    return service.access.keys


def _plain(key: Key) -> dict[str, Any]:
    return {**vars(key), "role": key.role.value}


def _shown(made: NewKey) -> NewKeyDocument:
    return NewKeyDocument(key=made.text, **_plain(made.key))
