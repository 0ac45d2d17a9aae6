"""Schemas of galleries."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from holue.service.schemas.common import Body, Document, Next


class NewGallery(Body):
    """A gallery to create; dimension and model hold for its whole life."""

    name: str = Field(min_length=1, max_length=40, description="Its name.", examples=["visitors"])
    dim: int = Field(ge=1, description="The number of coordinates of an embedding.", examples=[128])
    model: str | None = Field(
        default=None, max_length=200, description="The fingerprint of the embedding model.", examples=["my-model-1"]
    )
    method: str | None = Field(
        default=None,
        max_length=100,
        description="How answers are rated; see the documentation of methods.",
        examples=[None],
    )
    target_fpir: float | None = Field(
        default=None, gt=0, lt=1, description="The share of strangers that may be accepted.", examples=[0.01]
    )
    fpir_confidence: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="The confidence, over people, with which FPIR is to stay at or below its target.",
        examples=[0.95],
    )
    threshold: float | None = Field(
        default=None,
        ge=-1,
        le=1,
        description="The cosine from which probes are accepted, where it is known.",
        examples=[None],
    )
    hold: Literal["model", "fpir", "threshold"] | None = Field(
        default=None, description="What stays the same when the gallery grows.", examples=[None]
    )
    filter_below: float | None = Field(
        default=None, allow_inf_nan=False, description="The quality under which answers are filtered.", examples=[None]
    )
    weighting: Literal["uniform", "concentration"] | None = Field(
        default=None, description="How samples of a subject are pooled.", examples=[None]
    )
    search: Literal["auto", "exact", "float16", "int8", "binary", "approximate"] | None = Field(
        default=None, description="How the gallery is read.", examples=[None]
    )
    keep_images: bool = Field(
        default=False,
        description="Keep small pictures (the aligned faces of photographs) beside the samples, for people who decide; they are "
        "erased with their subject.",
        examples=[False],
    )


class GalleryPatch(Body):
    """Settings to change; a field that is left out stays, null goes back to the default."""

    target_fpir: float | None = Field(
        default=None, gt=0, lt=1, description="The share of strangers that may be accepted, from the next calibration on.",
        examples=[0.01],
    )  # fmt: skip
    fpir_confidence: float | None = Field(
        default=None,
        gt=0,
        lt=1,
        description="The confidence, over people, with which FPIR stays at or below its target, from the next calibration on.",
        examples=[0.95],
    )
    threshold: float | None = Field(
        default=None, ge=-1, le=1, description="The cosine from which probes are accepted without a calibration.",
        examples=[0.5],
    )  # fmt: skip
    hold: Literal["model", "fpir", "threshold"] | None = Field(
        default=None, description="What stays the same when the gallery grows.", examples=["fpir"]
    )
    filter_below: float | None = Field(
        default=None, allow_inf_nan=False, description="The quality under which answers are filtered.", examples=[0.9]
    )


class FpirDocument(Document):
    """An interval of FPIR over people."""

    low: float = Field(description="The lower end.", examples=[0.002])
    high: float = Field(description="The upper end.", examples=[0.01])
    confidence: float = Field(description="The confidence with which each end holds.", examples=[0.95])
    n_people: int = Field(description="The strangers behind it, as people.", examples=[400])
    resolvable: float = Field(description="The lowest upper end that so many people can give.", examples=[0.0075])
    named: bool = Field(description="Whether the people were named; else each probe counts as one.", examples=[True])


class PointDocument(Document):
    """The calibration that answers now."""

    number: int | None = Field(description="Its number; null where only a threshold was given.", examples=[2])
    made_at: int | None = Field(description="The version it was learned from.", examples=[1])
    threshold: float | None = Field(description="The cosine from which probes are accepted.", examples=[0.52])
    target_fpir: float | None = Field(description="The FPIR it aims at.", examples=[0.01])
    achieved_fpir: float | None = Field(description="The FPIR on the probes it was learned from.", examples=[0.0098])
    expected_fpir: FpirDocument | None = Field(
        description="Between which rates FPIR lies at this size of the gallery; null where no strangers were seen."
    )
    shortfall: str | None = Field(
        description="What the people it was learned from cannot show about the target, and how many could.",
        examples=[None],
    )
    fits: bool = Field(description="Whether nothing speaks against it.", examples=[True])
    doubts: list[str] = Field(description="Why it may no longer fit.", examples=[[]])


class GalleryDocument(Document):
    """A gallery in numbers."""

    name: str = Field(description="Its name.", examples=["demo"])
    dim: int = Field(description="The number of coordinates of an embedding.", examples=[128])
    model: str | None = Field(description="The fingerprint of the embedding model.", examples=[None])
    version: int = Field(description="The version that answers now.", examples=[1])
    oldest_version: int = Field(description="The oldest version that is kept.", examples=[0])
    subjects: int = Field(description="Enrolled subjects.", examples=[300])
    samples: int = Field(description="Their samples.", examples=[900])
    bytes: int = Field(description="The size of the gallery on disk.", examples=[1048576])
    calibration: PointDocument
    settings: dict[str, Any] = Field(description="The recogniser's settings.", examples=[{"method": "holue-plus"}])
    embedder: str | None = Field(
        description="The kind of files that are embedded for it, `image` or `speech`; null where embeddings are needed.",
        examples=["image"],
    )
    keep_images: bool = Field(description="Whether small pictures of samples are kept.", examples=[False])


class GalleriesDocument(Document):
    """The galleries that the key may see."""

    galleries: list[GalleryDocument] = Field(description="The galleries of this page, by name.")
    next: Next
