"""Intervals: how far a number would move with other subjects."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holue.errors import InvalidInputError, InvalidParameterError
from holue.evaluation.columns import FloatArray, IntArray, numbers, same_length
from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.evaluation.metrics.rates import Metric, find_metric, metric_value
from holue.evaluation.metrics.rejection import (
    PrrRange,
    area_under,
    counted_range,
    equal_areas,
    grid_of,
    prediction_rejection,
)
from holue.evaluation.metrics.ties import RESAMPLED, filtered_curve
from holue.evaluation.metrics.undefined import UndefinedMetricWarning, undefined
from holue.evaluation.outcomes import Outcomes
from holue.sphere.compiled import njit


@dataclass(frozen=True)
class Interval:
    """An estimate with the interval that holds it; ``n_undefined`` resamples had no value and are left out."""

    estimate: float
    low: float
    high: float
    level: float
    n_resamples: int
    n_undefined: int


@dataclass(frozen=True, eq=False)
class Bootstrapped:
    """A number, and what it is on each resample of subjects (NaN where it has no value)."""

    name: str
    estimate: float
    replicates: FloatArray
    resamples: SubjectBootstrap

    def interval(self, level: float = 0.95) -> Interval:
        """Percentile interval: from the ``(1 − level)/2`` to the ``(1 + level)/2`` quantile of the replicates."""
        low, high = self._quantiles(level)
        return self._interval(low, high, level)

    def basic_interval(self, level: float = 0.95) -> Interval:
        """Basic interval: the percentile interval mirrored at the estimate, ``2θ − q_high .. 2θ − q_low``."""
        low, high = self._quantiles(level)
        return self._interval(2 * self.estimate - high, 2 * self.estimate - low, level)

    def _quantiles(self, level: float) -> tuple[float, float]:
        if not 0 < level < 1:
            raise InvalidParameterError(f"level must lie in (0, 1), such as 0.95; got {level!r}")
        defined = self.replicates[~np.isnan(self.replicates)]
        reason = None
        if math.isnan(self.estimate):
            reason = "the estimate itself is undefined"
        elif len(defined) == 0:
            reason = "it has no value on any resample"
        elif self.resamples.n_subjects < 2:
            reason = "there is only one subject to resample"
        if reason is not None:
            missing = undefined(f"interval of {self.name}", reason)
            return missing, missing
        low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)

    def _interval(self, low: float, high: float, level: float) -> Interval:
        n_undefined = int(np.isnan(self.replicates).sum())
        return Interval(self.estimate, low, high, level, len(self.replicates), n_undefined)


def paired_difference(first: Bootstrapped, second: Bootstrapped) -> Bootstrapped:
    """``first − second`` on the same resamples, so that what moves both does not widen the interval.

    >>> resamples = SubjectBootstrap.draw([1, 2, 3, 4], n_resamples=200, rng=0)
    >>> flags = dict(mated=[1, 1, 0, 0], accepted=[1, 0, 1, 0], correct_subject=[1, 0, 0, 0])
    >>> fnir = bootstrap_metric("fnir", **flags, resamples=resamples)
    >>> miss = bootstrap_metric("false_rejection_rate", **flags, resamples=resamples)
    >>> interval = paired_difference(fnir, miss).interval()
    >>> interval.low, interval.high
    (0.0, 0.0)
    """
    if first.resamples is not second.resamples:
        raise InvalidInputError(
            f"{first.name} and {second.name} come from different resamples and cannot be paired; draw one "
            "SubjectBootstrap and give it to both"
        )
    return Bootstrapped(
        f"{first.name} - {second.name}",
        first.estimate - second.estimate,
        first.replicates - second.replicates,
        first.resamples,
    )


def bootstrap_metric(
    metric: str,
    *,
    mated: ArrayLike,
    accepted: ArrayLike,
    correct_subject: ArrayLike,
    resamples: SubjectBootstrap,
) -> Bootstrapped:
    """A metric of ``METRICS``, on all probes and on each resample of subjects.

    >>> resamples = SubjectBootstrap.draw([1, 1, 2, 3], n_resamples=100, rng=0)
    >>> bootstrap_metric(
    ...     "fnir", mated=[1, 1, 1, 1], accepted=[1, 1, 0, 1], correct_subject=[1, 1, 0, 1], resamples=resamples
    ... ).interval()
    Interval(estimate=0.25, low=0.0, high=1.0, level=0.95, n_resamples=100, n_undefined=0)
    """
    chosen = find_metric(metric)
    outcomes = Outcomes(mated, accepted, correct_subject)
    _same_probes(outcomes, resamples)
    kind = outcomes.kind
    estimate = metric_value(
        metric,
        mated=outcomes.mated,
        accepted=outcomes.accepted,
        correct_subject=outcomes.correct_subject,
    )
    counts = _resampled_counts(kind, resamples.cluster, resamples.times_drawn)
    return Bootstrapped(metric, estimate, chosen.of_counts(counts), resamples)


def bootstrap_prr(
    quality: ArrayLike,
    *,
    mated: ArrayLike,
    accepted: ArrayLike,
    correct_subject: ArrayLike,
    resamples: SubjectBootstrap,
    metric: str = "f1",
    max_rejection: float = 0.5,
    points: int | None = None,
    prr: PrrRange = "counted",
) -> Bootstrapped:
    """``prediction_rejection_ratio``, on all probes and on each resample of subjects.

    Probes are sorted once; a resample only changes how often each counts, and has its own grid, oracle and
    random curve. The average over ties may be off by 1e-4 in a replicate (1e-7 in the estimate).

    >>> resamples = SubjectBootstrap.draw(range(6), n_resamples=100, rng=0)
    >>> interval = bootstrap_prr(
    ...     [1, 2, 3, 4, 5, 6], mated=[1, 1, 1, 1, 0, 0], accepted=[0, 1, 1, 1, 1, 0],
    ...     correct_subject=[0, 1, 1, 1, 0, 0], resamples=resamples,
    ... ).interval()
    >>> interval.low < interval.estimate < interval.high
    True
    """
    outcomes = Outcomes(mated, accepted, correct_subject)
    _same_probes(outcomes, resamples)
    whole = prediction_rejection(
        quality,
        mated=outcomes.mated,
        accepted=outcomes.accepted,
        correct_subject=outcomes.correct_subject,
        metric=metric,
        max_rejection=max_rejection,
        points=points,
        prr=prr,
    )
    name = f"prediction rejection ratio of {metric}"
    estimate = whole.ratio if whole.reason is None else undefined(name, whole.reason)
    replicates = _resampled_ratios(
        numbers("quality", quality), outcomes, find_metric(metric), resamples, max_rejection, points, prr
    )
    return Bootstrapped(name, estimate, replicates, resamples)


def bootstrap_statistic(name: str, statistic: Callable[[IntArray], float], resamples: SubjectBootstrap) -> Bootstrapped:
    """Any function of the rows of the probes, on all probes and on each resample: general, one call each.

    >>> score = np.array([0.25, 0.5, 0.25, 1.0])
    >>> resamples = SubjectBootstrap.draw([1, 1, 2, 3], n_resamples=50, rng=0)
    >>> mean = bootstrap_statistic("mean score", lambda rows: float(score[rows].mean()), resamples)
    >>> mean.estimate
    0.5
    """
    with warnings.catch_warnings():
        # Counted and reported by the interval instead of once per resample.
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        estimate = statistic(np.arange(resamples.n_probes))
        replicates = np.array([statistic(resamples.probes(resample)) for resample in range(len(resamples))])
    return Bootstrapped(name, float(estimate), replicates.astype(np.float64), resamples)


def _same_probes(outcomes: Outcomes, resamples: SubjectBootstrap) -> None:
    same_length(mated=outcomes.mated, **{"the subjects of resamples": resamples.cluster})


def _resampled_ratios(
    quality: NDArray[np.generic],
    outcomes: Outcomes,
    metric: Metric,
    resamples: SubjectBootstrap,
    max_rejection: float,
    points: int | None,
    prr: PrrRange,
) -> FloatArray:
    levels, group = np.unique(quality, return_inverse=True)
    # In order of quality the curve is written front to back, which the cache likes.
    order = np.argsort(group, kind="stable")
    kind = outcomes.kind[order]
    replicates: FloatArray = _ratio_of_each_resample(
        group[order],
        np.isin(kind, metric.counted),
        np.isin(kind, metric.others),
        outcomes.correct[order],
        resamples.cluster[order],
        resamples.times_drawn,
        len(levels),
        metric.weight,
        metric.is_count,
        max_rejection,
        points or 0,
        prr == "paper",
    )
    return replicates


@njit(cache=True, nogil=True)
def _resampled_counts(kind: NDArray[np.int8], cluster: IntArray, times_drawn: NDArray[np.uint8]) -> IntArray:
    counts = np.zeros((len(times_drawn), 5), dtype=np.int64)
    for resample in range(len(times_drawn)):
        for i in range(len(kind)):
            counts[resample, kind[i]] += times_drawn[resample, cluster[i]]
    return counts


@njit(cache=True, nogil=True)
def _ratio_of_each_resample(
    group: IntArray,
    is_counted: NDArray[np.bool_],
    is_other: NDArray[np.bool_],
    is_correct: NDArray[np.bool_],
    cluster: IntArray,
    times_drawn: NDArray[np.uint8],
    n_groups: int,
    weight: int,
    is_count: bool,
    max_rejection: float,
    points: int,
    is_paper: bool,
) -> FloatArray:
    ratios = np.full(len(times_drawn), np.nan)
    for resample in range(len(times_drawn)):
        # Rows: counted, others, size. Columns: groups of equal quality; for the oracle errors, then the rest.
        terms = np.zeros((3, n_groups), dtype=np.int64)
        oracle_terms = np.zeros((3, 2), dtype=np.int64)
        for i in range(len(group)):
            times = np.int64(times_drawn[resample, cluster[i]])
            truth = np.int64(is_correct[i])
            terms[0, group[i]] += times * is_counted[i]
            terms[1, group[i]] += times * is_other[i]
            terms[2, group[i]] += times
            oracle_terms[0, truth] += times * is_counted[i]
            oracle_terms[1, truth] += times * is_other[i]
            oracle_terms[2, truth] += times
        n = oracle_terms[2].sum()
        n_counted = n if is_count else oracle_terms[:2].sum()
        reach = max_rejection if is_paper else counted_range(n, n_counted, max_rejection)
        fractions, filtered = grid_of(n, reach, points)
        values = filtered_curve(terms[0], terms[1], terms[2], filtered, weight, is_count, RESAMPLED)
        oracle_values = filtered_curve(
            oracle_terms[0], oracle_terms[1], oracle_terms[2], filtered, weight, is_count, RESAMPLED
        )
        if is_paper:
            random_values = np.full(len(fractions), values[0])
            if is_count:
                random_values *= 1 - filtered / n
        else:
            blind = oracle_terms.sum(axis=1)
            random_values = filtered_curve(blind[:1], blind[1:2], blind[2:], filtered, weight, is_count, RESAMPLED)
        oracle = area_under(oracle_values, fractions)
        random = area_under(random_values, fractions)
        if not equal_areas(oracle, random):
            ratios[resample] = (area_under(values, fractions) - random) / (oracle - random)
    return ratios
