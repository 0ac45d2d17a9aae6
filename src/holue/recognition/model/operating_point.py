"""OperatingPoint: where the recogniser accepts, for which gallery, and what its strangers say about FPIR.

τ, κ and β are tied by the equation of ``decision_equation.py``; τ comes from strangers' scores, and follows the gallery's size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from holue.errors import CalibrationDataError, InvalidParameterError
from holue.gallery.embeddings import Float64Array
from holue.recognition.checks import check_positive, check_share, check_threshold
from holue.recognition.model.class_model import Prior, VonMisesFisher
from holue.recognition.model.decision_equation import (
    LARGEST_CONCENTRATION,
    concentration_from_threshold,
    prior_from_threshold,
    threshold_from_odds,
    turning_concentration,
)
from holue.recognition.model.fpir_interval import FpirInterval, promised_threshold, tail_of
from holue.recognition.model.stranger_tail import StrangerTail, comparison_quantile, widest_growth
from holue.recognition.model.strangers import Strangers

Hold = Literal["model", "fpir", "threshold"]
SMALLEST_HELD = 1.0


@dataclass(frozen=True)
class OperatingPoint:
    """Where the recogniser accepts: N, τ, κ, β, the target and achieved FPIR, and which of κ and β was solved for.

    >>> print(OperatingPoint.solve(dim=512, n_subjects=1000, threshold=0.3))
    operating point: 1000 subjects, threshold 0.3000, concentration 333.4, unknown prior 0.5
      concentration was solved for the threshold, on the branch above the lowest reachable threshold 0.1632
    """

    dim: int
    n_subjects: int
    threshold: float
    concentration: float
    prior: Prior
    solved: Literal["concentration", "unknown_prior"]
    reason: str
    target_fpir: float | None = None
    achieved_fpir: float | None = None
    n_nonmated: int = 0
    tail: StrangerTail | None = None  # how strangers' best scores grow with the gallery, where they were seen
    interval: FpirInterval | None = None  # of FPIR, over people, in the gallery it was calibrated for
    fpir_confidence: float | None = None  # with which FPIR is at most its target, where that was asked for
    calibrated: OperatingPoint | None = None  # the point it was derived from, where that is of another size

    @classmethod
    def solve(
        cls,
        *,
        dim: int,
        n_subjects: int,
        threshold: float,
        unknown_prior: float = 0.5,
        concentration: float | None = None,
    ) -> OperatingPoint:
        """κ from τ on the upper branch; where τ is unreachable, or κ is given, β instead."""
        tau = check_threshold(threshold)
        prior = Prior.of(check_share("unknown_prior", unknown_prior))
        if concentration is not None:
            kappa = check_positive("concentration", concentration)
            fitted = prior_from_threshold(dim, n_subjects, tau, kappa)
            return cls(dim, n_subjects, tau, kappa, fitted, "unknown_prior", "since the concentration was given")
        turning = turning_concentration(dim, n_subjects, prior)
        lowest = threshold_from_odds(dim, n_subjects, turning, prior)
        highest = threshold_from_odds(dim, n_subjects, LARGEST_CONCENTRATION, prior)
        if not lowest <= tau <= highest:
            # The end of the branch is the nearest concentration there is, and keeps κ continuous in τ; a flatter model
            # than SMALLEST_HELD would tell no two subjects apart.
            kappa = max(turning, SMALLEST_HELD) if tau < lowest else LARGEST_CONCENTRATION
            side, end = ("lowest", lowest) if tau < lowest else ("highest", highest)
            reason = (
                f"since no concentration reaches it at unknown prior {unknown_prior:.4g} ({side} reachable: "
                f"{end:.4f}); the concentration was kept where the threshold is {side}"
            )
            return cls(
                dim, n_subjects, tau, kappa, prior_from_threshold(dim, n_subjects, tau, kappa), "unknown_prior", reason
            )
        kappa = concentration_from_threshold(dim, n_subjects, tau, unknown_prior)
        reason = f"on the branch above the lowest reachable threshold {lowest:.4f}"
        return cls(dim, n_subjects, tau, kappa, prior, "concentration", reason)

    @classmethod
    def at_fpir(
        cls,
        nonmated_scores: Float64Array | Strangers,
        target_fpir: float,
        *,
        dim: int,
        n_subjects: int,
        unknown_prior: float = 0.5,
        concentration: float | None = None,
        confidence: float | None = None,
    ) -> OperatingPoint:
        """τ from the top-1 scores of non-mated validation probes, then :meth:`solve`; an array counts each as a person.

        With ``confidence`` τ is the lowest at which FPIR is at most the target with that confidence over people.
        """
        strangers = nonmated_scores if isinstance(nonmated_scores, Strangers) else Strangers.of(nonmated_scores)
        tau = threshold_at_fpir(strangers.score, target_fpir) if confidence is None else None
        return cls.on_strangers(
            strangers,
            target_fpir,
            dim=dim,
            n_subjects=n_subjects,
            unknown_prior=unknown_prior,
            concentration=concentration,
            threshold=tau,
            confidence=confidence,
        )

    @classmethod
    def on_strangers(
        cls,
        strangers: Strangers,
        target_fpir: float,
        *,
        dim: int,
        n_subjects: int,
        threshold: float | None,
        confidence: float | None,
        unknown_prior: float = 0.5,
        concentration: float | None = None,
    ) -> OperatingPoint:
        """A threshold found on strangers, or where it is None the one that keeps the target with ``confidence``."""
        if threshold is None:
            if confidence is None:
                raise InvalidParameterError("a threshold or a confidence is needed")
            if len(strangers) == 0:
                raise no_strangers()
            threshold, interval, tail = promised_threshold(
                strangers, check_share("target_fpir", target_fpir), confidence, n_subjects
            )
        else:
            interval, tail = FpirInterval.of(strangers, threshold), tail_of(strangers, n_subjects, target_fpir)
        point = cls.solve(
            dim=dim,
            n_subjects=n_subjects,
            threshold=threshold,
            unknown_prior=unknown_prior,
            concentration=concentration,
        )
        return replace(
            point,
            target_fpir=float(target_fpir),
            achieved_fpir=strangers.share(threshold),
            n_nonmated=len(strangers),
            tail=tail,
            interval=interval,
            fpir_confidence=confidence,
        )

    @property
    def unknown_prior(self) -> float:
        """β."""
        return self.prior.probability

    @cached_property
    def model(self) -> VonMisesFisher:
        """The class model at this point."""
        return VonMisesFisher(self.dim, self.concentration)

    @property
    def carried_from(self) -> int | None:
        """The size of the gallery it was calibrated for, where that is another."""
        return None if self.calibrated is None else self.calibrated.n_subjects

    @property
    def stranger_shift(self) -> float:
        """How much higher strangers' best scores are than in the gallery it was calibrated for; 0 where nothing says so.

        >>> scores = np.random.default_rng(0).normal(size=(4000, 100)).max(axis=1) / 20
        >>> point = OperatingPoint.at_fpir(scores, 0.05, dim=400, n_subjects=100)
        >>> round(point.for_gallery(10_000, "threshold").stranger_shift, 2)
        0.06
        """
        if self.calibrated is None or self.tail is None or self.target_fpir is None:
            return 0.0
        return self.calibrated._growth(self.n_subjects, self.tail.deviation)

    @property
    def fpir_interval(self) -> FpirInterval | None:
        """Between which rates FPIR lies at this gallery's size, over people; None where no strangers were seen.

        In a gallery of another size than the calibrated one the tail's own uncertainty is part of it.
        """
        origin = self.calibrated
        if origin is None or self.interval is None:
            return self.interval
        if self.tail is None:
            return None
        return self.interval.carried(self.tail, self.threshold - origin.threshold, origin.n_subjects, self.n_subjects)

    @property
    def shortfall(self) -> str | None:
        """What the people at hand cannot show about the target FPIR, and how many could; None where they can."""
        if self.interval is None or self.target_fpir is None or self.interval.resolves(self.target_fpir):
            return None
        people, target, sure = self.interval.n_people, self.target_fpir, 100 * self.interval.confidence
        way_out = (
            "fpir_confidence= chooses a threshold with a margin"
            if self.fpir_confidence is None
            else "beyond that the threshold rests on the shape of the tail of their scores"
        )
        return (
            f"target_fpir={target:g} cannot be resolved with strangers of {people} people: even if none is accepted, FPIR "
            f"may be {self.interval.resolvable:.2g} (with {sure:g} % confidence); bring about "
            f"{self.interval.people_needed(target)} people; {way_out}"
        )

    def for_gallery(self, n_subjects: int, hold: Hold = "model") -> OperatingPoint:
        """The point for a gallery of another size: a function of the calibrated point, the size and ``hold`` alone.

        ``hold="model"`` keeps κ and β, and τ moves by ``ln(K′/K)/κ``: the class model's own idea of how strangers' best scores
        grow, which falls short of real ones. ``hold="fpir"`` moves τ by what the validation strangers themselves say about the
        growth (:class:`StrangerTail`), keeps β and solves κ again: FPIR stays near its target over tens of times the size.
        ``hold="threshold"`` keeps τ (and β, or κ where β was solved for) and solves the other again.

        >>> point = OperatingPoint.solve(dim=512, n_subjects=1000, threshold=0.3)
        >>> point.for_gallery(50_000).for_gallery(2000) == point.for_gallery(2000)
        True
        """
        if self.calibrated is not None:
            return self.calibrated.for_gallery(n_subjects, hold)
        if n_subjects == self.n_subjects:
            return self
        if hold == "model":
            tau = threshold_from_odds(self.dim, n_subjects, self.concentration, self.prior)
            return replace(self, n_subjects=n_subjects, threshold=tau, calibrated=self)
        if hold not in ("fpir", "threshold"):
            raise InvalidParameterError(f"hold must be 'model', 'fpir' or 'threshold', got {hold!r}")
        fixed = self.solved == "unknown_prior"
        point = OperatingPoint.solve(
            dim=self.dim,
            n_subjects=n_subjects,
            threshold=self.threshold if hold == "threshold" else self._followed(n_subjects),
            unknown_prior=0.5 if fixed else self.unknown_prior,
            concentration=self.concentration if fixed else None,
        )
        return replace(
            point,
            target_fpir=self.target_fpir,
            achieved_fpir=self.achieved_fpir,
            n_nonmated=self.n_nonmated,
            tail=self.tail,
            interval=self.interval,
            fpir_confidence=self.fpir_confidence,
            calibrated=self,
        )

    def _followed(self, n_subjects: int) -> float:
        if self.tail is None or self.target_fpir is None:
            raise InvalidParameterError(
                "hold='fpir' needs an operating point found on strangers' scores that differ; use hold='model'"
            )
        if self.fpir_confidence is None:
            step = self._growth(n_subjects, self.tail.deviation)
        elif n_subjects > self.n_subjects:
            # A promise takes the deviation and the shape that are worse for it.
            deviation = self.tail.deviation_bound(self.fpir_confidence, upper=True)
            step = deviation * widest_growth(self.n_subjects, n_subjects, self.target_fpir)
        else:
            step = self._growth(n_subjects, self.tail.deviation_bound(self.fpir_confidence, upper=False))
        return float(np.clip(self.threshold + step, -1.0, 1.0))

    def _growth(self, n_subjects: int, deviation: float) -> float:
        """``σ (z(K′) − z(K))``: how far strangers' best scores rise from this size to another."""
        assert self.target_fpir is not None
        here, there = (comparison_quantile(k, self.target_fpir) for k in (self.n_subjects, n_subjects))
        return deviation * (there - here)

    def __str__(self) -> str:
        fpir = ""
        if self.target_fpir is not None and self.achieved_fpir is not None:
            fpir = (
                f"\n  FPIR {self.achieved_fpir:.4f} on {self.n_nonmated} non-mated validation probes "
                f"(target {self.target_fpir:g})"
            )
            if self.fpir_confidence is None and np.floor(self.target_fpir * self.n_nonmated + 1e-9) > round(
                self.achieved_fpir * self.n_nonmated
            ):
                fpir += "; equal scores straddle the threshold, and none of them is accepted"
        carried = ""
        if self.carried_from is not None:
            carried = f"\n  carried over from {self.carried_from} subjects, for whom the above was measured and solved"
        if (interval := self.fpir_interval) is not None:
            promise = ""
            if self.fpir_confidence is not None:
                promise = f"; at most {self.target_fpir:g} was asked for with {100 * self.fpir_confidence:g} %"
            carried += f"\n  FPIR with {self.n_subjects} subjects: {interval}{promise}"
        if (shortfall := self.shortfall) is not None:
            carried += f"\n  {shortfall}"
        solved = "unknown prior" if self.solved == "unknown_prior" else "concentration"
        return (
            f"operating point: {self.n_subjects} subjects, threshold {self.threshold:.4f}, "
            f"concentration {self.concentration:.1f}, unknown prior {self.unknown_prior:.4g}"
            f"{fpir}\n  {solved} was solved for the threshold, {self.reason}{carried}"
        )


