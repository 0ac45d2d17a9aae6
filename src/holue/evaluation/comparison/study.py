"""Study: one scan per part of a protocol, then every method at every operating point.

    development strangers → top-1 scores → τ, κ, β of every target FPIR → carried to the evaluation gallery's size
    each part → one scan at κ and κ/T of every operating point → a reading per operating point (columns of one evidence)
    reading → every quality → outcomes → PRR, recognition rates and calibration, each with a bootstrap interval over subjects

What is learnt (threshold, normalisation, head) comes from the development part. ``threshold_from="eval"`` takes the threshold
from the evaluation part's labels, as the paper's tables did; it is an oracle, and labelled so in every output.
"""

from __future__ import annotations

import logging
import os
import threading
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from holue.errors import GalleryTooSmallError
from holue.evaluation.columns import FloatArray
from holue.evaluation.comparison.methods import ALL, Method, Skipped, choose_methods, grouped_reasons
from holue.evaluation.comparison.point_study import PointStudy
from holue.evaluation.comparison.results import Results
from holue.evaluation.comparison.settings import Settings, ThresholdFrom, as_targets
from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.evaluation.metrics.rejection import PrrRange
from holue.evaluation.metrics.undefined import UndefinedMetricWarning
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.recognition.calibration.fallback import usable_hold
from holue.recognition.calibration.truth import people
from holue.recognition.calibration.validation import stranger_scores
from holue.recognition.model.monte_carlo import sampled_terms
from holue.recognition.model.operating_point import Hold, OperatingPoint
from holue.recognition.model.strangers import Strangers
from holue.recognition.quality.monte_carlo import MonteCarloQuality
from holue.recognition.reading import KEPT, Reading
from holue.recognition.search.gallery_search import GallerySearch

