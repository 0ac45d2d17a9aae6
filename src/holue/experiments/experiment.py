"""Experiment: the same comparison on several random splits of one data set, and the document that sums it up."""

from __future__ import annotations

import logging
import platform
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from holue.embedding.training.train import TrainingSettings
from holue.errors import InvalidParameterError
from holue.evaluation.columns import FloatArray
from holue.evaluation.comparison.results import CURVE_METRICS, PointResult, Results, plain
from holue.evaluation.comparison.study import evaluate
from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.evaluation.intervals.estimates import bootstrap_calibration_error
from holue.evaluation.intervals.intervals import Bootstrapped, bootstrap_metric, bootstrap_prr
from holue.evaluation.metrics.rejection import PrrRange
from holue.evaluation.metrics.undefined import UndefinedMetricWarning
from holue.evaluation.protocol import IdentificationProtocol
from holue.experiments.ablation import ablate, mean_ablation
from holue.experiments.source_commit import source_commit
from holue.experiments.tables.levels import level_documents
from holue.experiments.tables.seed_mean import SeedMean, joint_resamples
from holue.progress import Progress

logger = logging.getLogger(__name__)

FORMAT, VERSION = "holue-experiment", 3
REFERENCE = "holue"
"""The method that differences are taken to: the paper's, HolUE-MLP."""
ABLATED = "holue-plus"
"""The method that is taken apart."""
PRR: PrrRange = "paper"
"""The paper's definition, so that the tables can be held against its own."""
LEVEL = 0.95
RATES = ("fpir", "fnir", "dir", "precision", "f1")
MAIN, NORM_ONLY, ORACLE = "", "concentration from the norm", "oracle threshold"
"""The variant that an experiment is about, the one for users without any trained head, and the one with the paper's threshold."""
HELD_BY_MODEL = "threshold moved with the gallery's size by the paper's model"
"""The main variant again, with ``hold="model"``: what the paper's own model makes of a larger evaluation gallery."""
COMPARED = ("pfe", "scf", "sf", "acceptance", "galue", REFERENCE, "holue-plus", "holue-f1")
"""The methods of that variant: the paper's six and the two of this package that are compared with them."""
Protocols = Callable[[int], Mapping[str, IdentificationProtocol]]
"""A seed → its protocols by variant; the first is the one the experiment is about."""


@dataclass(frozen=True)
class Size:
    """How large an experiment is, and where it keeps what it has done.

    ``quick`` takes a part of the data and few training epochs: to see that all works, not for its numbers.
    """

    quick: bool = False
    cache_dir: Path | None = None
    progress: Progress | None = None

    def training(self, seed: int, held_out: float = 0.1) -> TrainingSettings:
        """How heads are trained, stopped early by a share of their subjects."""
        return TrainingSettings(seed=seed, epochs=3 if self.quick else TrainingSettings.epochs, held_out=held_out)


@dataclass(frozen=True)
class Experiment:
    """A data set with its protocols: ``load`` reads and embeds it, and gives what deals it out for a seed.

    Published protocols have no seeds: ``splits`` is then how many there are. ``oracle`` evaluates them with the paper's
    threshold as well, which is taken from the evaluation probes.
    """

    name: str
    title: str
    load: Callable[[Size], Protocols]
    splits: int | None = None
    fpir: tuple[float, ...] = (0.05, 0.1, 0.2)
    oracle: bool = False
    paper: str | None = None  # its column in the paper's Table 1


