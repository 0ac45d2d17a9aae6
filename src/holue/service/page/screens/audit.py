"""Audit: what is wrong with a gallery, a card for each finding, answered with one key."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from holue.errors import InvalidParameterError
from holue.service.galleries.opened import Opened
from holue.service.http.paths import GalleryName
from holue.service.http.problems import not_found
from holue.service.ledger.dismissals import Finding
from holue.service.page.findings import Card, cards
from holue.service.page.moving import move_samples, undoable
from holue.service.page.rendering import Message, redirect, render
from holue.service.page.screens import address_of
from holue.service.page.screens.pictures import sample_picture
from holue.service.page.visitor import PageRoute, Visiting
from holue.service.roles import Permission
from holue.service.service import service_of
from holue.store.values import Subject

router = APIRouter(route_class=PageRoute, include_in_schema=False)
BASE = "/galleries/{gallery:segment}/audit"


@router.get(BASE)
def audit(request: Request, visitor: Visiting, gallery: GalleryName) -> Response:
    """The findings of the last audit that still need an answer."""
    visitor.asker.require(Permission.AUDIT, gallery)
    opened = service_of(request).galleries.get(gallery)
    last = opened.audit
    found = None if last is None else cards(last.found, opened.live.subject, opened.ledger.dismissals.all())
    return render(
        request, "audit.html.jinja", visitor, title="Audit", gallery=gallery, here=address_of(gallery, "audit"),
        may_change=visitor.may(Permission.ENROLL, gallery), headline=_headline(opened),
        findings=None if found is None else [_shown(opened, card, first=place == 0) for place, card in enumerate(found)],
    )  # fmt: skip


@router.post(BASE + "/run")
async def run(request: Request, visitor: Visiting, gallery: GalleryName) -> Response:
    """Audit the gallery as it is now."""
    visitor.asker.require(Permission.AUDIT, gallery)
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)

    def work() -> None:
        last = opened.run_audit()
        service.record(visitor.asker, "audit", started, opened, gallery_version=last.version)

    await service.long.run(work)
    return redirect(address_of(gallery, "audit"))


@router.post(BASE + "/answer")
def answer(
    request: Request,
    visitor: Visiting,
    gallery: GalleryName,
    action: Annotated[str, Form(max_length=10)],
    kind: Annotated[str, Form(max_length=20)],
    first: Annotated[int, Form()],
    second: Annotated[int, Form()],
    owner: Annotated[int, Form()] = 0,
) -> Response:
    """Carry out what was decided about a finding; it can be undone."""
    visitor.asker.require(Permission.AUDIT, gallery)
    visitor.asker.require(Permission.ENROLL, gallery)
    service, started = service_of(request), time.time()
    opened, actor, here = service.galleries.get(gallery), visitor.asker.actor, address_of(gallery, "audit")
    finding = Finding(kind, first, second)
    if action == "dismiss":
        with service.recording(visitor.asker, "dismiss-finding", started, opened):
            opened.ledger.dismissals.add(finding, by=actor)
        again: list[tuple[str, str | int]] = [
            ("action", "ask-again"),
            ("kind", kind),
            ("first", first),
            ("second", second),
        ]
        return redirect(here, Message("Noted; it will not be asked again.", undo=f"{here}/answer", fields=again))
    if action == "ask-again":
        with service.recording(visitor.asker, "ask-finding-again", started, opened):
            opened.ledger.dismissals.remove(finding)
        return redirect(here, Message("The finding is back."))
    with opened.changing:
        if action == "merge":
            one, other = _numbered(opened, first), _numbered(opened, second)
            versions: tuple[int, ...] = (opened.live.merge([other.id], into=one.id, by=actor),)
            text = f"{other.id} is now part of {one.id}."
        elif action == "remove" and kind == "mislabelled":
            versions = (opened.live.remove_samples([first], by=actor),)
            text = "The sample was taken away."
        elif action == "move" and kind == "mislabelled":
            other = _numbered(opened, second)
            versions = move_samples(opened, _numbered(opened, owner), [first], str(other.id), by=actor)
            text = f"The sample was moved to {other.id}."
        else:
            raise InvalidParameterError(f"action must be merge, move, remove, dismiss or ask-again, got {action!r}")
    for version in versions:
        service.record(visitor.asker, action, started, opened, gallery_version=version)
    return redirect(here, undoable(gallery, text, versions, to="audit"))


def _headline(opened: Opened) -> str:
    last = opened.audit
    if last is None:
        return (
            "An audit looks for subjects enrolled twice, samples under a wrong name, look-alikes and poor references."
        )
    sentence, consequence = last.found.discrimination.sentence, last.found.discrimination.consequence
    said = f"{sentence[0].upper()}{sentence[1:]}"
    more = f" {consequence[0].upper()}{consequence[1:]}." if consequence else ""
    older = (
        ""
        if last.version == opened.live.version
        else f" (Version {last.version} was audited; the gallery has changed since.)"
    )
    return f"{said}{more}{older}"


def _numbered(opened: Opened, number: int) -> Subject:
    found = opened.numbered(number)
    if found is None:
        raise not_found("subject", number, "it has left since the audit; audit again")
    return found


def _shown(opened: Opened, card: Card, *, first: bool) -> dict[str, Any]:
    return {
        "title": card.title, "text": card.text, "first": first,
        "sides": [
            {
                "name": str(side.subject.id), "address": address_of(opened.name, "subjects", side.subject.number),
                "picture": sample_picture(opened, side.sample if side.sample is not None else _any_sample(opened, side.subject)),
            }
            for side in card.sides
        ],
        "actions": [{"name": each.name, "key": each.key, "fields": each.fields} for each in card.actions],
    }  # fmt: skip


def _any_sample(opened: Opened, subject: Subject) -> int | None:
    samples = opened.live.samples(subject.id)
    return samples[0].number if samples else None
