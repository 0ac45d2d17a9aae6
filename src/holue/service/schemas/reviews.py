"""Schemas of reviews, of the promise checked against them, and of strangers."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from holue.service.schemas.common import Body, Changed, Document, Next, Number, SubjectId

KindName = Literal["accept", "reject", "other", "not_this", "skip"]
StateName = Literal["open", "disputed", "decided"]


class ReviewCandidateDocument(Document):
    """A subject that the probe may show; those decided against are not offered again."""

    number: int = Field(description="The subject's number.", examples=[3])
    subject: SubjectId | None = Field(description="Its id; null where the subject has left since.", examples=["ann"])
    score: float = Field(description="The cosine of the probe and the subject's template.", examples=[0.71])
    probability: float = Field(description="The probability that the probe shows this subject.", examples=[0.56])


class DecisionDocument(Document):
    """What a reviewer decided."""

    number: int = Field(description="Its number.", examples=[1])
    time: float = Field(description="When, seconds since 1970.", examples=[1760000000.0])
    actor: str = Field(description="The key that decided.", examples=["0a1b2c3d4e5f/reviewer"])
    kind: KindName = Field(description="What was decided.", examples=["accept"])
    subject: int | None = Field(description="The number of the subject that it names.", examples=[3])
    undone: float | None = Field(description="When it was undone.", examples=[None])
    undone_by: str | None = Field(description="The key that undid it.", examples=[None])


class ReviewDocument(Document):
    """An answer for a person to look at."""

    id: str = Field(description="The review's id.", examples=["office.1"])
    gallery: str = Field(description="The gallery.", examples=["office"])
    created: float = Field(description="When it was queued, seconds since 1970.", examples=[1760000000.0])
    state: StateName = Field(description="Where it stands.", examples=["open"])
    sampled: bool = Field(
        description="Whether it was decided already and is looked at to estimate errors; else it was filtered.",
        examples=[False],
    )
    decision: str = Field(description="What the service had decided.", examples=["filtered"])
    subject: int | None = Field(description="The number of the subject it had accepted.", examples=[None])
    uncertainty: float | None = Field(description="How uncertain the answer was.", examples=[0.44])
    reason: str = Field(
        description="Why; candidates are named by rank.",
        examples=["between candidate 1 and candidate 2: 0.56 and 0.38"],
    )
    candidates: list[ReviewCandidateDocument] = Field(description="The candidates that are left, best first.")
    decisions: list[DecisionDocument] = Field(description="What was decided so far, oldest first.")
    claimed_by: str | None = Field(description="The key that looks at it now.", examples=[None])
    claimed_until: float | None = Field(description="Until when.", examples=[None])
    shows: SubjectId | Literal["nobody"] | None = Field(
        description="Whom the probe shows by the decisions: an id, `nobody`, or null while it is open.", examples=[None]
    )
    request_id: str = Field(description="The request that it answers.", examples=["0198c2d4a7b1"])
    probe: int = Field(description="The probe's place in the request.", examples=[0])
    gallery_version: int = Field(description="The version that answered.", examples=[7])
    calibration: int | None = Field(description="The calibration that answered.", examples=[2])


class ReviewsPage(Document):
    """Reviews in the order they came."""

    reviews: list[ReviewDocument] = Field(description="The reviews of this page.")
    next: str | None = Field(description="The cursor of the next page.", examples=["MTAw"])
    counts: dict[str, int] = Field(
        description="How many there are in each state.", examples=[{"open": 3, "disputed": 0, "decided": 12}]
    )


class ClaimBody(Body):
    """Whose queue to take the next review from."""

    gallery: str = Field(min_length=1, max_length=100, description="The gallery.", examples=["office"])


class ClaimedDocument(Document):
    """The review to decide next."""

    review: ReviewDocument | None = Field(description="It is yours for five minutes; null where nothing waits.")


class DecisionBody(Body):
    """A decision about a review."""

    kind: KindName = Field(
        description="accept: it is the best candidate, or the subject named; reject: nobody enrolled; other: a subject who is "
        "no candidate; not_this: not this candidate; skip: let somebody else decide.",
        examples=["accept"],
    )
    subject: Number | None = Field(
        default=None, description="The number of the subject that it names.", examples=[None]
    )


class PromiseDocument(Document):
    """What reviewers found among sampled answers, beside the promised risk."""

    risk: str = Field(description="What is counted.", examples=["error"])
    promised: float | None = Field(description="The largest rate that is promised.", examples=[0.05])
    confidence: float = Field(description="The confidence of the interval.", examples=[0.95])
    rate: float | None = Field(description="The rate that was found; null where nothing was reviewed.", examples=[0.02])
    lower: float = Field(description="The lower end of the interval.", examples=[0.01])
    upper: float = Field(description="The upper end of the interval.", examples=[0.04])
    answered: int = Field(description="Automatic decisions that it is about.", examples=[4000])
    reviewed: int = Field(description="Those that were reviewed.", examples=[400])
    wrong: int = Field(description="Those found wrong.", examples=[8])
    waiting: int = Field(description="Sampled answers that nobody has decided yet.", examples=[3])
    verdict: str = Field(description="kept, broken, open or no promise.", examples=["kept"])


class StrangerGroupDocument(Document):
    """Probes that seem to show one person who is not enrolled."""

    number: int = Field(description="The group's number.", examples=[1])
    members: list[int] = Field(description="The numbers of its probes.", examples=[[1, 3]])
    first_seen: float = Field(description="When the first came, seconds since 1970.", examples=[1760000000.0])
    last_seen: float = Field(description="When the last came.", examples=[1760003600.0])
    expires: float = Field(description="When the last of them is deleted.", examples=[1760086400.0])


class StrangersDocument(Document):
    """Who seems to have come without being enrolled, the largest group first."""

    groups: list[StrangerGroupDocument] = Field(description="The groups of this page.")
    next: Next
    kept_days: float = Field(description="Days for which unknown probes are kept; 0 keeps none.", examples=[0.0])


class EnrollStrangerBody(Body):
    """A group of strangers to enrol as a subject."""

    members: list[Number] = Field(
        min_length=1, max_length=1000, description="The numbers of the probes.", examples=[[1, 3]]
    )
    subject: SubjectId
    consent: str | None = Field(
        default=None, max_length=4096, description="What the subject agreed to.", examples=["form"]
    )
    purpose: str | None = Field(default=None, max_length=4096, description="What for.", examples=["door access"])


class EnrolledStranger(Changed):
    """A subject enrolled from strangers."""

    subject: SubjectId
    samples: list[int] = Field(description="The numbers of the samples.", examples=[[7, 8]])
