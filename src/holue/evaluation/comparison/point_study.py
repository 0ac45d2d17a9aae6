"""Point study: every method at one operating point, from its reading to numbers with intervals."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from holue.errors import CalibrationDataError, InvalidConcentrationError
from holue.evaluation.columns import BoolArray, FloatArray
from holue.evaluation.comparison.methods import Method
from holue.evaluation.comparison.results import CURVE_METRICS, MethodResult, PointResult
from holue.evaluation.comparison.settings import Settings
from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.evaluation.intervals.estimates import Estimate, bootstrap_calibration_error
from holue.evaluation.intervals.intervals import Bootstrapped, bootstrap_metric, bootstrap_prr, paired_difference
from holue.evaluation.metrics.rejection import PrrRange, prediction_rejection, rejection_grid
from holue.evaluation.outcomes import Outcomes
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.recognition.answer.probabilities import Probabilities
from holue.recognition.calibration.calibration import Examined, fitted
from holue.recognition.calibration.truth import people, truth_numbers
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.quality.calibrated import CalibratedQuality
from holue.recognition.quality.heads.standardizer import Standardizer
from holue.recognition.quality.holistic import HolisticMLPQuality
from holue.recognition.quality.holistic_sum import HolisticSumQuality
from holue.recognition.quality.monte_carlo import MonteCarloQuality
from holue.recognition.quality.probability_model import ProbabilityModel
from holue.recognition.reading import Reading

CURVE_POINTS = 101
RATES = ("fpir", "fnir", "dir", "precision", "f1")


class Flags(TypedDict):
    """What every metric takes: the columns of :class:`Outcomes`."""

    mated: BoolArray
    accepted: BoolArray
    correct_subject: BoolArray


class Grid(TypedDict):
    """What every prediction rejection ratio takes."""

    max_rejection: float
    points: int | None
    prr: PrrRange


@dataclass(frozen=True)
class _Scored:
    """A method's quality of the evaluation probes, or the reason why it has none."""

    quality: FloatArray | None
    reason: str | None = None


class SharedSampleQuality(MonteCarloQuality):
    """HolUE-MC for readings whose terms were sampled beforehand, all operating points together."""

    def __init__(self, sampled: Mapping[Reading, FloatArray]) -> None:
        super().__init__()
        self.sampled = sampled

    def terms(self, reading: Reading) -> FloatArray:
        """KL₁ and KL₂ as (n, 2)."""
        return self.sampled[reading]


