"""Samples: the embeddings of an enrolled subject."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from holue.service.galleries.enrolling import enrol_files
from holue.service.galleries.opened import Opened, is_text
from holue.service.galleries.probes import MULTIPART
from holue.service.http import cursors
from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.cursors import Cursor, Limit
from holue.service.http.etags import IfMatch, check_tag
from holue.service.http.paths import GalleryName, SubjectText
from holue.service.http.problems import ProblemError, not_found
from holue.service.roles import Permission
from holue.service.routes.identify import FACE_FIELD
from holue.service.routes.subjects import (
    BASE,
    Enroller,
    changed,
    changing,
    check_number,
    columns_of,
    rows_of,
)
from holue.service.schemas.common import Changed
from holue.service.schemas.subjects import Enrolled, SampleDocument, SamplesBody, SamplesDocument
from holue.service.service import service_of
from holue.store.values import Sample, Subject

router = APIRouter(route_class=StrictRoute, tags=["samples"])

SAMPLES = BASE + "/{subject:segment}/samples"
FILES: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            MULTIPART: {
                "schema": {
                    "type": "object",
                    "description": "Images or recordings of the subject.",
                    "properties": {"face": FACE_FIELD},
                    "additionalProperties": {"type": "string", "format": "binary"},
                }
            }
        },
    }
}
SampleNumber = Annotated[int, Path(ge=1, lt=2**63, description="The number of a sample.", examples=[1])]


@router.get(SAMPLES)
def samples(
    request: Request,
    gallery: GalleryName,
    subject: SubjectText,
    asker: Annotated[Asker, allowed(Permission.VIEW)],
    cursor: Cursor = None,
    limit: Limit = 100,
) -> SamplesDocument:
    """The samples of a subject, without their embeddings, a page at a time."""
    opened = service_of(request).galleries.get(gallery)
    own = opened.live.samples(opened.subject(subject).id)
    found, following = cursors.page(own, cursor, limit, lambda sample: (sample.number,))
    return SamplesDocument(samples=[_document(sample) for sample in found], next=following)


@router.get(SAMPLES + "/{sample}")
def sample(
    request: Request,
    gallery: GalleryName,
    subject: SubjectText,
    sample: SampleNumber,
    asker: Annotated[Asker, allowed(Permission.VIEW)],
) -> SampleDocument:
    """One sample of a subject, without its embedding."""
    opened = service_of(request).galleries.get(gallery)
    for found in opened.live.samples(opened.subject(subject).id):
        if found.number == sample:
            return _document(found)
    raise _no_sample(sample)


@router.post(SAMPLES, status_code=201)
def add_samples(
    request: Request,
    gallery: GalleryName,
    subject: SubjectText,
    asker: Enroller,
    body: SamplesBody,
    if_match: IfMatch = None,
) -> Enrolled:
    """Give a subject more samples."""
    return _given(request, gallery, subject, asker, body, if_match, replace=False)


@router.post(BASE + "/{subject:segment}/files", status_code=201, openapi_extra=FILES)
async def enroll_files(
    request: Request, gallery: GalleryName, subject: SubjectText, asker: Enroller, if_match: IfMatch = None
) -> Enrolled:
    """Enrol a subject from images or recordings, or give an enrolled one more of them, where an embedder is configured.

    A whole photograph, where the service finds faces, must show one face; else the field `face` says which: its number from the
    left, `largest` or `central`, once or once for each file.
    """
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    if not is_text(subject):
        raise not_found("subject", subject, "an id is valid Unicode without the character NUL")
    sent = await service.reader.files(request, opened.live.dim, opened.live.model)

    def work() -> Enrolled:
        action, done = enrol_files(
            opened, subject, sent, origins=sent.names, by=asker.actor,
            check=lambda found: check_tag(opened.tag(found), if_match, "the subject is"),
        )  # fmt: skip
        service.record(asker, action, started, opened, gallery_version=done.version)
        return Enrolled(**changed(opened, done.version), subjects=done.subjects.tolist(), samples=done.samples.tolist())

    return await run_in_threadpool(work)


@router.put(SAMPLES)
def replace_samples(
    request: Request,
    gallery: GalleryName,
    subject: SubjectText,
    asker: Enroller,
    body: SamplesBody,
    if_match: IfMatch = None,
) -> Enrolled:
    """Give a subject new samples in place of all it had."""
    return _given(request, gallery, subject, asker, body, if_match, replace=True)


@router.delete(SAMPLES + "/{sample}")
def remove_sample(
    request: Request,
    gallery: GalleryName,
    subject: SubjectText,
    sample: SampleNumber,
    asker: Enroller,
    if_match: IfMatch = None,
) -> Changed:
    """A sample leaves; the subject keeps at least one."""

    def remove(opened: Opened, found: Subject) -> int:
        if sample not in [each.number for each in opened.live.samples(found.id)]:
            raise _no_sample(sample)
        return opened.live.remove_samples([sample], by=asker.actor)

    return changing(request, gallery, subject, asker, "remove-sample", remove, if_match)


def _no_sample(number: int) -> ProblemError:
    """The subject has no sample of this number."""
    return not_found("sample", number, "the subject's samples are listed by GET …/samples")


def _document(sample: Sample) -> SampleDocument:
    return SampleDocument(
        number=sample.number, medium=sample.medium, concentration=sample.concentration, time=sample.time,
        origin=sample.origin, enrolled_by=sample.enrolled_by,
    )  # fmt: skip


def _given(
    request: Request,
    gallery: str,
    subject: str,
    asker: Asker,
    body: SamplesBody,
    if_match: str | None,
    *,
    replace: bool,
) -> Enrolled:
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    check_number(len(body.samples), service.settings.limits.probes)
    rows = rows_of(body.samples, opened.live.dim)
    with opened.changing:
        found = opened.subject(subject)
        check_tag(opened.tag(found), if_match, "the subject is")
        verb = opened.live.replace if replace else opened.live.add_samples
        done = verb(rows, [found.id] * len(rows), **columns_of(body.samples), model=body.model, by=asker.actor)
    service.record(
        asker, "replace-samples" if replace else "add-samples", started, opened, gallery_version=done.version
    )
    return Enrolled(**changed(opened, done.version), subjects=done.subjects.tolist(), samples=done.samples.tolist())
