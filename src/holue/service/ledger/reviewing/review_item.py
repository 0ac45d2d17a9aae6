"""Review item: an answer for a person to look at, what was decided about it, and what follows from that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from holue.store.values import Float32Array


class Kind(Enum):
    """A decision about an item."""

    ACCEPT = "accept"  # it is the best candidate, or the one that is named
    REJECT = "reject"  # it is nobody enrolled
    OTHER = "other"  # it is a subject who is no candidate
    NOT_THIS = "not_this"  # it is not this candidate; the item stays open without it
    SKIP = "skip"  # somebody else shall decide


FINAL = (Kind.ACCEPT, Kind.REJECT, Kind.OTHER)
"""Decisions that say whom the probe shows."""


class State(Enum):
    """Where an item stands."""

    OPEN = "open"
    DISPUTED = "disputed"  # several have decided, and not enough of them agree
    DECIDED = "decided"


@dataclass(frozen=True)
class ReviewCandidate:
    """A subject, by number, that the probe might show."""

    subject: int
    score: float
    probability: float


@dataclass(frozen=True)
class ReviewDecision:
    """What one person decided, and who undid it when."""

    number: int
    time: float
    actor: str
    kind: Kind
    subject: int | None
    undone: float | None = None
    undone_by: str | None = None


@dataclass(frozen=True)
class Verdict:
    """Whom the probe shows: a subject's number, or None for nobody enrolled."""

    subject: int | None


@dataclass(frozen=True, eq=False)
class ReviewItem:
    """An answer with its probe and its versions. ``candidates`` are those who were not ruled out, best first."""

    number: int
    created: float
    request_id: str
    probe: int
    embedding: Float32Array
    concentration: float | None
    gallery_version: int
    calibration: int | None
    model: str | None
    decision: str
    subject: int | None
    answer: Mapping[str, Any]
    sampled: bool  # an answer that was given, looked at to estimate the errors among such; else a filtered one
    state: State
    claimed_by: str | None
    claimed_until: float | None
    candidates: tuple[ReviewCandidate, ...]
    ruled_out: frozenset[int]
    decisions: tuple[ReviewDecision, ...]
    verdict: Verdict | None


def settled(decisions: Iterable[ReviewDecision], people: int) -> tuple[State, Verdict | None]:
    """The state of an item and whom it shows, once ``people`` different ones have decided the same.

    >>> ann, bob = (ReviewDecision(n, 0.0, who, Kind.OTHER, 7) for n, who in enumerate(["ann", "bob"]))
    >>> settled([ann], people=2)[0], settled([ann, bob], people=2)
    (<State.OPEN: 'open'>, (<State.DECIDED: 'decided'>, Verdict(subject=7)))
    """
    votes = {one.actor: Verdict(one.subject) for one in decisions if one.undone is None and one.kind in FINAL}
    counts = Counter(votes.values())
    for verdict, count in counts.most_common(1):
        if count >= people:
            return State.DECIDED, verdict
    return (State.DISPUTED if len(counts) > 1 else State.OPEN), None


def without_names(reason: str, names: Sequence[object]) -> str:
    """The sentence of an answer with "candidate 1" and "candidate 2" in place of the names of its best candidates.

    >>> without_names("between ann and bob: 0.51 and 0.40", ["ann", "bob"])
    'between candidate 1 and candidate 2: 0.51 and 0.40'
    """
    best = str(names[0]) if names else ""
    if names and reason.startswith(f"{best} "):
        return f"candidate 1{reason[len(best) :]}"
    start = f"between {best} and "
    if not names or not reason.startswith(start):
        return reason
    rest, colon, numbers = reason[len(start) :].rpartition(": ")
    usual = ", as is usual here" if rest.endswith(", as is usual here") else ""
    second = rest.removesuffix(usual)
    return f"between candidate 1 and {second if second == 'several others' else 'candidate 2'}{usual}{colon}{numbers}"
