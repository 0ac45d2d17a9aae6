"""StrangerTail: how the best score of a stranger grows with the gallery, so that a threshold can follow it.

One comparison with a subject who is somebody else gives a score of distribution ``Φ((s − m)/σ)`` near its upper end; the best
of K independent ones stays below τ with probability ``Φ((τ − m)/σ)^K = 1 − FPIR``, hence

    τ(K) = m + σ Φ⁻¹( (1 − FPIR)^{1/K} )

σ is the likeliest one for the highest quarter of the best scores of strangers at one size (or half, or more, where the threshold
lies lower or those are equal), the others counting only as lower: what lies far below the threshold says little about its
growth, and all scores together are narrower than the upper end. m then puts τ(K) where the threshold is. How sure σ is
depends on the people behind those scores: its standard error is that of a sum over people (the sandwich formula), for ln σ.
Holding κ and β instead moves τ by ln(K′/K)/κ, which is the class model's idea of a stranger (uniform on the sphere); real
strangers spread further, and FPIR grows (see docs/growing-galleries.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.special import log_ndtr, ndtri_exp, stdtrit

from holue.errors import CalibrationDataError
from holue.gallery.embeddings import Float64Array
from holue.recognition.checks import check_share, check_size
from holue.recognition.model.strangers import Strangers

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
    error: float | None = None  # standard error of ln σ, over people
    n_people: int = 0  # whose scores are above the level that σ was read from

    @classmethod
    def of(cls, strangers: Strangers | Float64Array, *, n_subjects: int, target_fpir: float) -> StrangerTail:
        """From strangers' best scores in a gallery of ``n_subjects``; an array of scores counts each as a person."""
        share = check_share("target_fpir", target_fpir)
        check_size(2, n_subjects)
        behind = strangers if isinstance(strangers, Strangers) else Strangers.of(strangers)
        scores = behind.score
        if len(scores) * share < 1:
            raise CalibrationDataError(
                f"target_fpir={share:g} is finer than {len(scores)} strangers resolve; bring {int(np.ceil(1 / share))} or more"
            )
        counted = behind.weight
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
        m, deviation = _likeliest(scores, counted, n_subjects, lowest, (high - start * z_high, start))
        influence = _influence_on_log_deviation(scores, counted, n_subjects, lowest, m, deviation)
        error = None if influence is None else float(np.sqrt(behind.variance(influence)))
        n_people = len(np.unique(behind.person[scores > lowest]))
        return cls(float(high - deviation * z_high), deviation, error, n_people)

    def deviation_bound(self, confidence: float, *, upper: bool = True) -> float:
        """What σ does not exceed (or fall below) with ``confidence``: ``σ exp(± t · error)``; ∞ (or 0) where nothing says."""
        if self.error is None or self.n_people < 3:
            return np.inf if upper else 0.0
        reach = float(stdtrit(self.n_people - 1, confidence)) * self.error
        return float(self.deviation * np.exp(reach if upper else -reach))

    def threshold(self, n_subjects: int, target_fpir: float) -> float:
        """``τ(K)`` at which ``target_fpir`` of strangers are accepted in a gallery of K."""
        share = check_share("target_fpir", target_fpir)
        check_size(2, n_subjects)
        return self.mean + self.deviation * comparison_quantile(n_subjects, share)

    def fpir(self, n_subjects: int, threshold: float) -> float:
        """``1 − Φ((τ − m)/σ)^K``: the share of strangers accepted in a gallery of K at this threshold."""
        check_size(2, n_subjects)
        return float(-np.expm1(n_subjects * log_ndtr((threshold - self.mean) / self.deviation)))


def comparison_quantile(n_subjects: int, fpir: float) -> float:
    """``z(K, FPIR) = Φ⁻¹((1 − FPIR)^{1/K})``: where τ lies in the distribution of one comparison."""
    return float(ndtri_exp(np.log1p(-fpir) / n_subjects))


