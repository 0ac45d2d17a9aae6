"""Risk against coverage: the error rate among the most reliable probes, averaged over how many are kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from holue.evaluation.metrics.rejection import oracle_curve, rejection_curve


def aurc(quality: ArrayLike, *, mated: ArrayLike, accepted: ArrayLike, correct_subject: ArrayLike) -> float:
    """Area under the risk-coverage curve.

    ``AURC = (1/n) Σ_{k=1..n} (errors among the k most reliable) / k``, all three error kinds counting one
    (Geifman, Uziel and El-Yaniv, 2019). Ties in quality are averaged over their orders. 0 is perfect; blind
    ordering gives the error rate.

    >>> aurc([3, 2, 1], mated=[1, 1, 1], accepted=[1, 1, 0], correct_subject=[1, 1, 0])
    0.1111111111111111
    """
    curve = rejection_curve(
        quality,
        mated=mated,
        accepted=accepted,
        correct_subject=correct_subject,
        metric="error_rate",
        max_rejection=1.0,
    )
    return float(np.mean(curve.values))


def excess_aurc(quality: ArrayLike, *, mated: ArrayLike, accepted: ArrayLike, correct_subject: ArrayLike) -> float:
    """E-AURC: the AURC above that of the best possible order, which keeps every error for last.

    ``E-AURC = AURC − (1/n) Σ_{k>c} (k − c) / k``, ``c`` the number of correct probes: the exact best
    value, of which ``r + (1 − r) ln(1 − r)`` with error rate ``r`` is the limit for many probes (Geifman
    et al., 2019).

    >>> excess_aurc([3, 2, 1], mated=[1, 1, 1], accepted=[1, 1, 0], correct_subject=[1, 1, 0])
    0.0
    """
    best = oracle_curve(
        mated=mated,
        accepted=accepted,
        correct_subject=correct_subject,
        metric="error_rate",
        max_rejection=1.0,
    )
    reached = aurc(quality, mated=mated, accepted=accepted, correct_subject=correct_subject)
    return reached - float(np.mean(best.values))
