"""Idempotency: a request that is sent twice with the same key is carried out once, and answered twice the same."""

from __future__ import annotations

import time as clock
from dataclasses import dataclass

import sqlalchemy as sql

from holue.errors import ConflictError, InvalidParameterError
from holue.service.ledger.database import Database
from holue.service.ledger.tables import IDEMPOTENCY

KEEP = 86_400.0
"""Seconds for which an answer is kept."""
RUNNING = 600.0
"""Seconds after which a request that has not ended is taken for lost: its process died."""
LONGEST_KEY = 200


@dataclass(frozen=True)
class Response:
    """What was answered; ``body`` is None where it named somebody who was erased since, or might have."""

    status: int
    media_type: str | None
    body: bytes | None


class Idempotency:
    """The answers kept in a ledger. ``begin`` before the work and ``finish`` after it, or ``forget`` where it failed.

    >>> with Database.of_gallery(":memory:") as database:
    ...     kept = Idempotency(database)
    ...     kept.begin("0a1b2c3d4e5f", "key-1", digest="d")
    ...     kept.finish("0a1b2c3d4e5f", "key-1", Response(201, "application/json", b"{}"))
    ...     kept.begin("0a1b2c3d4e5f", "key-1", digest="d").status
    201
    """

    def __init__(self, database: Database, *, keep: float = KEEP, running: float = RUNNING) -> None:
        self._database, self._keep, self._running = database, keep, running

    def begin(self, actor: str, key: str, *, digest: str, now: float | None = None) -> Response | None:
        """None where the request is to be carried out now, or the answer it got before.

        An error where the key was used for another request (by ``digest``), or the same request is still running.
        """
        if not 0 < len(key) <= LONGEST_KEY:
            raise InvalidParameterError(f"Idempotency-Key must have 1 to {LONGEST_KEY} characters, got {len(key)}")
        time = clock.time() if now is None else now

        def start(connection: sql.Connection) -> Response | None:
            row = connection.execute(sql.select(IDEMPOTENCY).where(_is(actor, key))).one_or_none()
            if row is not None and row.expires > time:
                if row.digest != digest:
                    raise ConflictError(f"Idempotency-Key {key!r} was used for another request; use a new one")
                if row.status is None:
                    raise ConflictError(f"the request with Idempotency-Key {key!r} is still running; repeat it later")
                return Response(row.status, row.media_type, row.response)
            connection.execute(sql.delete(IDEMPOTENCY).where(_is(actor, key) | (IDEMPOTENCY.c.expires <= time)))
            made = {"actor": actor, "key": key, "digest": digest, "expires": time + self._running}
            connection.execute(sql.insert(IDEMPOTENCY), [made])
            return None

        return self._database.writing(start)

    def finish(self, actor: str, key: str, response: Response, *, now: float | None = None) -> None:
        """Keep the answer."""
        time = clock.time() if now is None else now
        values = {
            "status": response.status, "media_type": response.media_type, "response": response.body,
            "expires": time + self._keep,
        }  # fmt: skip
        change = sql.update(IDEMPOTENCY).where(_is(actor, key)).values(values)
        self._database.writing(lambda connection: connection.execute(change))

    def forget(self, actor: str, key: str) -> None:
        """The request failed and changed nothing: it may be sent again."""
        gone = sql.delete(IDEMPOTENCY).where(_is(actor, key))
        self._database.writing(lambda connection: connection.execute(gone))


def empty_responses(connection: sql.Connection) -> None:
    """Forget what was answered, which may name an erased subject; a repeated request is still known to be carried out."""
    connection.execute(sql.update(IDEMPOTENCY).where(IDEMPOTENCY.c.status.is_not(None)).values(response=None))


def _is(actor: str, key: str) -> sql.ColumnElement[bool]:
    return (IDEMPOTENCY.c.actor == actor) & (IDEMPOTENCY.c.key == key)
