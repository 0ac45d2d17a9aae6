"""StrangerTail: how the best score of a stranger grows with the gallery, so that a threshold can follow it.

One comparison with a subject who is somebody else gives a score of distribution ``Φ((s − m)/σ)`` near its upper end; the best
of K independent ones stays below τ with probability ``Φ((τ − m)/σ)^K = 1 − FPIR``, hence

    τ(K) = m + σ Φ⁻¹( (1 − FPIR)^{1/K} )

m and σ come from two quantiles of the best scores of strangers at one size: the median (a lower one where the threshold itself is
near or below the median), and the one the threshold is at.
Holding κ and β instead moves τ by ln(K′/K)/κ, which is the class model's idea of a stranger (uniform on the sphere); real
strangers spread further, and FPIR grows (see docs/growing-galleries.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from holue.errors import CalibrationDataError
from holue.gallery.embeddings import Float64Array
from holue.recognition.checks import check_share, check_size


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
        order = np.argsort(scores)
        up_to = np.cumsum(np.ones(len(scores)) if weight is None else weight[order])
        levels = np.array([0.5 if share <= 0.25 else (1 - share) / 2, 1 - share])
        middle, high = scores[order[np.searchsorted(up_to, levels * up_to[-1]).clip(max=len(scores) - 1)]]
        z_middle, z_high = ndtri_exp(np.log(levels) / n_subjects)
        deviation = float((high - middle) / (z_high - z_middle))
        if not deviation > 0:
            raise CalibrationDataError(
                "the strangers' best scores are all alike: their spread says nothing about other sizes"
            )
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
