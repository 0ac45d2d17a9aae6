"""App: the service as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from holue.service.http import problems
from holue.service.http.access import permission_of
from holue.service.http.bodies import is_without_query
from holue.service.http.limits import RequestLimits
from holue.service.http.logs import RequestLog
from holue.service.http.metrics import RequestMetrics
from holue.service.http.paths import EncodedPath
from holue.service.http.repeats import PARAMETER, changes_something
from holue.service.http.shortcut import Shortcut
from holue.service.page import page
from holue.service.routes import (
    calibrations,
    clusters,
    erasures,
    galleries,
    health,
    identify,
    keys,
    operations,
    reviews,
    samples,
    strangers,
    subjects,
    upkeep,
)
from holue.service.routes.common import PROBLEMS
from holue.service.schemas.answers import IdentifyBody
from holue.service.service import Service
from holue.service.settings import ServiceSettings

ABOUT = """Open-set recognition over HTTP: who is shown, or nobody enrolled, and how far to trust the answer.

Send a key in the header `x-api-key`, or as `Authorization: Bearer KEY`. Errors are problem documents (RFC 9457) that name the
field, the rule, the value and a way out. An answer is a lead, never proof."""
ROUTERS = (
    health,
    galleries,
    clusters,
    identify,
    subjects,
    samples,
    calibrations,
    operations,
    erasures,
    upkeep,
    reviews,
    strangers,
    keys,
)


def create_app(
    settings: ServiceSettings | None = None, *, service: Service | None = None, close: bool = False
) -> FastAPI:
    """The application; it opens its galleries when it starts, unless it is given a service that is open already.

    With ``close`` it closes that service when it stops.

    >>> import tempfile
    >>> app = create_app(ServiceSettings(galleries=tempfile.mkdtemp()))
    >>> "/v1/galleries/{gallery}/identify" in app.openapi()["paths"]
    True
    """
    if service is None:
        assert settings is not None, "create_app needs settings or a service"
        running, own = Service(settings), True
    else:
        running, own = service, False

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        if own:
            running.open()
        yield
        if own or close:
            running.close()

    app = FastAPI(
        title="holue",
        version=version("holue"),
        description=ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        separate_input_output_schemas=False,
    )
    app.state.service = running
    app.state.methods_of = _methods_of
    problems.install(app)
    for each in ROUTERS:
        app.include_router(each.router, responses=PROBLEMS)
    page.install(app)
    app.add_middleware(Shortcut, routes=[route for route in _routes() if is_without_query(route)])
    app.add_middleware(EncodedPath)
    app.add_middleware(RequestLimits, limits=running.settings.limits)
    app.add_middleware(RequestMetrics, metrics=running.metrics)
    app.add_middleware(RequestLog)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def _methods_of(path: str) -> set[str]:
    """The methods of all routes with a path."""
    return {method for route in _routes() if route.path_regex.match(path) for method in route.methods or ()}


def _routes() -> list[APIRoute]:
    return [route for each in ROUTERS for route in each.router.routes if isinstance(route, APIRoute)]


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, with the schemas that no route names by itself."""
    if app.openapi_schema is None:
        made = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
        schemas = made.setdefault("components", {}).setdefault("schemas", {})
        for model in (problems.Problem, IdentifyBody):
            described = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= described.pop("$defs", {})
            schemas[model.__name__] = described
        for route in _routes():
            if changes_something(min(route.methods or [""]), permission_of(route)):
                made["paths"][route.path_format]["post"].setdefault("parameters", []).append(PARAMETER)
        app.openapi_schema = made
    return app.openapi_schema
