"""Subjects: who is enrolled; every change can be undone until it is erased."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any
from urllib.parse import quote

import numpy as np
from fastapi import APIRouter, Response
from starlette.requests import Request

from holue.errors import ConflictError
from holue.service.galleries.opened import Opened
from holue.service.http import cursors
from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.cursors import Cursor, Limit
from holue.service.http.etags import IfMatch, check_tag
from holue.service.http.paths import GalleryName, SubjectText
from holue.service.http.problems import ProblemError
from holue.service.roles import Permission
from holue.service.schemas.common import Changed, operation_of
from holue.service.schemas.subjects import (
    EnrollBody,
    Enrolled,
    MergeBody,
    NewSample,
    SplitBody,
    SubjectDocument,
    SubjectPatch,
    SubjectsPage,
)
from holue.service.service import service_of
from holue.store.values import Subject

router = APIRouter(route_class=StrictRoute, tags=["subjects"])

Enroller = Annotated[Asker, allowed(Permission.ENROLL)]
Viewer = Annotated[Asker, allowed(Permission.VIEW)]
BASE = "/v1/galleries/{gallery:segment}/subjects"


@router.post(BASE, status_code=201)
def enroll(request: Request, gallery: GalleryName, asker: Enroller, body: EnrollBody) -> Enrolled:
    """Enrol new subjects, all or nothing; durable and visible when it is answered."""
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    samples = [(subject.id, sample) for subject in body.subjects for sample in subject.samples]
    check_number(len(samples), service.settings.limits.probes)
    ids = [subject.id for subject in body.subjects]
    if len(set(ids)) < len(ids):
        raise ConflictError("an id is named twice; give all samples of a subject together")
    fields: dict[str, Any] = {
        name: {subject.id: value for subject in body.subjects if (value := getattr(subject, name)) is not None}
        for name in ("metadata", "retain_until", "consent", "purpose")
    }
    with opened.changing:
        for each in ids:
            if opened.live.subject(each) is not None:
                raise ConflictError(f"{each!r} is enrolled already; add samples to the subject instead")
        done = opened.live.enroll(
            rows_of([sample for _, sample in samples], opened.live.dim),
            [subject for subject, _ in samples],
            **columns_of([sample for _, sample in samples]),
            **{name: values for name, values in fields.items() if values},
            model=body.model,
            by=asker.actor,
        )
    service.record(asker, "enroll", started, opened, gallery_version=done.version)
    return Enrolled(**changed(opened, done.version), subjects=done.subjects.tolist(), samples=done.samples.tolist())


@router.get(BASE)
def subjects(
    request: Request, gallery: GalleryName, asker: Viewer, cursor: Cursor = None, limit: Limit = 100
) -> SubjectsPage:
    """Who is enrolled, a page at a time."""
    opened = service_of(request).galleries.get(gallery)
    found = opened.live.subjects(cursors.decode(cursor), limit + 1)
    following = cursors.encode(found[limit - 1].number) if len(found) > limit else None
    return SubjectsPage(subjects=[subject_document(subject) for subject in found[:limit]], next=following)


@router.get(BASE + "/{subject:segment}")
def subject(
    request: Request, response: Response, gallery: GalleryName, subject: SubjectText, asker: Viewer
) -> SubjectDocument:
    """One subject; the ETag is for a change that must not overwrite another one's."""
    opened = service_of(request).galleries.get(gallery)
    found = opened.subject(subject)
    response.headers["ETag"] = opened.tag(found)
    return subject_document(found)


@router.patch(BASE + "/{subject:segment}")
def change_subject(
    request: Request,
    response: Response,
    gallery: GalleryName,
    subject: SubjectText,
    asker: Enroller,
    body: SubjectPatch,
    if_match: IfMatch = None,
) -> Changed:
    """Rename a subject, or change what is said about it."""
    given = body.model_dump(exclude_unset=True)
    new_id = given.pop("id", None)
    if not given and new_id is None:
        raise ProblemError(
            422, "no-change", "the body names nothing to change", field="body",
            rule="at least one field", way_out="name id, metadata, retain_until, consent or purpose",
        )  # fmt: skip
    if "metadata" in given:
        given["metadata"] = given["metadata"] or {}

    def change(opened: Opened, found: Subject) -> int:
        version = opened.live.update([found.id], **given, by=asker.actor) if given else 0
        if new_id is None or new_id == found.id:
            return version or opened.live.version
        if opened.live.subject(new_id) is not None:
            raise ConflictError(f"{new_id!r} is enrolled already; choose another id, or merge the two")
        return opened.live.rename(found.id, new_id, by=asker.actor)

    return changing(request, gallery, subject, asker, "change", change, if_match, response)


