"""Reviews: the queue of answers for people to look at, and what they decided.

Filtered answers are all queued. Of the others a settable share is, chosen by a number that belongs to the answer alone; reviewers
get them in the order of that number. So those under the smallest number still undecided are a complete random sample at any time,
and the errors found in it can be set against the promise (``holue.service.risk_check``).
"""

from __future__ import annotations

import json
import time as clock
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import sqlalchemy as sql

from holue.errors import ConflictError, InvalidParameterError, NotFoundError
from holue.live.protection import Rotation, turned, turned_back
from holue.service.ledger.database import Database
from holue.service.ledger.images import Of, delete_images
from holue.service.ledger.keys import same_holder
from holue.service.ledger.parts import parts
from holue.service.ledger.reviewing.review_item import (
    FINAL,
    Kind,
    ReviewCandidate,
    ReviewDecision,
    ReviewItem,
    State,
    Verdict,
    settled,
)  # fmt: skip
from holue.service.ledger.reviewing.review_offer import Offer, embedding_digest, permanent_number
from holue.service.ledger.tables import ANSWERED, CANDIDATES, DECISIONS, IMAGES, LABELLED, REVIEWS

LEASE = 300.0
"""Seconds for which an item is one reviewer's alone."""
SAMPLED_WORK = 0.2
"""Share of the reviewers' work that goes to sampled answers, where there are filtered ones too."""
_COLUMNS = [
    column for column in REVIEWS.c if column.name not in ("embedding_digest", "information", "sampled_at", "share")
]
_FINAL = [kind.value for kind in FINAL]