def widest_growth(n_subjects: int, n_there: int, fpir: float) -> float:
    """How far τ rises from K to K′ subjects, in deviations, at most: ``ln(K′/K) / h(z)`` with the hazard h of a comparison at τ.

    A normal tail falls ever faster, and τ rises by less. This is the step of a tail that goes on as steeply as it is at τ,
    which no tail exceeds whose hazard does not fall (all log-concave ones).

    >>> round(widest_growth(100, 2000, 0.05), 2), round(comparison_quantile(2000, 0.05) - comparison_quantile(100, 0.05), 2)
    (0.84, 0.77)
    """
    return float(np.log(n_there / n_subjects) / hazard(comparison_quantile(n_subjects, fpir)))


def hazard(z: float) -> float:
    """``φ(z) / (1 − Φ(z))``: how steeply the tail of one comparison falls at z."""
    return float(np.exp(-(z**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(-z)))


def _likeliest(
    scores: Float64Array, weight: Float64Array, n_subjects: int, lower: float, start: tuple[float, float]
) -> tuple[float, float]:
    """m and σ of the largest likelihood ``Σ_{s > lower} w ln h(s) + Σ_{s ≤ lower} w ln H(lower)``, H = Φ^K and h its density."""
    above = scores > lower
    upper, counted, below = scores[above], weight[above], float(weight[~above].sum())
    middle, scale = start

    # In units of the start, so that the search is the same whatever the scores' scale.
    def minus_log_likelihood(parameters: Float64Array) -> float:
        m, sigma = middle + scale * parameters[0], scale * np.exp(parameters[1])
        each = _log_density(upper, n_subjects, m, sigma)
        return -float((counted * each).sum() + below * n_subjects * log_ndtr((lower - m) / sigma)) / float(weight.sum())

    found = minimize(minus_log_likelihood, np.zeros(2), method="Nelder-Mead", bounds=[(-60.0, 20.0), (-3.0, 3.0)])
    return float(middle + scale * found.x[0]), float(scale * np.exp(found.x[1]))


def _log_density(scores: Float64Array, n_subjects: int, m: float, sigma: float) -> Float64Array:
    """``ln h``, without its constant."""
    z = (scores - m) / sigma
    return np.asarray(-(z**2) / 2 - np.log(sigma) + (n_subjects - 1) * log_ndtr(z))


def _influence_on_log_deviation(
    scores: Float64Array, weight: Float64Array, n_subjects: int, lower: float, m: float, sigma: float
) -> Float64Array | None:
    """What each score adds to ln σ (n,): ``−H⁻¹ w ∇ ln h``; None where the likelihood is flat there."""
    above = scores > lower
    step = 1e-4

    def each(a: float, b: float) -> Float64Array:
        """Log-likelihood of every score at m + a σ and σ e^b."""
        there, spread = m + a * sigma, sigma * np.exp(b)
        values = np.full(len(scores), n_subjects * log_ndtr((lower - there) / spread))
        values[above] = _log_density(scores[above], n_subjects, there, spread)
        return values

    steps = np.array([[step, 0.0], [0.0, step]])
    gradient = np.stack([(each(*one) - each(*-one)) / (2 * step) for one in steps], axis=1)
    centre = each(0.0, 0.0)
    hessian = np.empty((2, 2))
    for i, one in enumerate(steps):
        hessian[i, i] = weight @ (each(*one) - 2 * centre + each(*-one)) / step**2
    both, across = steps[0] + steps[1], steps[0] - steps[1]
    mixed = weight @ (each(*both) - each(*across) - each(*-across) + each(*-both)) / (4 * step**2)
    hessian[0, 1] = hessian[1, 0] = mixed
    if not (np.isfinite(hessian).all() and np.isfinite(gradient).all() and np.linalg.eigvalsh(-hessian)[0] > 0):
        return None
    return np.asarray(-(weight[:, None] * gradient) @ np.linalg.inv(hessian)[:, 1])
