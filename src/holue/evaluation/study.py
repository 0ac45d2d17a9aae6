"""Study: one scan per part of a protocol, then every method at every operating point.

    development strangers → top-1 scores → τ, κ, β of every target FPIR → carried to the evaluation gallery's size
    each part → one scan at κ and κ/T of every operating point → a reading per operating point (columns of one evidence)
    reading → every quality → outcomes → PRR, recognition rates and calibration, each with a bootstrap interval over subjects

What is learnt (threshold, normalisation, head) comes from the development part. ``threshold_from="eval"`` takes the threshold
from the evaluation part's labels, as the paper's tables did; it is an oracle, and labelled so in every output.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, TypedDict

import numpy as np

from holue.errors import CalibrationDataError
from holue.evaluation.bootstrap import SubjectBootstrap
from holue.evaluation.columns import BoolArray, FloatArray
from holue.evaluation.estimates import Estimate, bootstrap_calibration_error
from holue.evaluation.intervals import Bootstrapped, bootstrap_metric, bootstrap_prr, paired_difference
from holue.evaluation.methods import ALL, Method, Skipped, choose_methods
from holue.evaluation.outcomes import Outcomes
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.evaluation.rejection import prediction_rejection, rejection_grid
from holue.evaluation.results import CURVE_METRICS, MethodResult, PointResult, Results
from holue.evaluation.settings import Settings, ThresholdFrom, as_targets
from holue.evaluation.undefined import UndefinedMetricWarning
from holue.evidence.evidence import Evidence
from holue.evidence.scan import scan
from holue.recognition.operating import OperatingPoint, threshold_at_fpir
from holue.recognition.quality.holistic import HolisticMLPQuality
from holue.recognition.quality.holistic_sum import HolisticSumQuality
from holue.recognition.quality.monte_carlo import MonteCarloQuality
from holue.recognition.quality.score import QualityScore
from holue.recognition.reading import Reading
from holue.recognition.standardizer import Standardizer
from holue.recognition.truth import correct_answers, truth_rows

TOP_K = 5
CURVE_POINTS = 101
RATES = ("fpir", "fnir", "dir", "precision", "f1")


class Flags(TypedDict):
    """What every metric takes: the columns of :class:`Outcomes`."""

    mated: BoolArray
    accepted: BoolArray
    correct_subject: BoolArray


class Grid(TypedDict):
    """What every rejection curve takes."""

    max_rejection: float
    points: int | None


class Progress(Protocol):
    """Anything that can be called with the steps done, the steps in total, and what comes next."""

    def __call__(self, done: int, total: int, note: str = "") -> None:
        """Take notice that ``done`` of ``total`` steps are finished."""


def evaluate(
    protocol: IdentificationProtocol,
    *,
    fpir: float | Sequence[float] = (0.05, 0.1, 0.2),
    methods: str | Iterable[str] = ALL,
    threshold_from: ThresholdFrom = "dev",
    n_resamples: int = 1000,
    seed: int = 0,
    max_rejection: float = 0.5,
    points: int | None = None,
    temperature: float = 20.0,
    unknown_prior: float = 0.5,
    level: float = 0.95,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Evaluate every method at every target FPIR: PRR of F1, recognition rates and calibration, with intervals.

    ``methods``: names of :func:`holue.evaluation.methods.known_methods`, or "all"; those the files lack data for are listed in
    ``Results.skipped``. ``max_rejection`` and ``points`` are those of
    :func:`holue.evaluation.rejection.prediction_rejection_ratio` (``points=20`` is the paper's grid). Intervals are percentiles
    of ``n_resamples`` bootstrap resamples of the evaluation subjects, shared by all methods. ``seed`` drives the resamples and
    the training of the head; the same seed gives the same numbers.

    >>> from holue.gallery.embeddings import Embeddings
    >>> from holue.gallery.gallery import Gallery
    >>> rng = np.random.default_rng(0)
    >>> def part(first):
    ...     means, who = rng.normal(size=(30, 8)), np.repeat(np.arange(30), 4)
    ...     probes = Embeddings.from_samples(means[who] + 0.6 * rng.normal(size=(120, 8)))
    ...     return ProtocolPart(Gallery.from_samples(means[:15], np.arange(15) + first), probes, who + first)
    >>> results = evaluate(
    ...     IdentificationProtocol("made up", part(0), part(100)), fpir=0.1, methods=["galue", "acceptance"], n_resamples=50
    ... )
    >>> 0 < results.points[0].of("galue").prr.value < 1
    True
    """
    settings = Settings(
        as_targets(fpir), threshold_from, n_resamples, level, seed, max_rejection, points, temperature, unknown_prior
    )
    chosen, skipped = choose_methods(methods, protocol)
    fitting = any(method.needs_fit for method in chosen)
    steps = _Steps(progress, 2 + fitting + len(settings.fpir) * (len(chosen) + 1))
    with warnings.catch_warnings():
        # A number without a value carries its reason in the results instead.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        return _study(protocol, settings, chosen, skipped, threads, steps)


