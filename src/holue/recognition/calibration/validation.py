"""Validation: probes of known people, brought to calibrate on, and the gallery they are searched in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, GalleryTooSmallError, InvalidParameterError
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.gallery import Gallery
from holue.recognition.calibration.calibration import Examined
from holue.recognition.calibration.fallback import usable_hold
from holue.recognition.calibration.truth import people, truth_numbers
from holue.recognition.model.operating_point import OperatingPoint, threshold_at_fpir
from holue.recognition.model.strangers import Numbers, Strangers
from holue.recognition.reading import Reading
from holue.recognition.search.gallery_search import GallerySearch
from holue.recognition.search.search import Search
from holue.recognition.settings import Settings


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


def stranger_scores(
    strangers: Embeddings,
    search: Search,
    target: float | Sequence[float],
    threads: int | None,
    *,
    confidence: float | None = None,
) -> tuple[Float64Array, Numbers]:
    """Best score of every stranger and whose it is, once it is clear that their number resolves the targets."""
    for one in np.atleast_1d(target):
        # Before the scan: a target too fine for the data should not cost a pass over the gallery.
        if confidence is None or len(strangers) == 0:
            threshold_at_fpir(np.zeros(len(strangers)), float(one))
    evidence = search.scan(strangers.directions, [], top_k=1, threads=threads)
    return np.asarray(evidence.top_scores[:, 0], dtype=np.float64), evidence.top_index[:, 0]


@dataclass(frozen=True, eq=False)
class ValidationProbes:
    """Validation probes, the gallery they are searched in (exactly), and who they show."""

    probes: Embeddings
    search: Search
    truth: npt.NDArray[np.int64]
    person: npt.NDArray[np.int64]
    enrolled: Gallery
    own_gallery: bool = True  # whether it is the enrolled gallery that they are searched in
    named: bool = True  # whether the people behind all probes are known

    @classmethod
    def of(
        cls,
        probes: Embeddings,
        y: object,
        gallery: Gallery,
        enrolled: Gallery,
        subject: object = None,
        search: Search | None = None,
    ) -> ValidationProbes:
        """Probes of the subjects ``y``; ``subject`` names the person behind every probe where ``y`` does not.

        The gallery is read by ``search`` where its rows are elsewhere.
        """
        truth = truth_numbers(gallery, y, len(probes))
        person, named = people(y, subject, len(probes))
        read = GallerySearch.exact(gallery) if search is None else search
        return cls(probes, read, truth, person, enrolled, gallery is enrolled, named)

    def point_at_fpir(self, settings: Settings) -> OperatingPoint:
        """The operating point at which ``target_fpir`` of the strangers are accepted."""
        mated = self.truth >= 0
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
        confidence = settings.fpir_confidence
        scores, nearest = stranger_scores(
            self.probes.take(~mated), self.search, settings.target_fpir, settings.threads, confidence=confidence
        )
        # In another gallery than the enrolled one, whom strangers are like is chance as well.
        strangers = Strangers.of(
            scores, self.person[~mated], nearest=None if self.own_gallery else nearest, named=self.named
        )
        return OperatingPoint.at_fpir(
            strangers,
            settings.target_fpir,
            dim=self.probes.dim,
            n_subjects=len(self.search),
            unknown_prior=settings.unknown_prior,
            confidence=confidence,
        )

    def point_at_threshold(self, settings: Settings, threshold: float) -> OperatingPoint:
        """The operating point of a threshold that is meant for the enrolled gallery."""
        point = point_at_threshold(threshold, self.enrolled, settings.unknown_prior)
        return point.for_gallery(len(self.search), usable_hold(settings.hold, point))

    def examined(self, point: OperatingPoint, settings: Settings) -> Examined:
        """The probes read at an operating point."""
        reading = Reading.of(
            self.probes, self.search, point, temperature=settings.temperature, top_k=1, threads=settings.threads
        )
        return Examined(reading, self.truth, self.person)


def require_two(n_subjects: int, verb: str) -> None:
    """Refuse a gallery of one: with one subject there is nobody to be mistaken for."""
    if n_subjects < 2:
        raise GalleryTooSmallError(
            f"{verb} needs a gallery of at least 2 subjects, got 1 class: with one subject there is nobody to be mistaken "
            "for; for one-to-one verification call holue.functional.posterior"
        )
