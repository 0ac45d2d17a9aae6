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

from holue.errors import HolueError
from holue.service.galleries.answers import answer_documents
from holue.service.galleries.finishing import Asked
from holue.service.galleries.follow_up import keep_for_people
from holue.service.galleries.opened import Opened
from holue.service.http.logs import current_request_id
from holue.service.http.paths import GalleryName
from holue.service.ledger.images import Of
from holue.service.page.rendering import render
from holue.service.page.uploads import Uploaded, read_uploads, received
from holue.service.page.visitor import PageRoute, Visiting, Visitor
from holue.service.roles import Permission
from holue.service.routes.identify import rows_of
from holue.service.service import Service, service_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ADDRESS = "/galleries/{gallery:segment}/identify"
SHOWN = 3
"""Candidates in the table."""
COLUMNS = ("probe", "decision", "subject", "uncertainty", "reason", "p_unknown", "candidate", "probability", "score")


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
            read_uploads, await received(files), service.embedder, opened.live.dim, service.settings.limits.probes
        )
    except HolueError as error:
        return _screen(request, visitor, gallery, problem=str(error))
    answered = await opened.batcher.identify(uploaded.probes, SHOWN + 2)
    request_id = current_request_id()
    asked = Asked("identify", visitor.asker, request_id, started, len(uploaded.probes))

    def finish() -> list[dict[str, Any]]:
        documents = answer_documents(
            opened, answered.version, uploaded.probes, answered.answers, [request_id] * asked.probes
        )
        keep_for_people(opened, answered, uploaded.probes, documents, range(len(documents)))
        _keep_pictures(opened, uploaded, documents)
        opened.log.append(rows_of(opened, asked, answered, uploaded.probes, documents))
        return documents

    documents = await run_in_threadpool(finish)
    if save == "csv":
        return _csv(uploaded.names, documents)
    return _screen(request, visitor, gallery, uploaded=uploaded, documents=documents)


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
    kind = _kind(service_of(request))
    rows = [_row(name, each) for name, each in zip(uploaded.names, documents or [])] if uploaded else []
    counts = {
        decision: sum(row["decision"] == decision for row in rows) for decision in ("accepted", "rejected", "filtered")
    }
    return render(
        request, "identify.html.jinja", visitor, title="Identify", gallery=gallery, problem=problem, answers=rows,
        takes={"image": "Images, or a file of embeddings (.npz)", "speech": "Recordings, or a file of embeddings (.npz)"}.get(
            kind, "A file of embeddings (.npz), as holue embed writes it"
        ),
        accepts={"image": "image/*,.npz", "speech": "audio/*,.npz"}.get(kind, ".npz"),
        summary="{accepted} recognised, {rejected} nobody enrolled, {filtered} too uncertain to decide.".format(**counts),
    )  # fmt: skip


def _kind(service: Service) -> str:
    return "" if service.embedder is None else service.embedder.kind


def _row(name: str, document: dict[str, Any]) -> dict[str, Any]:
    decision = document["decision"]
    verdict = {
        "accepted": f"✓ {document['subject']}", "rejected": "∅ Nobody enrolled", "filtered": "? Too uncertain",
    }.get(decision, "! Incomplete")  # fmt: skip
    return {
        "probe": name, "decision": decision, "verdict": verdict, "uncertainty": document["uncertainty"],
        "reason": document["reasons"][0] if document["reasons"] else "", "candidates": document["candidates"][:SHOWN],
    }  # fmt: skip


def _keep_pictures(opened: Opened, uploaded: Uploaded, documents: list[dict[str, Any]]) -> None:
    """Pictures of the probes that go to review, where the gallery keeps pictures."""
    found = {
        int(document["review_id"].rpartition(".")[2]): picture
        for document, picture in zip(documents, uploaded.pictures)
        if document["review_id"] is not None and picture is not None
    }
    opened.ledger.images.put(Of.REVIEW, found)


def _csv(names: tuple[str, ...], documents: list[dict[str, Any]]) -> Response:
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(COLUMNS)
    for name, each in zip(names, documents):
        best = each["candidates"][0] if each["candidates"] else {}
        writer.writerow(
            [
                *map(_plain, (name, each["decision"], each["subject"])), each["uncertainty"], _plain("; ".join(each["reasons"])),
                each["p_unknown"], _plain(best.get("subject")), best.get("probability"), best.get("score"),
            ]
        )  # fmt: skip
    return Response(
        stream.getvalue(), media_type="text/csv; charset=utf-8",
        headers={"Content-Disposition": 'attachment; filename="answers.csv"'},
    )  # fmt: skip


def _plain(value: Any) -> Any:
    """A text that no spreadsheet takes for a formula."""
    return f"'{value}" if isinstance(value, str) and value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
