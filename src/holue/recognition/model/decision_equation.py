"""Decision equation: what ties the threshold τ, the concentration κ and the prior β.

    τ(κ) = [ ln(β/(1−β)) + ln K + log α(κ) ] / κ        accept iff the best cosine ≥ τ   (paper, decision equivalence)

τ(κ) is not monotone: at β = ½ it falls to a minimum of about √(2 ln K / d) and then rises to 1. Above the minimum two
concentrations give the same τ, and the larger is meant (the smaller is a nearly flat model); below it none does, and β is
solved for instead, in closed form.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.optimize import brentq

from holue.errors import UnreachableThresholdError
from holue.recognition.checks import check_positive, check_share, check_size, check_threshold
from holue.recognition.model.class_model import Prior
from holue.sphere.bessel import log_hyp0f1, mean_resultant_length

LARGEST_CONCENTRATION = 1e7


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
    return prior_from_threshold(dim, n_subjects, check_threshold(threshold), kappa).probability


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


def threshold_from_odds(dim: int, n_subjects: int, concentration: float, prior: Prior) -> float:
    """``τ`` as in :func:`threshold_from_concentration`, with the prior as log-odds, and unchecked."""
    return (prior.log_odds + float(np.log(n_subjects)) + float(log_hyp0f1(dim, concentration))) / concentration


def prior_from_threshold(dim: int, n_subjects: int, threshold: float, concentration: float) -> Prior:
    """``logit β = κτ − ln K − log α(κ)``, unchecked."""
    return Prior(concentration * threshold - float(np.log(n_subjects)) - float(log_hyp0f1(dim, concentration)))
