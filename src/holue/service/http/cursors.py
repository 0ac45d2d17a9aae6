"""Cursors: where the next page of a list begins, as an opaque text."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

from fastapi import Query

from holue.service.http.problems import ProblemError, shown

Cursor = Annotated[str | None, Query(max_length=100, description="`next` of the page before; the first page without.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="The most entries of a page.")]


def encode(number: int) -> str:
    """The cursor after an entry.

    >>> decode(encode(41))
    41
    """
    return base64.urlsafe_b64encode(str(number).encode()).decode().rstrip("=")


def decode(cursor: str | None) -> int:
    """The entry that a cursor comes after; 0 where there is none."""
    if cursor is None:
        return 0
    try:
        text = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")
        if text.isdecimal() and len(text) <= 18:
            return int(text)
    except (ValueError, binascii.Error):
        pass
    raise ProblemError(
        422, "invalid-cursor", f"{shown(cursor)!r} is no cursor", field="cursor", rule="`next` of the page before",
        value=cursor, way_out="start without a cursor",
    )  # fmt: skip
