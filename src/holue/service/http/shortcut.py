"""Shortcut: the routes that are asked most, found before the list of all routes is gone through."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from holue.errors import HolueError
from holue.service.http.problems import answer_to


class Shortcut:
    """Hands a request without a query for one of some routes to the route's own handler; all others go on.

    Finding a route among all, and the layers around it, cost as much as the rest of a short request.
    """

    def __init__(self, app: ASGIApp, routes: Sequence[APIRoute]) -> None:
        self._app = app
        self._routes = [(route, route.methods or set(), route.get_route_handler()) for route in routes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] == "http" and not scope["query_string"]:
            for route, methods, handler in self._routes:
                found = route.path_regex.match(scope["path"]) if scope["method"] in methods else None
                if found is not None:
                    given = {
                        name: route.param_convertors[name].convert(text) for name, text in found.groupdict().items()
                    }
                    scope.update(route=route, endpoint=route.endpoint, path_params=given)
                    request = Request(scope, receive, send)
                    try:
                        answer = await handler(request)
                    except (HTTPException, HolueError) as error:
                        answer = answer_to(request, error)
                    await answer(scope, receive, send)
                    return
        await self._app(scope, receive, send)