def _study(
    protocol: IdentificationProtocol,
    settings: Settings,
    methods: tuple[Method, ...],
    skipped: tuple[Skipped, ...],
    threads: int | None,
    steps: _Steps,
) -> Results:
    development, evaluation = protocol.development, protocol.evaluation
    steps("scores of strangers, for the threshold")
    operating = _operating_points(protocol, settings, threads)
    steps("scan of the evaluation part")
    readings = _readings(evaluation, [point for _, point in operating], settings.temperature, threads)
    dev_readings: list[Reading] | list[None] = [None] * len(operating)
    if any(method.needs_fit for method in methods):
        steps("scan of the development part")
        dev_readings = _readings(development, [point for point, _ in operating], settings.temperature, threads)
    resamples = SubjectBootstrap.draw(evaluation.probe_subjects, n_resamples=settings.n_resamples, rng=settings.seed)
    results = []
    for target, (dev_point, point), reading, dev_reading in zip(settings.fpir, operating, readings, dev_readings):
        study = _PointStudy(protocol, settings, resamples, reading, dev_reading)
        for method in methods:
            steps(f"{method.name} at FPIR {target:g}")
            study.score(method)
        steps(f"intervals at FPIR {target:g}")
        results.append(study.result(target, dev_point, point))
    steps.finish()
    evidence = readings[0].evidence
    return Results(
        protocol,
        settings,
        methods,
        skipped,
        tuple(results),
        np.asarray(evidence.top_scores, dtype=np.float64),
        evidence.top_index,
    )


def _operating_points(
    protocol: IdentificationProtocol, settings: Settings, threads: int | None
) -> list[tuple[OperatingPoint, OperatingPoint]]:
    """The operating point of every target, at the size of the development and of the evaluation gallery."""
    part = protocol.evaluation if settings.is_oracle else protocol.development
    strangers = part.probes.take(~part.mated)
    for target in settings.fpir:
        # Resolved before the scan: a target too fine for the data should not cost a pass over the gallery.
        threshold_at_fpir(np.zeros(len(strangers)), target)
    scores = scan(strangers.directions, part.gallery, [], top_k=1, threads=threads).top_scores[:, 0].astype(np.float64)
    found = [
        OperatingPoint.at_fpir(
            scores,
            target,
            dim=part.gallery.dim,
            n_subjects=len(part.gallery),
            unknown_prior=settings.unknown_prior,
        )
        for target in settings.fpir
    ]
    sizes = len(protocol.development.gallery), len(protocol.evaluation.gallery)
    return [(point.for_gallery(sizes[0]), point.for_gallery(sizes[1])) for point in found]


def _readings(
    part: ProtocolPart, points: list[OperatingPoint], temperature: float, threads: int | None
) -> list[Reading]:
    """One scan at κ and κ/T of every operating point; each reading takes its two columns."""
    sharpness = [a for point in points for a in (point.concentration, point.concentration / temperature)]
    top_k = min(TOP_K, len(part.gallery))
    evidence = scan(part.probes.directions, part.gallery, sharpness, top_k=top_k, threads=threads)
    return [
        Reading(part.probes, part.gallery, point, temperature, _columns(evidence, slice(2 * i, 2 * i + 2)))
        for i, point in enumerate(points)
    ]


def _columns(evidence: Evidence, columns: slice) -> Evidence:
    return Evidence(
        evidence.top_scores,
        evidence.top_index,
        evidence.log_mass[:, columns],
        evidence.mean_score[:, columns],
        evidence.n_subjects,
        evidence.sharpness[columns],
    )


@dataclass(frozen=True)
class _Scored:
    """A method's quality of the evaluation probes, or the reason why it has none."""

    quality: FloatArray | None
    reason: str | None = None


