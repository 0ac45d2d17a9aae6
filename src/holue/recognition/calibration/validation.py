"""Validation: the gallery, the operating point and the quality levels that validation probes settle."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, GalleryTooSmallError, InvalidParameterError
from holue.evidence.scan import scan
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.gallery import Gallery
from holue.recognition.model.operating_point import OperatingPoint, threshold_at_fpir
from holue.recognition.quality import QualityScore
from holue.recognition.reading import Reading

LEVELS = 200
PROBES_FOR_LEVELS = 4096
"""Some thousands of probes say enough about quantiles, and a sampled quality is slow."""


def validation_gallery(gallery: Gallery | tuple[object, ...] | None, enrolled: Gallery, weighting: str) -> Gallery:
    """The gallery that validation probes are searched in: their own, or the enrolled one where none is given."""
    if gallery is None:
        return enrolled
    if not isinstance(gallery, Gallery):
        if not isinstance(gallery, tuple) or len(gallery) not in (2, 3):
            raise InvalidParameterError("gallery must be a Gallery, (X, y) or (X, y, concentration)")
        gallery = Gallery.from_samples(*gallery, weighting=weighting)
    if gallery.dim != enrolled.dim:
        raise InvalidParameterError(
            f"the validation gallery has {gallery.dim} features, the enrolled one {enrolled.dim}: "
            "both must come from the same embedding model"
        )
    require_two(len(gallery), "calibrate")
    return gallery


def point_at_threshold(threshold: float, gallery: Gallery, unknown_prior: float) -> OperatingPoint:
    """The operating point of a threshold that was given, not found."""
    return OperatingPoint.solve(
        dim=gallery.dim, n_subjects=len(gallery), threshold=threshold, unknown_prior=unknown_prior
    )


def point_at_fpir(
    probes: Embeddings,
    gallery: Gallery,
    truth: npt.NDArray[np.int64],
    target_fpir: float,
    unknown_prior: float,
    threads: int | None,
) -> OperatingPoint:
    """The operating point at which ``target_fpir`` of the strangers (truth −1) are accepted."""
    mated = truth >= 0
    if not mated.any():
        raise CalibrationDataError(
            "no mated validation probes: none of the labels is in the gallery; where the validation people are not "
            "enrolled, bring their gallery with calibrate(..., gallery=(X, y))"
        )
    if mated.all():
        raise CalibrationDataError(
            "no non-mated validation probes: the threshold is a quantile of strangers' scores; add probes of people "
            "who are not in the gallery, labelled UNKNOWN"
        )
    # Resolved before the scan: a target too fine for the data should not cost a pass over the gallery.
    threshold_at_fpir(np.zeros(int((~mated).sum())), target_fpir)
    strangers = probes.take(~mated)
    evidence = scan(strangers.directions, gallery, [], top_k=1, threads=threads)
    return OperatingPoint.at_fpir(
        np.asarray(evidence.top_scores[:, 0], dtype=np.float64),
        target_fpir,
        dim=gallery.dim,
        n_subjects=len(gallery),
        unknown_prior=unknown_prior,
    )


def quality_levels(score: QualityScore, reading: Reading) -> Float64Array:
    """Quantiles of the quality of validation answers: thresholds worth trying later, on other probes."""
    if len(reading) > PROBES_FOR_LEVELS:
        reading = reading.take(np.linspace(0, len(reading) - 1, PROBES_FOR_LEVELS).astype(np.int64))
    return np.quantile(score(reading), np.linspace(0, 1, LEVELS + 1), method="inverted_cdf")


def require_two(n_subjects: int, verb: str) -> None:
    """Refuse a gallery of one: with one subject there is nobody to be mistaken for."""
    if n_subjects < 2:
        raise GalleryTooSmallError(
            f"{verb} needs a gallery of at least 2 subjects, got 1 class: with one subject there is nobody to be mistaken "
            "for; for one-to-one verification call holue.functional.posterior"
        )
