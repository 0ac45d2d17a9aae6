"""Schemas of subjects and their samples."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from holue.service.schemas.common import (
    Body,
    Changed,
    Concentration,
    Document,
    Embedding,
    Metadata,
    Next,
    Number,
    SubjectId,
)

Text = Annotated[str, Field(max_length=4096)]


class NewSample(Body):
    """One embedding of a subject."""

    embedding: Embedding
    concentration: Concentration | None = Field(default=None, description="How good the sample is.", examples=[120.0])
    medium: Text = Field(
        default="", description="The photograph or recording it comes from; samples of one medium count together.",
        examples=["badge-photo"],
    )  # fmt: skip
    origin: Text | None = Field(default=None, description="Where it came from, in your words.", examples=["front desk"])
    time: float | None = Field(
        default=None, allow_inf_nan=False, description="When it was taken, seconds since 1970; now by default.",
        examples=[1760000000.0],
    )  # fmt: skip


class NewSubject(Body):
    """A subject to enrol."""

    id: SubjectId
    samples: list[NewSample] = Field(min_length=1, description="At least one sample.")
    metadata: Metadata = Field(default_factory=dict)
    retain_until: float | None = Field(
        default=None, allow_inf_nan=False, description="When the subject is to be erased, seconds since 1970.",
        examples=[None],
    )  # fmt: skip
    consent: Text | None = Field(
        default=None, description="What the subject agreed to.", examples=["form of 2026-03-01"]
    )
    purpose: Text | None = Field(
        default=None, description="What the subject is enrolled for.", examples=["door access"]
    )


class EnrollBody(Body):
    """Subjects to enrol, all or nothing."""

    subjects: list[NewSubject] = Field(
        min_length=1, description="The subjects; nobody is enrolled under their ids yet."
    )
    model: str | None = Field(default=None, description="The fingerprint of the embedding model.", examples=[None])


class SamplesBody(Body):
    """Samples for an enrolled subject."""

    samples: list[NewSample] = Field(min_length=1, description="At least one sample.")
    model: str | None = Field(default=None, description="The fingerprint of the embedding model.", examples=[None])


class SubjectPatch(Body):
    """What is to be changed about a subject; a field that is left out stays, null empties it."""

    id: SubjectId | None = Field(default=None, description="Another id.", examples=["ann-2"])
    metadata: Metadata | None = Field(
        default=None,
        description="Anything else about the subject, in place of what was said.",
        examples=[{"badge": "A-113"}],
    )
    retain_until: float | None = Field(
        default=None, allow_inf_nan=False, description="When the subject is to be erased, seconds since 1970.",
        examples=[1790000000.0],
    )  # fmt: skip
    consent: Text | None = Field(
        default=None, description="What the subject agreed to.", examples=["form of 2026-03-01"]
    )
    purpose: Text | None = Field(
        default=None, description="What the subject is enrolled for.", examples=["door access"]
    )


class MergeBody(Body):
    """Subjects who turn out to be this one."""

    subjects: list[SubjectId] = Field(
        min_length=1, max_length=1000, description="They leave; their samples come here.", examples=[["ann-2"]]
    )


class SplitBody(Body):
    """Samples that turn out to show somebody else."""

    samples: list[Number] = Field(min_length=1, max_length=10_000, description="Their numbers.", examples=[[3, 4]])
    new: SubjectId


class Enrolled(Changed):
    """What an enrolment gave."""

    subjects: list[int] = Field(description="For each sample, the number of its subject.", examples=[[1, 1]])
    samples: list[int] = Field(description="For each sample, its own number.", examples=[[1, 2]])


class SubjectDocument(Document):
    """An enrolled subject."""

    id: SubjectId
    number: int = Field(description="The number it has for life.", examples=[1])
    metadata: Metadata
    retain_until: float | None = Field(
        description="When the subject is to be erased, seconds since 1970; null: without end.", examples=[None]
    )
    consent: str | None = Field(description="What the subject agreed to.", examples=["form of 2026-03-01"])
    purpose: str | None = Field(description="What the subject is enrolled for.", examples=["door access"])


class SubjectsPage(Document):
    """Some of the enrolled subjects, in the order of their numbers."""

    subjects: list[SubjectDocument] = Field(description="The subjects of this page.")
    next: str | None = Field(
        description="The cursor of the next page; null where this is the last one.", examples=["MTAw"]
    )


class SampleDocument(Document):
    """A sample of a subject; its embedding does not leave the service."""

    number: int = Field(description="Its number.", examples=[1])
    medium: str = Field(description="The photograph or recording it comes from.", examples=["badge-photo"])
    concentration: float | None = Field(description="How good it is.", examples=[120.0])
    time: float = Field(description="When it was taken, seconds since 1970.", examples=[1760000000.0])
    origin: str | None = Field(description="Where it came from.", examples=["front desk"])
    enrolled_by: str | None = Field(description="The key that enrolled it.", examples=["0a1b2c3d4e5f/enroller"])


class SamplesDocument(Document):
    """The samples of a subject."""

    samples: list[SampleDocument] = Field(description="Those of this page, in the order of their numbers.")
    next: Next
