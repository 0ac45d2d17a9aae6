"""Try it: the demo's screen for drawing, choosing, morphing and spoiling a character."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from holue.service.http.problems import not_found
from holue.service.page.rendering import render
from holue.service.page.try_it import TryIt, TryRequest
from holue.service.page.visitor import PageRoute, Visiting, Visitor
from holue.service.roles import Permission
from holue.service.service import service_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/try")
def try_screen(request: Request, visitor: Visiting) -> Response:
    """The screen."""
    shown = _try_it(request, visitor)
    between = next(each.request for each in shown.examples if each.request["kind"] == "morph")
    return render(
        request, "try.html.jinja", visitor, title="Try it", gallery=shown.gallery, enrolled=shown.playground.enrolled,
        strangers=shown.playground.strangers, examples=shown.examples, pair=(between["first"], between["second"]),
    )  # fmt: skip


@router.post("/try/answer")
async def try_answer(request: Request, visitor: Visiting, body: TryRequest) -> Response:
    """What the gallery believes about a picture."""
    return JSONResponse(await run_in_threadpool(_try_it(request, visitor).answer, body))


def _try_it(request: Request, visitor: Visitor) -> TryIt:
    found = service_of(request).try_it
    if found is None:
        raise not_found("screen", "/try", "it comes with holue serve --demo")
    visitor.asker.require(Permission.IDENTIFY, found.gallery)
    return found
