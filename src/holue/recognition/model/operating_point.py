"""OperatingPoint: the threshold τ, the concentration κ and the prior β, tied by one equation.

    τ(κ) = [ ln(β/(1−β)) + ln K + log α(κ) ] / κ        accept iff the best cosine ≥ τ   (paper, decision equivalence)

τ(κ) is not monotone: at β = ½ it falls to a minimum of about √(2 ln K / d) and then rises to 1. Above the minimum two
concentrations give the same τ, and the larger is meant (the smaller is a nearly flat model); below it none does, and β is
solved for instead, in closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Literal

import numpy as np
from scipy.optimize import brentq

from holue.errors import CalibrationDataError, InvalidParameterError, UnreachableThresholdError
from holue.gallery.embeddings import Float64Array
from holue.recognition.checks import check_positive, check_share, check_size, check_threshold
from holue.recognition.model.class_model import Prior, VonMisesFisher
from holue.recognition.model.stranger_tail import StrangerTail
from holue.sphere.bessel import log_hyp0f1, mean_resultant_length

Hold = Literal["model", "fpir", "threshold"]
LARGEST_CONCENTRATION = 1e7
SMALLEST_HELD = 1.0


def threshold_from_concentration(dim: int, n_subjects: int, concentration: float, unknown_prior: float = 0.5) -> float:
    """``τ = [ln(β/(1−β)) + ln K + log α(κ)] / κ``.

    >>> round(threshold_from_concentration(512, 3531, 400.0), 4)
    0.34
    """
    check_size(dim, n_subjects)
    kappa = check_positive("concentration", concentration)
    return threshold_from_odds(dim, n_subjects, kappa, Prior.of(check_share("unknown_prior", unknown_prior)))


@lru_cache(maxsize=256)
def concentration_from_threshold(dim: int, n_subjects: int, threshold: float, unknown_prior: float = 0.5) -> float:
    """The larger κ with ``τ(κ) = threshold``; an error that names the lowest reachable threshold where none exists.

    >>> round(concentration_from_threshold(512, 3531, 0.34), 1)
    400.0
    """
    check_size(dim, n_subjects)
    tau = check_threshold(threshold)
    prior = Prior.of(check_share("unknown_prior", unknown_prior))
    turning = turning_concentration(dim, n_subjects, prior)
    lowest = threshold_from_odds(dim, n_subjects, turning, prior)
    if tau < lowest:
        raise UnreachableThresholdError(
            f"no concentration reaches threshold {tau:.6g} with unknown_prior={unknown_prior:.6g} and {n_subjects} "
            f"subjects in {dim} dimensions (lowest reachable: {lowest:.6g}); raise the threshold or let unknown_prior "
            "be fitted (unknown_prior_from_threshold)"
        )
    highest = threshold_from_odds(dim, n_subjects, LARGEST_CONCENTRATION, prior)
    if tau > highest:
        raise UnreachableThresholdError(
            f"threshold {tau:.6g} asks for a concentration above {LARGEST_CONCENTRATION:g} (highest reachable "
            f"threshold: {highest:.6g}); lower the threshold"
        )

    # κ(τ − τ(κ)) has the sign of τ − τ(κ) without the division, and falls through 0 once on this branch.
    def excess(log_kappa: float) -> float:
        kappa = float(np.exp(log_kappa))
        return tau * kappa - prior.log_odds - float(np.log(n_subjects)) - float(log_hyp0f1(dim, kappa))

    low, high = float(np.log(turning)), float(np.log(LARGEST_CONCENTRATION))
    if excess(low) <= 0:
        return turning
    return float(np.exp(brentq(excess, low, high, xtol=1e-15, rtol=1e-15)))


def unknown_prior_from_threshold(dim: int, n_subjects: int, threshold: float, concentration: float) -> float:
    """``β`` with ``logit β = κτ − ln K − log α(κ)``.

    >>> beta = unknown_prior_from_threshold(512, 3531, 0.1, 92.0)
    >>> round(threshold_from_concentration(512, 3531, 92.0, beta), 12)
    0.1
    """
    check_size(dim, n_subjects)
    kappa = check_positive("concentration", concentration)
    return _prior(dim, n_subjects, check_threshold(threshold), kappa).probability


@lru_cache(maxsize=256)  # a gallery that changes asks again for every size
def turning_concentration(dim: int, n_subjects: int, prior: Prior) -> float:
    """The κ at which τ(κ) is lowest: ``κ A_d(κ) − log α(κ) = ln(β/(1−β)) + ln K``; 0⁺ or ∞ are cut to (1e-6, 1e7)."""
    offset = prior.log_odds + float(np.log(n_subjects))

    # The left side is 0 at κ = 0 and increases (its slope is κ A'_d), so there is at most one root.
    def slope(log_kappa: float) -> float:
        kappa = float(np.exp(log_kappa))
        return kappa * float(mean_resultant_length(dim, kappa)) - float(log_hyp0f1(dim, kappa)) - offset

    low, high = float(np.log(1e-6)), float(np.log(LARGEST_CONCENTRATION))
    if slope(low) >= 0:
        return 1e-6
    if slope(high) <= 0:
        return LARGEST_CONCENTRATION
    return float(np.exp(brentq(slope, low, high, xtol=1e-15, rtol=1e-15)))


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
            fitted = _prior(dim, n_subjects, tau, kappa)
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
            return cls(dim, n_subjects, tau, kappa, _prior(dim, n_subjects, tau, kappa), "unknown_prior", reason)
        kappa = concentration_from_threshold(dim, n_subjects, tau, unknown_prior)
        reason = f"on the branch above the lowest reachable threshold {lowest:.4f}"
        return cls(dim, n_subjects, tau, kappa, prior, "concentration", reason)

    @classmethod
    def at_fpir(
        cls,
        nonmated_scores: Float64Array,
        target_fpir: float,
        *,
        dim: int,
        n_subjects: int,
        unknown_prior: float = 0.5,
        concentration: float | None = None,
    ) -> OperatingPoint:
        """τ from the top-1 scores of non-mated validation probes, then :meth:`solve`."""
        tau = threshold_at_fpir(nonmated_scores, target_fpir)
        point = cls.solve(
            dim=dim,
            n_subjects=n_subjects,
            threshold=tau,
            unknown_prior=unknown_prior,
            concentration=concentration,
        )
        achieved = float(np.mean(np.asarray(nonmated_scores) >= tau))
        return replace(
            point,
            target_fpir=float(target_fpir),
            achieved_fpir=achieved,
            n_nonmated=len(nonmated_scores),
            tail=tail_of(nonmated_scores, n_subjects, target_fpir),
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
        return self.calibrated._followed(self.n_subjects) - self.calibrated.threshold

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
            calibrated=self,
        )

    def _followed(self, n_subjects: int) -> float:
        if self.tail is None or self.target_fpir is None:
            raise InvalidParameterError(
                "hold='fpir' needs an operating point found on strangers' scores that differ; use hold='model'"
            )
        here, there = (self.tail.threshold(k, self.target_fpir) for k in (self.n_subjects, n_subjects))
        return float(np.clip(self.threshold + there - here, -1.0, 1.0))

    def __str__(self) -> str:
        fpir = ""
        if self.target_fpir is not None and self.achieved_fpir is not None:
            fpir = (
                f"\n  FPIR {self.achieved_fpir:.4f} on {self.n_nonmated} non-mated validation probes "
                f"(target {self.target_fpir:g})"
            )
            if np.floor(self.target_fpir * self.n_nonmated + 1e-9) > round(self.achieved_fpir * self.n_nonmated):
                fpir += "; equal scores straddle the threshold, and none of them is accepted"
        carried = ""
        if self.carried_from is not None:
            carried = f"\n  carried over from {self.carried_from} subjects, for whom the above was measured and solved"
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
        raise CalibrationDataError(
            "no non-mated validation probes: the threshold is a quantile of their scores; label probes of people who "
            "are not enrolled as UNKNOWN"
        )
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


def tail_of(
    nonmated_scores: Float64Array, n_subjects: int, target_fpir: float, weight: Float64Array | None = None
) -> StrangerTail | None:
    """The strangers' tail, or None where their scores are all alike and say nothing about growth."""
    try:
        return StrangerTail.of(nonmated_scores, n_subjects=n_subjects, target_fpir=target_fpir, weight=weight)
    except CalibrationDataError:
        return None


def threshold_from_odds(dim: int, n_subjects: int, concentration: float, prior: Prior) -> float:
    """``τ`` as in :func:`threshold_from_concentration`, with the prior as log-odds, and unchecked."""
    return (prior.log_odds + float(np.log(n_subjects)) + float(log_hyp0f1(dim, concentration))) / concentration


def _prior(dim: int, n_subjects: int, threshold: float, concentration: float) -> Prior:
    return Prior(concentration * threshold - float(np.log(n_subjects)) - float(log_hyp0f1(dim, concentration)))