def run_experiment(
    experiment: Experiment,
    *,
    seeds: int = 5,
    fpir: Sequence[float] | None = None,
    n_resamples: int = 1000,
    size: Size | None = None,
) -> dict[str, Any]:
    """Evaluate every method on every seed and variant; the document of ``results.json``.

    Numbers are means over seeds; intervals come from one bootstrap over subjects that all seeds share. The experiment itself is
    evaluated at every target FPIR with either ``hold``, its other variants at the middle one: they say what changes, and cost as
    much. HolUE-plus is taken apart in the main variant alone.
    """
    if isinstance(seeds, bool) or seeds < 1:
        raise InvalidParameterError(f"seeds must be a whole number of at least 1, got {seeds!r}")
    size, seeds = size or Size(), experiment.splits or seeds
    fpir = experiment.fpir if fpir is None else fpir
    if not fpir:
        raise InvalidParameterError("fpir must hold at least one target, such as 0.05")
    started, commit = time.perf_counter(), source_commit()
    protocols = experiment.load(size)
    loaded = time.perf_counter()
    logger.info("%s: read and embedded in %.0f s", experiment.name, loaded - started)
    runs: dict[str, list[Results]] = {}
    for seed in range(seeds):
        for variant, protocol in protocols(seed).items():
            targets = list(fpir) if variant == MAIN else [sorted(fpir)[len(fpir) // 2]]
            # Intervals are drawn jointly below; those of a single seed are not reported.
            runs.setdefault(variant, []).append(evaluate(protocol, fpir=targets, prr=PRR, n_resamples=2, seed=seed))
            if variant == MAIN and not experiment.oracle:
                known = [method.key for method in runs[MAIN][-1].methods if method.key in COMPARED]
                held = evaluate(protocol, fpir=targets, methods=known, prr=PRR, n_resamples=2, seed=seed, hold="model")
                runs.setdefault(HELD_BY_MODEL, []).append(held)
            if experiment.oracle:
                oracle = evaluate(protocol, fpir=targets, prr=PRR, n_resamples=2, seed=seed, threshold_from="eval")
                runs.setdefault(ORACLE, []).append(oracle)
        logger.info(
            "%s: seed %d of %d done after %.0f s", experiment.name, seed + 1, seeds, time.perf_counter() - started
        )
        if size.progress is not None:
            size.progress(seed + 1, seeds, f"seed {seed}")
    with warnings.catch_warnings():
        # A number without a value carries its reason in the document instead of a warning for each method and seed.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        variants = [{"commit": commit, **_variant(name, some, n_resamples)} for name, some in runs.items()]
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": experiment.name,
        "title": experiment.title,
        "quick": size.quick,
        "seeds": seeds,
        "fpir": list(fpir),
        "n_resamples": n_resamples,
        "level": LEVEL,
        "seconds": {"load": loaded - started, "total": time.perf_counter() - started},
        "peak_megabytes": peak_megabytes(),
        "paper": experiment.paper,
        "variants": variants,
        "versions": {
            "commit": commit,
            "python": platform.python_version(),
            **{package: version(package) for package in ("holue", "numpy", "scipy", "numba")},
        },
    }


def peak_megabytes() -> float:
    """The most memory that this process has held, in megabytes."""
    import resource  # not on every system that only imports this module

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1024)


def _variant(name: str, runs: Sequence[Results], n_resamples: int) -> dict[str, Any]:
    protocol = runs[0].protocol
    resamples = joint_resamples(
        [run.protocol.evaluation.probe_subjects for run in runs], n_resamples=n_resamples, rng=np.random.default_rng(0)
    )
    return {
        "variant": name,
        "threshold_from": runs[0].settings.threshold_from,
        "hold": runs[0].settings.hold,
        "protocol": {
            "name": protocol.name,
            "notes": list(protocol.notes),
            **{role: part.counts for role, part in protocol.parts.items()},
        },
        "methods": {method.key: method.name for method in runs[0].methods},
        "skipped_methods": {method.key: method.reason for method in runs[0].skipped},
        "operating_points": [
            _point(runs, resamples, place, apart=name == MAIN) for place in range(len(runs[0].points))
        ],
    }


