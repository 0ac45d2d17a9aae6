"""Bodies: JSON read strictly, before any schema looks at it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, TypeVar

from fastapi.routing import APIRoute
from pydantic_core import from_json
from starlette.requests import Request
from starlette.responses import Response

from holue.service.http.access import permission_of
from holue.service.http.problems import ProblemError
from holue.service.http.repeats import ONLY_READS, changes_something, once

E = TypeVar("E", bound=Callable[..., Any])
DEPTH = 32
"""Arrays and objects inside each other."""
_LARGE_EXPONENT = re.compile(rb"[eE]\+?[0-9]{3}")


def read_json(body: bytes) -> Any:
    """The value of a JSON text; NaN, infinities and deep nesting are refused.

    >>> read_json(b'{"a": [1.5]}')
    {'a': [1.5]}
    >>> read_json(b"[" * 100_000)
    Traceback (most recent call last):
    ...
    holue.service.http.problems.ProblemError: the body is not JSON: it is nested more than 32 deep
    """
    try:
        value = from_json(body, allow_inf_nan=False, cache_strings=False)
    except ValueError as error:
        deep = "recursion limit" in str(error)
        raise _not_json(f"it is nested more than {DEPTH} deep" if deep else str(error)) from None
    if body.count(b"[") + body.count(b"{") > DEPTH and _depth(value) > DEPTH:
        raise _not_json(f"it is nested more than {DEPTH} deep")
    if _LARGE_EXPONENT.search(body) and not all(map(math.isfinite, _floats(value))):
        raise _not_json("it holds a number beyond float64")
    return value


def _floats(value: Any) -> Iterator[float]:
    if isinstance(value, float):
        yield value
    elif isinstance(value, list | dict):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _floats(child)


def _depth(value: Any) -> int:
    """How deep a value is nested; the parser has made sure that it is not deep enough to harm."""
    below: list[Any] = [value]
    depth = 0
    while below and depth <= DEPTH:
        depth += any(isinstance(each, list | dict) for each in below)
        below = [
            child
            for each in below
            if isinstance(each, list | dict)
            for child in (each.values() if isinstance(each, dict) else each)
            if isinstance(child, list | dict)
        ]
    return depth


def _not_json(why: str) -> ProblemError:
    return ProblemError(
        400, "not-json", f"the body is not JSON: {why}", field="body", rule="strict JSON (RFC 8259), no NaN, no infinity",
        way_out="encode it with a JSON library; send large arrays as .npy or raw float32",
    )  # fmt: skip


class StrictRequest(Request):
    """A request whose JSON is read strictly."""

    async def json(self) -> Any:
        """The body's value."""
        return read_json(await self.body())


def without_query(endpoint: E) -> E:
    """Marks an endpoint of request, gallery and asker that changes nothing, whose other parameters come from the query.

    Where there is no query it is called as it is: resolving its parameters would cost more than most of what it does.
    """
    endpoint.without_query = True  # type: ignore[attr-defined]
    return endpoint


def is_without_query(route: Any) -> bool:
    """Whether a route's endpoint is marked so."""
    return getattr(getattr(route, "endpoint", None), "without_query", False)


class StrictRoute(APIRoute):
    """A route that checks the key before it reads the body, reads JSON strictly, and carries repeated changes out once."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, given a strict request of somebody who may ask."""
        handler, permission = super().get_route_handler(), permission_of(self)
        endpoint, plain = self.endpoint, is_without_query(self)

        async def strict(request: Request) -> Response:
            given = StrictRequest(request.scope, request.receive)
            if permission is None:
                return await handler(given)
            service = request.app.state.service
            request.state.asker = await service.access.asker(request, permission)
            if request.method != "GET" and permission not in ONLY_READS and "gallery" in request.path_params:
                service.galleries.writable(request.path_params["gallery"])
            if plain and not request.scope["query_string"]:
                response: Response = await endpoint(given, request.path_params["gallery"], request.state.asker)
                return response
            if not changes_something(request.method, permission):
                return await handler(given)
            gallery = request.path_params.get("gallery")
            return await once(given, service.answers_of(gallery), permission, handler)

        return strict
