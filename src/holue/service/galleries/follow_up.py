"""Follow-up: what is kept of answers for people: reviews of uncertain ones, and unknown probes where that is allowed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holue.recognition.answer.identifications import FILTERED, REJECTED
from holue.service.galleries.answered import Answered
from holue.service.galleries.opened import Opened
from holue.service.galleries.probes import Probes
from holue.service.ledger.images import Of
from holue.service.ledger.reviewing.review_offer import Offer


def keep_for_people(
    opened: Opened, answered: Answered, probes: Probes, documents: list[dict[str, Any]], places: Sequence[int]
) -> None:
    """Queue filtered answers, and a share of the others, for review, and name the reviews in the documents.

    ``places`` are those of the probes in their requests.
    """
    _queue(opened, answered, probes, documents, places)
    _keep_pictures(opened, probes, documents)
    _keep_strangers(opened, probes, documents)


def _queue(
    opened: Opened, answered: Answered, probes: Probes, documents: list[dict[str, Any]], places: Sequence[int]
) -> None:
    rows = [row for row, each in enumerate(documents) if opened.review_share > 0 or each["decision"] == FILTERED]
    offers = [
        Offer.of(
            answered.answers[row],
            probes.rows[row],
            None if probes.concentration is None else float(probes.concentration[row]),
            number_of=opened.number_of,
            request_id=documents[row]["request_id"],
            probe=places[row],
            gallery_version=answered.version.version,
            calibration=answered.version.calibration,
            model=opened.live.model,
        )
        for row in rows
    ]
    if not offers:
        return
    for row, number in zip(rows, opened.ledger.reviews.offer(offers)):
        documents[row]["review_id"] = None if number is None else f"{opened.name}.{number}"


def _keep_pictures(opened: Opened, probes: Probes, documents: list[dict[str, Any]]) -> None:
    """Pictures of the probes that go to review, where the gallery keeps pictures and the model reads images."""
    sent = probes.files
    if sent is None or sent.kind != "image" or not opened.ledger.images.kept:
        return
    opened.ledger.images.put(
        Of.REVIEW,
        {
            int(document["review_id"].rpartition(".")[2]): sent.picture(rows[0])
            for document, rows in zip(documents, probes.of_file)
            if document["review_id"] is not None
        },
    )


def _keep_strangers(opened: Opened, probes: Probes, documents: list[dict[str, Any]]) -> None:
    if not opened.keeps_strangers:
        return
    unknown = [row for row, each in enumerate(documents) if each["decision"] == REJECTED]
    kappa = None if probes.concentration is None else probes.concentration[unknown].tolist()
    request_ids = [documents[row]["request_id"] for row in unknown]
    opened.ledger.strangers.add(probes.rows[unknown], kappa, request_id=request_ids, model=opened.live.model)
