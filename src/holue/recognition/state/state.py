"""State: all that a recogniser has learned, in one value that is replaced whole.

An answer combines the gallery, the operating point, the quality and the certificate, and they must belong together: the row that
the scan found names another subject in the next version of the gallery. So each call reads the state once, and whoever changes
something makes another state. Who holds the current one is :class:`holue.recognition.state.state_cell.StateCell`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from holue.errors import NotCalibratedError
from holue.gallery.embeddings import Float64Array
from holue.gallery.gallery import Gallery
from holue.recognition.calibration.calibration import Calibration
from holue.recognition.calibration.fallback import Fallback, hold_fallback, usable_hold
from holue.recognition.calibration.fingerprint import Fingerprints
from holue.recognition.calibration.recognised import Recognised
from holue.recognition.calibration.validation import point_at_threshold
from holue.recognition.model.operating_point import Hold, OperatingPoint
from holue.recognition.quality import SCORES, QualityScore
from holue.recognition.quality.probability_model import ProbabilityModel
from holue.recognition.risk.certificate import RiskCertificate
from holue.recognition.risk.conformal import ConformalScores
from holue.recognition.settings import Settings
from holue.recognition.state.lineage import Lineage


@dataclass(frozen=True, eq=False)
class State:
    """What ``fit`` and ``calibrate`` leave in a recogniser; None where it was not learned yet."""

    gallery: Gallery
    embedding_model: str | None = None
    operating_point: OperatingPoint | None = None
    method: str | None = None  # the method asked for when ``quality`` was made; a fallback may have taken its place
    quality: QualityScore | None = None
    probability_model: ProbabilityModel | None = None
    fallbacks: tuple[Fallback, ...] = ()
    quality_levels: Float64Array | None = None
    calibration_fingerprints: Fingerprints | None = None
    conformal_scores: ConformalScores | None = None
    certificate: RiskCertificate | None = None
    enrolled_twice: tuple[tuple[Any, Any], ...] = ()  # pairs of subjects that the calibration took for one person
    look_alikes: tuple[tuple[Any, Any], ...] = ()  # pairs of subjects who alone set the threshold when left out
    recognised: Recognised | None = None  # of the mated samples of the calibration; None in earlier saves
    lineage: Lineage = field(default_factory=Lineage)

    @classmethod
    def fitted(cls, gallery: Gallery, settings: Settings) -> State:
        """What is known of a gallery before any calibration: an operating point where a threshold is given."""
        known = cls(gallery, settings.embedding_model, method=settings.method)
        if settings.threshold is None:
            return known
        point = point_at_threshold(settings.threshold, gallery, settings.unknown_prior)
        score, held = SCORES[settings.method], hold_fallback(settings.hold, point)
        return replace(
            known,
            operating_point=point,
            quality=None if score.needs_fit else score(),
            fallbacks=() if held is None else (held,),
        )

    def with_gallery(self, gallery: Gallery, hold: Hold) -> State:
        """The same with another version of the gallery; the operating point follows its size."""
        point = None if self.operating_point is None else self.point_for(len(gallery), hold)
        return replace(self, gallery=gallery, operating_point=point)

    def calibrated(self, calibration: Calibration, hold: Hold, earlier: Lineage) -> State:
        """Another calibration in place of the ``earlier`` one, which is forgotten with all that rested on it.

        An error where a ``fit`` or a calibration came since the earlier one.
        """
        self.lineage.check_same(earlier)
        known = State(
            self.gallery,
            self.embedding_model,
            operating_point=calibration.point,
            method=calibration.method,
            fallbacks=calibration.fallbacks,
            lineage=self.lineage.recalibrated(),
            **calibration.learned,
        )
        return known.with_gallery(self.gallery, hold)

    def learned_from(self, earlier: Lineage, **learned: Any) -> State:
        """The same with more learned, or an error where a ``fit`` or a calibration came since."""
        self.lineage.check_same(earlier)
        return replace(self, **learned)

    @property
    def point(self) -> OperatingPoint:
        """The operating point, or an error where there is none yet."""
        if self.operating_point is None:
            raise NotCalibratedError(
                "there is no operating point yet: call calibrate(X_dev, y_dev) with validation probes, or calibrate on the "
                "enrolled samples (calibrate_leave_one_out(X, y), in an open gallery calibrate()), or give threshold= where you "
                "know the cosine to accept at"
            )
        return self.operating_point

    def point_for(self, n_subjects: int, hold: Hold) -> OperatingPoint:
        """The operating point for a gallery of another size: of the calibrated point, the size and ``hold`` alone."""
        return self.point.for_gallery(n_subjects, usable_hold(hold, self.point))

    def filter_threshold(self, filter_below: float | None) -> float:
        """The quality below which answers are filtered: set by hand, else certified, else −inf."""
        if filter_below is not None:
            return float(filter_below)
        return -np.inf if self.certificate is None else self.certificate.filter_below

    def quality_of(self, method: str) -> QualityScore:
        """The quality score of a method, or an error where another one, or none, was learned."""
        if self.quality is None:
            raise NotCalibratedError(
                f"method={method!r} is learned from validation probes: call calibrate(X_dev, y_dev, concentration) first"
            )
        if self.method != method:
            raise NotCalibratedError(f"the method was set to {method!r} after calibrating: call calibrate again")
        return self.quality
