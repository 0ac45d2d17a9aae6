"""Log: who asked what, newest first, and whether every row is as it was written."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from holue.service.http.paths import GalleryName
from holue.service.page.rendering import moment, render
from holue.service.page.screens import address_of
from holue.service.page.visitor import PageRoute, Visiting
from holue.service.roles import Permission
from holue.service.service import service_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)
A_PAGE = 50


@router.get("/galleries/{gallery:segment}/log")
def log(
    request: Request, visitor: Visiting, gallery: GalleryName, before: Annotated[int | None, Query(ge=1)] = None
) -> Response:
    """A page of the log of a gallery."""
    visitor.asker.require(Permission.READ_LOG, gallery)
    found = service_of(request).galleries.get(gallery).log
    head = found.head().sequence
    last = head if before is None else min(before - 1, head)
    rows = list(found.entries(max(0, last - A_PAGE), limit=min(A_PAGE, last)))[::-1]
    wrong = found.verify() if before is None else None  # it reads the whole log: only on the first page
    here = address_of(gallery, "log")
    return render(
        request, "log.html.jinja", visitor, title="Log", gallery=gallery, intact=not wrong,
        intact_text=None if wrong is None else "; ".join(str(each) for each in wrong[:5]) or _intact(head),
        rows=[
            {
                "sequence": row.sequence, "time": moment(row.started), "actor": row.actor, "action": row.action,
                "decision": row.decision, "version": row.gallery_version, "request_id": row.request_id,
            }
            for row in rows
        ],
        first=here if before is not None else None,
        next=f"{here}?before={rows[-1].sequence}" if rows and rows[-1].sequence > 1 else None,
    )  # fmt: skip


def _intact(rows: int) -> str:
    if not rows:
        return "Nothing was asked or changed yet."
    return "The only row is as it was written." if rows == 1 else f"All {rows} rows are as they were written."
