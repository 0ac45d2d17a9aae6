"""Address: which gallery of which database a ``postgresql://`` URL names."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlencode

from holue.errors import InvalidParameterError

SCHEMES = ("postgresql://", "postgres://")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,39}")


@dataclass(frozen=True)
class Address:
    """A database, as libpq takes it, and the gallery in it; with ``snapshot`` one of the gallery's snapshots.

    With ``keep_copy`` the local copy stays on this machine's disk when the store is closed.

    >>> Address.parse("postgresql://ann@db.example/faces?sslmode=require&gallery=door&copy=keep")
    Address(gallery='door', snapshot=None, keep_copy=True)
    """

    database: str = field(repr=False)  # may hold a password
    gallery: str
    snapshot: str | None = None
    keep_copy: bool = False

    @classmethod
    def parse(cls, url: str) -> Address:
        """Take a URL apart; ``gallery``, ``snapshot`` and ``copy`` are ours, the rest belongs to libpq."""
        if not url.startswith(SCHEMES):
            raise InvalidParameterError(
                "the URL of a gallery in PostgreSQL begins with postgresql://, for instance "
                "postgresql://user@host/database?gallery=door"
            )
        base, _, query = url.partition("?")
        fields = parse_qsl(query, keep_blank_values=True)
        ours = {key: value for key, value in fields if key in ("gallery", "snapshot", "copy")}
        rest = urlencode([(key, value) for key, value in fields if key not in ours])
        if "gallery" not in ours:
            raise InvalidParameterError(
                "the URL names no gallery; add gallery=NAME to its query, for instance ?gallery=door"
            )
        copy = ours.pop("copy", None)
        if copy not in (None, "keep"):
            raise InvalidParameterError(f"copy in the URL of a gallery is keep, or left out, got {copy!r}")
        for key, value in ours.items():
            if not _NAME.fullmatch(value):
                raise InvalidParameterError(
                    f"{key} is up to 40 letters, digits, dots, dashes and underscores, got {value!r}; choose another name"
                )
        return cls(f"{base}?{rest}" if rest else base, ours["gallery"], ours.get("snapshot"), copy == "keep")

    @property
    def schema(self) -> str:
        """The schema that holds the gallery's tables."""
        return f"holue_{self.gallery}"

    @property
    def service_schema(self) -> str:
        """The schema in which a service keeps what is its own; the name of a gallery has no @."""
        return f"{self.schema}@service"

    @property
    def channel(self) -> str:
        """The channel on which writers tell of a change."""
        return f"holue_{self.gallery}"

    def snapshot_url(self, name: str) -> str:
        """The URL of a snapshot of this gallery."""
        joint = "&" if "?" in self.database else "?"
        return f"{self.database}{joint}{urlencode({'gallery': self.gallery, 'snapshot': name})}"
