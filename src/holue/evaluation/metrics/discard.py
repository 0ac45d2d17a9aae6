"""Error versus discard: an error rate as the least reliable of the probes it concerns are discarded."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from holue.errors import InvalidParameterError
from holue.evaluation.columns import FloatArray, numbers, same_length
from holue.evaluation.metrics.rates import METRICS, Metric, find_metric
from holue.evaluation.metrics.rejection import TieGroups, check_fraction, equal_areas, rejection_grid
from holue.evaluation.metrics.undefined import undefined
from holue.evaluation.outcomes import Outcomes


@dataclass(frozen=True, eq=False)
class ErrorVersusDiscard:
    """An error-versus-discard characteristic (EDC) up to a discard fraction, and its partial area.

    ``area``: under ``error``, by trapezoids. ``best_area``: of the theoretical best, which discards
    errors first. ``relative_area = (area − best_area) / (blind − best_area)``, ``blind`` the area of the
    starting error held: 0 is the best possible, 1 no better than discarding blindly; NaN when the two
    coincide.
    """

    metric: str
    fractions: FloatArray
    error: FloatArray
    best_error: FloatArray
    area: float
    best_area: float
    relative_area: float


def error_versus_discard(
    quality: ArrayLike,
    *,
    mated: ArrayLike,
    accepted: ArrayLike,
    correct_subject: ArrayLike,
    metric: str = "fnir",
    max_discard: float = 0.2,
) -> ErrorVersusDiscard:
    """Error-versus-discard characteristic with partial area (ISO/IEC 29794-1; Grother and Tabassi, 2007).

    Only the probes that ``metric`` divides by take part: for FNIR the fraction is of the *mated* probes
    discarded, for FPIR of the non-mated, for the error rate of all. (A ``rejection_curve`` filters all
    probes together, as a deployed system must, which does not know who is mated.) ``metric`` is an error
    rate: "fnir", "fpir", "error_rate", "false_rejection_rate" or "misidentification_rate". Ties are
    averaged over their orders.

    >>> edc = error_versus_discard(
    ...     [0.1, 0.9, 0.8, 0.7, 0.6], mated=[1, 1, 1, 1, 0], accepted=[0, 1, 1, 1, 0],
    ...     correct_subject=[0, 1, 1, 1, 0], max_discard=0.5,
    ... )
    >>> edc.fractions, edc.error, edc.relative_area
    (array([0.  , 0.25, 0.5 ]), array([0.25, 0.  , 0.  ]), 0.0)
    """
    chosen = _error_metric(metric)
    check_fraction("max_discard", max_discard)
    outcomes = Outcomes(mated, accepted, correct_subject)
    rows = numbers("quality", quality)
    same_length(quality=rows, mated=outcomes.mated)

    concerned = np.isin(outcomes.kind, chosen.counted + chosen.others)
    kind = outcomes.kind[concerned]
    if not concerned.any():
        missing = undefined(metric, chosen.undefined_when)
        empty = np.full(1, missing)
        return ErrorVersusDiscard(metric, np.zeros(1), empty, empty, missing, missing, missing)
    grid = rejection_grid(len(kind), max_discard, None)
    curve = TieGroups.of(rows[concerned], kind, chosen).curve(chosen, *grid)
    best = TieGroups.of(~np.isin(kind, chosen.counted), kind, chosen).curve(chosen, *grid)
    blind_area = float(curve.values[0] * curve.fractions[-1])
    if equal_areas(best.area, blind_area):
        relative = undefined(f"relative area of {metric}", _why_equal(float(curve.values[0])))
    else:
        relative = (curve.area - best.area) / (blind_area - best.area)
    return ErrorVersusDiscard(metric, curve.fractions, curve.values, best.values, curve.area, best.area, relative)


def _why_equal(start: float) -> str:
    if start == 0:
        return "there is no error to discard"
    if start == 1:
        return "every probe is an error"
    return "not one probe is discarded; raise max_discard or give more probes"


def _error_metric(name: str) -> Metric:
    metric = find_metric(name)
    if metric.is_count or metric.higher_is_better:
        rates = [key for key, value in METRICS.items() if not value.is_count and not value.higher_is_better]
        raise InvalidParameterError(f"metric={name!r} is not an error rate; choose from {', '.join(rates)}")
    return metric
