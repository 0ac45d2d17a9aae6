"""Subjects: who is enrolled, their samples, and every change to them."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Query
from starlette.requests import Request
from starlette.responses import Response

from holue.errors import InvalidParameterError
from holue.service.galleries.opened import Opened
from holue.service.http.paths import GalleryName
from holue.service.http.problems import not_found
from holue.service.page.moving import move_samples, undoable
from holue.service.page.quality import link_to_original, poorness, quality_text
from holue.service.page.rendering import Message, day, redirect, render
from holue.service.page.screens import address_of
from holue.service.page.screens.pictures import sample_picture, sees_samples
from holue.service.page.visitor import PageRoute, Visiting, Visitor
from holue.service.roles import Permission
from holue.service.service import service_of
from holue.store.values import Subject

router = APIRouter(route_class=PageRoute, include_in_schema=False)
BASE = "/galleries/{gallery:segment}/subjects"
A_PAGE = 50
SEARCHED = 20_000
"""Subjects that one search looks at; the next page goes on from there."""
Text = Annotated[str, Form(max_length=200)]
Versions = int | tuple[int, ...]
"""The version that a change made, or several where it took more than one step."""


@router.get(BASE)
def subjects(
    request: Request,
    visitor: Visiting,
    gallery: GalleryName,
    search: Annotated[str, Query(max_length=200)] = "",
    after: Annotated[int, Query(ge=0)] = 0,
) -> Response:
    """A page of the enrolled subjects, or of those whose name contains a text."""
    opened = _opened(request, visitor, gallery)
    found, following = _page(opened, search.strip(), after)
    counts = opened.live.store.sample_counts([subject.number for subject in found])
    rows = [
        {
            "name": str(subject.id), "address": address_of(gallery, "subjects", subject.number),
            "samples": count, "retain_until": day(subject.retain_until),
            "consent": subject.consent, "purpose": subject.purpose,
        }
        for subject, count in zip(found, counts)
    ]  # fmt: skip
    here = address_of(gallery, "subjects")
    query = f"search={search}&" if search else ""
    return render(
        request, "subjects.html.jinja", visitor, title="Subjects", gallery=gallery, subjects=rows, search=search.strip(),
        may_enrol=visitor.may(Permission.ENROLL, gallery), enrol=address_of(gallery, "enrol"),
        first=here if after else None, next=None if following is None else f"{here}?{query}after={following}",
    )  # fmt: skip


@router.get(BASE + "/{number:int}")
def subject(request: Request, visitor: Visiting, gallery: GalleryName, number: int) -> Response:
    """One subject with its samples."""
    opened = _opened(request, visitor, gallery)
    found = _subject(opened, number)
    samples = opened.live.samples(found.id)
    measures = opened.ledger.measures.of([sample.number for sample in samples])
    samples.sort(key=lambda sample: poorness(sample, measures.get(sample.number)))
    link, here = service_of(request).settings.origin_link, address_of(gallery, "subjects", number)
    sees = sees_samples(visitor, gallery)
    return render(
        request, "subject.html.jinja", visitor, title=str(found.id), gallery=gallery, here=here,
        back=address_of(gallery, "subjects"), add=address_of(gallery, "enrol") + f"?subject={number}",
        may_change=visitor.may(Permission.ENROLL, gallery),
        may_erase=visitor.may(Permission.ERASE, gallery), sees_pictures=sees,
        subject={
            "name": str(found.id), "number": number, "retain_until": day(found.retain_until), "consent": found.consent,
            "purpose": found.purpose,
        },
        samples=[
            {
                "number": sample.number, "picture": sample_picture(opened, sample.number) if sees else None,
                "origin": sample.origin,
                "quality": quality_text(sample, measures.get(sample.number)), "link": link_to_original(link, sample.origin),
            }
            for sample in samples
        ],
    )  # fmt: skip


@router.post(BASE + "/{number:int}/rename")
def rename(request: Request, visitor: Visiting, gallery: GalleryName, number: int, name: Text) -> Response:
    """Another name."""
    wanted = name.strip()

    def change(opened: Opened, found: Subject) -> tuple[int, str]:
        return opened.live.rename(found.id, opened.subject_id(wanted), by=visitor.asker.actor), f"Renamed to {wanted}."

    return _changed(request, visitor, gallery, number, "change", change, stays=True)


@router.post(BASE + "/{number:int}/details")
def details(
    request: Request,
    visitor: Visiting,
    gallery: GalleryName,
    number: int,
    retain_until: Text = "",
    consent: Text = "",
    purpose: Text = "",
) -> Response:
    """Retention, consent and purpose."""
    given: dict[str, Any] = {"consent": consent.strip() or None, "purpose": purpose.strip() or None}
    given["retain_until"] = _time(retain_until)
    return _changed(
        request, visitor, gallery, number, "change",
        lambda opened, found: (opened.live.update([found.id], **given, by=visitor.asker.actor), "Saved."),
        stays=True,
    )  # fmt: skip


@router.post(BASE + "/{number:int}/merge")
def merge(request: Request, visitor: Visiting, gallery: GalleryName, number: int, into: Text) -> Response:
    """This subject turns out to be another one."""

    def change(opened: Opened, found: Subject) -> tuple[int, str]:
        other = opened.subject(into.strip())
        version = opened.live.merge([found.id], into=other.id, by=visitor.asker.actor)
        return version, f"{found.id} is now part of {other.id}."

    return _changed(request, visitor, gallery, number, "merge", change)


@router.post(BASE + "/{number:int}/samples")
def samples(
    request: Request,
    visitor: Visiting,
    gallery: GalleryName,
    number: int,
    action: Text,
    sample: Annotated[list[int] | None, Form()] = None,
    new: Text = "",
) -> Response:
    """Marked samples are taken away, or go to another subject, a new one where nobody has that name."""
    if not sample:
        raise InvalidParameterError("no sample is marked; mark at least one")

    def change(opened: Opened, found: Subject) -> tuple[Versions, str]:
        own = {each.number for each in opened.live.samples(found.id)}
        if not own.issuperset(sample):
            raise InvalidParameterError(
                f"sample {min(set(sample) - own)} is not one of {found.id}; open the subject again"
            )
        if action == "split":
            if not new.strip():
                raise InvalidParameterError("the other subject has no name; give it one")
            return move_samples(opened, found, sample, new.strip(), by=visitor.asker.actor), f"Moved to {new.strip()}."
        return opened.live.remove_samples(sample, by=visitor.asker.actor), "Taken away."

    return _changed(request, visitor, gallery, number, "split" if action == "split" else "remove", change, stays=True)


@router.post(BASE + "/{number:int}/remove")
def remove(request: Request, visitor: Visiting, gallery: GalleryName, number: int) -> Response:
    """The subject leaves; this can be undone."""
    return _changed(
        request, visitor, gallery, number, "remove",
        lambda opened, found: (opened.live.remove([found.id], by=visitor.asker.actor), f"{found.id} was removed."),
    )  # fmt: skip


@router.post(BASE + "/{number:int}/erase")
def erase(request: Request, visitor: Visiting, gallery: GalleryName, number: int, sure: Text = "") -> Response:
    """The subject is gone for good; the receipt says where it was searched for."""
    service = service_of(request)
    visitor.asker.require(Permission.ERASE, gallery)
    opened = service.galleries.get(gallery)
    found = _subject(opened, number)
    if sure != "yes":
        raise InvalidParameterError("erasing cannot be undone; tick the box to confirm it")
    receipt = service.erase(visitor.asker, opened, numbers=[number])
    return render(
        request, "receipt.html.jinja", visitor, title="Erased", gallery=gallery, name=str(found.id), receipt=receipt,
        back=address_of(gallery, "subjects"),
    )  # fmt: skip


@router.post("/galleries/{gallery:segment}/undo")
def undo(
    request: Request,
    visitor: Visiting,
    gallery: GalleryName,
    version: Annotated[list[int], Form()],
    to: Annotated[Literal["subjects", "audit"], Form()] = "subjects",
) -> Response:
    """A change is taken back; one of several versions from the last to the first."""
    service, started = service_of(request), time.time()
    visitor.asker.require(Permission.ENROLL, gallery)
    opened = service.galleries.get(gallery)
    with opened.changing:
        for each in sorted(version, reverse=True):
            now = opened.live.undo(each, by=visitor.asker.actor)
            service.record(visitor.asker, "undo", started, opened, gallery_version=now)
    return redirect(address_of(gallery, to), Message("The change was undone."))


def _opened(request: Request, visitor: Visitor, gallery: str) -> Opened:
    visitor.asker.require(Permission.VIEW, gallery)
    return service_of(request).galleries.get(gallery)


def _subject(opened: Opened, number: int) -> Subject:
    found = opened.numbered(number)
    if found is None:
        raise not_found("subject", number, "it may have been merged, removed or erased; search for it")
    return found


def _changed(
    request: Request,
    visitor: Visitor,
    gallery: str,
    number: int,
    action: str,
    change: Callable[[Opened, Subject], tuple[Versions, str]],
    *,
    stays: bool = False,
) -> Response:
    """Make a change, log it, and say so on the next screen with a way to undo it."""
    service, started = service_of(request), time.time()
    visitor.asker.require(Permission.ENROLL, gallery)
    opened = service.galleries.get(gallery)
    with opened.changing:
        made, text = change(opened, _subject(opened, number))
    versions = (made,) if isinstance(made, int) else made
    for version in versions:
        service.record(visitor.asker, action, started, opened, gallery_version=version)
    address = address_of(gallery, "subjects", number) if stays else address_of(gallery, "subjects")
    return redirect(address, undoable(gallery, text, versions))


def _page(opened: Opened, search: str, after: int) -> tuple[list[Subject], int | None]:
    """A page of subjects, and the number to go on after, where there may be more."""
    if not search:
        found = opened.live.subjects(after, A_PAGE + 1)
        return found[:A_PAGE], found[A_PAGE - 1].number if len(found) > A_PAGE else None
    wanted, looked = search.casefold(), 0
    matching: list[Subject] = []
    while len(matching) < A_PAGE and looked < SEARCHED:
        found = opened.live.subjects(after, 1000)
        for each in found:
            after = each.number
            looked += 1
            if wanted in str(each.id).casefold():
                matching.append(each)
                if len(matching) == A_PAGE:
                    break
        if len(found) < 1000 and len(matching) < A_PAGE:
            return matching, None
    return matching, after


def _time(text: str) -> float | None:
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC).timestamp()
    except ValueError as error:
        raise InvalidParameterError(f"keep until must be a date such as 2027-01-31, got {text!r}") from error