class _PointStudy:
    """One operating point on its way to a :class:`PointResult`."""

    def __init__(
        self,
        protocol: IdentificationProtocol,
        settings: Settings,
        resamples: SubjectBootstrap,
        reading: Reading,
        dev_reading: Reading | None,
    ) -> None:
        self.protocol, self.settings, self.resamples = protocol, settings, resamples
        self.reading, self.dev_reading = reading, dev_reading
        part = protocol.evaluation
        truth = truth_rows(part.gallery, part.probe_subjects, len(part.probes))
        named_right = reading.evidence.top_index[:, 0] == truth
        self.outcomes = Outcomes(part.mated, reading.accepted, named_right, part.probe_subjects)
        self.scored: dict[Method, _Scored] = {}
        self.renormalised: dict[Method, FloatArray] = {}

    def score(self, method: Method) -> None:
        """Fit the method on the development part where it learns, and rate the evaluation probes."""
        if method.score is None:
            assert method.column is not None
            self.scored[method] = _Scored(self.protocol.evaluation.qualities[method.column])
            return
        score = method.score()
        try:
            if method.needs_fit:
                self._fit(score)
            self.scored[method] = _Scored(score(self.reading))
        except CalibrationDataError as error:
            self.scored[method] = _Scored(None, f"it cannot be fitted: {error}")
            return
        # Monte Carlo is a sum too, but not one of the paper's table, and its terms cost scans.
        if isinstance(score, HolisticSumQuality) and not isinstance(score, MonteCarloQuality):
            self.renormalised[method] = normalised_on(score, self.reading)

    def _fit(self, score: QualityScore) -> None:
        assert self.dev_reading is not None
        part = self.protocol.development
        truth = truth_rows(part.gallery, part.probe_subjects, len(part.probes))
        # The seed is the generator's own, as OpenSetRecognizer(random_state=seed) has it: both give the same head.
        rng = np.random.default_rng(self.settings.seed)
        score.fit(self.dev_reading, correct_answers(self.dev_reading, truth), rng)

    def result(self, target: float, dev_point: OperatingPoint, point: OperatingPoint) -> PointResult:
        """All numbers, with their intervals."""
        columns = {method: one.quality for method, one in self.scored.items() if one.quality is not None}
        tested = [(method, quality) for method, quality in self.renormalised.items()]
        ratios = _in_threads(self._bootstrap_prr, [*columns.values(), *(quality for _, quality in tested)])
        prr = dict(zip(columns, ratios))
        estimates = {method: self._prr_estimate(ratio, columns[method]) for method, ratio in prr.items()}
        best = max(
            (method for method in prr if estimates[method].value is not None),
            key=lambda method: estimates[method].value or 0.0,
            default=None,
        )
        test = {m: self._prr_estimate(ratio, q) for (m, q), ratio in zip(tested, ratios[len(columns) :])}
        return PointResult(
            target_fpir=target,
            development=dev_point,
            point=point,
            outcomes=self.outcomes,
            p_unknown=np.exp(self.reading.posterior.log_p_unknown),
            candidate_probabilities=np.exp(self.reading.posterior.log_p_top),
            recognition=self._recognition(),
            methods=tuple(
                MethodResult(
                    method,
                    one.quality,
                    estimates.get(method) or Estimate.undefined(one.reason or ""),
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

    @property
    def _flags(self) -> Flags:
        outcomes = self.outcomes
        return Flags(mated=outcomes.mated, accepted=outcomes.accepted, correct_subject=outcomes.correct_subject)

    @property
    def _grid(self) -> Grid:
        return Grid(max_rejection=self.settings.max_rejection, points=self.settings.points)

    def _bootstrap_prr(self, quality: FloatArray) -> Bootstrapped:
        return bootstrap_prr(quality, **self._flags, resamples=self.resamples, **self._grid)

    def _prr_estimate(self, ratio: Bootstrapped, quality: FloatArray) -> Estimate:
        reason = None
        if np.isnan(ratio.estimate):
            reason = prediction_rejection(quality, **self._flags, **self._grid).reason
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
        grid = Grid(max_rejection=self.settings.max_rejection, points=CURVE_POINTS)
        each = {m.key: prediction_rejection(q, **self._flags, metric=metric, **grid) for m, q in columns.items()}
        any_of = next(iter(each.values()), None)
        references = {} if any_of is None else {"random": any_of.random.values, "oracle": any_of.oracle.values}
        return {**{key: curves.curve.values for key, curves in each.items()}, **references}


def normalised_on(score: HolisticSumQuality, reading: Reading) -> FloatArray:
    """The quality of a fitted score with its terms standardised by these very probes (paper, Table 2, "test").

    The head stays the one trained on the development part; only the mean and spread are those of the probes judged.
    """
    terms = score.terms(reading)
    own = Standardizer()
    own.fit(terms)
    return score.head(own(terms)) if isinstance(score, HolisticMLPQuality) else np.asarray(own(terms).sum(axis=1))


def _in_threads(work: Callable[[FloatArray], Bootstrapped], columns: list[FloatArray]) -> list[Bootstrapped]:
    # The compiled loop holds no lock, and every column is its own.
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(work, columns))


class _Steps:
    """Counts steps for a progress bar: call it as a step begins."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.begun = progress, total, 0

    def __call__(self, note: str) -> None:
        if self.progress is not None:
            self.progress(self.begun, self.total, note)
        self.begun += 1

    def finish(self) -> None:
        if self.progress is not None:
            self.progress(self.total, self.total, "")