class Reviews:
    """The reviews in a ledger.

    ``share`` of the answers that were not filtered are queued too. An item is decided once ``people`` reviewers with different
    keys have decided the same; until then it is open, or disputed where they differ.
    """

    def __init__(
        self, database: Database, *, share: float = 0.0, people: int = 1, rotation: Rotation | None = None
    ) -> None:
        if not 0 <= share <= 1:
            raise InvalidParameterError(f"share must lie between 0 and 1, got {share!r}")
        if people not in (1, 2):
            raise InvalidParameterError(f"people must be 1 or 2, got {people!r}")
        self._database, self._share, self._people = database, float(share), people
        self._secret, self._rotation = database.secret(), rotation

    def offer(self, offers: Sequence[Offer], *, now: float | None = None) -> list[int | None]:
        """Queue those answers that are to be reviewed; the number of each one's item, or None.

        A filtered answer about a probe that was queued before gets the number of that item.
        """
        time = clock.time() if now is None else now
        numbers = [permanent_number(self._secret, offer.request_id, offer.probe) for offer in offers]
        chosen = [
            offer.filtered or (offer.automatic and number < self._share) for offer, number in zip(offers, numbers)
        ]
        if not any(chosen) and not self._share:
            return [None] * len(offers)

        def queue(connection: sql.Connection) -> list[int | None]:
            if self._share:
                self._count(connection, [offer for offer in offers if offer.automatic])
            return [
                self._queue(connection, offer, number, time) if take else None
                for offer, number, take in zip(offers, numbers, chosen)
            ]

        return self._database.writing(queue)

    def get(self, number: int) -> ReviewItem:
        """One item."""
        with self._database.reading() as connection:
            return self._shown(_item(connection, number))

    def items(self, state: State | None = None, *, after: int = 0, limit: int = 100) -> list[ReviewItem]:
        """Items in the order they came, a page at a time."""
        where = [REVIEWS.c.number > after]
        if state is not None:
            where.append(REVIEWS.c.state == state.value)
        query = sql.select(REVIEWS.c.number).where(*where).order_by(REVIEWS.c.number).limit(limit)
        with self._database.reading() as connection:
            return [self._shown(_item(connection, number)) for number in connection.execute(query).scalars().all()]

    def counts(self) -> dict[str, int]:
        """How many items are in each state."""
        query = sql.select(REVIEWS.c.state, sql.func.count()).group_by(REVIEWS.c.state)
        with self._database.reading() as connection:
            found = {str(state): int(count) for state, count in connection.execute(query)}
        return {state.value: found.get(state.value, 0) for state in State}

    def claim(self, actor: str, *, lease: float = LEASE, now: float | None = None) -> ReviewItem | None:
        """The item that this reviewer should decide next, which nobody else gets until the lease ends; None where there is none.

        Filtered answers come in the order of what is learned from them, disputed ones first; sampled ones in the order of
        their numbers. What the reviewer skipped comes last.
        """
        time = clock.time() if now is None else now

        def take(connection: sql.Connection) -> ReviewItem | None:
            number = self._next(connection, actor, time)
            if number is None:
                return None
            change = sql.update(REVIEWS).where(REVIEWS.c.number == number)
            connection.execute(change.values(claimed_by=actor, claimed_until=time + lease))
            return self._shown(_item(connection, number))

        return self._database.writing(take)

    def decide(
        self, number: int, actor: str, kind: Kind, subject: int | None = None, *, now: float | None = None
    ) -> ReviewItem:
        """Keep a decision. ``subject`` is a number: needed for OTHER, the best candidate by default for ACCEPT and NOT_THIS."""
        time = clock.time() if now is None else now

        def keep(connection: sql.Connection) -> ReviewItem:
            item = _item(connection, number)
            _check_turn(item, actor, same_holder(connection, actor), time)
            whom = _whom(item, kind, subject)
            row = {"review": number, "time": time, "actor": actor, "kind": kind.value, "subject": whom}
            connection.execute(sql.insert(DECISIONS), [row])
            return self._settle(connection, number, time, release=kind is not Kind.NOT_THIS)

        return self._database.writing(keep)

    def undo(self, number: int, actor: str, *, decision: int | None = None, now: float | None = None) -> ReviewItem:
        """Take back the reviewer's own last decision about an item, or the ``decision`` with a number, whoever made it."""
        time = clock.time() if now is None else now

        def take_back(connection: sql.Connection) -> ReviewItem:
            standing = [one for one in _item(connection, number).decisions if one.undone is None]
            wanted = [one for one in standing if (one.actor == actor if decision is None else one.number == decision)]
            if not wanted:
                raise NotFoundError(f"review {number} has no such decision that stands; nothing was undone")
            change = sql.update(DECISIONS).where(DECISIONS.c.number == wanted[-1].number)
            connection.execute(change.values(undone=time, undone_by=actor))
            return self._settle(connection, number, time, release=False)

        return self._database.writing(take_back)

    def last_of(self, actor: str) -> int | None:
        """The item of a reviewer's newest decision that stands; None where there is none."""
        own = sql.select(DECISIONS.c.review).where(DECISIONS.c.actor == actor, DECISIONS.c.undone.is_(None))
        with self._database.reading() as connection:
            return connection.execute(own.order_by(DECISIONS.c.number.desc()).limit(1)).scalars().first()

    def purge(self, before: float) -> int:
        """Delete the items that came before a time, with their probes and labels; returns how many."""
        query = sql.select(REVIEWS.c.number).where(REVIEWS.c.created < before)
        numbers = self._database.writing(
            lambda connection: _drop(connection, connection.execute(query).scalars().all())
        )
        if numbers:
            self._database.scrub(TABLES)
        return len(numbers)

    # Inside

    def _count(self, connection: sql.Connection, given: Sequence[Offer]) -> None:
        counts: dict[int, int] = {}
        for offer in given:
            counts[offer.calibration or 0] = counts.get(offer.calibration or 0, 0) + 1
        for calibration, count in counts.items():
            here = (ANSWERED.c.calibration == calibration) & (ANSWERED.c.share == self._share)
            more = sql.update(ANSWERED).where(here).values(unfiltered=ANSWERED.c.unfiltered + count)
            if not connection.execute(more).rowcount:
                row = {"calibration": calibration, "share": self._share, "unfiltered": count}
                connection.execute(sql.insert(ANSWERED), [row])

    def _queue(self, connection: sql.Connection, offer: Offer, number: float, time: float) -> int:
        embedding = turned(offer.embedding[None], self._rotation)[0]
        digest = embedding_digest(self._secret, embedding)
        if offer.filtered:
            same = (REVIEWS.c.embedding_digest == digest) & REVIEWS.c.sampled_at.is_(None)
            known = connection.execute(sql.select(REVIEWS.c.number).where(same)).scalars().first()
            if known is not None:
                return int(known)
        row = {
            "created": time, "request_id": offer.request_id, "probe": offer.probe,
            "embedding": np.ascontiguousarray(embedding, "<f4").tobytes(), "concentration": offer.concentration,
            "embedding_digest": digest, "gallery_version": offer.gallery_version, "calibration": offer.calibration,
            "model": offer.model, "decision": offer.decision, "subject": offer.subject,
            "answer": json.dumps(dict(offer.answer), allow_nan=False), "information": offer.information(),
            "sampled_at": None if offer.filtered else number, "share": None if offer.filtered else self._share,
            "state": State.OPEN.value,
        }  # fmt: skip
        made = connection.execute(sql.insert(REVIEWS).returning(REVIEWS.c.number), [row]).scalar_one()
        candidates = [{"review": made, "rank": rank, **vars(one)} for rank, one in enumerate(offer.candidates)]
        if candidates:
            connection.execute(sql.insert(CANDIDATES), candidates)
        return int(made)

    def _next(self, connection: sql.Connection, actor: str, time: float) -> int | None:
        same = DECISIONS.c.actor.in_(same_holder(connection, actor))
        by_actor = (DECISIONS.c.review == REVIEWS.c.number) & same & DECISIONS.c.undone.is_(None)
        voted = sql.exists().where(by_actor & DECISIONS.c.kind.in_(_FINAL))
        skipped = sql.exists().where(by_actor & (DECISIONS.c.kind == Kind.SKIP.value))
        free = REVIEWS.c.claimed_until.is_(None) | (REVIEWS.c.claimed_until <= time) | (REVIEWS.c.claimed_by == actor)
        waiting = sql.select(REVIEWS.c.number).where(REVIEWS.c.state != State.DECIDED.value, free, ~voted)
        held = (REVIEWS.c.claimed_by == actor) & (REVIEWS.c.claimed_until > time)
        first = [sql.case((held, 0), else_=1), sql.case((skipped, 1), else_=0)]
        lanes = {
            False: waiting.where(REVIEWS.c.sampled_at.is_(None)).order_by(
                *first, sql.case((REVIEWS.c.state == State.DISPUTED.value, 0), else_=1),
                REVIEWS.c.information.desc(), REVIEWS.c.number,
            ),
            True: waiting.where(REVIEWS.c.sampled_at.is_not(None)).order_by(*first, REVIEWS.c.sampled_at),
        }  # fmt: skip
        mine = connection.execute(waiting.where(held).limit(1)).scalars().first()
        if mine is not None:
            return int(mine)
        decided = sql.select(sql.func.count(), sql.func.count(REVIEWS.c.sampled_at)).where(
            REVIEWS.c.state == State.DECIDED.value
        )
        done, sampled = connection.execute(decided).one()
        sampled_first = sampled < SAMPLED_WORK * (done + 1)
        for lane in (sampled_first, not sampled_first):
            found = connection.execute(lanes[lane].limit(1)).scalars().first()
            if found is not None:
                return int(found)
        return None

    def _settle(self, connection: sql.Connection, number: int, time: float, *, release: bool) -> ReviewItem:
        state, verdict = settled(_decisions(connection, number), self._people)
        change: dict[str, Any] = {"state": state.value}
        if release:
            change |= {"claimed_by": None, "claimed_until": None}
        connection.execute(sql.update(REVIEWS).where(REVIEWS.c.number == number).values(change))
        connection.execute(sql.delete(LABELLED).where(LABELLED.c.review == number))
        if verdict is not None:
            connection.execute(sql.insert(LABELLED), [{"review": number, "subject": verdict.subject, "time": time}])
        return self._shown(_item(connection, number))

    def _shown(self, item: ReviewItem) -> ReviewItem:
        return (
            item
            if self._rotation is None
            else replace(item, embedding=turned_back(item.embedding[None], self._rotation)[0])
        )


