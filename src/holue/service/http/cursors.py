"""Cursors: where the next page of a list begins, as an opaque text."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeVar

from fastapi import Query

from holue.service.http.problems import ProblemError, shown

T = TypeVar("T")
Cursor = Annotated[str | None, Query(max_length=100, description="`next` of the page before; the first page without.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="The most entries of a page.")]


def encode(number: int) -> str:
    """The cursor after an entry.

    >>> decode(encode(41))
    41
    """
    return _encoded(str(number))


def decode(cursor: str | None) -> int:
    """The entry that a cursor comes after; 0 where there is none."""
    if cursor is None:
        return 0
    try:
        text = _decoded(cursor)
        if text.isdecimal() and len(text) <= 18:
            return int(text)
    except (ValueError, binascii.Error):
        pass
    raise _invalid(cursor)


def page(
    entries: Iterable[T], cursor: str | None, limit: int, place: Callable[[T], tuple[Any, ...]]
) -> tuple[list[T], str | None]:
    """The first entries after a cursor in the order of their places, and the cursor of the next page.

    >>> names, following = page(["cay", "ann", "bob"], None, 2, lambda name: (name,))
    >>> names, page(["cay", "bea"], following, 2, lambda name: (name,))
    (['ann', 'bob'], (['cay'], None))
    """
    ordered = sorted(entries, key=place)
    if cursor is not None:
        try:
            after = json.loads(_decoded(cursor))
        except (ValueError, binascii.Error):
            raise _invalid(cursor) from None
        if not isinstance(after, list) or (ordered and _kinds(after) != _kinds(place(ordered[0]))):
            raise _invalid(cursor)
        ordered = [entry for entry in ordered if place(entry) > tuple(after)]
    following = _encoded(json.dumps(place(ordered[limit - 1]))) if len(ordered) > limit else None
    return ordered[:limit], following


def _kinds(values: Iterable[Any]) -> list[type]:
    return [type(value) for value in values]


def _encoded(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(cursor: str) -> str:
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("ascii")


def _invalid(cursor: str) -> ProblemError:
    return ProblemError(
        422, "invalid-cursor", f"{shown(cursor)!r} is no cursor", field="cursor", rule="`next` of the page before",
        value=cursor, way_out="start without a cursor",
    )  # fmt: skip
