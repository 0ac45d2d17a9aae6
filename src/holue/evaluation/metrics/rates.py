"""Metrics: rates of the three error kinds, and what follows from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holue.errors import InvalidParameterError
from holue.evaluation.metrics.undefined import undefined
from holue.evaluation.outcomes import OutcomeKind, Outcomes

TP = OutcomeKind.TRUE_POSITIVE
FA = OutcomeKind.FALSE_ACCEPTANCE
FR = OutcomeKind.FALSE_REJECTION
MI = OutcomeKind.MISIDENTIFICATION
TN = OutcomeKind.TRUE_NEGATIVE


@dataclass(frozen=True)
class Metric:
    """A ratio of counts, ``w·A / (w·A + B)``, or a plain count ``A``.

    ``A`` counts the probes of the kinds ``counted``, ``B`` those of the kinds ``others``. Every rate has this
    shape (``w`` is 1, and 2 for F1), so curves and bootstraps are written once for all of them.
    """

    name: str
    counted: tuple[OutcomeKind, ...]
    others: tuple[OutcomeKind, ...]
    higher_is_better: bool
    undefined_when: str
    weight: int = 1
    is_count: bool = False

    def terms(self, counts: NDArray[np.integer]) -> tuple[NDArray[np.integer], NDArray[np.integer]]:
        """``(A, B)`` from counts of the five outcome kinds along the last axis."""
        return counts[..., list(self.counted)].sum(axis=-1), counts[..., list(self.others)].sum(axis=-1)

    def of_counts(self, counts: NDArray[np.integer]) -> NDArray[np.float64]:
        """The metric of counts of the five outcome kinds along the last axis; silent NaN where undefined."""
        counted, others = self.terms(counts)
        if self.is_count:
            return counted.astype(np.float64)
        total = self.weight * counted + others
        value = np.full(np.shape(total), np.nan)
        np.divide(self.weight * counted, total, out=value, where=total > 0)
        return value


def _count(name: str, kind: OutcomeKind) -> Metric:
    return Metric(name, (kind,), (), higher_is_better=False, undefined_when="", is_count=True)


_NO_MATED = "there is no mated probe"
_NO_NON_MATED = "there is no non-mated probe"
_NO_ACCEPTED = "there is no true positive and no false acceptance"
_ALL_TRUE_NEGATIVE = "there is neither a mated nor an accepted probe"

METRICS: Mapping[str, Metric] = MappingProxyType(
    {
        metric.name: metric
        for metric in (
            Metric("f1", (TP,), (FA, FR, MI), True, _ALL_TRUE_NEGATIVE, weight=2),
            Metric("fpir", (FA,), (TN,), False, _NO_NON_MATED),
            Metric("fnir", (FR, MI), (TP,), False, _NO_MATED),
            Metric("dir", (TP,), (FR, MI), True, _NO_MATED),
            Metric("precision", (TP,), (FA,), True, _NO_ACCEPTED),
            Metric("recall", (TP,), (FR, MI), True, _NO_MATED),
            Metric("accuracy", (TP, TN), (FA, FR, MI), True, "there is no probe"),
            Metric("error_rate", (FA, FR, MI), (TP, TN), False, "there is no probe"),
            Metric("false_rejection_rate", (FR,), (TP, MI), False, _NO_MATED),
            Metric("misidentification_rate", (MI,), (TP, FR), False, _NO_MATED),
            _count("false_acceptances", FA),
            _count("false_rejections", FR),
            _count("misidentifications", MI),
        )
    }
)
"""Every metric by name: what ``metric=`` takes."""


def find_metric(name: str) -> Metric:
    """Look a metric up by name.

    >>> find_metric("fnir").higher_is_better
    False
    """
    try:
        return METRICS[name]
    except (KeyError, TypeError):
        raise InvalidParameterError(f"metric={name!r} is not known; choose from {', '.join(METRICS)}") from None


def metric_value(metric: str, *, mated: ArrayLike, accepted: ArrayLike, correct_subject: ArrayLike) -> float:
    """Compute the metric of that name; NaN with an ``UndefinedMetricWarning`` where it has no value.

    >>> metric_value("misidentifications", mated=[1, 1], accepted=[1, 1], correct_subject=[1, 0])
    1.0
    """
    chosen = find_metric(metric)
    kind = Outcomes(mated, accepted, correct_subject).kind
    value = float(chosen.of_counts(np.bincount(kind, minlength=len(OutcomeKind))))
    return undefined(metric, chosen.undefined_when) if np.isnan(value) else value


def fpir(mated: ArrayLike, accepted: ArrayLike, correct_subject: ArrayLike | None = None) -> float:
    """False positive identification rate: ``FP / |P_N|``, non-mated probes accepted.

    Paper, appendix "Quality metrics"; ISO/IEC 19795-1. ``correct_subject`` is not used: it is taken so that
    every metric can be called alike.

    >>> fpir([False, False, True], [True, False, True])
    0.5
    """
    ignored = np.zeros(len(np.atleast_1d(mated)), dtype=bool) if correct_subject is None else correct_subject
    return metric_value("fpir", mated=mated, accepted=accepted, correct_subject=ignored)


def fnir(mated: ArrayLike, accepted: ArrayLike, correct_subject: ArrayLike) -> float:
    """False negative identification rate: ``FN / (FN + TP)``, mated probes rejected or misidentified.

    Paper, appendix "Quality metrics". At a rank and a threshold: ``holue.evaluation.metrics.ranks.fnir_at_rank``.

    >>> fnir([True, True, True, False], [True, True, False, False], [True, False, False, False])
    0.6666666666666666
    """
    return metric_value("fnir", mated=mated, accepted=accepted, correct_subject=correct_subject)


def detection_identification_rate(mated: ArrayLike, accepted: ArrayLike, correct_subject: ArrayLike) -> float:
    """Detection and identification rate: ``DIR = 1 − FNIR = TP / (TP + FN)``.

    >>> detection_identification_rate([True, True], [True, False], [True, False])
    0.5
    """
    return metric_value("dir", mated=mated, accepted=accepted, correct_subject=correct_subject)


def precision(mated: ArrayLike, accepted: ArrayLike, correct_subject: ArrayLike) -> float:
    """Precision: ``TP / (TP + FP)``. A misidentification is no ``FP``, so it does not count here.

    >>> precision([True, True, False], [True, True, True], [True, False, False])
    0.5
    """
    return metric_value("precision", mated=mated, accepted=accepted, correct_subject=correct_subject)


def recall(mated: ArrayLike, accepted: ArrayLike, correct_subject: ArrayLike) -> float:
    """Recall: ``TP / (TP + FN)``, the same number as DIR.

    >>> recall([True, True, False], [True, True, True], [True, False, False])
    0.5
    """
    return metric_value("recall", mated=mated, accepted=accepted, correct_subject=correct_subject)


def f1(mated: ArrayLike, accepted: ArrayLike, correct_subject: ArrayLike) -> float:
    """F1: the harmonic mean of precision and recall, ``2·TP / (2·TP + FP + FN)``.

    Paper, appendix "Quality metrics". Written in counts it is 0 when there is no true positive but some
    error, where precision or recall alone may be undefined; it is undefined only when every probe is a true
    negative.

    >>> f1([True, True, False, False], [True, False, True, False], [True, False, False, False])
    0.5
    """
    return metric_value("f1", mated=mated, accepted=accepted, correct_subject=correct_subject)


def error_rate(mated: ArrayLike, accepted: ArrayLike, correct_subject: ArrayLike) -> float:
    """Share of probes that end in any of the three errors.

    >>> error_rate([True, True, False, False], [True, False, True, False], [True, False, False, False])
    0.5
    """
    return metric_value("error_rate", mated=mated, accepted=accepted, correct_subject=correct_subject)


def accuracy(mated: ArrayLike, accepted: ArrayLike, correct_subject: ArrayLike) -> float:
    """Share of probes that end well: identified if mated, rejected if not.

    >>> accuracy([True, False], [True, False], [True, False])
    1.0
    """
    return metric_value("accuracy", mated=mated, accepted=accepted, correct_subject=correct_subject)
