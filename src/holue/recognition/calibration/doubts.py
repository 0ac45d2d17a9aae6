"""Doubts: why a calibration may no longer fit what the recogniser is used for, in sentences.

A calibration is for one size of gallery, one embedding model and probes of one kind. How far the gallery may outgrow the size it
was calibrated for depends on what is held: with κ and β held, FPIR grows by a factor of 1.8 when LFW's gallery doubles; a
threshold that follows the strangers' own tail keeps it between 0.05 and 0.07 over a factor of 57 (docs/growing-galleries.md).
A certificate is another matter: its risk counts every error, and was measured at one size. A calibration by leaving one out also
doubts where subjects look like one person enrolled twice, or where look-alikes set the threshold. Any calibration doubts where
most samples of enrolled people are rejected.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from holue.errors import InvalidParameterError
from holue.gallery.gallery import Gallery
from holue.recognition.calibration.drift import DriftState
from holue.recognition.calibration.fallback import usable_hold
from holue.recognition.search.search_report import SearchReport
from holue.recognition.settings import Settings
from holue.recognition.state.state import State

LARGEST_GROWTH: Mapping[str, float] = MappingProxyType({"model": 1.5, "threshold": 1.5, "fpir": 50.0})
"""How far a gallery may outgrow, or shrink from, the size it was calibrated for, by what is held."""
CERTIFIED_GROWTH = 1.5
PAIRS_NAMED = 3


class CalibrationWarning(UserWarning):
    """The recogniser's calibration may not fit any more; the message says why and what to do."""


@dataclass(frozen=True)
class Doubt:
    """One reason, which prints as its sentence."""

    about: Literal["gallery", "certificate", "model", "drift", "duplicates", "look-alikes", "recognised", "search"]
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def calibration_doubts(
    state: State, settings: Settings, *, drift: DriftState | None = None, search: SearchReport | None = None
) -> tuple[Doubt, ...]:
    """Why the calibration of a state may no longer fit, or its search; empty where nothing speaks against it.

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
    if twice := _still_there(state.enrolled_twice, gallery):
        sentence = (
            f"of the enrolled, {_pairs(twice, 'looks', 'look')} like one person enrolled twice: such people are often named by "
            "their other name, and had no part in the threshold; audit the gallery (holue audit), merge those that are one, and "
            "calibrate anew"
        )
        doubts.append(Doubt("duplicates", sentence))
    if alike := _still_there(state.look_alikes, gallery):
        sentence = (
            f"of the enrolled, {_pairs(alike, 'looks', 'look')} alike: left out in turn, each was accepted as the other, and so "
            "they set the threshold: too high if strangers have no look-alikes here; audit the gallery (holue audit), or "
            "calibrate on development probes"
        )
        doubts.append(Doubt("look-alikes", sentence))
    if state.recognised is not None and state.recognised.is_rare:
        doubts.append(Doubt("recognised", state.recognised.doubt))
    if search is not None and search.doubt is not None:
        doubts.append(Doubt("search", search.doubt))
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


def _still_there(pairs: Sequence[tuple[Any, Any]], gallery: Gallery) -> list[tuple[Any, Any]]:
    enrolled = set(gallery.subjects.tolist()) if pairs else set()
    return [pair for pair in pairs if enrolled.issuperset(pair)]


def _pairs(pairs: Sequence[tuple[Any, Any]], one: str, several: str) -> str:
    """How many pairs, the first of them by name, and the verb."""
    named = ", ".join(f"{a!r} and {b!r}" for a, b in pairs[:PAIRS_NAMED]) + (", …" if len(pairs) > PAIRS_NAMED else "")
    return f"{len(pairs)} {f'pair ({named}) {one}' if len(pairs) == 1 else f'pairs ({named}) {several}'}"


def _factor(size: int, other: int) -> float:
    return max(size / other, other / size)


def _name(model: str | None) -> str:
    return "an unnamed one" if model is None else repr(model)
