"""Results: every number of an evaluation with its interval, and the probes behind them."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holue.evaluation.columns import FloatArray
from holue.evaluation.comparison.headline import answer, headline, missed
from holue.evaluation.comparison.methods import Method, Skipped
from holue.evaluation.comparison.settings import Settings
from holue.evaluation.intervals.estimates import Estimate, rounded
from holue.evaluation.outcomes import Outcomes
from holue.evaluation.protocol import IdentificationProtocol
from holue.recognition.answer.probabilities import Probabilities
from holue.recognition.model.monte_carlo import N_SAMPLES
from holue.recognition.model.operating_point import OperatingPoint

if TYPE_CHECKING:
    from holue.evaluation.deployment.trust_study import TrustStudy

FORMAT, VERSION = "holue-evaluation", 1
CURVE_METRICS = ("f1", "fpir", "fnir", "misidentifications")
"""The four rejection curves of the paper's Figure 2."""
REFERENCES = ("random", "oracle")


@dataclass(frozen=True, eq=False)
class MethodResult:
    """How well one method's quality orders the probes at one operating point.

    ``prr`` is that of F1, ``prr_accuracy`` that of accuracy. ``quality`` is None where the method could not be fitted, and
    ``prr.reason`` says why. ``behind_best`` is the paired difference of the best method's PRR of F1 and this one's; None for
    the best itself.
    """

    method: Method
    quality: FloatArray | None
    prr: Estimate
    prr_accuracy: Estimate
    calibration: Estimate | None
    behind_best: Estimate | None

    def document(self) -> dict[str, Any]:
        """Plain values for JSON."""
        given = {"calibration_error": self.calibration, "behind_best": self.behind_best}
        return {
            "name": self.method.name,
            "prr_f1": self.prr.document(),
            "prr_accuracy": self.prr_accuracy.document(),
            **{name: number.document() for name, number in given.items() if number is not None},
        }


@dataclass(frozen=True, eq=False)
class PointResult:
    """Everything at one operating point."""

    target_fpir: float
    development: OperatingPoint
    point: OperatingPoint
    outcomes: Outcomes
    probabilities: Probabilities
    recognition: Mapping[str, Estimate]
    methods: tuple[MethodResult, ...]
    best: str | None
    normalisation: Mapping[str, Mapping[str, Estimate]]
    fractions: FloatArray
    curves: Mapping[str, Mapping[str, FloatArray]]  # metric → method key or reference → values on ``fractions``

    def of(self, key: str) -> MethodResult:
        """The result of the method of this key."""
        return next(result for result in self.methods if result.method.key == key)

    @property
    def ranked(self) -> list[MethodResult]:
        """Methods that have a PRR, the best first."""
        defined = [result for result in self.methods if result.prr.value is not None]
        return sorted(defined, key=lambda result: -(result.prr.value or 0.0))

    def document(self) -> dict[str, Any]:
        """Plain values for JSON."""
        counts = self.outcomes.counts
        return {
            "target_fpir": self.target_fpir,
            "fpir_missed": missed(self),
            "development": _point_document(self.development),
            "evaluation": _point_document(self.point),
            "solved_for": self.point.solved,
            "solved_because": self.point.reason,
            "counts": {
                "true_positives": counts.true_positives,
                "false_acceptances": counts.false_acceptances,
                "false_rejections": counts.false_rejections,
                "misidentifications": counts.misidentifications,
                "true_negatives": counts.true_negatives,
            },
            "recognition": {name: number.document() for name, number in self.recognition.items()},
            "best_method": self.best,
            "methods": {result.method.key: result.document() for result in self.methods},
            "normalisation": {
                key: {source: number.document() for source, number in sources.items()}
                for key, sources in self.normalisation.items()
            },
            "rejection_curves": {
                "filtered_fraction": plain(self.fractions),
                **{
                    metric: {name: plain(values) for name, values in curves.items()}
                    for metric, curves in self.curves.items()
                },
            },
        }


@dataclass(frozen=True, eq=False)
class Results:
    """What :func:`holue.evaluation.comparison.study.evaluate` found."""

    protocol: IdentificationProtocol
    settings: Settings
    methods: tuple[Method, ...]
    skipped: tuple[Skipped, ...]
    points: tuple[PointResult, ...]
    top_scores: FloatArray  # (n, k) cosines of the best candidates
    top_index: NDArray[np.int64]  # (n, k) their numbers
    trust: TrustStudy | None = None

    @property
    def best_score(self) -> FloatArray:
        """Each probe's best cosine."""
        return self.top_scores[:, 0]

    @property
    def correct_top(self) -> NDArray[np.bool_]:
        """Whether each probe's best candidate is its own subject."""
        part = self.protocol.evaluation
        return np.asarray(part.gallery.names(self.top_index[:, 0]) == part.probe_subjects)

    @property
    def headline(self) -> str:
        """What to do, in one sentence."""
        return headline(self)

    @property
    def answer(self) -> str:
        """The outcome in a few sentences, at the first operating point."""
        return answer(self)

    def document(self) -> dict[str, Any]:
        """The results document: plain values, strict JSON (undefined numbers are null, with their reason)."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "headline": self.headline,
            "answer": self.answer,
            "threshold": {"from": self.settings.threshold_from, "label": self.settings.label},
            "protocol": {
                "name": self.protocol.name,
                "notes": list(self.protocol.notes),
                **{role: part.counts for role, part in self.protocol.parts.items()},
            },
            "configuration": {
                **self.settings.document(),
                "methods": [method.key for method in self.methods],
                "monte_carlo_samples": N_SAMPLES,
            },
            "skipped_methods": [
                {"method": method.key, "name": method.name, "reason": method.reason} for method in self.skipped
            ],
            "operating_points": [point.document() for point in self.points],
            **({} if self.trust is None else {"trust": self.trust.document()}),
            "versions": {
                "python": platform.python_version(),
                **{package: version(package) for package in ("holue", "numpy", "scipy", "numba")},
            },
        }


def results_json(results: Results) -> str:
    """The results document as strict JSON."""
    return json.dumps(results.document(), indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _point_document(point: OperatingPoint) -> dict[str, Any]:
    return {
        "n_subjects": point.n_subjects,
        "threshold": rounded(point.threshold),
        "concentration": rounded(point.concentration),
        "unknown_prior": rounded(point.unknown_prior),
        "expected_fpir": None if (expected := point.fpir_interval) is None else asdict(expected),
        "shortfall": point.shortfall,
    }


def plain(values: FloatArray) -> list[float | None]:
    """Numbers as a list for JSON, None where they are NaN.

    >>> plain(np.array([0.5, np.nan]))
    [0.5, None]
    """
    return [None if np.isnan(value) else rounded(value) for value in values]
