"""How good is it: protocols, metrics, rejection curves, intervals, tables and reports."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from holue.evaluation.intervals.bootstrap import SubjectBootstrap
    from holue.evaluation.intervals.intervals import (
        Interval,
        bootstrap_metric,
        bootstrap_prr,
        bootstrap_statistic,
        paired_difference,
    )
    from holue.evaluation.metrics.calibration_error import (
        ReliabilityDiagram,
        brier_score,
        expected_calibration_error,
        log_loss,
        reliability_diagram,
    )
    from holue.evaluation.metrics.discard import ErrorVersusDiscard, error_versus_discard
    from holue.evaluation.metrics.ranks import cmc, fnir_at_rank, subject_rank
    from holue.evaluation.metrics.rates import (
        accuracy,
        detection_identification_rate,
        error_rate,
        f1,
        fnir,
        fpir,
        precision,
        recall,
    )
    from holue.evaluation.metrics.rejection import (
        RejectionCurve,
        oracle_curve,
        prediction_rejection_ratio,
        random_curve,
        rejection_curve,
    )
    from holue.evaluation.metrics.risk_coverage import aurc, excess_aurc
    from holue.evaluation.metrics.tradeoff import TradeOff, det_points
    from holue.evaluation.metrics.undefined import UndefinedMetricWarning
    from holue.evaluation.outcomes import Outcomes
    from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
    from holue.evaluation.report.displays import (
        DetCurveDisplay,
        RejectionCurveDisplay,
        ReliabilityDisplay,
        ScoreHistogramDisplay,
    )

# Resolved on first use: an evaluation imports what it computes, not every metric there is.
_NAMES = {
    "intervals.bootstrap": ("SubjectBootstrap",),
    "intervals.intervals": (
        "Interval",
        "bootstrap_metric",
        "bootstrap_prr",
        "bootstrap_statistic",
        "paired_difference",
    ),
    "metrics.calibration_error": (
        "ReliabilityDiagram",
        "brier_score",
        "expected_calibration_error",
        "log_loss",
        "reliability_diagram",
    ),
    "metrics.discard": ("ErrorVersusDiscard", "error_versus_discard"),
    "metrics.ranks": ("cmc", "fnir_at_rank", "subject_rank"),
    "metrics.rates": (
        "accuracy",
        "detection_identification_rate",
        "error_rate",
        "f1",
        "fnir",
        "fpir",
        "precision",
        "recall",
    ),
    "metrics.rejection": (
        "RejectionCurve",
        "oracle_curve",
        "prediction_rejection_ratio",
        "random_curve",
        "rejection_curve",
    ),
    "metrics.risk_coverage": ("aurc", "excess_aurc"),
    "metrics.tradeoff": ("TradeOff", "det_points"),
    "metrics.undefined": ("UndefinedMetricWarning",),
    "outcomes": ("Outcomes",),
    "protocol": ("IdentificationProtocol", "ProtocolPart"),
    "report.displays": ("DetCurveDisplay", "RejectionCurveDisplay", "ReliabilityDisplay", "ScoreHistogramDisplay"),
}
_HOMES = {name: f"holue.evaluation.{module}" for module, names in _NAMES.items() for name in names}

__all__ = [
    "DetCurveDisplay",
    "ErrorVersusDiscard",
    "IdentificationProtocol",
    "Interval",
    "Outcomes",
    "ProtocolPart",
    "RejectionCurve",
    "RejectionCurveDisplay",
    "ReliabilityDiagram",
    "ReliabilityDisplay",
    "ScoreHistogramDisplay",
    "SubjectBootstrap",
    "TradeOff",
    "UndefinedMetricWarning",
    "accuracy",
    "aurc",
    "bootstrap_metric",
    "bootstrap_prr",
    "bootstrap_statistic",
    "brier_score",
    "cmc",
    "det_points",
    "detection_identification_rate",
    "error_rate",
    "error_versus_discard",
    "excess_aurc",
    "expected_calibration_error",
    "f1",
    "fnir",
    "fnir_at_rank",
    "fpir",
    "log_loss",
    "oracle_curve",
    "paired_difference",
    "precision",
    "prediction_rejection_ratio",
    "random_curve",
    "recall",
    "rejection_curve",
    "reliability_diagram",
    "subject_rank",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'holue.evaluation' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
