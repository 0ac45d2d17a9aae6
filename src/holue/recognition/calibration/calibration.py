"""Calibration: from validation probes to an operating point and to all that is learned at it.

    probes → strangers' best scores → operating point → evidence → right and wrong answers → quality and the rest

There is one way, :func:`calibrated`. Where the evidence and the truth come from is a :class:`ValidationSource`: probes of their
own (``validation.py``), or the enrolled samples, each left out in turn (``leave_one_out.py``). What is learned is the list
``LESSONS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.recognition.calibration.fallback import SIMPLER_METHOD, Fallback, hold_fallback
from holue.recognition.calibration.fingerprint import fingerprints
from holue.recognition.calibration.recognised import Recognised
from holue.recognition.calibration.truth import correct_answers
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.quality import SCORES, QualityScore
from holue.recognition.quality.calibrated import CalibratedQuality
from holue.recognition.quality.probability_model import learned_probabilities
from holue.recognition.reading import Reading
from holue.recognition.risk.conformal import ConformalScores
from holue.recognition.seeds import generator
from holue.recognition.settings import Settings

Rows = npt.NDArray[np.int64]

LEVELS = 200
PROBES_FOR_LEVELS = 4096
"""Some thousands of probes say enough about quantiles, and a sampled quality is slow."""


@dataclass(frozen=True, eq=False)
class Examined:
    """Validation probes read at the operating point, beside the truth."""

    reading: Reading
    truth: Rows  # (n,) number of each probe's own subject, −1 for strangers
    person: Rows  # (n,) a number for the person behind each probe
    own_score: Float64Array | None = None  # (n,) cosine to the own template, where it is not the gallery's
    enrolled_twice: tuple[tuple[Any, Any], ...] = ()  # pairs likely to be one person, where this was looked for
    look_alikes: tuple[
        tuple[Any, Any], ...
    ] = ()  # pairs of subjects who alone set the threshold, where this was looked for

    @property
    def correct(self) -> npt.NDArray[np.bool_]:
        """Which answers were right."""
        return correct_answers(self.reading, self.truth)

    @property
    def recognised(self) -> Recognised | None:
        """How many probes of enrolled people were accepted as their own; None where there are none."""
        mated = self.truth >= 0
        return Recognised.of(self.correct[mated], self.person[mated]) if mated.any() else None


class ValidationSource(Protocol):
    """Where the evidence and the truth of a calibration come from."""

    @property
    def probes(self) -> Embeddings:
        """The probes, each once."""
        ...

    def point_at_fpir(self, settings: Settings) -> OperatingPoint:
        """The operating point at which ``target_fpir`` of the strangers are accepted."""
        ...

    def point_at_threshold(self, settings: Settings, threshold: float) -> OperatingPoint:
        """The operating point of a threshold that was given."""
        ...

    def examined(self, point: OperatingPoint, settings: Settings) -> Examined:
        """The probes read at an operating point."""
        ...


@dataclass(frozen=True, eq=False)
class Lesson:
    """All that something can be learned from."""

    examined: Examined
    probes: Embeddings
    score: QualityScore


LESSONS: Mapping[str, Callable[[Lesson], Any]] = MappingProxyType(
    {
        "quality": lambda lesson: lesson.score,
        "probability_model": lambda lesson: learned_probabilities(
            lesson.score, lesson.examined.reading, lesson.examined.truth
        ),
        "quality_levels": lambda lesson: quality_levels(lesson.score, lesson.examined.reading),
        "calibration_fingerprints": lambda lesson: np.unique(fingerprints(lesson.probes)),
        "conformal_scores": lambda lesson: conformal_scores(lesson.examined),
        "enrolled_twice": lambda lesson: lesson.examined.enrolled_twice,
        "look_alikes": lambda lesson: lesson.examined.look_alikes,
        "recognised": lambda lesson: lesson.examined.recognised,
    }
)
"""What a calibration learns beside the operating point, by the field of the state that holds it."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """What validation probes taught."""

    point: OperatingPoint
    method: str  # as asked for
    learned: Mapping[str, Any]
    fallbacks: tuple[Fallback, ...]

    @property
    def shortcomings(self) -> tuple[str, ...]:
        """What the probes cannot show about the target, and what the threshold costs, where that is worth a warning."""
        recognised: Recognised | None = self.learned["recognised"]
        costs = recognised.doubt if recognised is not None and recognised.is_rare else None
        return tuple(sentence for sentence in (self.point.shortfall, costs) if sentence is not None)


def calibrated(source: ValidationSource, settings: Settings) -> Calibration:
    """Settle the operating point and learn all there is to learn at it."""
    check_concentrations(settings.method, source.probes)
    if settings.threshold is None:
        point = source.point_at_fpir(settings)
    else:
        point = source.point_at_threshold(settings, settings.threshold)
    examined = source.examined(point, settings)
    score, simpler = fitted_score(settings, examined)
    lesson = Lesson(examined, source.probes, score)
    learned = {name: learn(lesson) for name, learn in LESSONS.items()}
    fallbacks = tuple(one for one in (simpler, hold_fallback(settings.hold, point)) if one is not None)
    return Calibration(point, settings.method, learned, fallbacks)


def check_concentrations(method: str, probes: Embeddings) -> None:
    """Refuse a method that reads each probe's concentration where there are none."""
    if SCORES[method].needs_concentration and probes.concentrations is None:
        raise CalibrationDataError(
            f"method={method!r} reads the quality of each probe, and no concentration was given; pass concentration=, or use "
            "method='holue-plus', 'galue' or 'acceptance', which need none"
        )


def fitted_score(settings: Settings, examined: Examined) -> tuple[QualityScore, Fallback | None]:
    """The method's score, or a simpler one where "holue-plus" has too few answers to learn from."""
    score = SCORES[settings.method]()
    try:
        return fitted(score, examined, generator(settings.random_state)), None
    except CalibrationDataError as error:
        if not isinstance(score, CalibratedQuality):
            raise
        reason = str(error).partition(";")[0]  # without its advice, which is taken here
        return SCORES[SIMPLER_METHOD](), Fallback("method", settings.method, SIMPLER_METHOD, reason)


def fitted(score: QualityScore, examined: Examined, rng: np.random.Generator) -> QualityScore:
    """The score, once it has learned from right and wrong answers if it does."""
    if score.needs_fit:
        score.fit(examined.reading, examined.truth, rng)
    return score


def conformal_scores(examined: Examined) -> ConformalScores:
    """How probable the truth was."""
    return ConformalScores.of(examined.reading, examined.truth, examined.person, examined.own_score)


def quality_levels(score: QualityScore, reading: Reading) -> Float64Array:
    """Quantiles of the quality of validation answers: thresholds worth trying later, on other probes."""
    if len(reading) > PROBES_FOR_LEVELS:
        reading = reading.take(np.linspace(0, len(reading) - 1, PROBES_FOR_LEVELS).astype(np.int64))
    return np.quantile(score(reading), np.linspace(0, 1, LEVELS + 1), method="inverted_cdf")
