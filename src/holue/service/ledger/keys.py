"""Keys: who may ask; a key is shown once and kept as a prefix and the SHA-256 of the whole."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time as clock
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sql

from holue.errors import ConflictError, InvalidKeyError, InvalidParameterError, NotFoundError, NotPermittedError
from holue.service.ledger.database import Database
from holue.service.ledger.statement import Statement
from holue.service.ledger.tables import KEYS
from holue.service.roles import Permission, Role

_FORM = re.compile(r"hk_([0-9a-f]{12})_[0-9a-f]{64}")
_NOBODYS = hashlib.sha256(b"").hexdigest()
LONGEST_HOLDER = 200


@dataclass(frozen=True)
class Key:
    """A key as it is kept: not the secret, from which nothing but its SHA-256 is left."""

    prefix: str
    role: Role
    gallery: str | None  # None: every gallery
    holder: str | None  # the person or program that has it
    created: float
    created_by: str | None
    expires: float | None
    revoked: float | None
    replaces: str | None  # the prefix of the key that was rotated

    @property
    def actor(self) -> str:
        """How the audit log names the holder.

        >>> Key("0a1b2c3d4e5f", Role.REVIEWER, None, "Ann", 0.0, None, None, None, None).actor
        '0a1b2c3d4e5f/reviewer'
        """
        return f"{self.prefix}/{self.role.value}"

    def valid(self, now: float) -> bool:
        """Whether it is neither revoked nor expired."""
        return self.revoked is None and (self.expires is None or now < self.expires)

    def require(self, permission: Permission, gallery: str | None = None) -> None:
        """An error where the key does not allow something, or not in this gallery; None is the service as a whole."""
        self.role.require(permission)
        if self.gallery is not None and gallery != self.gallery:
            what = "the service as a whole" if gallery is None else f"gallery {gallery!r}"
            raise NotPermittedError(f"this key is for gallery {self.gallery!r}, not for {what}; use another key")


@dataclass(frozen=True)
class NewKey:
    """A key that was just made; ``text`` is shown now and never again."""

    text: str = field(repr=False)
    key: Key


class Keys:
    """The keys in a ledger. Every check reads them anew, so that a revocation holds at the next request of every process.

    >>> with Database.of_gallery(":memory:") as database:
    ...     keys = Keys(database)
    ...     made = keys.create(Role.OPERATOR, holder="door camera")
    ...     keys.check(made.text).holder
    'door camera'
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        by_prefix = sql.select(KEYS).where(KEYS.c.prefix == sql.bindparam("prefix"))
        self._by_prefix = Statement(database.engine, by_prefix)

    @property
    def on_server(self) -> bool:
        """Whether a check waits for a server; in a file it takes microseconds."""
        return self._database.on_server

    def create(
        self,
        role: Role,
        *,
        gallery: str | None = None,
        holder: str | None = None,
        expires: float | None = None,
        by: str | None = None,
        now: float | None = None,
    ) -> NewKey:
        """Make a key; ``expires`` is a time in seconds since 1970."""
        time = clock.time() if now is None else now
        if expires is not None and not expires > time:
            raise InvalidParameterError(f"expires must lie in the future, got {expires!r}; give a later time or none")
        if holder is not None and not 0 < len(holder) <= LONGEST_HOLDER:
            raise InvalidParameterError(f"holder must have 1 to {LONGEST_HOLDER} characters, got {len(holder)}")
        made = _new_key(role, gallery, holder, time, by, expires, None)
        self._database.writing(lambda connection: _insert(connection, made))
        return made

    def first(self, *, now: float | None = None) -> NewKey | None:
        """The first key of a ledger, an admin's; None where there are keys already, whichever process made them."""
        made = _new_key(Role.ADMIN, None, "first key", clock.time() if now is None else now, None, None, None)

        def insert(connection: sql.Connection) -> NewKey | None:
            if connection.execute(sql.select(KEYS.c.prefix).limit(1)).first() is not None:
                return None
            _insert(connection, made)
            return made

        return self._database.writing(insert)

    def check(self, text: str, *, now: float | None = None) -> Key:
        """The key of a text, compared in constant time; an error where there is none, or it is no longer valid."""
        form = _FORM.fullmatch(text)
        found = self._find(form[1]) if form else None
        digest = found["sha256"] if found is not None else _NOBODYS
        same = hmac.compare_digest(digest, _sha256(text))
        if found is None or not same:
            raise InvalidKeyError("the key is not valid; ask an admin of this service for one")
        key = _key(found)
        if not key.valid(clock.time() if now is None else now):
            raise InvalidKeyError("the key is not valid; ask an admin of this service for one")
        return key

    def get(self, prefix: str) -> Key:
        """The key with a prefix."""
        found = self._find(prefix)
        if found is None:
            raise _unknown(prefix)
        return _key(found)

    def all(self) -> list[Key]:
        """Every key that was ever made, oldest first: the log names holders by prefix."""
        with self._database.reading() as connection:
            rows = connection.execute(sql.select(KEYS).order_by(KEYS.c.created, KEYS.c.prefix))
            return [_key(row) for row in rows.mappings()]

    def rotate(self, prefix: str, *, overlap: float = 0.0, by: str | None = None, now: float | None = None) -> NewKey:
        """A new key in place of one that stays valid for ``overlap`` seconds; it expires when the old one would have."""
        time = clock.time() if now is None else now
        if not 0 <= overlap < float("inf"):
            raise InvalidParameterError(f"overlap must be a number of seconds from 0 on, got {overlap!r}")

        def replace(connection: sql.Connection) -> NewKey:
            old = _valid(connection, prefix, time)
            made = _new_key(old.role, old.gallery, old.holder, time, by, old.expires, prefix)
            end = time + overlap if old.expires is None else min(time + overlap, old.expires)
            _insert(connection, made)
            connection.execute(sql.update(KEYS).where(KEYS.c.prefix == prefix).values(expires=end))
            return made

        return self._database.writing(replace)

    def revoke(self, prefix: str, *, now: float | None = None) -> Key:
        """The key is not valid any more, from the next request on; the last admin's key cannot be revoked."""
        time = clock.time() if now is None else now

        def revoke(connection: sql.Connection) -> Key:
            old = _valid(connection, prefix, time)
            of_admins = connection.execute(sql.select(KEYS).where(KEYS.c.role == Role.ADMIN.value))
            admins = [_key(row) for row in of_admins.mappings()]
            lasting = [key for key in admins if key.valid(time) and key.expires is None and key.gallery is None]
            if lasting == [old]:
                raise ConflictError(
                    f"{prefix} is the last admin's key that does not expire, and nobody could make keys without it; make "
                    "another admin's key first, or rotate it"
                )
            connection.execute(sql.update(KEYS).where(KEYS.c.prefix == prefix).values(revoked=time))
            return _read(connection, prefix)

        return self._database.writing(revoke)

    def _find(self, prefix: str) -> Mapping[str, Any] | None:
        return self._database.one(self._by_prefix, {"prefix": prefix})


