"""BettingTest: is the risk at most a target, judged by subjects whose probes succeed and fail together.

Subject i has m_i probes, of which N_i were decided automatically and W_i of those wrongly. The subject-level risk is
R = E[W/m] / E[N/m]: draw a subject, then one of its probes; if the answer was automatic, was it wrong? Bet a fraction θ of
the capital against "R > α" on each subject in turn:

    M_θ = Π_i [ 1 + θ (α N_i − W_i) / (m_i (1 − α)) ],        0 ≤ θ ≤ 1

Subjects are independent and, if R > α, each factor has mean at most 1 and is never negative, so M_θ has mean at most 1,
whatever the dependence between probes of one subject. So has a mixture M of several θ, and by Markov's inequality
``p = 1/M`` is a valid p-value (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random variables by betting").
With r the true risk the best fraction is 1 − r/α; the mixture leans to the large ones, since few errors must suffice
where subjects are few.

Against the other valid choice, binomial tails on one probe per subject drawn at random: this uses every probe and no
chance, and is the stronger the less a subject's probes fail together; where they all fail as one, it is the weaker.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from holue.gallery.embeddings import Float64Array

FRACTIONS: Float64Array = np.array([0.15, 0.35, 0.65, 1.0])
LOG_WEIGHTS: Float64Array = np.log([0.1, 0.2, 0.3, 0.4])


class BettingTest:
    """The test of units of several probes: ``decided`` = N/m and ``wrong`` = W/m, per subject.

    >>> careful = BettingTest.p_value(np.ones(400), np.zeros(400), 0.01)
    >>> bool(0.01 < careful < 0.05)
    True
    """

    name = "betting on subjects"

    @classmethod
    def p_value(cls, decided: Float64Array, wrong: Float64Array, target: float) -> float:
        """``1 / M``, at most 1."""
        return _p_value(_log_factors(decided, wrong, target).sum(axis=1))

    @classmethod
    def p_value_of_counts(cls, units: int, wrong_units: int, target: float) -> float:
        """The p-value of ``units`` decided subjects of which ``wrong_units`` are wrong throughout."""
        gain, loss = _log_factors(np.ones(2), np.array([0.0, 1.0]), target).T
        return _p_value((units - wrong_units) * gain + (wrong_units * loss if wrong_units else 0.0))

    @classmethod
    def p_values_of_sets(
        cls, decided: Float64Array, wrong: Float64Array, target: float, drawn: Float64Array
    ) -> Float64Array:
        """The p-values of several sets, in which each unit is drawn so many times (sets, units)."""
        # A subject wrong throughout takes the whole of θ = 1: −inf, which a product with 0 draws would make undefined.
        factors = np.maximum(_log_factors(decided, wrong, target), -1e9)
        return np.exp(np.minimum(0.0, -logsumexp(LOG_WEIGHTS + drawn @ factors.T, axis=1)))

    @classmethod
    def upper_bound(cls, decided: Float64Array, wrong: Float64Array, confidence: float) -> float:
        """The largest risk that is not refuted (the p-value falls with the target); 1 where none is."""
        delta, largest = 1 - confidence, 1 - 1e-9
        if cls.p_value(decided, wrong, largest) > delta:
            return 1.0
        return float(brentq(lambda target: cls.p_value(decided, wrong, target) - delta, 1e-12, largest))


def _log_factors(decided: Float64Array, wrong: Float64Array, target: float) -> Float64Array:
    stake = FRACTIONS[:, None] * ((target * decided - wrong) / (1 - target))
    with np.errstate(divide="ignore"):  # a subject wrong throughout takes the whole of θ = 1
        return np.log1p(np.maximum(stake, -1.0))


def _p_value(log_capital: Float64Array) -> float:
    return float(np.exp(min(0.0, -float(logsumexp(LOG_WEIGHTS + log_capital)))))
