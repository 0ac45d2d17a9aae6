"""Logs: one JSON object per line, each with the request's id; never an embedding, never a subject's name."""

from __future__ import annotations

import json
import logging
import os
import random
import re
import time
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holue.store.reference import made_for

HEADER = "x-request-id"
_ACCEPTED = re.compile(r"[A-Za-z0-9._-]{1,64}")
_request_id: ContextVar[str] = ContextVar("request_id", default="-")
_chance = random.Random()
"""Seeded by the system once: a system call for every request would let other threads run first."""
os.register_at_fork(after_in_child=_chance.seed)
FIELDS = (
    "request_id", "method", "route", "status", "seconds", "key", "gallery", "problem", "doubt", "address",
    "version", "probes", "batch",
)  # fmt: skip
"""What a line may hold beside its message: nothing else reaches the log."""

logger = logging.getLogger("holue.service.requests")


def current_request_id() -> str:
    """The id of the request that this code runs for."""
    return _request_id.get()


class JsonFormatter(logging.Formatter):
    """A log record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Time, level, logger, message, and the fields that are allowed."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": _request_id.get(),
        }
        line |= {name: record.__dict__[name] for name in FIELDS if name in record.__dict__}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)


class RequestLog:
    """Gives every request an id (the caller's own where it is plain), answers with it, and logs one line per request.

    The line names the route's pattern, not the path: a path may hold a subject's name.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = Headers(scope=scope).get(HEADER, "")
        request_id = given if _ACCEPTED.fullmatch(given) else new_request_id()
        token = _request_id.set(request_id)
        scope.setdefault("state", {})["request_id"] = request_id
        started, status = time.perf_counter(), 500

        async def answering(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        try:
            with made_for(request_id):  # a crash must not separate a change from its row in the audit log
                await self._app(scope, receive, answering)
        finally:
            seconds = round(time.perf_counter() - started, 6)
            logger.info(
                "request",
                extra={"method": scope["method"], "route": route_of(scope), "status": status, "seconds": seconds},
            )
            _request_id.reset(token)


def new_request_id() -> str:
    """A new id: the time first, so that ids sort, then chance."""
    return f"{int(time.time() * 1000):012x}{_chance.getrandbits(64):016x}"


def route_of(scope: Scope) -> str:
    """The pattern of the route that answered, or "-"."""
    return getattr(scope.get("route"), "path_format", None) or "-"


def log_as_json(level: int = logging.INFO) -> None:
    """Send holue's and uvicorn's messages to standard error, a line of JSON each."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    for name in ("holue", "uvicorn"):
        named = logging.getLogger(name)
        named.handlers = [handler]
        named.setLevel(level)
        named.propagate = False
