"""Doubts: why a calibration may no longer fit what the recogniser is used for, in sentences.

A calibration is for one size of gallery, one embedding model and probes of one kind. How far the gallery may outgrow the size it
was calibrated for depends on what is held: with κ and β held, FPIR grows by a factor of 1.8 when LFW's gallery doubles; a
threshold that follows the strangers' own tail keeps it between 0.05 and 0.07 over a factor of 57 (docs/growing-galleries.md).
A certificate is another matter: its risk counts every error, and was measured at one size.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from holue.errors import InvalidParameterError
from holue.recognition.calibration.drift import DriftState
from holue.recognition.calibration.fallback import usable_hold
from holue.recognition.settings import Settings
from holue.recognition.state.state import State

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


def calibration_doubts(state: State, settings: Settings, *, drift: DriftState | None = None) -> tuple[Doubt, ...]:
    """Why the calibration of a state may no longer fit; empty where nothing speaks against it.

    ``drift`` is where a :class:`holue.recognition.calibration.drift.DriftMonitor` of your probes stands, if you keep one.
    """
    gallery, point, certificate = state.gallery, state.point, state.certificate
    doubts = []
    used = usable_hold(settings.hold, point)
    calibrated_for, most = point.carried_from or point.n_subjects, LARGEST_GROWTH[used]
    factor = _factor(len(gallery), calibrated_for)
    if factor > most:
        sentence = (
            f"the gallery holds {len(gallery)} subjects and was calibrated for {calibrated_for}, a factor of {factor:.3g} "
            f"(at most {most:g} with hold={used!r}): calibrate anew at this size"
        )
        doubts.append(Doubt("gallery", sentence))
    if certificate is not None and _factor(len(gallery), certificate.n_gallery) > CERTIFIED_GROWTH:
        sentence = (
            f"the gallery holds {len(gallery)} subjects and its risk was certified for {certificate.n_gallery}: the "
            "guarantee does not reach so far; certify anew at this size"
        )
        doubts.append(Doubt("certificate", sentence))
    if state.embedding_model != settings.embedding_model:
        sentence = (
            f"the embedding model changed from {_name(state.embedding_model)} to {_name(settings.embedding_model)}: its cosines "
            "mean something else; enrol and calibrate anew"
        )
        doubts.append(Doubt("model", sentence))
    if drift is not None and drift.alarm:
        doubts.append(Doubt("drift", str(drift)))
    return tuple(doubts)


def warn_once(doubts: Iterable[Doubt], warned: set[str]) -> None:
    """Warn, in the name of the caller's caller, of what was not warned of before: one warning for all of it."""
    new = [doubt for doubt in doubts if doubt.about not in warned]
    if new:
        warned.update(doubt.about for doubt in new)
        warnings.warn("; also, ".join(doubt.sentence for doubt in new), CalibrationWarning, stacklevel=3)


def refuse_other_model(enrolled_with: str | None, embedding_model: str | None, verb: str) -> None:
    """Enrolling or calibrating with another model's embeddings is never right: cosines between two models mean nothing."""
    if enrolled_with != embedding_model:
        raise InvalidParameterError(
            f"{verb}: embedding_model is {_name(embedding_model)} and the gallery was enrolled with {_name(enrolled_with)}, "
            "whose embeddings cannot be compared with it; call fit with samples of the new model"
        )


def _factor(size: int, other: int) -> float:
    return max(size / other, other / size)


def _name(model: str | None) -> str:
    return "an unnamed one" if model is None else repr(model)
