"""Limits: the size and pace of bodies, and the number of requests, held before anything is parsed."""

from __future__ import annotations

import asyncio
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holue.service.http.problems import ProblemError, overloaded, response, unexpected
from holue.service.settings import LimitSettings

ALWAYS = ("/livez", "/readyz", "/metrics")
"""Paths that answer however much there is to do."""

CLOSE = {"Connection": "close"}
"""The rest of a body that is not wanted is not read either."""


class RequestLimits:
    """Refuses bodies that are too large, too slow or compressed, and requests beyond those that may be under way.

    A body is counted while it arrives: what lies beyond the limit is not read, and nothing is set aside for what a header claims.
    """

    def __init__(self, app: ASGIApp, limits: LimitSettings) -> None:
        self._app, self._limits = app, limits
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http" or scope["path"] in ALWAYS:
            await self._app(scope, receive, send)
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        self._under_way += 1
        try:
            self._check_number()
            self._check_headers(Headers(scope=scope))
            await self._app(scope, self._counted(receive), sending)
        except ProblemError as problem:
            if started:
                raise
            await response(problem)(scope, receive, send)
        except Exception as error:
            failed = unexpected(error)
            if started:
                raise
            await response(failed)(scope, receive, send)
        finally:
            self._under_way -= 1

    def _check_number(self) -> None:
        if self._under_way > self._limits.requests:
            raise overloaded(
                f"more than {self._limits.requests} requests are under way", "ask again later, or raise limits.requests"
            )

    def _check_headers(self, headers: Headers) -> None:
        encoding = headers.get("content-encoding", "identity")
        if encoding.lower() != "identity":
            raise ProblemError(
                415, "unsupported-encoding", f"the body is encoded as {encoding[:40]!r}",
                field="content-encoding", rule="a body is sent as it is", value=encoding, way_out="send it uncompressed",
            )  # fmt: skip
        claimed = headers.get("content-length")
        if claimed is not None and claimed.isdecimal() and int(claimed[:20]) > self._limits.body_bytes:
            raise self._too_large(claimed)

    def _counted(self, receive: Receive) -> Receive:
        read, deadline = 0, time.monotonic() + self._limits.upload_seconds
        whole = False

        async def receiving() -> Message:
            nonlocal read, whole
            if whole:  # only the end of the connection can follow
                return await receive()
            try:
                async with asyncio.timeout(max(deadline - time.monotonic(), 0.001)):
                    message = await receive()
            except TimeoutError:
                raise ProblemError(
                    408, "body-too-slow", f"the body did not arrive within {self._limits.upload_seconds:g} seconds",
                    field="body", way_out="send it faster or in parts, or raise limits.upload_seconds", headers=CLOSE,
                ) from None  # fmt: skip
            if message["type"] == "http.request":
                read += len(message.get("body", b""))
                whole = not message.get("more_body", False)
                if read > self._limits.body_bytes:
                    raise self._too_large(f"more than {self._limits.body_bytes}")
            return message

        return receiving

    def _too_large(self, size: str) -> ProblemError:
        most = self._limits.body_bytes
        return ProblemError(
            413, "body-too-large", f"the body has {size[:40]} bytes", field="body", rule=f"at most {most} bytes",
            value=size[:40], way_out="send fewer samples at a time, as raw float32, or raise limits.body_bytes",
            headers=CLOSE,
        )  # fmt: skip
