"""Identifications: the answers for a batch of probes, as arrays that can be indexed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from holue.errors import MissingDependencyError
from holue.gallery.embeddings import Float64Array
from holue.gallery.subjects import UNKNOWN, Subjects
from holue.recognition.answer.probabilities import Probabilities
from holue.recognition.quality import QualityScore
from holue.recognition.quality.probability_model import ProbabilityModel
from holue.recognition.reading import Reading

if TYPE_CHECKING:
    import pandas as pd

ACCEPTED, REJECTED, FILTERED, INCOMPLETE = "accepted", "rejected", "filtered", "incomplete"
"""Decided: an enrolled subject; decided: nobody enrolled; not decided: too uncertain, retake or let a person decide; not decided:
part of the gallery could not be read."""

PLAIN = (
    "decision",
    "score",
    "p_subject",
    "p_unknown",
    "calibrated",
    "quality",
    "uncertainty",
    "model_p_unknown",
    "reason",
)
"""Fields with one plain value per answer."""


@dataclass(frozen=True)
class Candidate:
    """One enrolled subject the probe might be: its cosine, its probability, and the class model's own one."""

    subject: Any
    score: float
    probability: float
    model_probability: float


@dataclass(frozen=True)
class Identification:
    """The answer for one probe; its fields are those of :class:`Identifications`."""

    subject: Any
    decision: str
    score: float
    p_subject: float
    p_unknown: float
    calibrated: bool
    quality: float
    uncertainty: float
    candidates: tuple[Candidate, ...]
    model_p_unknown: float
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain Python values, ready for JSON; UNKNOWN becomes None (its decision is "rejected")."""
        return {**asdict(self), "subject": _plain(self.subject), "candidates": [dict(vars(c)) for c in self.candidates]}


@dataclass(frozen=True, eq=False, repr=False)
class Identifications:
    """Answers for n probes: one array per field; ``answers[3]`` is one answer, ``answers[mask]`` are several.

    The probabilities of all K candidates and of nobody sum to 1. Where ``calibrated``, they were learned from validation probes:
    of many answers that get 0.8, about 80 % are right. Otherwise (a ``threshold`` without calibration, or too few validation
    probes) they are the class model's own posterior, which is overconfident. That posterior is always there under
    ``model_p_unknown`` and ``model_candidate_probabilities``.
    """

    subject: npt.NDArray[Any]  # (n,) the subject where accepted, UNKNOWN where rejected, None where not decided
    decision: npt.NDArray[np.str_]  # (n,) "accepted", "rejected", "filtered" or "incomplete"
    score: Float64Array  # (n,) best cosine
    p_subject: Float64Array  # (n,) probability of the best candidate
    p_unknown: Float64Array  # (n,) probability that nobody enrolled is shown
    calibrated: npt.NDArray[np.bool_]  # (n,) whether the probabilities are calibrated; the same for all
    quality: Float64Array  # (n,) higher = more reliable, on the method's own scale
    uncertainty: Float64Array  # (n,) higher = less certain
    candidate_subjects: npt.NDArray[Any]  # (n, k) best first
    candidate_scores: Float64Array  # (n, k)
    candidate_probabilities: Float64Array  # (n, k)
    model_p_unknown: Float64Array  # (n,) the class model's own p_unknown (GalUE's posterior)
    model_candidate_probabilities: Float64Array  # (n, k) the class model's own
    reason: npt.NDArray[np.str_]  # (n,) why the answer is uncertain, where the method can tell; else ""

    @classmethod
    def of(
        cls,
        reading: Reading,
        score: QualityScore,
        filter_threshold: float,
        shown: int,
        model: ProbabilityModel | None = None,
    ) -> Identifications:
        """The answers of a reading, with its best ``shown`` candidates; those of lower quality are filtered.

        The probabilities are those behind the quality where it is one of them, else those of ``model``, else the class model's.
        """
        evidence, names, accepted = reading.evidence, reading.search.names, reading.accepted
        rating, own = score.rate(reading), Probabilities.of_model(reading)
        probabilities = rating.probabilities or (own if model is None else model(reading))
        filtered = rating.quality < filter_threshold
        candidates = names(evidence.top_index[:, :shown])
        subject = named(candidates[:, 0], accepted)
        subject[filtered] = None
        return cls(
            subject=subject,
            decision=np.where(filtered, FILTERED, np.where(accepted, ACCEPTED, REJECTED)),
            score=reading.best_score,
            p_subject=probabilities.candidates[:, 0],
            p_unknown=probabilities.nobody,
            calibrated=np.full(len(reading), probabilities.calibrated),
            quality=rating.quality,
            uncertainty=rating.uncertainty,
            candidate_subjects=candidates,
            candidate_scores=np.asarray(evidence.top_scores[:, :shown], dtype=np.float64),
            candidate_probabilities=probabilities.candidates[:, :shown],
            model_p_unknown=own.nobody,
            model_candidate_probabilities=own.candidates[:, :shown],
            reason=np.array(rating.reasons, dtype=np.str_),
        )

    def __len__(self) -> int:
        return len(self.subject)

    def __repr__(self) -> str:
        kinds, counts = np.unique(self.decision, return_counts=True)
        decided = ", ".join(f"{count} {kind}" for kind, count in zip(kinds.tolist(), counts.tolist()))
        return f"Identifications({len(self)} probes: {decided or 'none'})"

    @overload
    def __getitem__(self, key: int | np.integer[Any]) -> Identification: ...
    @overload
    def __getitem__(self, key: slice | npt.NDArray[Any] | list[int]) -> Identifications: ...
    def __getitem__(self, key: Any) -> Identification | Identifications:
        if not isinstance(key, int | np.integer):
            return Identifications(**{name: getattr(self, name)[key] for name in self.__dataclass_fields__})
        return Identification(
            subject=self.subject[key],
            decision=str(self.decision[key]),
            score=float(self.score[key]),
            p_subject=float(self.p_subject[key]),
            p_unknown=float(self.p_unknown[key]),
            calibrated=bool(self.calibrated[key]),
            quality=float(self.quality[key]),
            uncertainty=float(self.uncertainty[key]),
            candidates=tuple(self._candidates(int(key))),
            model_p_unknown=float(self.model_p_unknown[key]),
            reason=str(self.reason[key]),
        )

    def __iter__(self) -> Iterator[Identification]:
        return (self[i] for i in range(len(self)))

    @property
    def accepted(self) -> npt.NDArray[np.bool_]:
        """Which probes were taken for an enrolled subject."""
        return np.asarray(self.decision == ACCEPTED)

    @property
    def rejected(self) -> npt.NDArray[np.bool_]:
        """Which probes were decided to show nobody enrolled."""
        return np.asarray(self.decision == REJECTED)

    @property
    def filtered(self) -> npt.NDArray[np.bool_]:
        """Which probes were left undecided, their answer being too uncertain to act on."""
        return np.asarray(self.decision == FILTERED)

    @property
    def incomplete(self) -> npt.NDArray[np.bool_]:
        """Which probes were left undecided, part of the gallery being out of reach."""
        return np.asarray(self.decision == INCOMPLETE)

    def left_open(self, why: Any, decided: npt.NDArray[np.bool_] | None = None) -> Identifications:
        """The same answers with no decision, for a gallery of which only a part was seen; ``why`` becomes the reason.

        A subject that was not seen may have any cosine up to 1. It could change a rejection, and also who is accepted, whatever
        the part says; so the answer is "incomplete" for every probe but those that are ``decided`` all the same. Candidates and
        probabilities are those of the part.
        """
        n = len(self)
        sure = np.zeros(n, dtype=bool) if decided is None else decided
        return replace(
            self,
            subject=np.where(sure, self.subject, np.array(None, dtype=object)),
            decision=np.where(sure, self.decision, INCOMPLETE),
            reason=np.broadcast_to(np.asarray(why), (n,)),
        )

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns of plain Python values, ready for JSON; UNKNOWN becomes None (its decision is "rejected")."""
        columns: dict[str, list[Any]] = {name: getattr(self, name).tolist() for name in PLAIN}
        names = ("subject", "score", "probability", "model_probability")
        subjects = [[_plain(subject) for subject in own] for own in self.candidate_subjects.tolist()]
        numbers = (self.candidate_scores, self.candidate_probabilities, self.model_candidate_probabilities)
        rows = zip(subjects, *(each.tolist() for each in numbers))
        candidates = [[dict(zip(names, one)) for one in zip(*row)] for row in rows]
        return {"subject": [_plain(s) for s in self.subject], **columns, "candidates": candidates}

    def to_pandas(self) -> pd.DataFrame:
        """A row per probe; candidates as columns ``candidate_1``, ``score_1``, ``probability_1`` and so on.

        ``model_probability_1`` is the class model's own.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise MissingDependencyError("pandas", "report") from error
        columns = self.to_dict()
        del columns["candidates"]
        frame = pd.DataFrame(columns)
        frame["subject"] = pd.Series(columns["subject"], dtype=object)  # else integers beside None become floats
        for rank in range(self.candidate_subjects.shape[1]):
            frame[f"candidate_{rank + 1}"] = self.candidate_subjects[:, rank]
            frame[f"score_{rank + 1}"] = self.candidate_scores[:, rank]
            frame[f"probability_{rank + 1}"] = self.candidate_probabilities[:, rank]
            frame[f"model_probability_{rank + 1}"] = self.model_candidate_probabilities[:, rank]
        return frame

    def _candidates(self, row: int) -> Iterator[Candidate]:
        for subject, score, probability, model_probability in zip(
            self.candidate_subjects[row],
            self.candidate_scores[row],
            self.candidate_probabilities[row],
            self.model_candidate_probabilities[row],
        ):
            yield Candidate(_plain(subject), float(score), float(probability), float(model_probability))


def named(best: Subjects, accepted: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    """The best subject where it was accepted, UNKNOWN elsewhere (object array).

    >>> named(np.array(["ann", "bob"]), np.array([True, False]))
    array(['ann', UNKNOWN], dtype=object)
    """
    answers = np.full(len(best), UNKNOWN, dtype=object)
    answers[accepted] = best[accepted].tolist()
    return answers


def _plain(subject: Any) -> Any:
    if subject is UNKNOWN:
        return None
    return subject.item() if isinstance(subject, np.generic) else subject
