"""Trade-off: FNIR against FPIR as the threshold moves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holue.errors import InvalidInputError, InvalidParameterError
from holue.evaluation.columns import FloatArray, flags, numbers, same_length
from holue.evaluation.metrics.rates import METRICS
from holue.evaluation.metrics.undefined import undefined


@dataclass(frozen=True, eq=False)
class TradeOff:
    """Error rates at each threshold, the strictest first: a probe is accepted if ``score >= threshold``.

    The DET curve is ``fnir`` against ``fpir``; the ROC curve ``detection_identification_rate`` against
    ``fpir``.
    """

    threshold: FloatArray
    fpir: FloatArray
    fnir: FloatArray

    @property
    def detection_identification_rate(self) -> FloatArray:
        """``DIR = 1 − FNIR``."""
        return 1 - self.fnir

    def at_fpir(self, fpir: float) -> tuple[float, float, float]:
        """The most lenient point whose FPIR is at most ``fpir``: ``(threshold, fpir, fnir)``.

        >>> points = det_points([0.9, 0.8, 0.7, 0.6], mated=[1, 0, 1, 0], correct_subject=[1, 0, 1, 0])
        >>> points.at_fpir(0.5)
        (0.7, 0.5, 0.0)
        """
        if not 0 <= fpir <= 1:
            raise InvalidParameterError(f"fpir must lie in [0, 1]; got {fpir!r}")
        if np.isnan(self.fpir).all():
            missing = undefined("operating point", METRICS["fpir"].undefined_when)
            return missing, missing, missing
        last = int(np.flatnonzero(self.fpir <= fpir)[-1])
        return float(self.threshold[last]), float(self.fpir[last]), float(self.fnir[last])


def det_points(score: ArrayLike, *, mated: ArrayLike, correct_subject: ArrayLike) -> TradeOff:
    """FPIR and FNIR at every threshold that changes a decision.

    ``score`` is each probe's best score. A probe is accepted if it reaches the threshold, and probes of
    equal score are accepted together; the first threshold, +inf, accepts none. A mated probe is a miss
    below the threshold, and at any threshold when its best candidate is another subject. (For rank R,
    give mated probes the score of their own subject, and ``correct_subject = rank <= R``.) A rate without
    probes is NaN, with an ``UndefinedMetricWarning``.

    >>> points = det_points([0.9, 0.8, 0.8, 0.2], mated=[1, 1, 0, 0], correct_subject=[1, 0, 0, 0])
    >>> points.threshold, points.fpir, points.fnir
    (array([inf, 0.9, 0.8, 0.2]), array([0. , 0. , 0.5, 1. ]), array([1. , 0.5, 0.5, 0.5]))
    """
    scores = numbers("score", score)
    is_mated, is_correct = flags("mated", mated), flags("correct_subject", correct_subject)
    same_length(score=scores, mated=is_mated, correct_subject=is_correct)
    if np.isposinf(scores).any():
        row = int(np.argmax(np.isposinf(scores)))
        raise InvalidInputError(f"score must be below +inf, where nothing is accepted; row {row} is +inf")
    levels, level = np.unique(scores, return_inverse=True)

    def accepted_share(of: NDArray[np.bool_], among: NDArray[np.bool_], metric: str) -> FloatArray:
        if not among.any():
            return np.full(len(levels) + 1, undefined(metric, METRICS[metric].undefined_when))
        at_level = np.bincount(level[of], minlength=len(levels))[::-1]
        return np.concatenate([[0.0], np.cumsum(at_level) / np.count_nonzero(among)])

    return TradeOff(
        threshold=np.concatenate([[np.inf], levels[::-1].astype(np.float64)]),
        fpir=accepted_share(~is_mated, ~is_mated, "fpir"),
        fnir=1 - accepted_share(is_mated & is_correct, is_mated, "fnir"),
    )
