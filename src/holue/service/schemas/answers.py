"""Schemas of identification and verification."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from holue.service.schemas.common import Body, Concentration, Document, Embedding, SubjectId

TOP_K = 5
Decision = Literal["accepted", "rejected", "filtered", "incomplete"]


class IdentifyBody(Body):
    """Probes to identify."""

    probes: list[Embedding] = Field(
        min_length=1, description="One embedding for each probe.", examples=[[[0.12, -0.98, 0.15, 0.04]]]
    )
    concentration: list[Concentration] | None = Field(
        default=None,
        description="How good the sample of each probe is, where the model says so (κ of a von Mises-Fisher distribution).",
        examples=[[120.0]],
    )
    top_k: int = Field(default=TOP_K, ge=1, le=10_000, description="Candidates of each answer.", examples=[TOP_K])
    model: str | None = Field(
        default=None, description="The fingerprint of the embedding model; another one than the gallery's is refused.",
        examples=[None],
    )  # fmt: skip


class VerifyBody(Body):
    """A probe that claims to be a subject."""

    subject: SubjectId
    probe: Embedding
    concentration: Concentration | None = Field(default=None, description="How good the sample is.", examples=[120.0])
    model: str | None = Field(default=None, description="The fingerprint of the embedding model.", examples=[None])


class CandidateDocument(Document):
    """An enrolled subject that the probe may show."""

    subject: SubjectId
    probability: float = Field(description="The probability that the probe shows this subject.", examples=[0.93])
    score: float = Field(description="The cosine of the probe and the subject's template.", examples=[0.71])
    model_probability: float = Field(description="The class model's own probability, not calibrated.", examples=[0.97])
    sample: int | None = Field(
        description="The number of the enrolled sample that matches best; null where the subject has left since.",
        examples=[12],
    )


class RiskDocument(Document):
    """What is promised about answers like this one, and whether the promise holds now."""

    kind: str | None = Field(
        description="What is limited: fpir (strangers accepted), error, false-acceptance …; null where nothing is promised.",
        examples=["fpir"],
    )
    target: float | None = Field(description="The largest rate.", examples=[0.01])
    confidence: float | None = Field(
        description="The confidence of a certificate; null where the target was aimed at in calibration without one.",
        examples=[0.95],
    )
    valid: bool = Field(description="Whether the promise holds for the gallery as it is now.", examples=[True])
    why_not: list[str] = Field(description="Why it does not hold.", examples=[[]])


class FaceDocument(Document):
    """Where a face is in a photograph, and what makes it poor."""

    file: str = Field(description="The name under which the photograph was sent.", examples=["party"])
    number: int = Field(description="Its number in the photograph, counted from the left, from 1.", examples=[2])
    box: list[float] = Field(
        description="x, y, width and height in pixels of the upright photograph.", examples=[[74.0, 69.0, 97.0, 120.0]]
    )
    measures: dict[str, float] = Field(
        description="score: the detector's; size: pixels of the photograph across the aligned face; yaw, pitch, roll in degrees; "
        "sharpness; outside: the share of the aligned face that lies outside of the photograph.",
        examples=[
            {"score": 0.92, "size": 130.2, "yaw": 4.1, "pitch": -2.0, "roll": 0.5, "sharpness": 0.06, "outside": 0.0}
        ],
    )


class WindowDocument(Document):
    """A stretch of speech in a recording."""

    file: str = Field(description="The name that the recording was sent under.", examples=["call"])
    start: float = Field(description="Where it starts, in seconds.", examples=[1.5])
    end: float = Field(description="Where it ends, in seconds.", examples=[4.9])
    speech: float = Field(description="The mean probability of speech in it.", examples=[0.97])


class AnswerDocument(Document):
    """The answer about one probe."""

    decision: Decision = Field(
        description="accepted: an enrolled subject; rejected: nobody enrolled; filtered: too uncertain, let a person decide; "
        "incomplete: part of the gallery could not be read.",
        examples=["accepted"],
    )
    subject: SubjectId | None = Field(description="The subject, where accepted.", examples=["ann"])
    candidates: list[CandidateDocument] = Field(description="The most probable subjects, the best score first.")
    uncertainty: float | None = Field(
        description="How uncertain the answer is; higher is less certain.", examples=[0.07]
    )
    reasons: list[str] = Field(
        description="Why it is uncertain, in sentences.", examples=[["between ann and bob: 0.56 and 0.38"]]
    )
    risk: RiskDocument
    gallery_version: int = Field(description="The version of the gallery that answered.", examples=[7])
    model: str | None = Field(description="The fingerprint of the gallery's embedding model.", examples=[None])
    calibration: int | None = Field(description="The number of the calibration that answered.", examples=[2])
    request_id: str = Field(description="The request's id, as in the log.", examples=["0198c2d4a7b1"])
    review_id: str | None = Field(description="The review that this answer waits for.", examples=[None])
    score: float = Field(description="The best cosine.", examples=[0.71])
    p_subject: float = Field(description="The probability of the best candidate.", examples=[0.93])
    p_unknown: float = Field(description="The probability that nobody enrolled is shown.", examples=[0.05])
    calibrated: bool = Field(description="Whether the probabilities were learned from probes.", examples=[True])
    quality: float | None = Field(description="The method's own score; higher is more reliable.", examples=[0.93])
    model_p_unknown: float = Field(description="The class model's own p_unknown, not calibrated.", examples=[0.02])
    faces: list[FaceDocument] = Field(
        default=[],
        description="The faces that the probe was made of, where the service looks for faces in photographs: one, or one of each "
        "photograph of the same name.",
    )
    windows: list[WindowDocument] = Field(
        default=[],
        description="The stretches of speech that the probe was made of, where the service looks for speech in recordings.",
    )


class AnswersDocument(Document):
    """The answers about the probes of a request, in their order."""

    answers: list[AnswerDocument] = Field(description="One answer for each probe.")
    without_face: list[str] = Field(
        default=[],
        description="The photographs in which no face was found, by the names they were sent under.",
        examples=[[]],
    )
    without_speech: list[str] = Field(
        default=[],
        description="The recordings in which no speech was found, by the names they were sent under.",
        examples=[[]],
    )


class VerificationDocument(Document):
    """Whether a probe is the subject it claims to be."""

    decision: Decision = Field(
        description="accepted: it is; rejected: it is not, or somebody else matches better; filtered: too uncertain; "
        "incomplete: part of the gallery could not be read.",
        examples=["accepted"],
    )
    subject: SubjectId
    score: float = Field(description="The cosine of the probe and the claimed subject's template.", examples=[0.71])
    threshold: float = Field(description="The cosine from which probes are accepted.", examples=[0.52])
    probability: float | None = Field(
        description="The probability that the probe shows the subject; null where it is not among the ten best candidates.",
        examples=[0.93],
    )
    uncertainty: float | None = Field(description="How uncertain the underlying identification is.", examples=[0.07])
    reasons: list[str] = Field(description="Why it is not accepted or uncertain, in sentences.", examples=[[]])
    risk: RiskDocument
    sample: int | None = Field(description="The enrolled sample that matches best.", examples=[12])
    gallery_version: int = Field(description="The version of the gallery that answered.", examples=[7])
    model: str | None = Field(description="The fingerprint of the gallery's embedding model.", examples=[None])
    calibration: int | None = Field(description="The number of the calibration that answered.", examples=[2])
    request_id: str = Field(description="The request's id, as in the log.", examples=["0198c2d4a7b1"])
