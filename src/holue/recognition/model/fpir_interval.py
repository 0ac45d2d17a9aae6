"""FpirInterval: between which rates the FPIR of a threshold lies, over people; and the threshold that keeps a promise.

A promise is "FPIR ≤ α with confidence γ over people". With enough people τ is the lowest threshold whose upper bound is at most α
(``strangers.py``). With few, even τ above all scores shows only FPIR ≤ α₀ > α, and the tail of the strangers' scores takes it on:

    τ = τ₀ + σ_γ (z(K, α) − z(K, α₀)),        z(K, α) = Φ⁻¹((1 − α)^{1/K})

with σ_γ the upper bound of the tail's deviation. A larger gallery K′ is the step ``σ_γ ln(K′/K) / h(z(K, α))``, that of a tail
which goes on as steeply as it is at τ (``widest_growth``): the farther the gallery grows, the less is known of the shape.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from holue.errors import CalibrationDataError
from holue.recognition.model.stranger_tail import StrangerTail, comparison_quantile, hazard
from holue.recognition.model.strangers import Strangers

CONFIDENCE = 0.95
"""Of each end of the interval, where no other was asked for."""


@dataclass(frozen=True)
class FpirInterval:
    """Both ends, each of which holds with ``confidence``, and what the people can show at best.

    >>> print(FpirInterval.of(Strangers.of(np.linspace(0, 0.3, 100)), 0.29))
    0.014 to 0.089 (each end with 95 % confidence over 100 people)
    """

    low: float
    high: float
    confidence: float
    n_people: int
    resolvable: float  # the lowest upper end that these people can give: that of a threshold above all their scores
    named: bool = True  # whether the people are known; else each probe counts as one

    @classmethod
    def of(cls, strangers: Strangers, threshold: float, confidence: float = CONFIDENCE) -> FpirInterval:
        """Of a threshold on strangers' scores."""
        above_all = float(np.nextafter(strangers.score.max(), np.inf))
        return cls(
            *strangers.bounds(threshold, confidence),
            confidence,
            strangers.n_people,
            strangers.bounds(above_all, confidence)[1],
            strangers.named,
        )

    def resolves(self, target_fpir: float) -> bool:
        """Whether the people could show that FPIR is at most ``target_fpir``, if none of them were accepted."""
        return self.resolvable <= target_fpir

    def people_needed(self, target_fpir: float) -> int:
        """How many people could, if their probes depend on each other as those seen do: ``n ln(1 − α₀) / ln(1 − α)``."""
        return int(np.ceil(self.n_people * np.log1p(-self.resolvable) / np.log1p(-target_fpir) - 1e-9))

    def carried(self, tail: StrangerTail, shift: float, n_subjects: int, n_here: int) -> FpirInterval:
        """The interval in a gallery of ``n_here`` in place of ``n_subjects``, at a threshold higher by ``shift``.

        The tail says how strangers' scores grow; each end takes the deviation that is worse for it. Where the gallery has
        grown the upper end takes a tail that goes on as steeply as it is at the threshold (``widest_growth``).
        """

        def there(rate: float, is_upper: bool) -> float:
            if rate in (0.0, 1.0):
                return rate
            deviation = tail.deviation_bound(self.confidence, upper=is_upper == (shift > 0))
            moved = 0.0 if shift == 0 or deviation == np.inf else shift / max(deviation, 1e-12)
            if is_upper and n_here > n_subjects and moved >= 0:
                accepted = -np.log1p(-rate) * n_here / n_subjects
                return float(-np.expm1(-accepted * np.exp(-hazard(comparison_quantile(n_subjects, rate)) * moved)))
            return float(-np.expm1(n_here * log_ndtr(comparison_quantile(n_subjects, rate) + moved)))

        return replace(self, low=there(self.low, False), high=there(self.high, True))

    def __str__(self) -> str:
        people = f"{self.n_people} people" + ("" if self.named else ", each probe counted as one")
        return f"{self.low:.3f} to {self.high:.3f} (each end with {100 * self.confidence:g} % confidence over {people})"


def promised_threshold(
    strangers: Strangers, target_fpir: float, confidence: float, n_subjects: int
) -> tuple[float, FpirInterval, StrangerTail | None]:
    """The threshold whose FPIR is at most the target with ``confidence`` over people, its interval, and the tail it follows."""
    tau, reached = strangers.threshold(target_fpir, confidence)
    level = max(target_fpir, reached)
    tail = tail_of(strangers, n_subjects, max(level, 1 / len(strangers)))
    if reached <= target_fpir:
        return tau, FpirInterval.of(strangers, tau, confidence), tail
    deviation = np.inf if tail is None else tail.deviation_bound(confidence)
    if not np.isfinite(deviation):
        needed = FpirInterval.of(strangers, tau, confidence).people_needed(target_fpir)
        raise CalibrationDataError(
            f"fpir_confidence={confidence:g} cannot be kept for target_fpir={target_fpir:g} with strangers of "
            f"{strangers.n_people} people, whose scores say nothing about higher ones; bring about {needed} people, or raise "
            "target_fpir"
        )
    steps = comparison_quantile(n_subjects, target_fpir) - comparison_quantile(n_subjects, reached)
    tau = min(tau + deviation * steps, 1.0)
    return tau, replace(FpirInterval.of(strangers, tau, confidence), high=float(target_fpir)), tail


def tail_of(strangers: Strangers, n_subjects: int, target_fpir: float) -> StrangerTail | None:
    """The strangers' tail, or None where their scores are all alike and say nothing about growth."""
    try:
        return StrangerTail.of(strangers, n_subjects=n_subjects, target_fpir=target_fpir)
    except CalibrationDataError:
        return None
