"""Identification and verification: who is shown, and is it who they say."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from holue.service.galleries.answers import answer_documents, verification_document, with_faces
from holue.service.galleries.batching import Answered
from holue.service.galleries.finishing import Finished
from holue.service.galleries.follow_up import keep_for_people
from holue.service.galleries.opened import Opened
from holue.service.galleries.probes import MULTIPART, NPY, RAW, Probes
from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.logs import current_request_id
from holue.service.http.paths import GalleryName
from holue.service.http.problems import ProblemError, not_found
from holue.service.ledger.audit_chain import Event
from holue.service.roles import Permission
from holue.service.routes.common import document
from holue.service.schemas.answers import TOP_K, AnswersDocument, IdentifyBody, VerificationDocument, VerifyBody
from holue.service.service import Service, service_of

router = APIRouter(route_class=StrictRoute, tags=["identification"])

VERIFIED_AMONG = 10
"""Candidates that a verification looks at."""
BINARY: dict[str, Any] = {"schema": {"type": "string", "format": "binary"}}
FACE_FIELD = {
    "type": "string",
    "description": "Which face of a photograph is meant: its number from the left, largest or central; once, or for each file.",
}
FILES: dict[str, Any] = {
    "schema": {
        "type": "object",
        "description": "Images or recordings; the parts of one name are samples of one probe. In whole photographs, where the "
        "service finds faces, each face is a probe.",
        "properties": {"face": FACE_FIELD},
        "additionalProperties": {"type": "string", "format": "binary"},
    }
}
FORMS = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/IdentifyBody"}},
            NPY: BINARY,
            RAW: BINARY,
            MULTIPART: FILES,
        },
    }
}
TopK = Annotated[
    int | None, Query(ge=1, le=10_000, description="Candidates of each answer; for bodies other than JSON.")
]
Last = Annotated[
    Literal["last"] | None,
    Query(description="`last`: each row of a binary body ends with the probe's concentration."),
]
Model = Annotated[
    str | None, Query(max_length=200, description="The fingerprint of the embedding model; for bodies other than JSON.")
]


@router.post(
    "/v1/galleries/{gallery:segment}/identify", responses={200: {"model": AnswersDocument}}, openapi_extra=FORMS
)
async def identify(
    request: Request,
    gallery: GalleryName,
    asker: Annotated[Asker, allowed(Permission.IDENTIFY)],
    top_k: TopK = None,
    concentration: Last = None,
    model: Model = None,
) -> Response:
    """Identify 1 to 4096 probes: who, or nobody enrolled, how far to trust it, and why."""
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    with service.metrics.stages.labels("read").time():
        probes, body = await service.reader.read(
            request, opened.live.dim, opened.live.model, IdentifyBody, last=concentration == "last"
        )
    given = body if isinstance(body, IdentifyBody) else IdentifyBody.model_construct(top_k=top_k or TOP_K, model=model)
    _check_top_k(service, given.top_k)
    opened.live.check_model(given.model)
    answered = await opened.batcher.identify(probes, given.top_k)
    service.metrics.stages.labels("wait").observe(answered.waited)
    request_id = current_request_id()

    def finish() -> Finished:
        documents = answer_documents(opened, answered.version, probes, answered.answers, request_id)
        keep_for_people(opened, answered, probes, documents, request_id)
        told = with_faces(documents, probes)
        service.metrics.observe_decisions(opened.name, (each["decision"] for each in documents))
        return document(told), rows_of(opened, asker, "identify", started, answered, probes, documents)

    with service.metrics.stages.labels("write").time():
        return await opened.finishing.finish(finish, len(probes))


@router.post("/v1/galleries/{gallery:segment}/verify", responses={200: {"model": VerificationDocument}})
async def verify(
    request: Request, gallery: GalleryName, asker: Annotated[Asker, allowed(Permission.IDENTIFY)], body: VerifyBody
) -> Response:
    """Is this probe this subject? It is where the probe is accepted among all enrolled, and as this subject."""
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    opened.live.check_model(body.model)
    probes = service.reader.one(body.probe, opened.live.dim, body.concentration)
    answered = await opened.batcher.identify(probes, VERIFIED_AMONG)
    request_id = current_request_id()

    def finish() -> Finished:
        version = answered.version
        known = version.moment.search.index_of(np.array([body.subject]))
        if known[0] < 0:
            raise not_found("subject", body.subject, "enrolled subjects are listed by GET …/subjects")
        found = verification_document(opened, version, body.subject, probes, answered.answers, request_id)
        service.metrics.observe_decisions(opened.name, [found["decision"]])
        return document(found), rows_of(opened, asker, "verify", started, answered, probes, [found])

    return await opened.finishing.finish(finish, 1)


def rows_of(
    opened: Opened, asker: Asker, action: str, started: float, answered: Answered, probes: Probes,
    documents: list[dict[str, Any]],
) -> list[Event]:  # fmt: skip
    """A row of the audit log for each probe."""
    rows, ended = np.ascontiguousarray(probes.rows, dtype="<f4"), time.time()
    version = answered.version
    return [
        Event(
            action, asker.actor, each["request_id"], started, ended, gallery=opened.name,
            gallery_version=version.version, calibration=version.calibration, model=opened.live.model,
            decision=each["decision"], probe=place, input=rows[place].tobytes(), answer=each,
        )
        for place, each in enumerate(documents)
    ]  # fmt: skip


def _check_top_k(service: Service, top_k: int) -> None:
    most = service.settings.limits.top_k
    if top_k > most:
        raise ProblemError(
            422, "too-many-candidates", f"{top_k} candidates were asked for", field="top_k", rule=f"at most {most}",
            value=top_k, way_out="ask for fewer, or raise limits.top_k",
        )  # fmt: skip
