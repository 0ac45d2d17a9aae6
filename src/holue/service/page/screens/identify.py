"""Identify: files to answers, in a table or as CSV."""

from __future__ import annotations

import csv
import io
import time
from typing import Annotated, Any

from fastapi import APIRouter, Form, UploadFile
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from holue.embedding.faces.measures import MEASURES
from holue.errors import HolueError
from holue.service.galleries.answers import answer_documents
from holue.service.galleries.finishing import Asked
from holue.service.galleries.follow_up import keep_for_people
from holue.service.http.logs import current_request_id
from holue.service.http.paths import GalleryName
from holue.service.http.problems import ProblemError
from holue.service.page.photographs import POLICY, in_page, photographs, quality
from holue.service.page.rendering import render
from holue.service.page.screens import address_of
from holue.service.page.uploads import Uploaded, read_uploads, received
from holue.service.page.visitor import PageRoute, Visiting, Visitor
from holue.service.roles import Permission
from holue.service.routes.identify import rows_of
from holue.service.service import service_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ADDRESS = "/galleries/{gallery:segment}/identify"
SHOWN, PICTURED = 3, 60
"""Candidates in the table, and rows of it with a picture."""
COLUMNS = (
    "probe",
    "decision",
    "subject",
    "uncertainty",
    "reason",
    "p_unknown",
    "candidate",
    "probability",
    "score",
    "x",
    "y",
    "width",
    "height",
    *(f"face_{name}" for name in MEASURES),
)
TAKEN = {
    "photograph": ("Photographs, or a file of embeddings (.npz)", "image/*,.npz"),
    "image": ("Images, or a file of embeddings (.npz)", "image/*,.npz"),
    "speech": ("Recordings, or a file of embeddings (.npz)", "audio/*,.npz"),
}
"""What is asked for, by what the service's model reads."""


@router.get(ADDRESS)
def screen(request: Request, visitor: Visiting, gallery: GalleryName) -> Response:
    """Asks for files."""
    return _screen(request, visitor, gallery)


@router.post(ADDRESS)
async def identify(
    request: Request,
    visitor: Visiting,
    gallery: GalleryName,
    files: list[UploadFile],
    save: Annotated[str, Form(max_length=10)] = "",
) -> Response:
    """The answers about files."""
    visitor.asker.require(Permission.IDENTIFY, gallery)
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    try:
        uploaded = await run_in_threadpool(
            read_uploads, await received(files), service.embedder, opened, service.settings.limits.probes
        )
    except (HolueError, ProblemError) as error:
        return _screen(request, visitor, gallery, problem=str(error))
    answered = await opened.batcher.identify(uploaded.probes, SHOWN + 2)
    request_id = current_request_id()
    asked = Asked("identify", visitor.asker, request_id, started, len(uploaded.probes))

    def finish() -> list[dict[str, Any]]:
        documents = answer_documents(
            opened, answered.version, uploaded.probes, answered.answers, [request_id] * asked.probes
        )
        keep_for_people(opened, answered, uploaded.probes, documents, range(len(documents)))
        opened.log.append(rows_of(opened, asked, answered, uploaded.probes, documents))
        return documents

    documents = await run_in_threadpool(finish)
    if save == "csv":
        return _csv(uploaded, documents)
    return await run_in_threadpool(_screen, request, visitor, gallery, uploaded=uploaded, documents=documents)


def _screen(
    request: Request,
    visitor: Visitor,
    gallery: str,
    *,
    problem: str | None = None,
    uploaded: Uploaded | None = None,
    documents: list[dict[str, Any]] | None = None,
) -> Response:
    visitor.asker.require(Permission.IDENTIFY, gallery)
    embedder = service_of(request).embedder
    kind = "" if embedder is None else "photograph" if embedder.finds_faces else embedder.kind
    rows = [] if uploaded is None else _rows(uploaded, documents or [])
    sent = None if uploaded is None else uploaded.probes.files
    counts = {
        decision: sum(row["decision"] == decision for row in rows) for decision in ("accepted", "rejected", "filtered")
    }
    queued = bool(counts["filtered"]) and visitor.may(Permission.REVIEW, gallery)
    takes, accepts = TAKEN.get(kind, ("A file of embeddings (.npz), as holue embed writes it", ".npz"))
    response = render(
        request, "identify.html.jinja", visitor, title="Identify", gallery=gallery, problem=problem, answers=rows,
        takes=takes, accepts=accepts, measured=any(row["quality"] for row in rows), spoken=kind == "speech",
        calibrated=all(each["calibrated"] for each in documents or []),
        pictured=any(row["picture"] for row in rows), review=address_of(gallery, "review") if queued else None,
        without_face=[] if sent is None else sent.without_face,
        without_speech=[] if sent is None else sent.without_speech,
        photographs=[] if uploaded is None or sent is None else photographs(sent, uploaded.probes.of_file, rows),
        summary="{accepted} recognised, {rejected} nobody enrolled, {filtered} too uncertain to decide.".format(**counts),
    )  # fmt: skip
    if sent is not None:
        response.headers["Content-Security-Policy"] = POLICY
    return response


def _rows(uploaded: Uploaded, documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    sent = uploaded.probes.files
    found = [_row(name, each) for name, each in zip(uploaded.names, documents)]
    for place, row in enumerate(found):
        row |= {"picture": None, "quality": None}
        if sent is not None:
            first = uploaded.probes.of_file[place][0]
            row["quality"] = quality(sent, uploaded.probes.of_file[place])
            if sent.kind == "image" and place < PICTURED:
                row["picture"] = in_page(sent.picture(first))
    return found


def _row(name: str, document: dict[str, Any]) -> dict[str, Any]:
    decision = document["decision"]
    verdict = {
        "accepted": f"✓ {document['subject']}", "rejected": "∅ Nobody enrolled", "filtered": "? Too uncertain",
    }.get(decision, "! Incomplete")  # fmt: skip
    return {
        "probe": name, "decision": decision, "verdict": verdict, "uncertainty": document["uncertainty"],
        "reason": document["reasons"][0] if document["reasons"] else "", "candidates": document["candidates"][:SHOWN],
    }  # fmt: skip


def _csv(uploaded: Uploaded, documents: list[dict[str, Any]]) -> Response:
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    sent = uploaded.probes.files
    for place, (name, each) in enumerate(zip(uploaded.names, documents)):
        face = None if sent is None else sent.face(uploaded.probes.of_file[place][0])
        best = each["candidates"][0] if each["candidates"] else {}
        writer.writerow(
            [
                *map(_plain, (name, each["decision"], each["subject"])), each["uncertainty"], _plain("; ".join(each["reasons"])),
                each["p_unknown"], _plain(best.get("subject")), best.get("probability"), best.get("score"),
                *(face["box"] if face is not None else [None] * 4),
                *(None if face is None else face["measures"][name] for name in MEASURES),
            ]
        )  # fmt: skip
    return Response(
        stream.getvalue(), media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="answers.csv"'},
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """A text that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
