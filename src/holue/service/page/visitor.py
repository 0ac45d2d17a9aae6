"""Visitor: who looks at the page, what they may do there, and whether a form comes from our own page."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

from fastapi import Depends
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from holue.errors import HolueError
from holue.service.http.access import Asker
from holue.service.http.problems import ProblemError, of_error, of_validation, unexpected
from holue.service.http.problems import response as problem_document
from holue.service.ledger.sessions import Session
from holue.service.page.rendering import error_page, secured
from holue.service.roles import Permission
from holue.service.service import service_of

COOKIE = "holue_session"
FORM_TOKEN, HEADER_TOKEN = "form_token", "x-form-token"


@dataclass(frozen=True)
class Visitor:
    """Somebody at the page; without a session only where keys are switched off."""

    asker: Asker
    session: Session | None

    def may(self, permission: Permission, gallery: str | None) -> bool:
        """Whether a permission is theirs in a gallery, or in the service as a whole."""
        try:
            self.asker.require(permission, gallery)
        except HolueError:
            return False
        return True

    @property
    def role(self) -> str:
        """Their role in a word."""
        return "everything allowed" if self.asker.key is None else self.asker.key.role.value


class SignInError(Exception):
    """Nobody is signed in, and the screen needs somebody."""


async def visitor_of(request: Request) -> Visitor:
    """Who sends a request; a form, or a question of a script, must come from our own page."""
    service = service_of(request)
    session = None
    if service.access.keys is not None:
        token = request.cookies.get(COOKIE)
        session = await run_in_threadpool(service.sessions.find, token) if token else None
        if session is None:
            raise SignInError
    if request.method not in ("GET", "HEAD"):
        await check_origin(request)
        if session is not None and not session.sent(await _sent_token(request)):
            raise ProblemError(
                403, "foreign-form", "the form does not come from this page, or the session has changed",
                way_out="open the screen again and send it once more",
            )  # fmt: skip
    return Visitor(Asker(None if session is None else session.key), session)


Visiting = Annotated[Visitor, Depends(visitor_of)]


async def check_origin(request: Request) -> None:
    """A problem where a browser says that another site sends this."""
    origin, fetched = request.headers.get("origin"), request.headers.get("sec-fetch-site", "same-origin")
    own = origin is None or origin == "null" or urlsplit(origin).netloc == request.headers.get("host")
    if fetched not in ("same-origin", "none") or not own:
        raise ProblemError(403, "foreign-form", "the form comes from another site", way_out="use this page's own form")


async def _sent_token(request: Request) -> str | None:
    given = request.headers.get(HEADER_TOKEN)
    if given is not None:
        return given
    kind = request.headers.get("content-type", "")
    if not kind.startswith(("application/x-www-form-urlencoded", "multipart/form-data")):
        return None
    form = await request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS)
    token = form.get(FORM_TOKEN)
    return token if isinstance(token, str) else None


MOST_FILES, MOST_FIELDS = 1000, 2000


class PageRoute(APIRoute):
    """A route whose errors are pages: signing in where that is missing, else what went wrong in words."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, with every answer secured."""
        handler = super().get_route_handler()

        async def answered(request: Request) -> Response:
            try:
                response = await handler(request)
            except SignInError:
                response = _to_sign_in(request)
            except RequestValidationError as error:
                response = _failed(request, of_validation(error.errors()))
            except ProblemError as error:
                response = _failed(request, error)
            except HolueError as error:
                response = _failed(request, of_error(error))
            except HTTPException as error:
                response = _failed(request, ProblemError(error.status_code, "failed", str(error.detail)))
            except Exception as error:
                response = _failed(request, unexpected(error))
            return secured(response)

        return answered


def _to_sign_in(request: Request) -> Response:
    if request.headers.get(HEADER_TOKEN) is not None:  # a script asks; it opens the screen itself
        return Response(status_code=401)
    back = request.url.path if request.method == "GET" else "/"
    return RedirectResponse(f"/sign-in?next={quote(back)}", 303)


def _failed(request: Request, problem: ProblemError) -> Response:
    if request.headers.get(HEADER_TOKEN) is not None:
        return problem_document(problem)
    return error_page(problem)
