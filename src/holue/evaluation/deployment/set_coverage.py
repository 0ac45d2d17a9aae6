"""SetCoverage: how large candidate sets are, and how often they hold the truth."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from holue.errors import CalibrationDataError
from holue.evaluation.deployment.rehearsal import Rehearsal, one_vote_each
from holue.evaluation.intervals.subject_rates import SubjectRate
from holue.gallery.subjects import UNKNOWN


@dataclass(frozen=True)
class SetCoverage:
    """Candidate sets of one confidence level on the evaluation part; ``refusal`` says why there are none.

    Coverage gives every person one vote, as the guarantee does.
    """

    confidence_level: float
    mean_size: float | None = None
    single: float | None = None  # share of sets with one answer
    empty: float | None = None
    with_unknown: float | None = None
    mated: SubjectRate | None = None
    strangers: SubjectRate | None = None
    refusal: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def set_coverage(rehearsal: Rehearsal, confidence_level: float) -> SetCoverage:
    """Sets for the evaluation probes, based on the certifying half of the development people."""
    part = rehearsal.protocol.evaluation
    try:
        sets = rehearsal.recognizer.predict_set(part.probes.directions, confidence_level, part.probes.concentrations)
    except CalibrationDataError as error:
        return SetCoverage(confidence_level, refusal=str(error))
    truth = part.probe_subjects.astype(object)
    truth[~part.mated] = UNKNOWN
    held, size = sets.contain(truth), sets.size

    def coverage(rows: Any) -> SubjectRate:
        return rehearsal.rate(rows, held, weight=one_vote_each(rows, rehearsal.resamples))

    return SetCoverage(
        confidence_level,
        mean_size=float(size.mean()),
        single=float(np.mean(size == 1)),
        empty=float(np.mean(size == 0)),
        with_unknown=float(np.mean(sets.unknown)),
        mated=coverage(part.mated),
        strangers=coverage(~part.mated),
    )
