"""Review: one decision per screen about an answer that was too uncertain, or that is looked at to estimate the errors."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Form
from starlette.requests import Request
from starlette.responses import Response

from holue.errors import ConflictError, InvalidParameterError
from holue.gallery.embeddings import normalize
from holue.recognition.answer.identifications import ACCEPTED, FILTERED
from holue.service.galleries.answers import risk_of
from holue.service.galleries.opened import Opened
from holue.service.http.paths import GalleryName
from holue.service.ledger.reviewing.review_item import Kind, ReviewItem, State
from holue.service.page.rendering import Message, moment, redirect, render
from holue.service.page.screens import address_of
from holue.service.page.screens.pictures import review_picture, sample_picture
from holue.service.page.visitor import PageRoute, Visiting
from holue.service.risk_check import OF_ALL_ANSWERS, RiskCheck
from holue.service.roles import Permission
from holue.service.service import service_of
from holue.store.values import Subject

router = APIRouter(route_class=PageRoute, include_in_schema=False)
BASE = "/galleries/{gallery:segment}/review"


@router.get(BASE)
def next_item(request: Request, visitor: Visiting, gallery: GalleryName, undo: int | None = None) -> Response:
    """The item to decide next; nobody else gets it meanwhile."""
    visitor.asker.require(Permission.REVIEW, gallery)
    opened = service_of(request).galleries.get(gallery)
    reviews = opened.ledger.reviews
    if undo is None:  # the page was opened anew
        undo = reviews.last_of(visitor.asker.actor)
    item = reviews.claim(visitor.asker.actor)
    counts = reviews.counts()
    return render(
        request, "review.html.jinja", visitor, title="Review", gallery=gallery,
        item=None if item is None else _shown(opened, item),
        undo=None if undo is None else address_of(gallery, "review", undo, "undo"),
        counter={
            "open": counts[State.OPEN.value] + counts[State.DISPUTED.value], "decided": counts[State.DECIDED.value],
            "found": found_so_far(promise_check(opened)),
        },
    )  # fmt: skip


@router.post(BASE + "/{number:int}")
def decide(
    request: Request,
    visitor: Visiting,
    gallery: GalleryName,
    number: int,
    kind: Annotated[str, Form(max_length=20)],
    subject: Annotated[int | None, Form()] = None,
) -> Response:
    """A decision, kept as a labelled probe; then the next item."""
    visitor.asker.require(Permission.REVIEW, gallery)
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    try:
        chosen = Kind(kind)
    except ValueError as error:
        raise InvalidParameterError(
            f"kind must be one of {', '.join(each.value for each in Kind)}, got {kind!r}"
        ) from error
    here = address_of(gallery, "review")
    try:
        with service.recording(
            visitor.asker,
            f"review-{chosen.value}",
            started,
            opened,
            lambda item: {"decision": item.state.value},
            item=number,
        ):
            opened.ledger.reviews.decide(number, visitor.asker.actor, chosen, subject)
    except ConflictError as error:
        return redirect(here, Message(str(error), "bad"))
    return redirect(f"{here}?undo={number}")


@router.post(BASE + "/{number:int}/undo")
def undo(request: Request, visitor: Visiting, gallery: GalleryName, number: int) -> Response:
    """The visitor's own last decision about an item is taken back."""
    visitor.asker.require(Permission.REVIEW, gallery)
    service, started = service_of(request), time.time()
    opened = service.galleries.get(gallery)
    with service.recording(visitor.asker, "review-undo", started, opened, item=number):
        opened.ledger.reviews.undo(number, visitor.asker.actor)
    return redirect(address_of(gallery, "review"), Message("The decision was undone."))


def promise_check(opened: Opened) -> RiskCheck:
    """What reviewers found among the given answers, beside what is promised about them."""
    promised = risk_of(opened.live.current)
    known = promised["kind"] in OF_ALL_ANSWERS
    return opened.ledger.labelled_probes.risk(
        opened.live.current.calibration, risk=promised["kind"] if known else "error",
        promised=promised["target"] if known else None,
    )  # fmt: skip


def found_so_far(check: RiskCheck) -> str:
    """What the decisions so far have shown about the error rate, in a sentence."""
    if not check.reviewed:
        return ""
    interval = f"the error rate lies between {check.lower:.1%} and {check.upper:.1%}"
    promise = {
        "kept": f", as promised (at most {check.promised or 0:.1%})",
        "broken": f", more than the {check.promised or 0:.1%} that were promised",
        "open": f"; whether the promised {check.promised or 0:.1%} hold is not known yet",
        "no promise": "",
    }[check.verdict]
    return f"Of {check.reviewed} given answers that were looked at, {check.wrong} were wrong: {interval}{promise}."


def _shown(opened: Opened, item: ReviewItem) -> dict[str, Any]:
    names = {candidate.subject: opened.numbered(candidate.subject) for candidate in item.candidates}
    direction = normalize(item.embedding[None], field="probe")[0]
    current = opened.live.current
    candidates = [
        {
            "number": candidate.subject, "name": str(subject.id), "probability": candidate.probability,
            "score": candidate.score, "best": place == 0,
            "address": address_of(opened.name, "subjects", candidate.subject),
            "picture": sample_picture(opened, opened.best_sample(current, subject.id, direction)),
        }
        for place, candidate in enumerate(item.candidates)
        if (subject := names[candidate.subject]) is not None
    ]  # fmt: skip
    answer = item.answer
    return {
        "number": item.number, "address": address_of(opened.name, "review", item.number), "decision": item.decision,
        "picture": review_picture(opened, item.number), "verdict": _verdict(item, names), "candidates": candidates,
        "sentence": _sentence(answer), "p_unknown": answer["p_unknown"], "state_text": _state_text(item),
        "facts": [
            ("Asked", f"{moment(item.created)} UTC"), ("Best cosine", f"{answer['score']:.3f}"),
            ("Gallery version", item.gallery_version),
            ("Calibration", "none" if item.calibration is None else item.calibration),
            ("Why it is here", "a random sample of the given answers" if item.sampled else "too uncertain to decide"),
            ("Request", item.request_id),
        ],
    }  # fmt: skip


def _verdict(item: ReviewItem, names: dict[int, Subject | None]) -> str:
    if item.decision == FILTERED:
        return "? Too uncertain to decide"
    if item.decision == ACCEPTED and item.subject is not None:
        found = names.get(item.subject)
        return f"✓ Answered: {'a subject who has left' if found is None else found.id}"
    return "∅ Answered: nobody enrolled"


def _sentence(answer: Any) -> str:
    wrong = "" if answer["uncertainty"] is None else f"Chance of being wrong: {answer['uncertainty']:.2f}. "
    reason = answer["reason"]
    return wrong if reason in ("", "clear") else f"{wrong}{reason[0].upper()}{reason[1:]}."


def _state_text(item: ReviewItem) -> str:
    others = len({decision.actor for decision in item.decisions if decision.undone is None})
    if item.state is State.DISPUTED:
        return f"{others} reviewers disagree about this one."
    return ""