def _point(
    runs: Sequence[Results], resamples: Sequence[SubjectBootstrap], place: int, *, apart: bool
) -> dict[str, Any]:
    points = [run.points[place] for run in runs]
    keys = [result.method.key for result in points[0].methods]
    with ThreadPoolExecutor() as pool:
        prr = dict(zip(keys, pool.map(lambda key: _prr(key, points, resamples, "f1"), keys)))
        prr_accuracy = dict(zip(keys, pool.map(lambda key: _prr(key, points, resamples, "accuracy"), keys)))
    probabilities = [result.method.key for result in points[0].methods if result.method.is_probability]
    return {
        "target_fpir": points[0].target_fpir,
        "thresholds": [point.point.threshold for point in points],
        "solved_for": [point.point.solved for point in points],
        "recognition": {rate: _rate(rate, points, resamples).document(LEVEL) for rate in RATES},
        "prr_f1": {key: mean.document(LEVEL) for key, mean in prr.items()},
        f"difference_to_{REFERENCE}": _differences(prr),
        "prr_accuracy": {key: mean.document(LEVEL) for key, mean in prr_accuracy.items()},
        f"difference_of_accuracy_to_{REFERENCE}": _differences(prr_accuracy),
        "calibration_error": {key: _calibration(key, points, resamples).document(LEVEL) for key in probabilities},
        "normalisation": {key: _normalisation(key, points) for key in points[0].normalisation},
        "rejection_curves": _curves(points),
        "levels": level_documents(runs, place),
        "ablation": mean_ablation(_ablations(runs, place)) if apart else {},
    }


def _ablations(runs: Sequence[Results], place: int) -> list[dict[str, dict[str, float]]]:
    """What each seed's ablations reached, or nothing where the parts lack a concentration or the answers to learn from."""
    points = [run.points[place] for run in runs]
    if any(point.of(REFERENCE).quality is None or point.of(ABLATED).quality is None for point in points):
        return []
    return [ablate(run.protocol, point.development, point.point) for run, point in zip(runs, points)]


def _differences(prr: Mapping[str, SeedMean]) -> dict[str, Any]:
    reference = prr.get(REFERENCE)
    if reference is None:
        return {}
    return {key: (mean - reference).document(LEVEL) for key, mean in prr.items() if key != REFERENCE}


def _prr(key: str, points: Sequence[PointResult], resamples: Sequence[SubjectBootstrap], metric: str) -> SeedMean:
    return SeedMean.of(
        [
            _without_value(resample)
            if (quality := point.of(key).quality) is None
            else bootstrap_prr(quality, **_flags(point), resamples=resample, metric=metric, prr=PRR)
            for point, resample in zip(points, resamples)
        ]
    )


def _rate(rate: str, points: Sequence[PointResult], resamples: Sequence[SubjectBootstrap]) -> SeedMean:
    return SeedMean.of(
        [bootstrap_metric(rate, **_flags(point), resamples=resample) for point, resample in zip(points, resamples)]
    )


def _calibration(key: str, points: Sequence[PointResult], resamples: Sequence[SubjectBootstrap]) -> SeedMean:
    def error(quality: FloatArray | None, point: PointResult, resample: SubjectBootstrap) -> Bootstrapped:
        if quality is None:
            return _without_value(resample)
        # A sum of exponentials may exceed 1 by rounding.
        probability = np.clip(quality, 0.0, 1.0)
        return bootstrap_calibration_error(probability, correct=point.outcomes.correct, resamples=resample)

    return SeedMean.of([error(point.of(key).quality, point, some) for point, some in zip(points, resamples)])


def _normalisation(key: str, points: Sequence[PointResult]) -> dict[str, float | None]:
    """Table 2: the mean over seeds with terms standardised by the development ("val") or evaluation probes ("test")."""
    means: dict[str, float | None] = {}
    for source in ("val", "test"):
        values = [estimates[source].value for point in points if (estimates := point.normalisation.get(key))]
        defined = [value for value in values if value is not None]
        means[source] = float(np.mean(defined)) if defined else None
    return means


def _curves(points: Sequence[PointResult]) -> dict[str, Any]:
    """The rejection curves, averaged over seeds where all of them have a value."""
    names = points[0].curves["f1"]
    return {
        "filtered_fraction": plain(np.mean([point.fractions for point in points], axis=0)),
        **{
            metric: {
                name: plain(np.mean([point.curves[metric][name] for point in points], axis=0))
                for name in names
                if all(name in point.curves[metric] for point in points)
            }
            for metric in CURVE_METRICS
        },
    }


def _flags(point: PointResult) -> dict[str, Any]:
    outcomes = point.outcomes
    return {"mated": outcomes.mated, "accepted": outcomes.accepted, "correct_subject": outcomes.correct_subject}


def _without_value(resample: SubjectBootstrap) -> Bootstrapped:
    return Bootstrapped("without value", np.nan, np.full(len(resample), np.nan), resample)
