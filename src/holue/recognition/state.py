"""Knowledge: all that a recogniser has learned, in one piece that is replaced whole.

An answer combines the gallery, the operating point, the quality and the certificate, and they must belong together: the row that
the scan found names another subject in the next version of the gallery. So each call reads the knowledge once, and whoever
changes it puts another in its place in one assignment. Answers never wait, and never see half a change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

from holue.errors import NotCalibratedError, NotFittedYetError
from holue.gallery.embeddings import Float64Array
from holue.gallery.gallery import Gallery
from holue.recognition.calibration.fingerprint import Fingerprints
from holue.recognition.model.operating_point import Hold, OperatingPoint
from holue.recognition.quality import SCORES, QualityScore
from holue.recognition.quality.probability_model import ProbabilityModel
from holue.recognition.risk.conformal import ConformalScores

if TYPE_CHECKING:
    from holue.recognition.recognizer import OpenSetRecognizer
    from holue.recognition.risk.certificate import RiskCertificate


@dataclass(frozen=True, eq=False)
class Knowledge:
    """What :meth:`fit` and :meth:`calibrate` leave in a recogniser; None where it was not learned yet."""

    gallery: Gallery
    embedding_model: str | None = None
    operating_point: OperatingPoint | None = None
    quality: QualityScore | None = None
    probability_model: ProbabilityModel | None = None
    quality_levels: Float64Array | None = None
    calibration_fingerprints: Fingerprints | None = None
    conformal_scores: ConformalScores | None = None
    certificate: RiskCertificate | None = None
    told: set[str] = field(default_factory=set)  # what doubts were about that have been told; a later gallery shares it
    enrolment: object = field(
        default_factory=object
    )  # stands for one fit: all that follows shares it, another fit does not

    def with_gallery(self, gallery: Gallery, hold: Hold) -> Knowledge:
        """The same with another version of the gallery; the operating point follows its size."""
        point = self.operating_point
        return replace(self, gallery=gallery, operating_point=point and point.for_gallery(len(gallery), hold))

    def recalibrated(self, point: OperatingPoint, hold: Hold, **learned: Any) -> Knowledge:
        """Another calibration in place of the earlier one, which is forgotten with all that rested on it."""
        point = point.for_gallery(len(self.gallery), hold)
        return Knowledge(self.gallery, self.embedding_model, operating_point=point, enrolment=self.enrolment, **learned)

    def following(self, earlier: Knowledge) -> Knowledge:
        """This, or an error where a ``fit`` came after ``earlier``: subjects may come and go, but this is another gallery."""
        if self.enrolment is not earlier.enrolment:
            raise NotCalibratedError(
                "the gallery was replaced by fit while the earlier one was being calibrated: calibrate again"
            )
        return self

    @property
    def point(self) -> OperatingPoint:
        """The operating point, or an error where there is none yet."""
        if self.operating_point is None:
            raise NotCalibratedError(
                "this OpenSetRecognizer has no operating point yet: call calibrate(X_dev, y_dev) with validation probes, "
                "or construct it with threshold= where you know the cosine to accept at"
            )
        return self.operating_point

    def quality_of(self, method: str) -> QualityScore:
        """The quality score of a method, or an error where another one, or none, was learned."""
        if self.quality is None:
            raise NotCalibratedError(
                f"method={method!r} is learned from validation probes: call calibrate(X_dev, y_dev, concentration) first"
            )
        if type(self.quality) is not SCORES[method]:
            raise NotCalibratedError(f"the method was set to {method!r} after calibrating: call calibrate again")
        return self.quality


_swapping = Lock()  # of the module, since a recogniser can be copied and sent to another process, and a lock cannot


def knowledge_of(recognizer: OpenSetRecognizer) -> Knowledge:
    """What a recogniser knows now, or an error where it knows nothing."""
    if recognizer._knowledge is None:
        raise NotFittedYetError("this OpenSetRecognizer has no gallery yet: call fit(X, y) first")
    return recognizer._knowledge


def change(recognizer: OpenSetRecognizer, step: Callable[[Knowledge], Knowledge]) -> None:
    """Put ``step(knowledge)`` in place of the knowledge; taken again where somebody else was faster, so that nothing is lost."""
    while True:
        now = knowledge_of(recognizer)
        later = step(now)  # whatever can fail fails here, and changes nothing
        with _swapping:
            if recognizer._knowledge is now:
                recognizer._knowledge = later
                return


def begin(recognizer: OpenSetRecognizer, knowledge: Knowledge) -> None:
    """Put a knowledge in place that no earlier one matters to."""
    with _swapping:  # or a change under way could put its own in place of this one
        recognizer._knowledge = knowledge


def learn(recognizer: OpenSetRecognizer, earlier: Knowledge, **learned: Any) -> None:
    """Add what was learned from an earlier knowledge, whose gallery must still be enrolled."""
    change(recognizer, lambda now: replace(now.following(earlier), **learned))


T = TypeVar("T")


class Known(Generic[T]):
    """An attribute ``name_`` of a recogniser: the field ``name`` of its knowledge, and absent until it is learned."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.attribute, self.field = name, name.rstrip("_")

    @overload
    def __get__(self, recognizer: None, owner: type) -> Self: ...
    @overload
    def __get__(self, recognizer: OpenSetRecognizer, owner: type) -> T: ...
    def __get__(self, recognizer: OpenSetRecognizer | None, owner: type) -> Self | T:
        if recognizer is None:
            return self
        value: T | None = getattr(recognizer._knowledge, self.field, None)
        if value is None:
            raise AttributeError(
                f"{self.attribute} is not there yet: it comes with fit, calibrate or a risk controller"
            )
        return value

    def __set__(self, recognizer: OpenSetRecognizer, value: T) -> None:
        field: dict[str, Any] = {self.field: value}
        change(recognizer, lambda now: replace(now, **field))

    def __delete__(self, recognizer: OpenSetRecognizer) -> None:
        self.__set__(recognizer, None)  # type: ignore[arg-type]
