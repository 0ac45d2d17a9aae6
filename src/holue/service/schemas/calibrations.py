"""Schemas of calibrations."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from holue.recognition.risk.decisions import RiskName
from holue.service.schemas.common import Body, Concentration, Document, Embedding, Next, SubjectId
from holue.service.schemas.galleries import FpirDocument

SourceName = Literal["gallery", "probes", "reviews"]
StateName = Literal["candidate", "active", "superseded"]


class LabelledProbes(Body):
    """What to learn from, or to preview on."""

    source: SourceName = Field(
        default="gallery",
        description="gallery: the enrolled samples, each left out in turn; probes: those in the body; reviews: what people "
        "decided.",
        examples=["gallery"],
    )

    probes: list[Embedding] | None = Field(
        default=None, min_length=1, description="Probes, one embedding each.", examples=[None]
    )
    subjects: list[SubjectId | None] | None = Field(
        default=None,
        description="Whom each probe shows; for somebody who is not enrolled null, or a name, so that several probes of one "
        "stranger count as one person.",
        examples=[None],
    )
    concentration: list[Concentration] | None = Field(
        default=None, description="How good the sample of each probe is.", examples=[None]
    )


class OtherGallery(Body):
    """A gallery of other people to calibrate on."""

    embeddings: list[Embedding] = Field(min_length=1, description="Their samples.", examples=[[[0.1, 0.9, 0.2, 0.1]]])
    subjects: list[SubjectId] = Field(min_length=1, description="Whose they are.", examples=[["x1"]])


class CalibrationBody(LabelledProbes):
    """What to calibrate on."""

    gallery: OtherGallery | None = Field(
        default=None,
        description="The gallery in which the probes are searched; the enrolled one by default.",
        examples=[None],
    )


class CertifyBody(LabelledProbes):
    """Which risk to certify, and on what."""

    source: Literal["probes", "reviews"] = Field(
        default="reviews",
        description="probes: those in the body, which the calibration was not made from; reviews: what people decided about a "
        "random sample of answers.",
        examples=["reviews"],
    )
    risk: RiskName = Field(
        default="error", description="The risk: which decisions are counted, and as what.", examples=["error"]
    )
    target: float = Field(gt=0, lt=1, description="The highest risk wanted among automatic decisions.", examples=[0.02])
    confidence: float = Field(
        default=0.95, gt=0, lt=1, description="The confidence with which it is to be guaranteed.", examples=[0.95]
    )
    unit: Literal["probe", "subject"] = Field(
        default="probe",
        description="What is independent: probes, or only the people behind them, who are named in `people` then.",
        examples=["probe"],
    )
    people: list[SubjectId] | None = Field(
        default=None, description="Who is behind each probe, strangers too; for the unit subject.", examples=[None]
    )
    gallery: OtherGallery | None = Field(
        default=None,
        description="The gallery in which the probes are searched; the enrolled one by default.",
        examples=[None],
    )


class CertificateDocument(Document):
    """A risk that is guaranteed: answers of quality under `filter_below` are filtered."""

    risk: str = Field(description="The risk.", examples=["error"])
    definition: str = Field(description="The risk in a phrase.", examples=["wrong answers among automatic decisions"])
    target_level: float = Field(description="The highest risk.", examples=[0.02])
    confidence_level: float | None = Field(
        description="With this confidence over the draw of the probes; null: on average.", examples=[0.95]
    )
    unit: str = Field(description="What was taken as independent.", examples=["probe"])
    test: str = Field(description="The statistical test.", examples=["exact binomial"])
    filter_below: float | None = Field(description="Null where nothing is filtered.", examples=[0.93])
    filtered_share: float = Field(description="Of the probes.", examples=[0.12])
    n_probes: int = Field(description="Probes that the risk counts.", examples=[800])
    n_units: int = Field(description="Independent units among them.", examples=[800])
    n_decided: int = Field(description="Probes that were decided automatically.", examples=[704])
    n_wrong: int = Field(description="Of these, wrongly.", examples=[3])
    n_gallery: int = Field(description="Subjects of the gallery that they were searched in.", examples=[300])
    observed_risk: float = Field(description="What was observed: not the guarantee.", examples=[0.004])


class CalibrationDocument(Document):
    """A calibration with its state."""

    number: int = Field(description="Its number.", examples=[2])
    state: StateName = Field(
        description="candidate: it has never answered; active: it answers now; superseded: it has answered before.",
        examples=["active"],
    )
    source: str = Field(description="What it was learned from: leave-one-out, probes or reviews.", examples=["probes"])
    made_at: int = Field(description="The version it was learned from.", examples=[1])
    since: int | None = Field(description="The first version it answered in.", examples=[1])
    time: float = Field(description="When it was made, seconds since 1970.", examples=[1760000000.0])
    model: str | None = Field(description="The embedding model it is for.", examples=[None])
    threshold: float | None = Field(
        description="The cosine from which probes are accepted in the gallery as it is now.", examples=[0.52]
    )
    target_fpir: float | None = Field(description="The FPIR it aims at.", examples=[0.01])
    expected_fpir: FpirDocument | None = Field(
        description="Between which rates FPIR lies at this size of the gallery; null where no strangers were seen."
    )
    shortfall: str | None = Field(
        description="What the people it was learned from cannot show about the target, and how many could.",
        examples=[None],
    )
    fits: bool = Field(description="Whether nothing speaks against it.", examples=[True])
    doubts: list[str] = Field(description="Why it does not fit the gallery as it is now.", examples=[[]])
    certificate: CertificateDocument | None = Field(
        default=None, description="The risk that is certified for it; null where none is."
    )


class CalibrationsDocument(Document):
    """The calibrations of a gallery, oldest first."""

    calibrations: list[CalibrationDocument] = Field(description="Those of this page.")
    next: Next


class RatesDocument(Document):
    """Errors on probes whose subjects are known; filtered answers are no errors."""

    fpir: float | None = Field(description="The share of strangers who are accepted.", examples=[0.01])
    fnir: float | None = Field(
        description="The share of enrolled subjects who are rejected or taken for another.", examples=[0.04]
    )
    filtered: float = Field(description="The share of all that is filtered.", examples=[0.1])
    strangers: int = Field(description="Probes of strangers.", examples=[400])
    enrolled: int = Field(description="Probes of enrolled subjects.", examples=[400])


class RateDocument(Document):
    """A share of wrong answers with its exact interval at 95 %."""

    wrong: int = Field(description="Wrong answers.", examples=[3])
    answers: int = Field(description="Answers.", examples=[200])
    share: float | None = Field(description="Wrong answers of all; null where there is none.", examples=[0.015])
    lower: float = Field(description="The lower end of the interval.", examples=[0.003])
    upper: float = Field(description="The upper end of the interval.", examples=[0.043])


class KeptDocument(Document):
    """What filtering the least certain answers would leave."""

    kept: float = Field(description="The share of the answers that is kept.", examples=[0.9])
    errors: RateDocument = Field(description="The errors among them.")
    uncertainty: float = Field(description="The largest uncertainty among them.", examples=[0.2])
    filter_below: float = Field(description="The quality below which the others are filtered.", examples=[0.8])


class ExpectedErrorsDocument(Document):
    """What the enrolled samples, each left out in turn, say about the errors of answers now; half of the probes are strangers."""

    gallery_version: int = Field(description="The version that was asked.", examples=[7])
    calibration: int | None = Field(description="The calibration that answered.", examples=[2])
    source: str = Field(
        description="What that calibration was learned from; from `leave-one-out` it has seen these samples.",
        examples=["probes"],
    )
    fpir: RateDocument = Field(description="Strangers that were accepted.")
    fnir: RateDocument = Field(description="Enrolled subjects that were rejected or taken for another.")
    curve: list[KeptDocument] = Field(description="At most a hundred shares, the smallest first.")


class PreviewDocument(Document):
    """What would change if a calibration answered."""

    number: int = Field(description="The calibration.", examples=[3])
    active: int | None = Field(description="The one that answers now.", examples=[2])
    subjects: int = Field(description="Enrolled subjects.", examples=[300])
    threshold: float = Field(description="Its threshold.", examples=[0.5])
    active_threshold: float | None = Field(description="The threshold now.", examples=[0.52])
    rates: RatesDocument | None = Field(description="Its errors; null where the probes' subjects are not known.")
    active_rates: RatesDocument | None = Field(description="The errors now.")
    probes: int = Field(description="The probes that were asked about.", examples=[800])
    probes_from: str = Field(description="probes (those of reviews too) or leave-one-out.", examples=["leave-one-out"])
    differ: list[int] = Field(description="The places of probes that would be decided otherwise.", examples=[[4, 17]])
    changes: dict[str, int] = Field(
        description="How many decisions would change, and how.", examples=[{"rejected to accepted": 2}]
    )
    doubts: list[str] = Field(description="Why it may not fit the gallery as it is.", examples=[[]])
