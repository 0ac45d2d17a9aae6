"""ErrorCurve: how the error rate of answers falls with their quality, smoothed over all errors of a set.

A refused set has few errors among its clearest answers, often none, and their count is mostly luck. The errors among the
others say more. With u the share of calibration answers that are at least as clear,

    logit P(wrong | u) = a + b ln u,        b ≥ 0,

a power law in u. Each unit has the same weight. Half an error is added to the set, spread evenly, and b has a normal
prior of mean 2 and standard deviation 1, so that a set without any error has a curve too.
Answers of one unit fail together: with probability ρ (the correlation of their residuals) they share one draw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit

from holue.gallery.embeddings import Float64Array
from holue.recognition.risk.decisions import Decisions, Mask

ADDED_ERRORS = 0.5
STEEPNESS, ITS_DEVIATION = 2.0, 1.0
MOST_KNOWN = 10.0
"""Errors that the curve is worth at most: its shape is a guess, however many errors it is fitted to."""
ROUNDS = 50
"""Newton steps at most; about ten are taken."""


@dataclass(frozen=True, eq=False)
class ErrorCurve:
    """The curve fitted to decisions, at each of them.

    >>> rng = np.random.default_rng(0)
    >>> quality = rng.random(4000)
    >>> seen = Decisions(quality, rng.random(4000) < 0.1 * (1 - quality) ** 2, np.arange(4000))
    >>> curve = ErrorCurve.of(seen, np.linspace(0, 1, 100))
    >>> bool(abs(curve.steepness - 2) < 0.5)
    True
    """

    log_share: Float64Array  # (n,) ln u of each decision
    level: float  # a
    steepness: float  # b
    together: float  # ρ
    covariance: Float64Array  # (2, 2) of a and b

    @classmethod
    def of(cls, decisions: Decisions, levels: Float64Array) -> ErrorCurve:
        """Fit the curve by penalised likelihood; ``levels`` are the qualities of the calibration answers."""
        order = np.sort(levels)
        clearer = 1 - np.searchsorted(order, decisions.quality, side="left") / len(order)
        log_share = np.log(np.clip(clearer, 0.5 / len(order), 1.0))
        n, n_units = len(decisions), decisions.n_units
        weight = n / n_units / np.bincount(decisions.unit)[decisions.unit]
        # The half error is one observation more, half wrong: the rates of n decisions are pulled by 1/2n, and not to 1/2.
        wrong = weight * decisions.wrong + ADDED_ERRORS / n
        design = np.stack([np.ones(n), log_share])
        prior, at = np.diag([0.0, ITS_DEVIATION**-2]), np.array([0.0, STEEPNESS])
        beta = np.array([logit(wrong.sum() / (n + 2 * ADDED_ERRORS)), 0.0])
        for _ in range(ROUNDS):
            rate = expit(beta @ design)
            slope = design @ (wrong - weight * rate) - prior @ (beta - at)
            curvature = (design * (weight * rate * (1 - rate))) @ design.T + prior
            step = np.linalg.solve(curvature, slope)
            step *= min(1.0, 2.0 / np.abs(step).max(initial=1e-300))  # a full step can leap where the curve is flat
            beta = beta + step
            if np.abs(step).max() < 1e-9:
                break
        level, steepness = float(beta[0]), max(float(beta[1]), 0.0)
        rate = expit(level + steepness * log_share)
        together = _correlation(decisions, rate)
        sizes = np.bincount(decisions.unit)
        # Units whose answers fail together count as fewer answers (the design effect of cluster sampling).
        effect = 1 + together * (float((sizes**2).sum() / sizes.sum()) - 1)
        return cls(log_share, level, steepness, together, effect * np.linalg.inv(curvature))

    def rates(self, factor: float = 1.0) -> Float64Array:
        """``P(wrong)`` of each decision, its odds multiplied by a factor."""
        return np.asarray(expit(self.level + np.log(factor) + self.steepness * self.log_share))

    def errors_behind(self, decided: Mask) -> float:
        """How many errors know the risk among some decisions as well as the curve does: one over the variance of its log."""
        rate = self.rates()[decided]
        share = rate * (1 - rate) / rate.sum()
        gradient = np.array([share.sum(), share @ self.log_share[decided]])
        return min(MOST_KNOWN, float(1 / (gradient @ self.covariance @ gradient)))

    def draw(self, decisions: Decisions, rng: np.random.Generator, factor: float = 1.0) -> Mask:
        """Which decisions are wrong in a set of the same units drawn anew."""
        n = decisions.n_units
        own, shared, together = rng.random(len(decisions)), rng.random(n), rng.random(n) < self.together
        return np.asarray(np.where(together[decisions.unit], shared[decisions.unit], own) < self.rates(factor))


def _correlation(decisions: Decisions, rate: Float64Array) -> float:
    """The mean product of residuals of two answers of a unit, over what it would be if they always failed together."""
    residual, deviation = decisions.wrong - rate, np.sqrt(rate * (1 - rate))

    def pairs(values: Float64Array) -> float:
        return float((np.bincount(decisions.unit, values) ** 2).sum() - (values**2).sum())

    most = pairs(deviation)
    return float(np.clip(pairs(residual) / most, 0.0, 1.0)) if most > 0 else 0.0
