"""Ablation: HolUE-plus with one of its parts left out or exchanged, on the same readings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from holue.evaluation.metrics.calibration_error import expected_calibration_error
from holue.evaluation.metrics.rejection import prediction_rejection_ratio
from holue.evaluation.outcomes import Outcomes
from holue.evaluation.protocol import IdentificationProtocol
from holue.gallery.embeddings import Float64Array
from holue.recognition.answer.causes import FEATURES, causes, shifted_causes
from holue.recognition.calibration.truth import correct_answers, truth_numbers
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.quality.candidate_shares import CandidateShares
from holue.recognition.quality.heads.monotone import MonotoneHead
from holue.recognition.quality.probability_model import cause_knots
from holue.recognition.reading import Reading

TEMPERATURE = 20.0
MEASURES = ("prr_f1", "prr_accuracy", "calibration_error")


class Head(Protocol):
    """What learns P(enrolled) from features."""

    def fit(self, features: Float64Array, target: npt.NDArray[np.bool_]) -> None:
        """Learn from (n, m) features and whether each probe is mated."""

    def __call__(self, features: Float64Array) -> Float64Array:
        """P(enrolled) (n,)."""


class FreeHead:
    """A classifier of scikit-learn, free to turn where it likes."""

    def __init__(self, classifier: LogisticRegression | HistGradientBoostingClassifier) -> None:
        self.classifier = make_pipeline(StandardScaler(), classifier)
        self.constant: float | None = None

    def fit(self, features: Float64Array, target: npt.NDArray[np.bool_]) -> None:
        """Fit it; all yes or all no is a constant."""
        self.constant = float(target[0]) if target.all() or not target.any() else None
        if self.constant is None:
            self.classifier.fit(features, target)

    def __call__(self, features: Float64Array) -> Float64Array:
        """P(enrolled) (n,)."""
        if self.constant is not None or not len(features):
            return np.full(len(features), self.constant or 0.0)
        return np.asarray(self.classifier.predict_proba(features)[:, 1])


class CauseHead(MonotoneHead):
    """The head of HolUE-plus: it may bend where the causes say so."""

    def fit(
        self,
        features: Float64Array,
        target: npt.NDArray[np.bool_],
        *,
        knots: Sequence[Float64Array] | None = None,
        start: Float64Array | None = None,
    ) -> None:
        """Fit the weights on causes, the boundary first."""
        super().fit(features, target, knots=cause_knots(features) if knots is None else knots, start=start)


@dataclass(frozen=True)
class Ablation:
    """One estimator: which features it makes of the causes, what learns, and whether the candidates share what it learns."""

    name: str
    features: Callable[[Reading, Float64Array], Float64Array] = lambda reading, found: found
    head: Callable[[], Head] = CauseHead
    shared: bool = True

    def quality(self, development: Reading, truth: npt.NDArray[np.int64], evaluation: Reading) -> Float64Array:
        """P(correct) of the evaluation answers, learnt from the development answers as a gallery of that size would give them."""
        head = self.head()
        shift = evaluation.point.stranger_shift - development.point.stranger_shift
        head.fit(self.features(development, shifted_causes(development, truth, shift)), truth >= 0)
        enrolled = head(self.features(evaluation, causes(evaluation)))
        share = CandidateShares.fit(development, truth)(evaluation)[:, 0] if self.shared else 1.0
        return np.where(evaluation.accepted, enrolled * share, 1.0 - enrolled)


def _without(feature: str) -> Callable[[Reading, Float64Array], Float64Array]:
    return lambda reading, found: np.delete(found, FEATURES.index(feature), axis=1)


def _with_terms(reading: Reading, found: Float64Array) -> Float64Array:
    kl_gallery, kl_unknown = reading.holistic_terms
    return np.column_stack([found, kl_gallery, -kl_unknown])


ABLATIONS: tuple[Ablation, ...] = (
    Ablation("HolUE-plus"),
    *(
        Ablation(f"without {feature}", features=_without(feature), head=CauseHead if at else MonotoneHead)
        for at, feature in enumerate(FEATURES)
    ),
    Ablation("all of it to the best candidate", shared=False),
    Ablation("with KL₁ and KL₂ added", features=_with_terms),
    Ablation("linear logistic instead of monotone", head=lambda: FreeHead(LogisticRegression())),
    Ablation(
        "boosted trees instead of monotone",
        head=lambda: FreeHead(
            HistGradientBoostingClassifier(max_iter=80, max_leaf_nodes=8, min_samples_leaf=30, random_state=0)
        ),
    ),
)


def ablate(
    protocol: IdentificationProtocol, development: OperatingPoint, point: OperatingPoint
) -> dict[str, dict[str, float]]:
    """PRR of F1 and of accuracy, and the calibration error, of every ablation at one operating point; it needs κ_x."""
    readings, truths = [], []
    for part, here in ((protocol.development, development), (protocol.evaluation, point)):
        reading = Reading.of(part.probes, part.gallery, here, temperature=TEMPERATURE)
        truth = truth_numbers(part.gallery, part.probe_subjects, len(part.probes))
        readings.append(reading)
        truths.append(truth)
    named_right = readings[1].evidence.top_index[:, 0] == truth
    outcomes = Outcomes(
        protocol.evaluation.mated, readings[1].accepted, named_right, protocol.evaluation.probe_subjects
    )
    found = {}
    for one in ABLATIONS:
        quality = one.quality(readings[0], truths[0], readings[1])
        ratios = [
            prediction_rejection_ratio(
                quality,
                mated=outcomes.mated,
                accepted=outcomes.accepted,
                correct_subject=outcomes.correct_subject,
                metric=metric,
                prr="paper",
            )
            for metric in ("f1", "accuracy")
        ]
        error = expected_calibration_error(quality, correct=correct_answers(readings[1], truths[1]))
        found[one.name] = dict(zip(MEASURES, (*ratios, error)))
    return found


def mean_ablation(seeds: Sequence[dict[str, dict[str, float]]]) -> dict[str, dict[str, float | None]]:
    """Means over seeds; None where a seed has no value."""
    means: dict[str, dict[str, float | None]] = {}
    for name in seeds[0] if seeds else ():
        values = {measure: np.mean([seed[name][measure] for seed in seeds]) for measure in MEASURES}
        means[name] = {measure: float(value) if np.isfinite(value) else None for measure, value in values.items()}
    return means