def threshold_at_fpir(nonmated_scores: Float64Array, target_fpir: float) -> float:
    """The τ that accepts exactly ``floor(FPIR·n)`` of the non-mated scores, midway to the next score below.

    Where equal scores straddle the place, none of them is accepted: FPIR stays at or under its target.

    >>> threshold_at_fpir(np.array([0.1, 0.2, 0.3, 0.4]), 0.25)
    0.35
    """
    scores = np.sort(np.asarray(nonmated_scores, dtype=np.float64))[::-1]
    target = check_share("target_fpir", target_fpir)
    if len(scores) == 0:
        raise no_strangers()
    # The small addend undoes the rounding of products such as 0.29 · 100.
    accepted = int(np.floor(target * len(scores) + 1e-9))
    if accepted == 0:
        raise CalibrationDataError(
            f"target_fpir={target:g} is finer than {len(scores)} non-mated validation probes can resolve "
            f"(at least {1 / len(scores):.2g}); raise it or bring at least {int(np.ceil(1 / target))} of them"
        )
    lowest_accepted, highest_rejected = float(scores[accepted - 1]), float(scores[accepted])
    if lowest_accepted == highest_rejected:
        above = scores[scores > highest_rejected]
        if len(above) == 0:
            if highest_rejected >= 1 - 1e-6:
                raise CalibrationDataError(
                    f"{accepted} or more strangers score 1 against the gallery: they are samples of enrolled subjects; remove "
                    "them, or label them with their subject"
                )
            return float(np.nextafter(np.float32(highest_rejected), np.float32(2)))
        lowest_accepted = float(above[-1])
    return (lowest_accepted + highest_rejected) / 2


def no_strangers() -> CalibrationDataError:
    """The error where there is nobody to set the threshold by."""
    return CalibrationDataError(
        "no non-mated validation probes: the threshold is a quantile of their scores; label probes of people who "
        "are not enrolled as UNKNOWN"
    )