TABLES = [REVIEWS, DECISIONS, CANDIDATES, LABELLED, IMAGES]


def erase_subjects(connection: sql.Connection, numbers: Sequence[int], digests: Sequence[str]) -> int:
    """Delete what concerns erased subjects: items whose best candidate, answer or decision named them, and probes of theirs.

    In all other items they are no longer candidates. Returns how many items were deleted.
    """
    found: set[int] = set()
    for some in parts(numbers):
        queries = [
            sql.select(REVIEWS.c.number).where(REVIEWS.c.subject.in_(some)),
            sql.select(LABELLED.c.review).where(LABELLED.c.subject.in_(some)),
            sql.select(CANDIDATES.c.review).where(CANDIDATES.c.subject.in_(some), CANDIDATES.c.rank == 0),
            sql.select(DECISIONS.c.review).where(DECISIONS.c.subject.in_(some), DECISIONS.c.kind.in_(_FINAL)),
        ]
        found.update(number for query in queries for number in connection.execute(query).scalars())
    for part in parts(digests):
        query = sql.select(REVIEWS.c.number).where(REVIEWS.c.embedding_digest.in_(part))
        found.update(connection.execute(query).scalars())
    _drop(connection, sorted(found))
    for some in parts(numbers):
        connection.execute(sql.delete(CANDIDATES).where(CANDIDATES.c.subject.in_(some)))
        connection.execute(sql.delete(DECISIONS).where(DECISIONS.c.subject.in_(some)))
    return len(found)


