"""ETags: what something is now, in a word that changes with it, so that nobody overwrites what they have not seen."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any

from fastapi import Header

from holue.service.http.problems import ProblemError

IfMatch = Annotated[
    str | None, Header(alias="If-Match", description="The ETag that you have seen: another one refuses the change.")
]


def tag_of(content: Any) -> str:
    """The tag of plain values.

    >>> tag_of({"a": 1}) == tag_of({"a": 1}) != tag_of({"a": 2})
    True
    """
    return f'"{hashlib.sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:24]}"'


def check_tag(now: str, given: str | None, what: str) -> None:
    """A problem where the caller has seen another state than there is now; None asks for nothing."""
    if given is None or given.strip() == "*" or now in [tag.strip() for tag in given.split(",")]:
        return
    raise ProblemError(
        412, "changed-meanwhile", f"{what} not as you have seen", field="if-match", rule="the current ETag", value=given,
        way_out="read it again and decide anew", headers={"ETag": now},
    )  # fmt: skip
