"""Enrolment: files become a new subject, or more samples of an enrolled one."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Form, Query, UploadFile
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from holue.embedding.faces.choice import FaceChoiceError
from holue.errors import HolueError, InvalidParameterError
from holue.service.galleries.enrolling import enrol_files
from holue.service.galleries.opened import Opened, is_text
from holue.service.http.paths import GalleryName
from holue.service.http.problems import ProblemError, not_found
from holue.service.page.moving import undoable
from holue.service.page.photographs import POLICY, found_faces
from holue.service.page.rendering import redirect, render
from holue.service.page.screens import address_of
from holue.service.page.screens.identify import TAKEN
from holue.service.page.uploads import embedded_files, received
from holue.service.page.visitor import PageRoute, Visiting, Visitor
from holue.service.roles import Permission
from holue.service.service import service_of

router = APIRouter(route_class=PageRoute, include_in_schema=False)
ADDRESS = "/galleries/{gallery:segment}/enrol"


@router.get(ADDRESS)
def screen(
    request: Request, visitor: Visiting, gallery: GalleryName, subject: Annotated[int | None, Query(ge=1)] = None
) -> Response:
    """Asks for a name and files; with the number of a subject, for more samples of it."""
    visitor.asker.require(Permission.ENROLL, gallery)
    opened = service_of(request).galleries.get(gallery)
    found = None if subject is None else opened.numbered(subject)
    if subject is not None and found is None:
        raise not_found("subject", subject, "it may have been merged, removed or erased; search for it")
    return _screen(request, visitor, opened, name="" if found is None else str(found.id))


@router.post(ADDRESS)
async def enrol(
    request: Request,
    visitor: Visiting,
    gallery: GalleryName,
    files: list[UploadFile],
    name: Annotated[str, Form(max_length=200)],
    face: Annotated[str, Form(max_length=20)] = "",
) -> Response:
    """A photograph must show one face, or ``face`` says which."""
    visitor.asker.require(Permission.ENROLL, gallery)
    service, started = service_of(request), time.time()
    opened, given, wanted = service.galleries.get(gallery), await received(files), name.strip()

    def work() -> Response:
        try:
            if not wanted or not is_text(wanted):
                raise InvalidParameterError("the subject has no name; give it one")
            sent = embedded_files(given, service.embedder, opened, every_face=False, face=face.strip())
            action, done = enrol_files(opened, wanted, sent, origins=sent.names, by=visitor.asker.actor)
        except (HolueError, ProblemError) as error:
            return _screen(request, visitor, opened, name=wanted, face=face, problem=error, files=given)
        service.record(visitor.asker, action, started, opened, gallery_version=done.version)
        count = len(done.samples)
        text = f"{wanted}: {count} new {'sample' if count == 1 else 'samples'}."
        return redirect(address_of(gallery, "subjects", int(done.subjects[0])), undoable(gallery, text, [done.version]))

    return await run_in_threadpool(work)


def _screen(
    request: Request,
    visitor: Visitor,
    opened: Opened,
    *,
    name: str,
    face: str = "",
    problem: Exception | None = None,
    files: list[tuple[str, bytes]] | None = None,
) -> Response:
    embedder = service_of(request).embedder
    usable = embedder is not None and opened.live.model in (None, embedder.model)
    kind = "" if embedder is None else "photograph" if embedder.finds_faces else embedder.kind
    takes, accepts = TAKEN.get(kind, ("", ""))
    several = problem.__cause__ if problem is not None else None
    response = render(
        request, "enrol.html.jinja", visitor, title="Enrol", gallery=opened.name, name=name, face=face,
        back=address_of(opened.name, "subjects"), usable=usable, finds_faces=embedder is not None and embedder.finds_faces,
        takes=takes.partition(",")[0], accepts=accepts.removesuffix(",.npz"), problem=_told(problem),
        photograph=_shown(several, files or []) if isinstance(several, FaceChoiceError) else None,
        keeps=opened.ledger.images.kept,
    )  # fmt: skip
    response.headers["Content-Security-Policy"] = POLICY
    return response


def _told(problem: Exception | None) -> str | None:
    if problem is None or not isinstance(problem.__cause__, FaceChoiceError):
        return None if problem is None else str(problem)
    return f"{problem.__cause__.origin}: the photograph shows {len(problem.__cause__.faces)} faces; say which one is meant."


def _shown(error: FaceChoiceError, files: list[tuple[str, bytes]]) -> dict[str, Any]:
    """The photograph that shows several faces, with their numbers."""
    place = int(error.origin.split()[1])
    return found_faces(files[place][0], files[place][1], error.faces)