def _drop(connection: sql.Connection, numbers: Sequence[int]) -> Sequence[int]:
    for some in parts(numbers):
        for column in (DECISIONS.c.review, CANDIDATES.c.review, LABELLED.c.review, REVIEWS.c.number):
            connection.execute(sql.delete(column.table).where(column.in_(some)))
        delete_images(connection, Of.REVIEW, some)
    return numbers


def _item(connection: sql.Connection, number: int) -> ReviewItem:
    row = connection.execute(
        sql.select(*_COLUMNS, REVIEWS.c.sampled_at).where(REVIEWS.c.number == number)
    ).one_or_none()
    if row is None:
        raise NotFoundError(f"there is no review {number}; it may have been erased")
    fields = dict(row._mapping)
    sampled = fields.pop("sampled_at") is not None
    ruled_out = _ruled_out(connection, number)
    ranked = sql.select(CANDIDATES).where(CANDIDATES.c.review == number).order_by(CANDIDATES.c.rank)
    candidates = [ReviewCandidate(one.subject, one.score, one.probability) for one in connection.execute(ranked)]
    label = connection.execute(sql.select(LABELLED.c.subject).where(LABELLED.c.review == number)).one_or_none()
    return ReviewItem(
        **{
            **fields,
            "embedding": np.frombuffer(fields["embedding"], "<f4").astype(np.float32, copy=False),
            "answer": json.loads(fields["answer"]),
            "state": State(fields["state"]),
        },
        sampled=sampled,
        candidates=tuple(one for one in candidates if one.subject not in ruled_out),
        ruled_out=ruled_out,
        decisions=tuple(_decisions(connection, number)),
        verdict=None if label is None else Verdict(label.subject),
    )


def _decisions(connection: sql.Connection, number: int) -> Iterable[ReviewDecision]:
    query = sql.select(DECISIONS).where(DECISIONS.c.review == number).order_by(DECISIONS.c.number)
    for row in connection.execute(query):
        yield ReviewDecision(row.number, row.time, row.actor, Kind(row.kind), row.subject, row.undone, row.undone_by)


def _ruled_out(connection: sql.Connection, number: int) -> frozenset[int]:
    """Candidates decided against in any item about the same probe."""
    same = sql.select(REVIEWS.c.embedding_digest).where(REVIEWS.c.number == number).scalar_subquery()
    items = sql.select(REVIEWS.c.number).where(REVIEWS.c.embedding_digest == same)
    query = sql.select(DECISIONS.c.subject).where(
        DECISIONS.c.review.in_(items), DECISIONS.c.kind == Kind.NOT_THIS.value, DECISIONS.c.undone.is_(None)
    )
    return frozenset(connection.execute(query).scalars())


def _check_turn(item: ReviewItem, actor: str, same: Sequence[str], time: float) -> None:
    if item.state is State.DECIDED:
        raise ConflictError(f"review {item.number} is decided already; undo that decision first")
    if item.claimed_by not in (None, actor) and item.claimed_until is not None and item.claimed_until > time:
        raise ConflictError(
            f"review {item.number} is with another reviewer for {item.claimed_until - time:.0f} more seconds; take another one"
        )
    if any(one.actor in same and one.undone is None and one.kind in FINAL for one in item.decisions):
        raise ConflictError(
            f"this key, or one it replaces, has decided review {item.number} already; undo it first, or let another key decide"
        )


def _whom(item: ReviewItem, kind: Kind, subject: int | None) -> int | None:
    """The subject that a decision names, checked."""
    if kind in (Kind.REJECT, Kind.SKIP):
        if subject is not None:
            raise InvalidParameterError(f"{kind.value} names no subject, got {subject}; leave it out")
        return None
    remaining = [candidate.subject for candidate in item.candidates]
    if kind is Kind.OTHER:
        if subject is None:
            raise InvalidParameterError("other needs the number of the subject that the probe shows")
        if subject in item.ruled_out:
            raise ConflictError(f"subject {subject} was ruled out for this probe; undo that decision first")
        return subject
    if subject is None:
        if not remaining:
            raise ConflictError(f"review {item.number} has no candidate left; reject it, or name another subject")
        return remaining[0]
    if subject not in remaining:
        raise InvalidParameterError(
            f"subject {subject} is no candidate of review {item.number}; its candidates are {remaining}, or decide 'other'"
        )
    return subject
