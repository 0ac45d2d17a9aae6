"""ConformalScores: how probable the truth was on development probes, and the thresholds that cover it.

Split conformal prediction on the posterior. The set of a probe holds every answer whose log-probability reaches a threshold
(least ambiguous sets, Sadinle, Lei and Wasserman 2019: the smallest on average where the posterior is right). There are two
thresholds, one from mated probes for subjects and one from strangers for UNKNOWN (class-conditional, "Mondrian"), so that
strangers are covered like the enrolled, however rare they are.

Probes of one subject are not exchangeable with those of the next. With n subjects, m_i probes each, the threshold is the
largest t with (hierarchical conformal prediction, Lee, Barber and Willett 2023)

    Σ_i (1/m_i) #{ j : log p(truth_ij) ≥ t }  ≥  confidence · (n + 1)

which covers a random probe of a new subject; with one probe each it is the usual ``⌈(n + 1) · confidence⌉``-th score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError
from holue.gallery.embeddings import Float64Array
from holue.recognition.checks import check_share
from holue.recognition.reading import Reading


@dataclass(frozen=True, eq=False)
class ConformalScores:
    """``log p`` of the truth for mated probes and for strangers, with the number of the person behind each."""

    mated: Float64Array
    mated_person: npt.NDArray[np.int64]
    unknown: Float64Array
    unknown_person: npt.NDArray[np.int64]

    @classmethod
    def of(
        cls,
        reading: Reading,
        truth: npt.NDArray[np.int64],
        person: npt.NDArray[np.int64],
        own_score: Float64Array | None = None,
    ) -> ConformalScores:
        """From a reading of development probes; ``truth`` is the number of each one's subject, −1 for strangers.

        ``own_score`` is each probe's cosine to its own subject's template, where that is not the gallery's.
        """
        mated = truth >= 0
        return cls(
            log_p_of_truth(reading, truth, own_score)[mated],
            person[mated],
            reading.posterior.log_p_unknown[~mated],
            person[~mated],
        )

    def thresholds(self, confidence_level: float) -> tuple[float, float]:
        """The lowest ``log p`` of a subject, and of UNKNOWN, that belongs to a set."""
        level = check_share("confidence_level", confidence_level)
        return (
            conformal_threshold(self.mated, self.mated_person, level, "enrolled subjects"),
            conformal_threshold(self.unknown, self.unknown_person, level, "strangers"),
        )

    def arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        """The columns, to be saved."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}


def conformal_threshold(
    scores: Float64Array, person: npt.NDArray[np.int64], confidence_level: float, kind: str = "people"
) -> float:
    """The largest t that the scores of a ``confidence_level`` of people reach, in the sense above.

    >>> conformal_threshold(np.arange(19.0), np.arange(19), 0.95)
    0.0
    >>> conformal_threshold(np.arange(39.0), np.arange(39), 0.95)
    1.0
    """
    code = np.unique(person, return_inverse=True)[1]
    size = np.bincount(code)
    wanted = confidence_level * (len(size) + 1)
    if len(size) < wanted - 1e-9:
        needed = int(np.ceil(confidence_level / (1 - confidence_level) - 1e-9))
        raise CalibrationDataError(
            f"{len(size)} {kind} among the development probes are too few for sets at confidence_level "
            f"{confidence_level:g}: every set would have to hold everybody; bring at least {needed}, or lower the level"
        )
    order = np.argsort(-scores, kind="stable")
    reached = np.cumsum(1 / size[code[order]])
    return float(scores[order[min(int(np.searchsorted(reached, wanted - 1e-9)), len(order) - 1)]])


def log_p_of_truth(
    reading: Reading, truth: npt.NDArray[np.int64], own_score: Float64Array | None = None
) -> Float64Array:
    """``log p(c)`` of each probe's own subject at T = 1; meaningless where truth is −1."""
    model, posterior = reading.point.model, reading.posterior
    if own_score is None:
        mated = np.flatnonzero(truth >= 0)
        own, own_score = reading.search.rows(truth[mated]), np.zeros(len(truth))
        own_score[mated] = np.einsum("ij,ij->i", reading.probes.directions[mated], own)
    log_p = posterior.log_subject_prior + model.height + model.slope * own_score - posterior.log_total
    # The total may be a sum of float32 scores: rounding can put a probability of nearly 1 above 1.
    return np.minimum(log_p, 0.0)
