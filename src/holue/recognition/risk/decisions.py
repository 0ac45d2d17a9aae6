"""Decisions: development probes with the quality of their answer and whether the answer was wrong, risk by risk.

An answer is **automatic** when its quality reaches the filter threshold, and filtered otherwise. A risk is a rate among
automatic decisions, ``R(λ) = P(wrong | counted, q ≥ λ)``:

    name                  wrong                                       counted
    error                 any of the three errors below               every probe
    false-acceptance      a stranger accepted                         every probe
    misidentification     an enrolled subject taken for another       every probe
    false-rejection       an enrolled subject rejected                every probe
    fpir                  a stranger accepted                         strangers
    fnir                  an enrolled subject rejected or mistaken    probes of enrolled subjects
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, InvalidParameterError, InvalidSubjectsError
from holue.gallery.embeddings import Float64Array
from holue.recognition.calibration.fingerprint import fresh_rows
from holue.recognition.calibration.truth import people, truth_numbers
from holue.recognition.state.examination import Examination

Mask = npt.NDArray[np.bool_]
Unit = Literal["probe", "subject"]
RiskName = Literal["error", "false-acceptance", "misidentification", "false-rejection", "fpir", "fnir"]

RISKS: Mapping[str, str] = MappingProxyType(
    {
        "error": "wrong answers among automatic decisions",
        "false-acceptance": "accepted strangers among automatic decisions",
        "misidentification": "enrolled subjects taken for another, among automatic decisions",
        "false-rejection": "enrolled subjects rejected, among automatic decisions",
        "fpir": "accepted strangers among automatic decisions on strangers",
        "fnir": "enrolled subjects rejected or taken for another, among automatic decisions on enrolled subjects",
    }
)
"""Every risk by name, in a phrase."""


def risk_columns(risk: str, mated: Mask, accepted: Mask, correct_subject: Mask) -> tuple[Mask, Mask]:
    """Which probes a risk counts, and which of them it counts as wrong (were they decided).

    >>> risk_columns("fpir", np.array([True, False]), np.array([True, True]), np.array([True, False]))
    (array([False,  True]), array([False,  True]))
    """
    check_risk(risk)
    false_acceptance, false_rejection = ~mated & accepted, mated & ~accepted
    misidentification = mated & accepted & ~correct_subject
    wrong = {
        "error": false_acceptance | false_rejection | misidentification,
        "false-acceptance": false_acceptance,
        "misidentification": misidentification,
        "false-rejection": false_rejection,
        "fpir": false_acceptance,
        "fnir": false_rejection | misidentification,
    }[risk]
    counted = {"fpir": ~mated, "fnir": mated}.get(risk, np.ones_like(mated))
    return counted, wrong


def check_risk(risk: str) -> None:
    """Refuse a risk that has no definition."""
    if risk not in RISKS:
        raise InvalidParameterError(f"risk must be one of {', '.join(RISKS)}; got {risk!r}")


def check_unit(unit: str) -> None:
    """Refuse a unit other than the two."""
    if unit not in get_args(Unit):
        raise InvalidParameterError(f"unit must be 'probe' or 'subject', got {unit!r}")


@dataclass(frozen=True, eq=False)
class Decisions:
    """The counted development probes, and which unit (probe or subject) each belongs to.

    >>> decisions = Decisions(np.array([0.9, 0.2, 0.8]), np.array([False, True, False]), np.array([0, 0, 1]))
    >>> decisions.shares(0.5)
    (array([0.5, 1. ]), array([0., 0.]))
    """

    quality: Float64Array  # (n,) higher = more reliable
    wrong: Mask  # (n,) whether the answer is wrong, were it given
    unit: npt.NDArray[np.int64]  # (n,) numbered from 0

    def __len__(self) -> int:
        return len(self.quality)

    @property
    def n_units(self) -> int:
        """How many independent units there are."""
        return int(self.unit.max()) + 1 if len(self) else 0

    @property
    def single(self) -> bool:
        """Whether every unit is one probe."""
        return self.n_units == len(self)

    def shares(self, threshold: float) -> tuple[Float64Array, Float64Array]:
        """``N/m`` and ``W/m`` of each unit: the share of its probes that is decided, and decided wrongly."""
        decided = self.quality >= threshold
        size = np.bincount(self.unit)
        return (
            np.bincount(self.unit, decided, minlength=len(size)) / size,
            np.bincount(self.unit, decided & self.wrong, minlength=len(size)) / size,
        )


@dataclass(frozen=True, eq=False)
class Development:
    """What a recogniser made of development probes: the decisions a risk counts, beside what concerns them all."""

    decisions: Decisions
    quality: Float64Array  # (all probes,)
    n_subjects: int | None  # distinct people among the counted probes; None where strangers are unnamed
    n_gallery: int

    @classmethod
    def of(cls, examination: Examination, risk: str, unit: str, y: object, subject: object) -> Development:
        """Compare the answers of an examination with the truth."""
        reading = examination.reading
        truth = truth_numbers(reading.search, y, len(reading))
        person, all_named = people(y, subject, len(reading))
        rows = fresh_rows(reading.probes, examination.calibration_fingerprints)
        reading, truth, person = reading.take(rows), truth[rows], person[rows]
        top = reading.evidence.top_index[:, 0]
        counted, wrong = risk_columns(risk, truth >= 0, reading.accepted, top == truth)
        if not counted.any():
            kind = "non-mated" if risk == "fpir" else "mated"
            raise CalibrationDataError(
                f"risk={risk!r} counts {kind} probes, and none of the {len(reading)} development probes is; bring some, "
                "or control risk='error'"
            )
        if unit == "subject" and not all_named:
            raise InvalidSubjectsError(
                "unit='subject' needs to know which probes of strangers show the same person, and y calls some UNKNOWN; "
                "pass subject= with a person for every probe, or unit='probe' where each stranger has one probe"
            )
        person = person[counted]
        n_subjects = len(np.unique(person)) if all_named else None
        code = np.arange(len(person)) if unit == "probe" else np.unique(person, return_inverse=True)[1]
        quality = examination.score(reading)
        decisions = Decisions(quality[counted], wrong[counted], code.astype(np.int64))
        return cls(decisions, quality, n_subjects, len(reading.search))

    def filtered_share(self, threshold: float) -> float:
        """The share of all development probes whose answer would be filtered."""
        return float(np.mean(self.quality < threshold))
