"""Problems: what went wrong, as RFC 9457 documents that name the field, the rule, the value and a way out."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.responses import Response

from holue import errors as tree
from holue.recognition.risk.certificate import CannotCertifyError
from holue.service.http.logs import current_request_id

logger = logging.getLogger(__name__)

MEDIA_TYPE = "application/problem+json"
URN = "urn:holue:problem:"
SHOWN = 80
"""Characters of a value that a problem repeats; longer ones and arrays are described, since they may be embeddings."""
RETRY_SECONDS = 1
CHALLENGE = 'Bearer realm="holue"'


class ErrorDetail(BaseModel):
    """One rule that was broken."""

    field: str | None = Field(description="The field that breaks the rule.", examples=["probes.0"])
    rule: str = Field(description="The rule.", examples=["an embedding has 128 numbers"])
    value: Any = Field(default=None, description="The value that was given, where it is short.", examples=[127])
    way_out: str | None = Field(
        default=None, description="What to do instead.", examples=["embed with the gallery's model"]
    )


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    type: str = Field(description="Which kind of problem, a URN.", examples=["urn:holue:problem:invalid-embeddings"])
    title: str = Field(description="The kind of problem in words.", examples=["Invalid embeddings"])
    status: int = Field(description="The HTTP status.", examples=[422])
    detail: str = Field(description="What happened.", examples=["row 0 is zero and has no direction"])
    instance: str = Field(description="This occurrence: the request's id.", examples=["urn:holue:request:0198c2d4a7b1"])
    errors: list[ErrorDetail] = Field(description="The rules that were broken.", examples=[[]])
    needed_without_error: int | None = Field(
        default=None,
        description="Of cannot-certify: the fewest automatic decisions that could certify the target, all of them right.",
        examples=[59],
    )
    needed_probes: int | None = Field(
        default=None,
        description="Of cannot-certify: about how many labelled probes would do at the rates seen; null where no number would.",
        examples=[400],
    )
    more_probes: int | None = Field(
        default=None, description="Of cannot-certify: how many more than were given.", examples=[120]
    )


class ProblemError(HTTPException):
    """Raised where a request cannot be answered; becomes a problem document."""

    def __init__(
        self,
        status: int,
        kind: str,
        detail: str,
        *,
        field: str | None = None,
        rule: str | None = None,
        value: Any = None,
        way_out: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, detail, headers)
        self.status, self.kind = status, kind
        self.more: dict[str, Any] = {}  # further members of the document
        self.errors = [ErrorDetail(field=field, rule=rule or detail, value=value, way_out=way_out)]

    def __str__(self) -> str:
        return self.detail


def not_found(what: str, value: Any, way_out: str, *, field: str | None = None) -> ProblemError:
    """Nothing has this name."""
    return ProblemError(
        404,
        "not-found",
        f"there is no {what} {shown(value)!r}",
        field=field or what,
        value=shown(value),
        way_out=way_out,
    )


def overloaded(detail: str, way_out: str, seconds: int = RETRY_SECONDS) -> ProblemError:
    """The service has too much to do; asking again later may work."""
    return ProblemError(503, "overloaded", detail, way_out=way_out, headers={"Retry-After": str(seconds)})


STATUS: Mapping[type[tree.HolueError], tuple[int, str, str | None]] = {
    tree.InvalidEmbeddingsError: (422, "invalid-embeddings", "embeddings"),
    tree.InvalidConcentrationError: (422, "invalid-concentration", "concentration"),
    tree.InvalidSubjectsError: (422, "invalid-subjects", "subjects"),
    tree.InvalidParameterError: (422, "invalid-parameter", None),
    tree.GalleryTooSmallError: (409, "gallery-too-small", "gallery"),
    tree.CalibrationDataError: (422, "calibration-data", "probes"),
    CannotCertifyError: (422, "cannot-certify", "probes"),
    tree.UnreachableThresholdError: (422, "unreachable-threshold", "threshold"),
    tree.InvalidFileError: (422, "invalid-file", "file"),
    tree.InvalidInputError: (422, "invalid-input", None),
    tree.NotFoundError: (404, "not-found", None),
    tree.ConflictError: (409, "conflict", None),
    tree.InvalidKeyError: (401, "invalid-key", "x-api-key"),
    tree.TooManyWrongKeysError: (429, "too-many-wrong-keys", "x-api-key"),
    tree.NotPermittedError: (403, "not-permitted", "x-api-key"),
    tree.AccessError: (403, "not-permitted", "x-api-key"),
    tree.NotReadyError: (409, "not-calibrated", "gallery"),
    tree.ArtifactError: (500, "damaged-artifact", None),
    tree.CannotWriteError: (507, "cannot-write", None),
    tree.StoreLockedError: (503, "store-locked", None),
    tree.StoreUnavailableError: (503, "store-unavailable", None),
    tree.CorruptStoreError: (500, "damaged-store", None),
    tree.ErasureIncompleteError: (500, "erasure-incomplete", None),
    tree.StoreError: (500, "store-failed", None),
    tree.TrainingDivergedError: (422, "training-diverged", None),
    tree.MissingDependencyError: (501, "not-installed", None),
    tree.HolueError: (500, "failed", None),
}
"""Every error of holue: its status, its kind, and the field it is about. The nearest class of an error counts."""


def of_error(error: tree.HolueError) -> ProblemError:
    """The problem that an error of holue is.

    >>> problem = of_error(tree.InvalidEmbeddingsError("row 0 is zero and has no direction; embed the sample again"))
    >>> problem.status, problem.errors[0].rule, problem.errors[0].way_out
    (422, 'row 0 is zero and has no direction', 'embed the sample again')
    """
    status, kind, field = next(STATUS[each] for each in type(error).__mro__ if each in STATUS)
    rule, _, way_out = str(error).partition("; ")
    headers = {"Retry-After": str(RETRY_SECONDS)} if status == 503 else {}
    if isinstance(error, tree.TooManyWrongKeysError):
        headers = {"Retry-After": str(math.ceil(error.retry_after))}
    elif status == 401:
        headers = {"WWW-Authenticate": CHALLENGE}
    problem = ProblemError(status, kind, str(error), field=field, rule=rule, way_out=way_out or None, headers=headers)
    if isinstance(error, CannotCertifyError):
        problem.more = {name: getattr(error, name) for name in CannotCertifyError.COUNTS}
    return problem


def shown(value: Any) -> Any:
    """A value as a problem repeats it: short ones as they are, others described."""
    if value is None or isinstance(value, bool | int | float):
        return value if not isinstance(value, int) or abs(value) < 2**63 else "a large integer"
    if isinstance(value, str):
        text = value[:SHOWN].encode("utf-8", "backslashreplace").decode()
        return text if len(value) <= SHOWN else f"{text}… ({len(value)} characters)"
    if isinstance(value, Sequence):
        return f"an array of {len(value)}"
    return f"an object of {len(value)} fields" if isinstance(value, Mapping) else type(value).__name__


def response(problem: ProblemError) -> Response:
    """The document, with the headers that belong to it."""
    document = {
        "type": URN + problem.kind,
        "title": problem.kind.replace("-", " ").capitalize(),
        "status": problem.status,
        "detail": problem.detail.encode("utf-8", "backslashreplace").decode(),
        "instance": f"urn:holue:request:{current_request_id()}",
        "errors": [{**error.model_dump(), "value": shown(error.value)} for error in problem.errors],
        **problem.more,
    }
    body = to_json(document, inf_nan_mode="strings", serialize_unknown=True)
    return Response(body, problem.status, headers=problem.headers, media_type=MEDIA_TYPE)


def answer_to(request: Request, error: Exception) -> Response:
    """The problem that an error of a request is answered with; one that is no fault of the request is logged."""
    if isinstance(error, ProblemError):
        return response(error)
    if isinstance(error, RequestValidationError):
        return response(of_validation(error.errors()))
    if isinstance(error, HTTPException):
        return response(_of_status(request, error))
    if not isinstance(error, tree.HolueError):
        raise error
    problem = of_error(error)
    if problem.status >= 500:
        logger.error("request failed", exc_info=error, extra={"problem": problem.kind})
    return response(problem)


def install(app: FastAPI) -> None:
    """Have every error of a request answered with a problem."""

    async def answer(request: Request, error: Exception) -> Response:
        return answer_to(request, error)

    for kind in (ProblemError, tree.HolueError, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, answer)


def unexpected(error: Exception) -> ProblemError:
    """The problem of an error that nobody expected; what it says goes to the log alone."""
    logger.error("request failed unexpectedly", exc_info=error)
    return ProblemError(
        500, "internal", "the service failed; this is a fault of holue's",
        way_out="report it with the request's id and the lines of the log that carry it",
    )  # fmt: skip


def of_validation(found: Sequence[Any]) -> ProblemError:
    """The problem of a body or parameters that break the schema; the first hundred rules that are broken."""
    first = found[0]
    problem = ProblemError(
        422, "invalid-request", f"{_field(first)}: {first['msg']}", way_out="compare with /openapi.json"
    )
    problem.errors = [
        ErrorDetail(
            field=_field(each), rule=each["msg"], value=shown(each.get("input")), way_out="compare with /openapi.json"
        )
        for each in found[:100]
    ]
    return problem


def _field(found: Any) -> str:
    return ".".join(str(part) for part in found["loc"]) or "body"


def _of_status(request: Request, error: HTTPException) -> ProblemError:
    way_out = {404: "the routes are listed in /openapi.json", 405: "the route's methods are in the header Allow"}
    details = {
        404: f"there is no route {request.method} {shown(request.url.path)}",
        405: f"{request.method} is not a method of {shown(request.url.path)}",
    }
    headers = {name: value for name, value in (error.headers or {}).items() if name.lower() != "allow"}
    if error.status_code == 405:  # the router names the methods of the first route with this path alone
        headers["Allow"] = ", ".join(sorted(request.app.state.methods_of(request.scope["path"])))
    kind = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    return ProblemError(
        error.status_code, kind, details.get(error.status_code, str(error.detail)),
        way_out=way_out.get(error.status_code), headers=headers,
    )  # fmt: skip
