"""Identification and verification: who is shown, and is it who they say."""

from __future__ import annotations

import time
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from holue.service.galleries.answered import Answered
from holue.service.galleries.answers import answer_documents, verification_document, with_places
from holue.service.galleries.finishing import Asked, Finished
from holue.service.galleries.follow_up import keep_for_people
from holue.service.galleries.opened import Opened
from holue.service.galleries.probes import MULTIPART, NPY, RAW, Probes
from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute, without_query
from holue.service.http.logs import current_request_id
from holue.service.http.paths import GalleryName
from holue.service.http.problems import ProblemError, not_found
from holue.service.ledger.audit.audit_chain import Event
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
        "service finds faces, each face is a probe; in long recordings, where it finds speech, all speech is one probe.",
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
@without_query
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
    with service.metrics.reads.time():
        probes, body = await service.reader.read(
            request, opened.live.dim, opened.live.model, IdentifyBody, last=concentration == "last"
        )
    if isinstance(body, IdentifyBody):
        top_k, model = body.top_k, body.model
    shown = top_k or TOP_K
    _check_top_k(service, shown)
    opened.live.check_model(model)

    def finish(answered: Answered, probes: Probes, asked: list[Asked]) -> list[Finished | Exception]:
        request_ids = [each.request_id for each in asked for _ in range(each.probes)]
        places = [place for each in asked for place in range(each.probes)]
        documents = answer_documents(opened, answered.version, probes, answered.answers, request_ids)
        keep_for_people(opened, answered, probes, documents, places)
        service.metrics.observe_decisions(opened.name, (each["decision"] for each in documents))
        finished: list[Finished | Exception] = []
        end = 0
        for each in asked:
            rows = slice(end, end + each.probes)
            own, sent, end = documents[rows], probes.take(rows), rows.stop
            told = document(with_places(own, sent))
            finished.append((told, rows_of(opened, each, answered, sent, own)))
        return finished

    asked = Asked("identify", asker, current_request_id(), started, len(probes))
    return await opened.batcher.respond(probes, shown, asked, finish)


@router.post("/v1/galleries/{gallery:segment}/verify", responses={200: {"model": VerificationDocument}})
async def verify(
    request: Request, gallery: GalleryName, asker: Annotated[Asker, allowed(Permission.IDENTIFY)], body: VerifyBody
) -> Response:
    """Is this probe this subject? It is where the probe is accepted among all enrolled, and as this subject."""
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    opened.live.check_model(body.model)
    probes = service.reader.one(body.probe, opened.live.dim, body.concentration)

    def finish(answered: Answered, probes: Probes, asked: list[Asked]) -> list[Finished | Exception]:
        return [
            _verified(opened, answered.part([row], 0.0), probes.take([row]), each) for row, each in enumerate(asked)
        ]

    def _verified(opened: Opened, answered: Answered, probes: Probes, asked: Asked) -> Finished | Exception:
        version = answered.version
        try:
            known = version.moment.search.index_of(np.array([asked.subject]))
            if known[0] < 0:
                raise not_found("subject", asked.subject, "enrolled subjects are listed by GET …/subjects")
            found = verification_document(opened, version, asked.subject, probes, answered.answers, asked.request_id)
        except Exception as error:
            return error
        service.metrics.observe_decisions(opened.name, [found["decision"]])
        return document(found), rows_of(opened, asked, answered, probes, [found])

    asked = Asked("verify", asker, current_request_id(), started, 1, body.subject)
    return await opened.batcher.respond(probes, VERIFIED_AMONG, asked, finish)


def rows_of(
    opened: Opened, asked: Asked, answered: Answered, probes: Probes, documents: list[dict[str, Any]]
) -> list[Event]:
    """A row of the audit log for each probe of a request."""
    rows, ended = np.ascontiguousarray(probes.rows, dtype="<f4"), time.time()
    version = answered.version
    return [
        Event(
            asked.action, asked.asker.actor, asked.request_id, asked.started, ended, gallery=opened.name,
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
