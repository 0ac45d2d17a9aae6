"""Repeats: a POST with an ``Idempotency-Key`` is carried out once, however often it is sent."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from holue.errors import ConflictError
from holue.service.http.access import Asker
from holue.service.ledger.idempotency import Idempotency
from holue.service.ledger.idempotency import Response as Kept
from holue.service.roles import Permission

HEADER = "idempotency-key"
ONLY_READS = (Permission.IDENTIFY, Permission.AUDIT, Permission.VIEW)
"""Permissions of POST routes that change nothing, so that repeating them does no harm."""
SECRET = (Permission.MANAGE_KEYS,)
"""Permissions of routes whose answer is not kept, because it holds a key."""

PARAMETER: dict[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "description": "A text of your own: the same request with the same text is carried out once and answered the same.",
    "schema": {"type": "string", "minLength": 1, "maxLength": 200},
    "example": "enrol-ann-1",
}


def changes_something(method: str, permission: Permission | None) -> bool:
    """Whether a request with this method is carried out once for each key."""
    return method == "POST" and permission is not None and permission not in ONLY_READS


async def once(
    request: Request,
    kept: Idempotency,
    permission: Permission,
    carry_out: Callable[[Request], Awaitable[Response]],
) -> Response:
    """Carry a request out, or give the answer it got before."""
    key = request.headers.get(HEADER)
    if key is None:
        return await carry_out(request)
    asker: Asker = request.state.asker
    digest = await _digest(request)
    before = await run_in_threadpool(kept.begin, asker.actor, key, digest=digest)
    if before is not None:
        return _again(before)
    try:
        response = await carry_out(request)
    except BaseException:
        await run_in_threadpool(kept.forget, asker.actor, key)  # nothing was changed
        raise
    body = None if permission in SECRET else bytes(response.body)
    answer = Kept(response.status_code, response.media_type or response.headers.get("content-type"), body)
    await run_in_threadpool(kept.finish, asker.actor, key, answer)
    return response


async def _digest(request: Request) -> str:
    parts = [request.method, request.url.path, request.url.query, request.headers.get("content-type", "")]
    head = "\n".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(head + b"\n" + await request.body()).hexdigest()


def _again(before: Kept) -> Response:
    if before.body is None:
        raise ConflictError(
            "the request was carried out before, and its answer is not kept since it may name somebody or hold a key; look "
            "at what it made, or send it with another Idempotency-Key"
        )
    headers = {"Idempotency-Replayed": "true"}
    return Response(before.body, before.status, headers=headers, media_type=before.media_type)
