"""Reviews: answers that people look at; what they decide is kept as labelled probes."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.requests import Request

from holue.service.galleries.answers import finite, risk_of
from holue.service.galleries.opened import Opened
from holue.service.http import cursors
from holue.service.http.access import Asker, allowed
from holue.service.http.bodies import StrictRoute
from holue.service.http.cursors import Cursor, Limit
from holue.service.http.paths import GalleryName
from holue.service.http.problems import not_found
from holue.service.ledger.reviewing.review_item import Kind, ReviewItem, State
from holue.service.risk_check import OF_ALL_ANSWERS
from holue.service.roles import Permission
from holue.service.routes.operations import GalleryQuery, numbered
from holue.service.schemas.reviews import (
    ClaimBody,
    ClaimedDocument,
    DecisionBody,
    DecisionDocument,
    PromiseDocument,
    ReviewCandidateDocument,
    ReviewDocument,
    ReviewsPage,
    StateName,
)
from holue.service.service import service_of
from holue.store.values import SubjectId

router = APIRouter(route_class=StrictRoute, tags=["reviews"])

Reviewer = Annotated[Asker, allowed(Permission.REVIEW)]
ReviewId = Annotated[str, Path(description="The id of a review.", examples=["demo.1"])]


@router.get("/v1/reviews")
def reviews(
    request: Request,
    asker: Reviewer,
    gallery: GalleryQuery,
    state: Annotated[StateName | None, Query(description="Only reviews in this state.")] = None,
    cursor: Cursor = None,
    limit: Limit = 100,
) -> ReviewsPage:
    """The reviews of a gallery in the order they came."""
    opened = _opened(request, asker, gallery)
    queue = opened.ledger.reviews
    found = queue.items(None if state is None else State(state), after=cursors.decode(cursor), limit=limit + 1)
    following = cursors.encode(found[limit - 1].number) if len(found) > limit else None
    return ReviewsPage(
        reviews=[review_document(opened, item) for item in found[:limit]], next=following, counts=queue.counts()
    )


@router.post("/v1/reviews/claim")
def claim(request: Request, asker: Reviewer, body: ClaimBody) -> ClaimedDocument:
    """The review that this key should decide next; nobody else gets it for five minutes."""
    opened = _opened(request, asker, body.gallery)
    item = opened.ledger.reviews.claim(asker.actor)
    return ClaimedDocument(review=None if item is None else review_document(opened, item))


@router.get("/v1/reviews/{review:segment}")
def review(request: Request, review: ReviewId, asker: Reviewer) -> ReviewDocument:
    """One review."""
    opened, number = _of(request, asker, review)
    return review_document(opened, opened.ledger.reviews.get(number))


@router.post("/v1/reviews/{review:segment}/decision")
def decide(request: Request, review: ReviewId, asker: Reviewer, body: DecisionBody) -> ReviewDocument:
    """Decide a review; the decision is kept as a labelled probe once enough people agree."""
    started = time.time()
    opened, number = _of(request, asker, review)
    if body.subject is not None and opened.id_of(body.subject) is None:
        raise not_found("subject", body.subject, "name the number of an enrolled subject")
    with service_of(request).recording(asker, "decide", started, opened, decision=body.kind, item=number):
        item = opened.ledger.reviews.decide(number, asker.actor, Kind(body.kind), body.subject)
    return review_document(opened, item)


@router.delete("/v1/reviews/{review:segment}/decision")
def undo_decision(
    request: Request,
    review: ReviewId,
    asker: Reviewer,
    decision: Annotated[
        int | None, Query(ge=1, lt=2**63, description="The number of a decision; your own last one by default.")
    ] = None,
) -> ReviewDocument:
    """Take a decision back."""
    started = time.time()
    opened, number = _of(request, asker, review)
    with service_of(request).recording(asker, "undo-decision", started, opened, item=number):
        item = opened.ledger.reviews.undo(number, asker.actor, decision=decision)
    return review_document(opened, item)


@router.get("/v1/galleries/{gallery:segment}/promise")
def promise(
    request: Request, gallery: GalleryName, asker: Annotated[Asker, allowed(Permission.VIEW)]
) -> PromiseDocument:
    """The promised risk, set against what reviewers found among the answers of the calibration in use, with an interval."""
    opened = service_of(request).galleries.get(gallery)
    now = opened.live.current
    promised = risk_of(now)
    same = promised["kind"] in OF_ALL_ANSWERS
    found = opened.ledger.labelled_probes.risk(
        now.calibration, risk=promised["kind"] if same else "error", promised=promised["target"] if same else None
    )
    return PromiseDocument(**vars(found), verdict=found.verdict)


def review_document(opened: Opened, item: ReviewItem) -> ReviewDocument:
    """An item as it is sent; subjects get the ids that they have now."""
    shows: SubjectId | None = None
    if item.verdict is not None:
        shows = "nobody" if item.verdict.subject is None else opened.id_of(item.verdict.subject)
    answer: dict[str, Any] = dict(item.answer)
    return ReviewDocument(
        id=f"{opened.name}.{item.number}",
        gallery=opened.name,
        created=item.created,
        state=item.state.value,
        sampled=item.sampled,
        decision=item.decision,
        subject=item.subject,
        uncertainty=finite(answer["uncertainty"]),
        reason=answer["reason"],
        candidates=[
            ReviewCandidateDocument(
                number=each.subject, subject=opened.id_of(each.subject), score=each.score, probability=each.probability
            )
            for each in item.candidates
        ],
        decisions=[DecisionDocument(**{**vars(each), "kind": each.kind.value}) for each in item.decisions],
        claimed_by=item.claimed_by,
        claimed_until=item.claimed_until,
        shows=shows,
        request_id=item.request_id,
        probe=item.probe,
        gallery_version=item.gallery_version,
        calibration=item.calibration,
    )


def _opened(request: Request, asker: Asker, gallery: str) -> Opened:
    asker.require(Permission.REVIEW, gallery)
    return service_of(request).galleries.get(gallery)


def _of(request: Request, asker: Asker, review: str) -> tuple[Opened, int]:
    gallery, number = numbered(review, "review")
    return _opened(request, asker, gallery), number