TOP_K = 5
"""Candidates of each probe in the results."""
logger = logging.getLogger(__name__)


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
    fpir_confidence: float | None = None,
    hold: Hold = "fpir",
    prr: PrrRange = "counted",
    level: float = 0.95,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Results:
    """Evaluate every method at every target FPIR: PRR of F1 and of accuracy, recognition rates and calibration, with intervals.

    ``methods``: names of :func:`holue.evaluation.comparison.methods.known_methods`, or "all"; those the files lack data for are
    listed in ``Results.skipped``. ``max_rejection``, ``points`` and ``prr`` are those of
    :func:`holue.evaluation.metrics.rejection.prediction_rejection_ratio` (``prr="paper", points=20`` is the paper's). Intervals
    are percentiles of ``n_resamples`` bootstrap resamples of the evaluation subjects, shared by all methods. ``seed`` drives the
    resamples and the training of the head; the same seed gives the same numbers. ``fpir_confidence`` and ``hold``
    (how the threshold follows the gallery's size) are those of :class:`holue.recognition.recognizer.OpenSetRecognizer`.

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
        as_targets(fpir),
        threshold_from,
        n_resamples,
        level,
        seed,
        max_rejection,
        points,
        temperature,
        unknown_prior,
        prr,
        fpir_confidence,
        hold,
    )
    for role, part in protocol.parts.items():
        if len(part.gallery) < 2:
            raise GalleryTooSmallError(
                f"the {role} gallery holds 1 subject: nobody to be mistaken for, so nothing to compare; enrol at least 2"
            )
    chosen, skipped = choose_methods(methods, protocol)
    logger.info("evaluating %s by %s", protocol.name, ", ".join(method.name for method in chosen))
    for reason, names in grouped_reasons(skipped).items():
        logger.info("not evaluated: %s (%s)", names, reason)
    steps = _Steps(progress, 2 + _is_fitting(chosen) + _is_sampling(chosen) + len(settings.fpir) * (len(chosen) + 1))
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
    if _is_fitting(methods):
        steps("scan of the development part")
        dev_points = [point for point, _ in operating]
        dev_readings = _readings(development, dev_points, settings.temperature, threads)
    sampled: dict[Reading, FloatArray] = {}
    if _is_sampling(methods):
        steps("samples around the probes, for HolUE-MC")
        sampled = _sampled(readings, settings, threads) | _sampled([r for r in dev_readings if r], settings, threads)
    resamples = SubjectBootstrap.draw(evaluation.probe_subjects, n_resamples=settings.n_resamples, rng=settings.seed)
    studies = [
        PointStudy(protocol, settings, resamples, reading, dev_reading, sampled)
        for reading, dev_reading in zip(readings, dev_readings)
    ]

    def score(study: PointStudy, target: float) -> None:
        for method in methods:
            steps(f"{method.name} at FPIR {target:g}")
            study.score(method)

    # Training a head is one thread's work, so the operating points go side by side; the limit is set here because the
    # contexts inside would restore each other's.
    with threadpool_limits(limits=1, user_api="blas"), ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        list(pool.map(score, studies, settings.fpir))
    results = []
    for study, target, (dev_point, point) in zip(studies, settings.fpir, operating):
        steps(f"intervals at FPIR {target:g}")
        results.append(study.result(target, dev_point, point))
    steps.finish()
    for result in results:
        reached = result.recognition["fpir"].value
        logger.info(
            "FPIR %g: threshold %.4f, reached %s, best method %s",
            result.target_fpir,
            result.point.threshold,
            "no value" if reached is None else f"{reached:.3g}",
            result.best,
        )
    evidence = readings[0].evidence
    return Results(
        protocol,
        settings,
        methods,
        skipped,
        tuple(results),
        np.asarray(evidence.top_scores[:, :TOP_K], dtype=np.float64),
        evidence.top_index[:, :TOP_K],
    )


def _operating_points(
    protocol: IdentificationProtocol, settings: Settings, threads: int | None
) -> list[tuple[OperatingPoint, OperatingPoint]]:
    """The operating point of every target, at the size of the development and of the evaluation gallery."""
    part = protocol.evaluation if settings.is_oracle else protocol.development
    scores, nearest = stranger_scores(
        part.probes.take(~part.mated),
        GallerySearch.exact(part.gallery),
        settings.fpir,
        threads,
        confidence=settings.fpir_confidence,
    )
    strangers = Strangers.of(
        scores,
        people(part.probe_subjects, None, len(part.probes))[0][~part.mated],
        nearest=None if settings.is_oracle else nearest,
    )
    found = [
        OperatingPoint.at_fpir(
            strangers,
            target,
            dim=part.gallery.dim,
            n_subjects=len(part.gallery),
            unknown_prior=settings.unknown_prior,
            confidence=settings.fpir_confidence,
        )
        for target in settings.fpir
    ]
    sizes = len(protocol.development.gallery), len(protocol.evaluation.gallery)
    # Carried to another size as the recogniser does, so that what is evaluated is what would be deployed.
    holds = [usable_hold(settings.hold, point) for point in found]
    return [(point.for_gallery(sizes[0], hold), point.for_gallery(sizes[1], hold)) for point, hold in zip(found, holds)]


def _readings(
    part: ProtocolPart, points: list[OperatingPoint], temperature: float, threads: int | None
) -> list[Reading]:
    """One scan at κ and κ/T of every operating point."""
    top_k = min(max(TOP_K, KEPT), len(part.gallery))
    return Reading.at_points(part.probes, part.gallery, points, temperature=temperature, top_k=top_k, threads=threads)


def _sampled(readings: list[Reading], settings: Settings, threads: int | None) -> dict[Reading, FloatArray]:
    if not readings:
        return {}
    points, first = [reading.point for reading in readings], readings[0]
    terms = sampled_terms(
        first.probes, first.search, points, temperature=settings.temperature, seed=settings.seed, threads=threads
    )
    return dict(zip(readings, terms))


def _is_fitting(methods: Iterable[Method]) -> bool:
    return any(method.needs_fit for method in methods)


def _is_sampling(methods: Iterable[Method]) -> bool:
    return any(method.score is MonteCarloQuality for method in methods)


class _Steps:
    """Counts steps for a progress bar, from several threads: call it as a step begins."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.begun = progress, total, 0
        self.lock = threading.Lock()

    def __call__(self, note: str) -> None:
        logger.debug("%s", note)
        with self.lock:
            if self.progress is not None:
                self.progress(self.begun, self.total, note)
            self.begun += 1

    def finish(self) -> None:
        if self.progress is not None:
            self.progress(self.total, self.total, "")
