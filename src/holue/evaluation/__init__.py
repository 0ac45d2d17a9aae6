"""How good is it: protocols, metrics, rejection curves, intervals, tables and reports."""

from __future__ import annotations

from holue.evaluation.bootstrap import SubjectBootstrap
from holue.evaluation.calibration_error import (
    ReliabilityDiagram,
    brier_score,
    expected_calibration_error,
    log_loss,
    reliability_diagram,
)
from holue.evaluation.discard import ErrorVersusDiscard, error_versus_discard
from holue.evaluation.intervals import (
    Interval,
    bootstrap_metric,
    bootstrap_prr,
    bootstrap_statistic,
    paired_difference,
)
from holue.evaluation.metrics import (
    accuracy,
    detection_identification_rate,
    error_rate,
    f1,
    fnir,
    fpir,
    precision,
    recall,
)
from holue.evaluation.outcomes import Outcomes
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.evaluation.ranks import cmc, fnir_at_rank, subject_rank
from holue.evaluation.rejection import (
    RejectionCurve,
    oracle_curve,
    prediction_rejection_ratio,
    random_curve,
    rejection_curve,
)
from holue.evaluation.risk_coverage import aurc, excess_aurc
from holue.evaluation.tradeoff import TradeOff, det_points
from holue.evaluation.undefined import UndefinedMetricWarning

__all__ = [
    "ErrorVersusDiscard",
    "IdentificationProtocol",
    "Interval",
    "Outcomes",
    "ProtocolPart",
    "RejectionCurve",
    "ReliabilityDiagram",
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
