"""Rejection curves: a metric on the probes that stay when the least reliable are filtered.

Three curves make a prediction rejection ratio: the one of a quality score, the *oracle*, which filters
errors first, and *random*, which filters blindly. Ties in quality are averaged over their orders
(``ties.py``), so no number here depends on the order of the input.

How far the ratio filters (``prr=``):

- ``"counted"``: up to ``max_rejection`` of the ``C`` probes that the metric counts. F1 does not count right
  rejections, so for F1 ``C = TP + FA + FR + MI``. In every order some counted probe stays, so the metric has a
  value at every point, whichever right answers a quality filters. ``random`` is the average over all orders.
- ``"paper"``: up to ``max_rejection`` of all ``n`` probes, and ``random`` is the metric at fraction 0, held. A
  quality that trusts right rejections most then filters every true positive before the range ends. F1 of what
  stays is 0 or undefined there, however early the errors were found.

For accuracy and error rate ``C = n`` and both are the same. Where a quality has found at least the share ``j/C``
of the errors after ``j`` filtered probes, for every ``j``, F1 never falls below its start and ``"counted"`` is
not negative: with ``E`` errors at most ``j − E·j/C = TP·j/C`` of the true positives are gone by then.

The grid of filtered fractions:

- by default every count ``j = 0 .. floor(max_rejection·n)``, at ``j/n``;
- with ``points``, ``np.linspace(0, max_rejection, points)``; at fraction ``f`` the ``floor((1 − f)·n)``
  most reliable probes stay, the rule of the authors' published code (there with 20 points).

At least one probe always stays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holue.errors import InvalidParameterError
from holue.evaluation.columns import FloatArray, IntArray, numbers, same_length
from holue.evaluation.metrics.rates import Metric, find_metric
from holue.evaluation.metrics.ties import EXACT, filtered_curve
from holue.evaluation.metrics.undefined import undefined
from holue.evaluation.outcomes import OutcomeKind, Outcomes
from holue.sphere.compiled import njit

PrrRange = Literal["counted", "paper"]
"""How far a prediction rejection ratio filters: a share of the probes that its metric counts, or of all probes."""

_ROUNDING = 1e-9
"""Keeps 0.29·100 = 28.999… from losing a probe to the floor."""


@dataclass(frozen=True, eq=False)
class RejectionCurve:
    """A metric against the filtered fraction; ``values`` is NaN where nothing is left to compute it from."""

    metric: str
    fractions: FloatArray
    filtered: IntArray
    values: FloatArray

    @property
    def area(self) -> float:
        """Area under the curve, by trapezoids."""
        return float(area_under(self.values, self.fractions))

    @property
    def undefined_from(self) -> float | None:
        """The fraction from which on the metric has no value, or ``None``."""
        missing = np.isnan(self.values)
        return float(self.fractions[np.argmax(missing)]) if missing.any() else None


@dataclass(frozen=True, eq=False)
class PredictionRejection:
    """The three curves and their ratio; ``reason`` says why ``ratio`` is NaN, where it is."""

    curve: RejectionCurve
    oracle: RejectionCurve
    random: RejectionCurve
    ratio: float
    reason: str | None


@dataclass(frozen=True, eq=False)
class TieGroups:
    """What a metric counts in each group of equally reliable probes, the least reliable first."""

    counted: IntArray
    others: IntArray
    size: IntArray

    @classmethod
    def of(cls, quality: NDArray[np.generic], kind: NDArray[np.int8], metric: Metric) -> TieGroups:
        """Group probes by quality."""
        levels, group = np.unique(quality, return_inverse=True)
        cells = np.bincount(group * len(OutcomeKind) + kind, minlength=len(levels) * len(OutcomeKind))
        by_kind = cells.reshape(len(levels), len(OutcomeKind)).astype(np.int64)
        counted, others = metric.terms(by_kind)
        return cls(counted.astype(np.int64), others.astype(np.int64), by_kind.sum(axis=1))

    def n_counted(self, metric: Metric) -> int:
        """How many probes the metric counts; a plain count falls with every probe."""
        return int((self.size if metric.is_count else self.counted + self.others).sum())

    def curve(self, metric: Metric, fractions: FloatArray, filtered: IntArray) -> RejectionCurve:
        """The metric after each number of filtered probes."""
        values = filtered_curve(self.counted, self.others, self.size, filtered, metric.weight, metric.is_count, EXACT)
        return RejectionCurve(metric.name, fractions, filtered, values)


@njit(cache=True, nogil=True)
def grid_of(n: int, max_rejection: float, points: int) -> tuple[FloatArray, IntArray]:
    """``rejection_grid`` for compiled callers; ``points=0`` is every count."""
    if points == 0:
        filtered = np.arange(min(int(max_rejection * n + _ROUNDING), n - 1) + 1)
        return filtered / n, filtered
    fractions = np.linspace(0, max_rejection, points)
    kept = np.floor((1 - fractions) * n + _ROUNDING).astype(np.int64)
    return fractions, n - np.maximum(kept, 1)


@njit(cache=True, nogil=True)
def counted_range(n: int, n_counted: int, max_rejection: float) -> float:
    """``max_rejection`` of the probes that a metric counts, as a share of all; one of them always stays."""
    return min(max_rejection * n_counted, max(n_counted - 1.0, 0.0)) / n


@njit(cache=True, nogil=True)
def area_under(values: FloatArray, fractions: FloatArray) -> float:
    """Area under a curve, by trapezoids."""
    return float(np.sum((values[1:] + values[:-1]) * (fractions[1:] - fractions[:-1])) / 2)


def rejection_grid(n: int, max_rejection: float, points: int | None) -> tuple[FloatArray, IntArray]:
    """Filtered fractions, and how many of ``n`` probes each filters.

    >>> rejection_grid(5, 0.5, None)
    (array([0. , 0.2, 0.4]), array([0, 1, 2]))
    >>> rejection_grid(10, 0.5, 3)
    (array([0.  , 0.25, 0.5 ]), array([0, 3, 5]))
    """
    fractions, filtered = grid_of(n, max_rejection, points or 0)
    return fractions, filtered


def rejection_curve(
    quality: ArrayLike,
    *,
    mated: ArrayLike,
    accepted: ArrayLike,
    correct_subject: ArrayLike,
    metric: str = "f1",
    max_rejection: float = 0.5,
    points: int | None = None,
) -> RejectionCurve:
    """Filter the probes of lowest quality, and recompute the metric on the rest.

    ``quality`` is higher for more reliable probes; −inf and +inf are allowed, NaN is not. ``metric`` is
    any key of ``holue.evaluation.metrics.rates.METRICS``. Probes of equal quality are filtered in expectation:
    the value is the average over their orders. Where nothing is left to compute it from it is NaN, with
    an ``UndefinedMetricWarning``. Paper, section "Uncertainty estimation quality".

    >>> curve = rejection_curve(
    ...     [0.1, 0.9, 0.8, 0.7],
    ...     mated=[True, True, True, False],
    ...     accepted=[True, True, True, False],
    ...     correct_subject=[False, True, True, False],
    ...     metric="fnir",
    ... )
    >>> curve.fractions, curve.values.round(3)
    (array([0.  , 0.25, 0.5 ]), array([0.333, 0.   , 0.   ]))
    """
    chosen, order, outcomes = _check(quality, mated, accepted, correct_subject, metric, max_rejection, points)
    grid = rejection_grid(len(outcomes), max_rejection, points)
    curve = TieGroups.of(order, outcomes.kind, chosen).curve(chosen, *grid)
    if curve.undefined_from is not None:
        undefined(metric, f"from a filtered fraction of {curve.undefined_from:.4g} on, {chosen.undefined_when}")
    return curve


def oracle_curve(
    *,
    mated: ArrayLike,
    accepted: ArrayLike,
    correct_subject: ArrayLike,
    metric: str = "f1",
    max_rejection: float = 0.5,
    points: int | None = None,
) -> RejectionCurve:
    """The rejection curve of a quality that knows the truth: all errors first, tied, then the rest, tied.

    >>> oracle_curve(
    ...     mated=[True, True, False, False], accepted=[True, False, True, False],
    ...     correct_subject=[True, False, False, False],
    ... ).values.round(3)
    array([0.5  , 0.667, 1.   ])
    """
    return rejection_curve(
        Outcomes(mated, accepted, correct_subject).correct,
        mated=mated,
        accepted=accepted,
        correct_subject=correct_subject,
        metric=metric,
        max_rejection=max_rejection,
        points=points,
    )


def random_curve(
    *,
    mated: ArrayLike,
    accepted: ArrayLike,
    correct_subject: ArrayLike,
    metric: str = "f1",
    max_rejection: float = 0.5,
    points: int | None = None,
) -> RejectionCurve:
    """The rejection curve of blind filtering: a rate stays what it is at fraction 0, a count falls with n.

    >>> random_curve(mated=[1, 1], accepted=[1, 0], correct_subject=[1, 0]).values.round(3)
    array([0.667, 0.667])
    """
    chosen, _, outcomes = _check(None, mated, accepted, correct_subject, metric, max_rejection, points)
    grid = rejection_grid(len(outcomes), max_rejection, points)
    curve = _random_curve(outcomes, chosen, *grid)
    if curve.undefined_from is not None:
        undefined(metric, chosen.undefined_when)
    return curve


def prediction_rejection(
    quality: ArrayLike,
    *,
    mated: ArrayLike,
    accepted: ArrayLike,
    correct_subject: ArrayLike,
    metric: str = "f1",
    max_rejection: float = 0.5,
    points: int | None = None,
    prr: PrrRange = "counted",
) -> PredictionRejection:
    """``prediction_rejection_ratio`` with the three curves it comes from, and without a warning.

    >>> prediction_rejection([1, 2], mated=[1, 0], accepted=[1, 0], correct_subject=[1, 0]).reason
    'every decision is correct, so filtering cannot improve it'
    """
    chosen, order, outcomes = _check(quality, mated, accepted, correct_subject, metric, max_rejection, points)
    check_prr(prr)
    n, blind = len(outcomes), TieGroups.of(np.zeros(len(outcomes)), outcomes.kind, chosen)
    reach = max_rejection if prr == "paper" else counted_range(n, blind.n_counted(chosen), max_rejection)
    grid = rejection_grid(n, reach, points)
    curve = TieGroups.of(order, outcomes.kind, chosen).curve(chosen, *grid)
    oracle = TieGroups.of(outcomes.correct, outcomes.kind, chosen).curve(chosen, *grid)
    random = _random_curve(outcomes, chosen, *grid) if prr == "paper" else blind.curve(chosen, *grid)
    reason = _why_undefined(curve, oracle, random, outcomes, chosen)
    ratio = math.nan if reason else (curve.area - random.area) / (oracle.area - random.area)
    return PredictionRejection(curve, oracle, random, ratio, reason)


def prediction_rejection_ratio(
    quality: ArrayLike,
    *,
    mated: ArrayLike,
    accepted: ArrayLike,
    correct_subject: ArrayLike,
    metric: str = "f1",
    max_rejection: float = 0.5,
    points: int | None = None,
    prr: PrrRange = "counted",
) -> float:
    """Prediction rejection ratio: how much of what filtering can gain a quality score does gain.

    ``PRR = (A_unc − A_random) / (A_oracle − A_random)``: areas under the rejection curves of the quality,
    of blind filtering and of the oracle (errors first, then ties), by trapezoids. 1 is as good as the
    oracle, 0 no better than blind, negative worse. For a metric that is better when lower both differences
    change sign, and the ratio reads the same.

    With ``prr="counted"`` up to ``max_rejection`` of the probes that the metric counts are filtered (for F1: all
    but right rejections), so that the ratio is defined whenever the metric counts an error and a right answer.
    ``prr="paper"`` with ``points=20`` is the paper's (section "Uncertainty estimation quality"): up to
    ``max_rejection`` of all probes, on 20 points. The default grid has every count.

    NaN with an ``UndefinedMetricWarning`` when there are no errors, when no error counts against the
    metric, or, with ``prr="paper"``, when the metric loses its value along a curve (say all mated probes are
    filtered).

    >>> prediction_rejection_ratio(
    ...     [0.2, 0.9, 0.1, 0.8],
    ...     mated=[True, True, False, False],
    ...     accepted=[False, True, True, False],
    ...     correct_subject=[False, True, False, False],
    ... )
    1.0
    """
    result = prediction_rejection(
        quality,
        mated=mated,
        accepted=accepted,
        correct_subject=correct_subject,
        metric=metric,
        max_rejection=max_rejection,
        points=points,
        prr=prr,
    )
    if result.reason is not None:
        return undefined(f"prediction rejection ratio of {metric}", result.reason)
    return result.ratio


@njit(cache=True, nogil=True)
def equal_areas(first: float, second: float) -> bool:
    """Whether two areas differ by no more than rounding."""
    return bool(abs(first - second) <= 1e-12 * max(1.0, abs(first), abs(second)))


def _random_curve(outcomes: Outcomes, metric: Metric, fractions: FloatArray, filtered: IntArray) -> RejectionCurve:
    start = float(metric.of_counts(np.bincount(outcomes.kind, minlength=len(OutcomeKind))))
    values = start * (1 - filtered / len(outcomes)) if metric.is_count else np.full(len(fractions), start)
    return RejectionCurve(metric.name, fractions, filtered, values)


def _why_undefined(
    curve: RejectionCurve,
    oracle: RejectionCurve,
    random: RejectionCurve,
    outcomes: Outcomes,
    metric: Metric,
) -> str | None:
    if np.isnan(random.values[0]):
        return metric.undefined_when
    if outcomes.correct.all():
        return "every decision is correct, so filtering cannot improve it"
    if metric.higher_is_better and not np.isin(outcomes.kind, metric.counted).any():
        return f"{metric.name} is 0 whatever is filtered: not one decision that it counts is right"
    if curve.filtered[-1] == 0:
        return f"not one of {len(outcomes)} probes is filtered; raise max_rejection or give more probes"
    for name, candidate in (("quality", curve), ("oracle", oracle)):
        if candidate.undefined_from is not None:
            return (
                f"{metric.name} has no value once the {name} has filtered a fraction of "
                f"{candidate.undefined_from:.4g}: {metric.undefined_when} among those left; "
                "lower max_rejection, or take prr='counted'"
            )
    if equal_areas(oracle.area, random.area):
        return (
            f"the oracle gains nothing over blind filtering: no error counts against {metric.name}, "
            "or every probe it concerns is one"
        )
    return None


def _check(
    quality: ArrayLike | None,
    mated: ArrayLike,
    accepted: ArrayLike,
    correct_subject: ArrayLike,
    metric: str,
    max_rejection: float,
    points: int | None,
) -> tuple[Metric, NDArray[np.generic], Outcomes]:
    chosen = find_metric(metric)
    check_grid(max_rejection, points)
    outcomes = Outcomes(mated, accepted, correct_subject)
    order = outcomes.correct if quality is None else numbers("quality", quality)
    same_length(quality=order, mated=outcomes.mated)
    return chosen, order, outcomes


def check_prr(prr: str) -> None:
    """Check the name of a range."""
    if prr not in get_args(PrrRange):
        raise InvalidParameterError(
            f"prr must be 'counted' (a share of the probes that the metric counts) or 'paper' (of all), got {prr!r}"
        )


def check_fraction(name: str, value: float) -> None:
    """Check a largest fraction to filter."""
    if not 0 < value <= 1:
        raise InvalidParameterError(f"{name} must lie in (0, 1]; got {value!r}")


def check_grid(max_rejection: float, points: int | None) -> None:
    """Check the settings of a grid of filtered fractions."""
    check_fraction("max_rejection", max_rejection)
    if points is not None and (isinstance(points, bool) or points != int(points) or points < 2):
        raise InvalidParameterError(
            f"points must be a whole number of at least 2, or None for every count; got {points!r}"
        )
