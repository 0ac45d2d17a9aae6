"""StrangerTail: how the best score of a stranger grows with the gallery, so that a threshold can follow it.

One comparison with a subject who is somebody else gives a score of distribution ``Φ((s − m)/σ)`` near its upper end; the best
of K independent ones stays below τ with probability ``Φ((τ − m)/σ)^K = 1 − FPIR``, hence

    τ(K) = m + σ Φ⁻¹( (1 − FPIR)^{1/K} )

σ is the likeliest one for the highest quarter of the best scores of strangers at one size (or half, or more, where the threshold
lies lower or those are equal), the others counting only as lower: what lies far below the threshold says little about its
growth, and all scores together are narrower than the upper end. m then puts τ(K) where the threshold is.
Holding κ and β instead moves τ by ln(K′/K)/κ, which is the class model's idea of a stranger (uniform on the sphere); real
strangers spread further, and FPIR grows (see docs/growing-galleries.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtri_exp

from holue.errors import CalibrationDataError
from holue.gallery.embeddings import Float64Array
from holue.recognition.checks import check_share, check_size

LEVELS = (0.75, 0.5)
"""Quantiles of the best scores above which the spread is read, the first that will do."""


@dataclass(frozen=True)
class StrangerTail:
    """Mean and deviation of one comparison, as the best of many sees it.

    >>> scores = np.random.default_rng(0).normal(size=(4000, 100)).max(axis=1) / 20
    >>> tail = StrangerTail.of(scores, n_subjects=100, target_fpir=0.05)
    >>> round(tail.threshold(100, 0.05), 2), round(tail.threshold(10_000, 0.05), 2)
    (0.16, 0.22)
    """

    mean: float
    deviation: float

    @classmethod
    def of(
        cls, best_scores: Float64Array, *, n_subjects: int, target_fpir: float, weight: Float64Array | None = None
    ) -> StrangerTail:
        """From strangers' best scores in a gallery of ``n_subjects``; ``weight`` counts people alike, not samples."""
        share = check_share("target_fpir", target_fpir)
        check_size(2, n_subjects)
        scores = np.asarray(best_scores, dtype=np.float64)
        if len(scores) * share < 1:
            raise CalibrationDataError(
                f"target_fpir={share:g} is finer than {len(scores)} strangers resolve; bring {int(np.ceil(1 / share))} or more"
            )
        counted = np.ones(len(scores)) if weight is None else np.asarray(weight, dtype=np.float64)
        order = np.argsort(scores)
        up_to = np.cumsum(counted[order])
        levels = np.array([1 - share, *(level for level in LEVELS if level < 1 - share), (1 - share) / 2])
        high, *lower = scores[order[np.searchsorted(up_to, levels * up_to[-1]).clip(max=len(scores) - 1)]]
        z_high, *z_lower = ndtri_exp(np.log(levels) / n_subjects)
        apart = [(low, (high - low) / (z_high - z)) for low, z in zip(lower, z_lower) if low < high]
        if not apart:
            raise CalibrationDataError(
                "the strangers' best scores are all alike: their spread says nothing about other sizes"
            )
        lowest, start = apart[0]
        deviation = _likeliest_deviation(scores, counted, n_subjects, lowest, (high - start * z_high, start))
        return cls(float(high - deviation * z_high), deviation)

    def threshold(self, n_subjects: int, target_fpir: float) -> float:
        """``τ(K)`` at which ``target_fpir`` of strangers are accepted in a gallery of K."""
        share = check_share("target_fpir", target_fpir)
        check_size(2, n_subjects)
        return self.mean + self.deviation * float(ndtri_exp(np.log1p(-share) / n_subjects))

    def fpir(self, n_subjects: int, threshold: float) -> float:
        """``1 − Φ((τ − m)/σ)^K``: the share of strangers accepted in a gallery of K at this threshold."""
        check_size(2, n_subjects)
        return float(-np.expm1(n_subjects * log_ndtr((threshold - self.mean) / self.deviation)))


def _likeliest_deviation(
    scores: Float64Array, weight: Float64Array, n_subjects: int, lower: float, start: tuple[float, float]
) -> float:
    """σ of the largest likelihood ``Σ_{s > lower} w ln h(s) + Σ_{s ≤ lower} w ln H(lower)``, H = Φ^K and h its density."""
    above = scores > lower
    upper, counted, below = scores[above], weight[above], float(weight[~above].sum())
    middle, scale = start

    # In units of the start, so that the search is the same whatever the scores' scale.
    def minus_log_likelihood(parameters: Float64Array) -> float:
        m, sigma = middle + scale * parameters[0], scale * np.exp(parameters[1])
        z = (upper - m) / sigma
        each = -(z**2) / 2 - np.log(sigma) + (n_subjects - 1) * log_ndtr(z)
        return -float((counted * each).sum() + below * n_subjects * log_ndtr((lower - m) / sigma)) / float(weight.sum())

    found = minimize(minus_log_likelihood, np.zeros(2), method="Nelder-Mead", bounds=[(-60.0, 20.0), (-3.0, 3.0)])
    return float(scale * np.exp(found.x[1]))
