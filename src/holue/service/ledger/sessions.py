"""Sessions: who has signed in to the page with a key; the cookie's token is kept as its SHA-256."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time as clock
from dataclasses import dataclass, field

import sqlalchemy as sql

from holue.errors import InvalidKeyError
from holue.service.ledger.database import Database
from holue.service.ledger.keys import Key, Keys
from holue.service.ledger.tables import SESSIONS

LASTS = 8 * 3600.0
"""Seconds until a visitor has to sign in again."""


@dataclass(frozen=True)
class Session:
    """A visitor who has signed in; ``form_token`` has to come with every form, so that no other site can send one."""

    key: Key
    form_token: str = field(repr=False)

    def sent(self, token: str | None) -> bool:
        """Whether a form carries this session's token; compared in constant time."""
        return token is not None and hmac.compare_digest(self.form_token.encode(), token.encode())


class Sessions:
    """The sessions in a ledger. The key is read anew at each request: one that is revoked ends its sessions.

    >>> from holue.service.roles import Role
    >>> with Database.of_gallery(":memory:") as database:
    ...     keys = Keys(database)
    ...     sessions = Sessions(database, keys)
    ...     made = keys.create(Role.REVIEWER)
    ...     token = sessions.begin(made.text)
    ...     before = sessions.find(token).key.role.value
    ...     revoked = keys.revoke(made.key.prefix)
    ...     before, sessions.find(token)
    ('reviewer', None)
    """

    def __init__(self, database: Database, keys: Keys) -> None:
        self._database, self._keys = database, keys

    def begin(self, key: str, *, now: float | None = None) -> str:
        """Sign in with a key; returns the token for the cookie. An error where the key is not valid."""
        time = clock.time() if now is None else now
        found = self._keys.check(key, now=time)
        token = secrets.token_urlsafe(32)
        row = {
            "sha256": _sha256(token), "prefix": found.prefix, "form_token": secrets.token_urlsafe(32),
            "expires": time + LASTS,
        }  # fmt: skip

        def keep(connection: sql.Connection) -> None:
            connection.execute(sql.delete(SESSIONS).where(SESSIONS.c.expires <= time))
            connection.execute(sql.insert(SESSIONS), [row])

        self._database.writing(keep)
        return token

    def find(self, token: str, *, now: float | None = None) -> Session | None:
        """The session of a token; None where it has ended or its key is no longer valid."""
        time = clock.time() if now is None else now
        query = sql.select(SESSIONS).where(SESSIONS.c.sha256 == _sha256(token), SESSIONS.c.expires > time)
        with self._database.reading() as connection:
            row = connection.execute(query).one_or_none()
        if row is None:
            return None
        try:
            key = self._keys.get(row.prefix)
        except InvalidKeyError:
            return None
        return Session(key, row.form_token) if key.valid(time) else None

    def end(self, token: str) -> None:
        """Sign out."""
        self._database.writing(
            lambda connection: connection.execute(sql.delete(SESSIONS).where(SESSIONS.c.sha256 == _sha256(token)))
        )


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
