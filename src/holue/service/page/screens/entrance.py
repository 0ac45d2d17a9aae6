"""Entrance: signing in and out, and the first screen."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query
from starlette.requests import Request
from starlette.responses import Response

from holue.errors import InvalidKeyError
from holue.service.page.rendering import redirect, render
from holue.service.page.screens import address_of, screens_for
from holue.service.page.visitor import COOKIE, PageRoute, Visiting, check_origin
from holue.service.service import service_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)


@router.get("/")
def first_screen(request: Request, visitor: Visiting) -> Response:
    """The first screen that the visitor may open."""
    return redirect(
        screens_for(request, visitor, None)[0].address if screens_for(request, visitor, None) else "/galleries"
    )


@router.get("/galleries")
def galleries(request: Request, visitor: Visiting) -> Response:
    """The galleries that the visitor may see."""
    seen = [each for each in service_of(request).galleries if visitor.asker.may_see(each.name)]
    listed = [
        {"name": each.name, "address": address_of(each.name, "subjects"), "subjects": len(each.live.current)}
        for each in seen
    ]
    return render(request, "galleries.html.jinja", visitor, title="Galleries", galleries=listed)


@router.get("/sign-in")
def sign_in_screen(request: Request, next: Annotated[str, Query(max_length=500)] = "/") -> Response:
    """Asks for a key."""
    return render(request, "sign_in.html.jinja", None, title="Sign in", next=_inside(next))


@router.post("/sign-in")
async def sign_in(
    request: Request, key: Annotated[str, Form(max_length=200)], next: Annotated[str, Form(max_length=500)] = "/"
) -> Response:
    """A valid key begins a session; wrong ones are slowed down as for the API."""
    await check_origin(request)
    service = service_of(request)
    address = request.client.host if request.client else "unknown"
    try:
        service.access.wrong.check(address)
        token = service.sessions.begin(key.strip())
    except InvalidKeyError as error:
        service.access.wrong.note(address)
        page = render(request, "sign_in.html.jinja", None, title="Sign in", next=_inside(next), problem=str(error))
        page.status_code = 403
        return page
    response = redirect(_inside(next))
    response.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=request.url.scheme == "https", path="/")
    return response


@router.post("/sign-out")
def sign_out(request: Request, visitor: Visiting) -> Response:
    """Ends the session."""
    token = request.cookies.get(COOKIE)
    if token and visitor.session is not None:
        service_of(request).sessions.end(token)
    response = redirect("/sign-in")
    response.delete_cookie(COOKIE)
    return response


def _inside(address: str) -> str:
    """The address, if it is one of this service; else the first screen."""
    return address if address.startswith("/") and not address.startswith(("//", "/\\")) else "/"
