"""BinomialTest: is the risk at most a target, judged by counts of independent automatic decisions.

Of n decisions k are wrong. Were the true risk R above the target α, so few errors would have probability at most

    p = P(Bin(n, α) ≤ k),

exactly, for every n: "R > α" is refuted when p ≤ δ = 1 − confidence.
"""

from __future__ import annotations

import numpy as np
from scipy.special import bdtr, betaincinv

from holue.gallery.embeddings import Float64Array


class BinomialTest:
    """The exact test of units that are one probe each: ``decided`` and ``wrong`` are 0 or 1 per unit.

    >>> BinomialTest.p_value(np.ones(299), np.zeros(299), 0.01) <= 0.05
    True
    """

    name = "exact binomial tail"

    @classmethod
    def p_value(cls, decided: Float64Array, wrong: Float64Array, target: float) -> float:
        """``P(Bin(n, α) ≤ k)``."""
        return cls.p_value_of_counts(round(float(decided.sum())), round(float(wrong.sum())), target)

    @classmethod
    def p_value_of_counts(cls, units: int, wrong_units: int, target: float) -> float:
        """The p-value of ``units`` decided units of which ``wrong_units`` are wrong."""
        return 1.0 if wrong_units >= units else float(bdtr(wrong_units, units, target))

    @classmethod
    def p_values_of_sets(
        cls, decided: Float64Array, wrong: Float64Array, target: float, drawn: Float64Array
    ) -> Float64Array:
        """The p-values of several sets, in which each unit is drawn so many times (sets, units)."""
        counts = zip(drawn @ decided, drawn @ wrong)
        return np.array([cls.p_value_of_counts(round(units), round(errors), target) for units, errors in counts])

    @staticmethod
    def upper_bound(decided: Float64Array, wrong: Float64Array, confidence: float) -> float:
        """The Clopper-Pearson bound: the largest risk that is not refuted; 1 where nothing was decided.

        >>> round(BinomialTest.upper_bound(np.ones(299), np.zeros(299), 0.95), 4)
        0.01
        """
        n, k = float(decided.sum()), float(wrong.sum())
        return 1.0 if k >= n else float(betaincinv(k + 1, n - k, confidence))


def clopper_pearson(wrong: int, n: int, confidence: float) -> tuple[float, float]:
    """The exact two-sided interval of a share: never covers less often than ``confidence``.

    >>> [round(bound, 4) for bound in clopper_pearson(0, 10, 0.95)]
    [0.0, 0.3085]
    """
    tail = (1 - confidence) / 2
    lower = 0.0 if wrong == 0 else float(betaincinv(wrong, n - wrong + 1, tail))
    upper = 1.0 if wrong == n else float(betaincinv(wrong + 1, n - wrong, 1 - tail))
    return lower, upper


def decisions_without_error(target: float, confidence: float) -> int:
    """The smallest n for which no error at all certifies the target: ``⌈ln(1 − confidence) / ln(1 − α)⌉``.

    >>> decisions_without_error(0.01, 0.95)
    299
    """
    return int(np.ceil(np.log1p(-confidence) / np.log1p(-target) - 1e-9))
