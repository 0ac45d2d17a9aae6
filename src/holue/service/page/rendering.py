"""Rendering: templates to pages, with the headers that keep them ours alone."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from holue.service.http.problems import ProblemError

if TYPE_CHECKING:
    import jinja2

    from holue.service.page.visitor import Visitor

HERE = Path(__file__).parent
MESSAGE_COOKIE = "holue_message"
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass(frozen=True)
class Message:
    """What was done, told on the next screen; ``undo`` is where a form goes that takes it back, with its ``fields``."""

    text: str
    kind: str = "good"
    undo: str | None = None
    fields: Sequence[tuple[str, str | int]] = ()


@cache
def templates() -> jinja2.Environment:
    """The templates; everything that is put into them is escaped."""
    import jinja2

    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def render(
    request: Request, template: str, visitor: Visitor | None, *, title: str, gallery: str | None = None, **context: Any
) -> HTMLResponse:
    """A screen; ``gallery`` is the one that it is about."""
    from holue.service.page.screens import screens_for

    message = _taken(request)
    shown = {
        "problem": None, "title": title, "here": request.url.path, "message": message, "visitor": visitor,
        "screens": [] if visitor is None else screens_for(request, visitor, gallery),
        "form_token": _form_token(visitor), "token_field": lambda: _token_field(visitor), "gallery": _numbers(request, gallery),
    }  # fmt: skip
    response = HTMLResponse(templates().get_template(template).render({**shown, **context}))
    if message is not None:
        response.delete_cookie(MESSAGE_COOKIE)
    return response


def error_page(problem: ProblemError) -> HTMLResponse:
    """What went wrong, and a way out."""
    way_out = problem.errors[0].way_out if problem.errors else None
    rendered = templates().get_template("error.html.jinja").render(
        title="Not done", detail=problem.detail, way_out=way_out, screens=[], visitor=None, message=None, gallery=None,
        form_token=None, here="",
    )  # fmt: skip
    headers = {name: value for name, value in (problem.headers or {}).items() if name != "WWW-Authenticate"}
    return HTMLResponse(rendered, problem.status, headers=headers)


def redirect(address: str, message: Message | None = None) -> Response:
    """To another screen, with a message to show there."""
    response = RedirectResponse(address, 303)
    if message is not None:
        text = base64.urlsafe_b64encode(json.dumps(asdict(message)).encode()).decode()
        response.set_cookie(MESSAGE_COOKIE, text, max_age=60, httponly=True, samesite="strict")
    return response


def secured(response: Response) -> Response:
    """The same answer with the headers of a page."""
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
    return response


def day(time: float | None) -> str | None:
    """A time as a date, UTC."""
    return None if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d")


def moment(time: float) -> str:
    """A time as date and time, UTC."""
    return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _taken(request: Request) -> Message | None:
    text = request.cookies.get(MESSAGE_COOKIE)
    if not text:
        return None
    try:
        return Message(**json.loads(base64.urlsafe_b64decode(text)))
    except (ValueError, TypeError):
        return None


def _form_token(visitor: Visitor | None) -> str:
    return "" if visitor is None or visitor.session is None else visitor.session.form_token


def _token_field(visitor: Visitor | None) -> Markup:
    return Markup('<input type="hidden" name="form_token" value="{}">').format(_form_token(visitor))


def _numbers(request: Request, gallery: str | None) -> dict[str, Any] | None:
    if gallery is None:
        return None
    current = request.app.state.service.galleries.get(gallery).live.current
    return {"name": gallery, "version": current.version, "subjects": len(current)}