@router.delete(BASE + "/{subject:segment}")
def remove_subject(
    request: Request, gallery: GalleryName, subject: SubjectText, asker: Enroller, if_match: IfMatch = None
) -> Changed:
    """A subject leaves with all samples; the change can be undone until the subject is erased."""
    return changing(
        request, gallery, subject, asker, "remove",
        lambda opened, found: opened.live.remove([found.id], by=asker.actor), if_match,
    )  # fmt: skip


@router.post(BASE + "/{subject:segment}/merge")
def merge(
    request: Request,
    gallery: GalleryName,
    subject: SubjectText,
    asker: Enroller,
    body: MergeBody,
    if_match: IfMatch = None,
) -> Changed:
    """Other subjects turn out to be this one: their samples come here, and they leave."""
    return changing(
        request, gallery, subject, asker, "merge",
        lambda opened, found: opened.live.merge(body.subjects, into=found.id, by=asker.actor), if_match,
    )  # fmt: skip


@router.post(BASE + "/{subject:segment}/split")
def split(
    request: Request,
    gallery: GalleryName,
    subject: SubjectText,
    asker: Enroller,
    body: SplitBody,
    if_match: IfMatch = None,
) -> Changed:
    """Some samples turn out to show somebody else: they go to a new subject."""
    return changing(
        request, gallery, subject, asker, "split",
        lambda opened, found: opened.live.split(found.id, body.samples, new=body.new, by=asker.actor), if_match,
    )  # fmt: skip


def changing(
    request: Request,
    gallery: str,
    subject: str,
    asker: Asker,
    action: str,
    change: Callable[[Opened, Subject], int],
    if_match: str | None,
    response: Response | None = None,
) -> Changed:
    """Check that the subject is as the caller has seen it, change it, and log that."""
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    with opened.changing:
        found = opened.subject(subject)
        check_tag(opened.tag(found), if_match, "the subject is")
        version = change(opened, found)
        if response is not None:
            now = next(iter(opened.live.subjects(found.number - 1, 1)), None)
            if now is not None:
                response.headers["ETag"] = opened.tag(now)
                response.headers["Content-Location"] = (
                    f"/v1/galleries/{quote(gallery)}/subjects/{quote(str(now.id), safe='')}"
                )
    service.record(asker, action, started, opened, gallery_version=version)
    return Changed(**changed(opened, version))


def changed(opened: Opened, version: int) -> dict[str, Any]:
    """What every change answers with."""
    return {"gallery": opened.name, "version": version, "operation": operation_of(opened.name, version)}


def subject_document(subject: Subject) -> SubjectDocument:
    """A subject as it is sent."""
    return SubjectDocument(
        id=subject.id, number=subject.number, metadata=dict(subject.metadata), retain_until=subject.retain_until,
        consent=subject.consent, purpose=subject.purpose,
    )  # fmt: skip


def rows_of(samples: list[NewSample], dim: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """The embeddings of samples."""
    for place, sample in enumerate(samples):
        if len(sample.embedding) != dim:
            raise ProblemError(
                422, "wrong-dimension", f"an embedding has {len(sample.embedding)} numbers, the gallery's have {dim}",
                field=f"samples.{place}.embedding", rule=f"{dim} numbers", value=len(sample.embedding),
                way_out="embed with the model that the gallery was created for",
            )  # fmt: skip
    return np.array([sample.embedding for sample in samples], dtype=np.float64)


def columns_of(samples: list[NewSample]) -> dict[str, Any]:
    """What belongs to samples beside their embeddings, as the store takes it."""
    columns: dict[str, Any] = {"medium": [sample.medium for sample in samples]}
    columns["origin"] = [sample.origin for sample in samples]
    now = time.time()
    columns["time"] = [now if sample.time is None else sample.time for sample in samples]
    kappa = [sample.concentration for sample in samples]
    if any(each is not None for each in kappa):
        if None in kappa:
            raise ProblemError(
                422, "invalid-concentration", "some samples have a concentration and some have none",
                field="samples.concentration", rule="all or none", way_out="give every sample one, or none",
            )  # fmt: skip
        columns["concentration"] = kappa
    return columns


def check_number(n: int, most: int) -> None:
    """A problem where a request holds too many samples."""
    if n > most:
        raise ProblemError(
            422, "too-many-samples", f"the request has {n} samples", field="samples", rule=f"at most {most}",
            value=n, way_out="send several requests, or raise limits.probes",
        )  # fmt: skip
