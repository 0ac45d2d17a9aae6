"""Populations: how scores of the same person, of the best of many strangers and of one stranger are spread in a gallery.

They are fitted to the gallery itself, which has faults, so every fit rests on quantiles that the faults do not reach:

    same person   g: two halves, from the quartiles of own scores (mislabelled samples hide in the far low tail), or of the
                     agreement between halves of a person
    best of K     h: the largest of K normals, from the 10% and 50% quantiles of the best other score (duplicates are high)
    one stranger  f: a normal from the median and the median deviation of scores to an arbitrary other subject

A score counts as the same person with the probability that the mixture ``π g + (1 − π) h`` gives; the share π is learned from
the gallery by expectation maximisation. Scores under the median of h, or in g's last thousandth, never count; scores over the
median of g count like it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit
from scipy.stats import norm
from scipy.stats import t as student

from holue.gallery.embeddings import Float64Array

ROUNDS = 50
FIRST_SHARE, RAREST, COMMONEST = 0.01, 1e-4, 0.5
NARROWEST = 1e-4
QUARTILE = float(norm.ppf(0.75))
RARE_SCORE = float(norm.cdf(-3.0))


@dataclass(frozen=True)
class SamePerson:
    """``g``: scores of the same person; without any (one sample each) all scores are equally likely.

    ``freedom`` is that of the Student distribution its lower half follows: infinite for a normal one.
    """

    median: float
    below: float  # scale of the lower half; infinite where nothing is known
    density: float  # at the median
    freedom: float = np.inf

    @classmethod
    def of(cls, scores: Float64Array, freedom: float = np.inf) -> SamePerson:
        """From scores of the same person; an empty array gives the flat one."""
        if len(scores) == 0:
            return cls(1.0, np.inf, 1.0)
        low, median, high = np.quantile(scores, [0.25, 0.5, 0.75])
        quartile = float(student.ppf(0.75, freedom))
        below, above = (max(float(width), NARROWEST) / quartile for width in (median - low, high - median))
        return cls(float(median), below, 2 * float(student.pdf(0.0, freedom)) / (below + above), freedom)

    @property
    def lowest(self) -> float:
        """Whoever scores less is somebody else, however alike: 1 in 740 of the same person does."""
        return self.median + float(student.ppf(RARE_SCORE, self.freedom)) * self.below

    def log_density(self, score: Float64Array) -> Float64Array:
        """``ln g``, held from the median upwards: more than typical is never less likely."""
        z = np.minimum(score - self.median, 0.0) / self.below
        return np.asarray(np.log(self.density) + student.logpdf(z, self.freedom) - student.logpdf(0.0, self.freedom))


@dataclass(frozen=True)
class BestOfMany:
    """``h(s) = K φ(z) Φ(z)^(K−1) / σ`` with ``z = (s − m)/σ``: the best of K strangers."""

    mean: float
    deviation: float
    n_subjects: int
    median: float

    @classmethod
    def of(cls, best_scores: Float64Array, n_subjects: int, share_of_faults: float) -> BestOfMany:
        """From best scores of which a share at the high end is not of strangers."""
        probability = np.array([0.1, 0.5])
        low, median = np.quantile(best_scores, probability * (1 - share_of_faults))
        z = norm.ppf(probability ** (1 / n_subjects))
        deviation = max(float((median - low) / (z[1] - z[0])), NARROWEST)
        return cls(float(median - deviation * z[1]), deviation, n_subjects, float(median))

    def log_density(self, score: Float64Array) -> Float64Array:
        """``ln h``, held under the median."""
        z = (np.maximum(score, self.median) - self.mean) / self.deviation
        many = self.n_subjects
        return np.asarray(np.log(many / self.deviation) + norm.logpdf(z) + (many - 1) * norm.logcdf(z))


@dataclass(frozen=True)
class OneStranger:
    """``f``: scores to somebody else, picked at random."""

    median: float
    deviation: float

    @classmethod
    def of(cls, scores: Float64Array) -> OneStranger:
        """From scores to arbitrary other subjects."""
        median = float(np.median(scores))
        return cls(median, max(float(np.median(np.abs(scores - median))), NARROWEST) / QUARTILE)

    def log_density(self, score: Float64Array) -> Float64Array:
        """``ln f``, held under the median."""
        z = np.maximum(score - self.median, 0.0) / self.deviation
        return np.asarray(norm.logpdf(z) - np.log(self.deviation))


@dataclass(frozen=True)
class Faults:
    """``π g + (1 − π) h``, fitted to a gallery: how common a fault is, and what scores it has against strangers."""

    same: SamePerson
    strangers: BestOfMany
    share: float  # π
    twin_share: float = 0.0

    @classmethod
    def fitted(
        cls,
        other: Float64Array,
        log_ratio: Float64Array,
        all_other: Float64Array,
        same: SamePerson,
        n_others: int,
        twin_share: float = 0.0,
    ) -> Faults:
        """By expectation maximisation on ``other`` scores, with further log-odds ``log_ratio`` for a fault.

        ``all_other`` are the scores that h is fitted to, the best of ``n_others`` each. Where the rival explanation may be a
        person enrolled twice, whose samples score high at both, ``twin_share`` of the rival's scores follow g as well.

        >>> rng = np.random.default_rng(0)
        >>> strangers, twins = rng.normal(size=(1000, 50)).max(axis=1) / 20, np.full(20, 0.7)
        >>> scores = np.concatenate([strangers, twins])
        >>> faults = Faults.fitted(scores, np.zeros(1020), scores, SamePerson(0.7, 0.1, 4.0), 50)
        >>> p = faults.probability(scores)
        >>> round(faults.share, 3), int((p[:1000] > 0.5).sum()), int((p[1000:] > 0.5).sum())
        (0.02, 0, 20)
        """
        faults = cls(same, BestOfMany.of(all_other, n_others, FIRST_SHARE), FIRST_SHARE, twin_share)
        for _ in range(ROUNDS if len(other) else 0):
            share = float(np.clip(faults.probability(other, log_ratio).mean(), RAREST, COMMONEST))
            last, faults = (
                faults.share,
                replace(faults, strangers=BestOfMany.of(all_other, n_others, share), share=share),
            )
            if abs(share - last) < 1e-7:
                break
        return faults

    def probability(self, other: Float64Array, log_ratio: Float64Array | float = 0.0) -> Float64Array:
        """P(the best other subject is the same person)."""
        alike, rival = self.same.log_density(other), self.strangers.log_density(other)
        if self.twin_share:
            rival = np.logaddexp(rival, np.log(self.twin_share) + alike)
        log_odds = np.log(self.share / (1 - self.share)) + alike - rival + log_ratio
        return np.where((other > self.strangers.median) & (other > self.same.lowest), expit(log_odds), 0.0)