class PointStudy:
    """One operating point on its way to a :class:`PointResult`."""

    def __init__(
        self,
        protocol: IdentificationProtocol,
        settings: Settings,
        resamples: SubjectBootstrap,
        reading: Reading,
        dev_reading: Reading | None,
        sampled: Mapping[Reading, FloatArray],
    ) -> None:
        self.protocol, self.settings, self.resamples = protocol, settings, resamples
        self.reading, self.sampled = reading, sampled
        self.examined = None if dev_reading is None else _examined(protocol.development, dev_reading)
        part = protocol.evaluation
        truth = truth_numbers(part.gallery, part.probe_subjects, len(part.probes))
        named_right = reading.evidence.top_index[:, 0] == truth
        self.outcomes = Outcomes(part.mated, reading.accepted, named_right, part.probe_subjects)
        self.scored: dict[Method, _Scored] = {}
        self.renormalised: dict[Method, FloatArray] = {}
        self.model: ProbabilityModel | None = None

    def score(self, method: Method) -> None:
        """Fit the method on the development part where it learns, and rate the evaluation probes."""
        if method.score is None:
            assert method.column is not None
            self.scored[method] = _Scored(self.protocol.evaluation.qualities[method.column])
            return
        score = SharedSampleQuality(self.sampled) if method.score is MonteCarloQuality else method.score()
        try:
            if method.needs_fit:
                assert self.examined is not None
                # The seed is the generator's own, as OpenSetRecognizer(random_state=seed) has it: both give the same head.
                fitted(score, self.examined, np.random.default_rng(self.settings.seed))
            self.scored[method] = _Scored(score(self.reading))
            if isinstance(score, CalibratedQuality):
                self.model = score.model
        except (CalibrationDataError, InvalidConcentrationError) as error:
            self.scored[method] = _Scored(None, f"it cannot be fitted: {error}")
            return
        # Monte Carlo is a sum too, but not one of the paper's table, and its terms cost scans.
        if isinstance(score, HolisticSumQuality) and not isinstance(score, MonteCarloQuality):
            self.renormalised[method] = normalised_on(score, self.reading)

    def result(self, target: float, dev_point: OperatingPoint, point: OperatingPoint) -> PointResult:
        """All numbers, with their intervals."""
        columns = {method: one.quality for method, one in self.scored.items() if one.quality is not None}
        prr = self._bootstrap_prr("f1", columns)
        estimates = {method: self._prr_estimate("f1", ratio, columns[method]) for method, ratio in prr.items()}
        by_accuracy = {
            method: self._prr_estimate("accuracy", ratio, columns[method])
            for method, ratio in self._bootstrap_prr("accuracy", columns).items()
        }
        best = max(
            (method for method in prr if estimates[method].value is not None),
            key=lambda method: estimates[method].value or 0.0,
            default=None,
        )
        test = {
            method: self._prr_estimate("f1", ratio, self.renormalised[method])
            for method, ratio in self._bootstrap_prr("f1", self.renormalised).items()
        }
        return PointResult(
            target_fpir=target,
            development=dev_point,
            point=point,
            outcomes=self.outcomes,
            probabilities=self._probabilities(),
            recognition=self._recognition(),
            methods=tuple(
                MethodResult(
                    method,
                    one.quality,
                    estimates.get(method) or Estimate.undefined(one.reason or ""),
                    by_accuracy.get(method) or Estimate.undefined(one.reason or ""),
                    self._calibration(method, one.quality),
                    self._behind(prr, best, method),
                )
                for method, one in self.scored.items()
            ),
            best=None if best is None else best.key,
            normalisation={method.key: {"val": estimates[method], "test": number} for method, number in test.items()},
            fractions=rejection_grid(len(self.outcomes), self.settings.max_rejection, CURVE_POINTS)[0],
            curves={metric: self._curves(metric, columns) for metric in CURVE_METRICS},
        )

    def _probabilities(self) -> Probabilities:
        """Calibrated where a method has learned them on the development part, else the class model's own."""
        return Probabilities.of_model(self.reading) if self.model is None else self.model(self.reading)

    @property
    def _flags(self) -> Flags:
        outcomes = self.outcomes
        return Flags(mated=outcomes.mated, accepted=outcomes.accepted, correct_subject=outcomes.correct_subject)

    @property
    def _grid(self) -> Grid:
        return Grid(max_rejection=self.settings.max_rejection, points=self.settings.points, prr=self.settings.prr)

    def _bootstrap_prr(self, metric: str, columns: Mapping[Method, FloatArray]) -> dict[Method, Bootstrapped]:
        def ratio(quality: FloatArray) -> Bootstrapped:
            return bootstrap_prr(quality, **self._flags, resamples=self.resamples, metric=metric, **self._grid)

        # The compiled loop holds no lock, and every column is its own.
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return dict(zip(columns, pool.map(ratio, columns.values())))

    def _prr_estimate(self, metric: str, ratio: Bootstrapped, quality: FloatArray) -> Estimate:
        reason = None
        if np.isnan(ratio.estimate):
            reason = prediction_rejection(quality, **self._flags, metric=metric, **self._grid).reason
        return Estimate.of(ratio, self.settings.level, reason)

    def _recognition(self) -> dict[str, Estimate]:
        level, flags = self.settings.level, self._flags
        rates = {name: bootstrap_metric(name, **flags, resamples=self.resamples) for name in RATES}
        # With everyone accepted, DIR is the share of mated probes whose best candidate is right.
        everyone: Flags = {**flags, "accepted": np.ones_like(flags["accepted"])}
        rates["rank_1"] = bootstrap_metric("dir", **everyone, resamples=self.resamples)
        return {name: Estimate.of(rate, level) for name, rate in rates.items()}

    def _calibration(self, method: Method, quality: FloatArray | None) -> Estimate | None:
        if not method.is_probability:
            return None
        if quality is None:
            return Estimate.undefined("the method has no values")
        # A sum of exponentials may exceed 1 by rounding.
        probability = np.clip(quality, 0.0, 1.0)
        error = bootstrap_calibration_error(probability, correct=self.outcomes.correct, resamples=self.resamples)
        return Estimate.of(error, self.settings.level)

    def _behind(self, prr: dict[Method, Bootstrapped], best: Method | None, method: Method) -> Estimate | None:
        if best is None or method is best or method not in prr:
            return None
        return Estimate.of(paired_difference(prr[best], prr[method]), self.settings.level)

    def _curves(self, metric: str, columns: dict[Method, FloatArray]) -> dict[str, FloatArray]:
        # The whole range is drawn, wherever the ratio's ends.
        grid = Grid(max_rejection=self.settings.max_rejection, points=CURVE_POINTS, prr="paper")
        each = {m.key: prediction_rejection(q, **self._flags, metric=metric, **grid) for m, q in columns.items()}
        any_of = next(iter(each.values()), None)
        references = {} if any_of is None else {"random": any_of.random.values, "oracle": any_of.oracle.values}
        return {**{key: curves.curve.values for key, curves in each.items()}, **references}


def _examined(part: ProtocolPart, reading: Reading) -> Examined:
    truth = truth_numbers(part.gallery, part.probe_subjects, len(part.probes))
    return Examined(reading, truth, people(part.probe_subjects, None, len(part.probes))[0])


def normalised_on(score: HolisticSumQuality, reading: Reading) -> FloatArray:
    """The quality of a fitted score with its terms standardised by these very probes (paper, Table 2, "test").

    The head stays the one trained on the development part; only the mean and spread are those of the probes judged.
    """
    terms = score.terms(reading)
    own = Standardizer()
    own.fit(terms)
    return score.head(own(terms)) if isinstance(score, HolisticMLPQuality) else np.asarray(own(terms).sum(axis=1))
