"""Doubts: why a calibration may no longer fit what the recogniser is used for, in sentences.

A calibration is for one size of gallery, one embedding model and probes of one kind. How far the gallery may outgrow the size it
was calibrated for depends on what is held: with κ and β held, FPIR grows by a factor of 1.8 when LFW's gallery doubles; a
threshold that follows the strangers' own tail keeps it between 0.05 and 0.07 over a factor of 57 (docs/growing-galleries.md).
A certificate is another matter: its risk counts every error, and was measured at one size.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

from holue.errors import InvalidParameterError
from holue.recognition.calibration.drift import DriftState
from holue.recognition.state import Knowledge, knowledge_of

if TYPE_CHECKING:
    from holue.recognition.recognizer import OpenSetRecognizer

LARGEST_GROWTH: Mapping[str, float] = MappingProxyType({"model": 1.5, "threshold": 1.5, "fpir": 50.0})
"""How far a gallery may outgrow, or shrink from, the size it was calibrated for, by what is held."""
CERTIFIED_GROWTH = 1.5


class CalibrationWarning(UserWarning):
    """The recogniser's calibration may not fit any more; the message says why and what to do."""


@dataclass(frozen=True)
class Doubt:
    """One reason, which prints as its sentence."""

    about: Literal["gallery", "certificate", "model", "drift"]
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def calibration_doubts(recognizer: OpenSetRecognizer, *, drift: DriftState | None = None) -> tuple[Doubt, ...]:
    """Why the calibration may no longer fit; empty where nothing speaks against it.

    ``drift`` is where a :class:`holue.recognition.calibration.drift.DriftMonitor` of your probes stands, if you keep one.

    >>> import numpy as np
    >>> from holue.recognition.recognizer import OpenSetRecognizer
    >>> recognizer = OpenSetRecognizer(method="galue", threshold=0.5).fit(np.eye(8)[:4], range(4))
    >>> calibration_doubts(recognizer)
    ()
    >>> [doubt.about for doubt in calibration_doubts(recognizer.enroll(np.eye(8)[4:], range(4, 8)))]
    ['gallery']
    """
    return _doubts(recognizer, knowledge_of(recognizer), drift)


def tell_doubts(recognizer: OpenSetRecognizer, now: Knowledge) -> None:
    """Warn, in the name of the caller's caller, of what was not told before; a growing gallery warns once."""
    for doubt in _doubts(recognizer, now):
        if doubt.about not in now.told:
            now.told.add(doubt.about)
            warnings.warn(doubt.sentence, CalibrationWarning, stacklevel=3)


def refuse_other_model(recognizer: OpenSetRecognizer, verb: str) -> None:
    """Enrolling or calibrating with another model's embeddings is never right: cosines between two models mean nothing."""
    enrolled_with, now = knowledge_of(recognizer).embedding_model, recognizer.embedding_model
    if enrolled_with != now:
        raise InvalidParameterError(
            f"{verb}: embedding_model is {_name(now)} and the gallery was enrolled with {_name(enrolled_with)}, whose embeddings "
            "cannot be compared with it; call fit with samples of the new model"
        )


def _doubts(recognizer: OpenSetRecognizer, known: Knowledge, drift: DriftState | None = None) -> tuple[Doubt, ...]:
    gallery, point, certificate = known.gallery, known.point, known.certificate
    doubts = []
    calibrated_for, most = point.carried_from or point.n_subjects, LARGEST_GROWTH[recognizer.hold]
    factor = _factor(len(gallery), calibrated_for)
    if factor > most:
        sentence = (
            f"the gallery holds {len(gallery)} subjects and was calibrated for {calibrated_for}, a factor of {factor:.3g} "
            f"(at most {most:g} with hold={recognizer.hold!r}): calibrate anew at this size"
        )
        doubts.append(Doubt("gallery", sentence))
    if certificate is not None and _factor(len(gallery), certificate.n_gallery) > CERTIFIED_GROWTH:
        sentence = (
            f"the gallery holds {len(gallery)} subjects and its risk was certified for {certificate.n_gallery}: the "
            "guarantee does not reach so far; certify anew at this size"
        )
        doubts.append(Doubt("certificate", sentence))
    enrolled_with, now = known.embedding_model, recognizer.embedding_model
    if enrolled_with != now:
        sentence = (
            f"the embedding model changed from {_name(enrolled_with)} to {_name(now)}: its cosines mean something else; enrol "
            "and calibrate anew"
        )
        doubts.append(Doubt("model", sentence))
    if drift is not None and drift.alarm:
        doubts.append(Doubt("drift", str(drift)))
    return tuple(doubts)


def _factor(size: int, other: int) -> float:
    return max(size / other, other / size)


def _name(model: str | None) -> str:
    return "an unnamed one" if model is None else repr(model)