def same_holder(connection: sql.Connection, actor: str) -> list[str]:
    """The actors of a key, of those it replaces and of those that replace it: rotating a key makes nobody a second person."""
    prefix, _, role = actor.partition("/")
    replaces = dict(connection.execute(sql.select(KEYS.c.prefix, KEYS.c.replaces).where(KEYS.c.role == role)).all())
    followers = {old: new for new, old in replaces.items() if old is not None}
    found = [prefix]
    while (older := replaces.get(found[0])) is not None:
        found.insert(0, older)
    while (newer := followers.get(found[-1])) is not None:
        found.append(newer)
    return [f"{one}/{role}" for one in found]


def _new_key(
    role: Role, gallery: str | None, holder: str | None, created: float, by: str | None, expires: float | None,
    replaces: str | None,
) -> NewKey:  # fmt: skip
    prefix = secrets.token_hex(6)
    key = Key(prefix, role, gallery, holder, created, by, expires, None, replaces)
    return NewKey(f"hk_{prefix}_{secrets.token_hex(32)}", key)


def _insert(connection: sql.Connection, made: NewKey) -> None:
    row = {**vars(made.key), "role": made.key.role.value, "sha256": _sha256(made.text)}
    connection.execute(sql.insert(KEYS), [row])


def _read(connection: sql.Connection, prefix: str) -> Key:
    found = connection.execute(sql.select(KEYS).where(KEYS.c.prefix == prefix)).mappings().one_or_none()
    if found is None:
        raise _unknown(prefix)
    return _key(found)


def _valid(connection: sql.Connection, prefix: str, now: float) -> Key:
    key = _read(connection, prefix)
    if not key.valid(now):
        raise ConflictError(f"key {prefix} is expired or revoked already; make a new one")
    return key


def _key(row: Mapping[Any, Any]) -> Key:
    fields = {name: row[name] for name in Key.__dataclass_fields__ if name != "role"}
    return Key(role=Role(row["role"]), **fields)


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _unknown(prefix: str) -> NotFoundError:
    return NotFoundError(f"there is no key with the prefix {prefix!r}; keys are listed by their prefixes")
