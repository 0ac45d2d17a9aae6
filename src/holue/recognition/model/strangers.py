"""Strangers: the best scores of probes of people who are not enrolled, and the people behind them.

A rate of strangers is as uncertain as the number of *people* makes it: ten probes of one person who looks like an enrolled one
are accepted together. With weights w (they sum to 1), accepted a ∈ {0, 1} and p = Σ w a, the sums over the probes of a person,
S_c = Σ w_i (a_i − p), give the variance and the number of independent probes that would have it,

    V = Σ_c S_c²,        n_eff = p (1 − p) / V        (at most 1 / Σ w²)

and the interval is Clopper and Pearson's for p·n_eff of n_eff (Korn and Graubard 1998). With one probe for each person n_eff is
the number of people and the interval is exact. Where the gallery of the calibration is not the gallery in use, or where the
enrolled people are their own strangers, accepted probes that share the *enrolled* person come together too: then a person counts
on either side, and pairs, counted twice, are taken off once, ``V = Σ_c S_c² − Σ_pairs S_pair²``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv

from holue.gallery.embeddings import Float64Array

Numbers = npt.NDArray[np.int64]

REFERENCE_PEOPLE = 10
"""So many people are accepted at the level where dependence is read as well: one or two say nothing about it."""
WIDEST_REFERENCE = 0.25


@dataclass(frozen=True, eq=False)
class Strangers:
    """Scores, the person behind each, what each weighs, and the enrolled person whom each is nearest to where that varies.

    >>> strangers = Strangers.of(np.linspace(0, 0.3, 100))
    >>> strangers.n_people, [round(bound, 4) for bound in strangers.bounds(0.4, 0.975)]
    (100, [0.0, 0.0362])
    """

    score: Float64Array  # (n,)
    person: Numbers  # (n,) 0 .. people − 1
    weight: Float64Array  # (n,) sums to 1
    nearest: Numbers | None = None  # (n,) numbered as ``person`` where they are the same people, else from there on
    named: bool = True  # whether the people are known; else each probe counts as a person

    @classmethod
    def of(
        cls,
        score: Float64Array,
        person: npt.NDArray[np.integer] | None = None,
        *,
        nearest: npt.NDArray[np.integer] | None = None,
        same_people: bool = False,
        people_count_alike: bool = False,
        named: bool = True,
    ) -> Strangers:
        """Each probe a person of its own where ``person`` is None.

        ``nearest`` is the enrolled person of each best score, given where another gallery could have been searched;
        ``same_people`` where they carry the same numbers as ``person``. Every probe weighs the same, or every person does.
        """
        scores = np.asarray(score, dtype=np.float64)
        who = np.arange(len(scores)) if person is None else np.asarray(person, dtype=np.int64)
        if nearest is None:
            code, other = np.unique(who, return_inverse=True)[1].astype(np.int64), None
        else:
            best = np.asarray(nearest, dtype=np.int64) + (0 if same_people else int(who.max(initial=-1)) + 1)
            members = np.unique(np.concatenate([who, best]), return_inverse=True)[1].astype(np.int64)
            code, other = members[: len(who)], members[len(who) :]
        weight = 1.0 / np.bincount(code)[code] if people_count_alike else np.ones(len(scores))
        return cls(scores, code, weight / max(weight.sum(), 1e-300), other, named)

    def __len__(self) -> int:
        return len(self.score)

    @cached_property
    def n_people(self) -> int:
        """How many people the probes show."""
        return len(np.unique(self.person))

    def share(self, threshold: float) -> float:
        """The weight of the scores that reach a threshold: the FPIR seen."""
        return float(self.weight[self.score >= threshold].sum())

    def variance(self, influence: Float64Array) -> float:
        """``V`` of a sum of (n,) influences: summed by person, with the enrolled people on either side where they vary."""
        alone = _sum_of_squares(self.person, influence)
        if self.nearest is None:
            return alone
        either = _sum_of_squares(np.concatenate([self.person, self.nearest]), np.concatenate([influence, influence]))
        low, high = np.minimum(self.person, self.nearest), np.maximum(self.person, self.nearest)
        pairs = _sum_of_squares(np.unique(low * (high.max() + 1) + high, return_inverse=True)[1], influence)
        return max(alone, either - pairs)  # the difference can fall short of what people alone give, by chance

    def effective(self, threshold: float) -> float:
        """``n_eff``: the independent probes that would be as sure about the share above a threshold."""
        most = 1.0 / float((self.weight**2).sum())
        return most / max(self._design_effect(threshold, most), self._reference_effect)

    def bounds(self, threshold: float, confidence: float) -> tuple[float, float]:
        """Between which rates the FPIR at a threshold lies; each end holds with ``confidence``."""
        p, n = self.share(threshold), self.effective(threshold)
        k = p * n
        low = 0.0 if k < 1e-9 else float(betaincinv(k, n - k + 1, 1 - confidence))
        high = 1.0 if n - k < 1e-9 else float(betaincinv(k + 1, n - k, confidence))
        return low, high

    def threshold(self, target: float, confidence: float) -> tuple[float, float]:
        """The lowest τ whose FPIR is at most ``target`` with ``confidence``, and that rate.

        Where none is, because there are too few people, τ lies above all scores and the rate above the target. FPIR falls with
        τ, so a bound that holds at each τ by itself is enough (risk-controlling prediction sets, Bates et al. 2021).
        """
        values = np.unique(self.score)[::-1]
        cuts = np.append(np.nextafter(np.float32(values[0]), np.float32(2)), (values[:-1] + values[1:]) / 2)

        def upper(place: int) -> float:
            return self.bounds(float(cuts[place]), confidence)[1]

        if (lowest := upper(0)) > target:
            return float(cuts[0]), lowest
        good, bad = 0, len(cuts)
        while bad - good > 1:
            middle = (good + bad) // 2
            good, bad = (middle, bad) if upper(middle) <= target else (good, middle)
        return float(cuts[good]), upper(good)

    @cached_property
    def _reference_effect(self) -> float:
        most = 1.0 / float((self.weight**2).sum())
        level = min(WIDEST_REFERENCE, REFERENCE_PEOPLE / self.n_people)
        order = np.argsort(-self.score)
        place = int(np.searchsorted(np.cumsum(self.weight[order]), level).clip(max=len(self) - 1))
        return self._design_effect(float(self.score[order[place]]), most)

    def _design_effect(self, threshold: float, most: float) -> float:
        accepted = self.score >= threshold
        p = float(self.weight[accepted].sum())
        if p in (0.0, 1.0) or p * (1 - p) < 1e-15:
            return 1.0
        return max(1.0, self.variance(self.weight * (accepted - p)) * most / (p * (1 - p)))


def _sum_of_squares(code: Numbers, values: Float64Array) -> float:
    return float((np.bincount(code, values) ** 2).sum())
