"""Tail: the mass of the lists that were not read, estimated, and how far the estimate may be off.

At a small sharpness (κ/T) every row counts a little, and two measurements agree on the sum. One is expected from the
lists' moments alone, as if the scores of a list were normal with its exact mean ``s̄_l`` and the variance ``v_l`` its
scatter gives:

    Σ_l n_l e^{a s̄_l + a² v_l/2},

corrected for how far such sums were off for left-out rows of the gallery itself (see ``tail_calibration.py``). The other is a
stratified sample with a control variate, unbiased over the draw whatever the shape of the lists,

    Σ_l n_l · mean over the sampled rows of list l of ( e^{a s_c} − a h_l (s_c − s̄_l) ),      h_l = e^{a s̄_l + a² v_l/2},

what is subtracted having total 0, and ``a h_l`` being the best slope for normal scores. They are averaged by their
precision; where they contradict each other the error grows with the contradiction.

At a large one (κ) the few highest scores are everything, and no sample holds them. There the normal scores end at the
median of the highest, and the calibration says by how much that was misjudged. The error is as wide as not having looked makes
it: nothing beside a mate that was found, some nats for a stranger.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.evidence.ivf.kmeans import Float32Array
from holue.evidence.ivf.list_loops import (
    COVARIANCE,
    EXPECTED_MASS,
    EXPECTED_MOMENT,
    MASS_VARIANCE,
    MOMENT_VARIANCE,
    N_TAIL_SUMS,
    NORMAL_VARIANCE,
    SAMPLED_MASS,
    SAMPLED_MOMENT,
    estimate,
    expect_highest,
)
from holue.evidence.ivf.living_lists import LivingLists
from holue.evidence.ivf.sample import Mask
from holue.evidence.ivf.tail_calibration import TailCalibration
from holue.gallery.embeddings import Float64Array

LEAST_SHARE = 0.05
"""The least part of the expected mass that an average with a sample may leave."""


@dataclass(frozen=True, eq=False)
class Unread:
    """The lists that some probes did not read: their mean scores, and which were read."""

    probes: Float32Array  # (n, d)
    means: Float32Array  # (n, L) the lists' mean scores s̄_l
    near: Mask  # (n, L) whether a list was read
    elongation: Float64Array  # (n,) how much more the rows scatter in the direction of each probe than on average
    living: LivingLists

    def of(self, rows: slice) -> Unread:
        """Those of some probes."""
        parts = self.probes[rows], self.means[rows], self.near[rows], self.elongation[rows]
        return Unread(*parts, self.living)

    def measure(self, a: float) -> Measured:
        """The unread mass at one sharpness, expected and sampled."""
        scores = self.living.sampled.products(self.probes)
        return _measure(self, scores, a)

    def highest(self, sharpness: Float64Array, log_seen: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Log-mass and mean score (n, m) expected of the unread lists where the highest scores are everything.

        Nothing, where it would be nothing beside what was seen.
        """
        log_mass, mean = np.empty((2, len(self.probes), len(sharpness)))
        lists = self.living
        expect_highest(
            self.means, self.near, lists.sizes, lists.scatter, self.elongation, sharpness, log_seen, log_mass, mean
        )
        return log_mass, mean


@dataclass(frozen=True, eq=False)
class Measured:
    """Two measurements of the unread mass of n probes, in units of ``e^log_unit``; all 0 where everything was read."""

    log_unit: Float64Array
    expected: Float64Array  # mass from the moments
    expected_mean: Float64Array  # and its mean score
    sampled: Float64Array  # mass from the sample
    sampled_mean: Float64Array
    error: Float64Array  # standard error of the sampled mass, at least what normal scores would give
    mean_error: Float64Array  # standard error of the sampled mean score


def with_tail(
    log_seen: Float64Array,
    mean_seen: Float64Array,
    sharpness: Float64Array,
    unread: Unread,
    calibration: TailCalibration,
) -> Float64Array:
    """Log-mass, mean score and their standard errors (4, n, m) of everything, from those of the lists that were read."""
    whole = np.zeros((4, *log_seen.shape))
    whole[0], whole[1] = log_seen, mean_seen
    if unread.near.all():
        return whole
    within = sharpness <= unread.living.sample.reach
    if within.any():
        scores = unread.living.sampled.products(unread.probes)
        for column in np.flatnonzero(within):
            a = float(sharpness[column])
            measured = _measure(unread, scores, a)
            whole[:, :, column] = _averaged(log_seen[:, column], mean_seen[:, column], measured, *calibration.at(a))
    if not within.all():
        seen = log_seen[:, ~within], mean_seen[:, ~within], sharpness[~within]
        whole[:, :, ~within] = _extremes(*seen, unread, *calibration.beyond(sharpness[~within]))
    return whole


Estimate = tuple[Float64Array, Float64Array, Float64Array, Float64Array]


def _measure(unread: Unread, scores: Float32Array, a: float) -> Measured:
    lists, sample = unread.living, unread.living.sample
    sums, log_unit = np.empty((len(unread.probes), N_TAIL_SUMS)), np.empty(len(unread.probes))
    estimate(
        scores,
        unread.means,
        unread.near,
        lists.scatter,
        unread.elongation,
        sample.levels,
        sample.counts,
        lists.expansion,
        lists.square,
        a,
        log_unit,
        sums,
    )
    expected, sampled, moment = sums[:, EXPECTED_MASS], sums[:, SAMPLED_MASS], sums[:, SAMPLED_MOMENT]
    variance, moment_variance, covariance = sums[:, MASS_VARIANCE], sums[:, MOMENT_VARIANCE], sums[:, COVARIANCE]
    expected_mean = sums[:, EXPECTED_MOMENT] / np.where(expected > 0, expected, 1.0)
    # A difference can fall to nothing or below, the sum cannot.
    positive = np.maximum(sampled, LEAST_SHARE * expected)
    total = np.where(positive > 0, positive, 1.0)
    mean = np.clip(moment / total, -1.0, 1.0)
    mean_variance = np.maximum(moment_variance - 2 * mean * covariance + mean * mean * variance, 0.0)
    error = np.sqrt(np.maximum(np.maximum(variance, sums[:, NORMAL_VARIANCE]), 0.0))
    return Measured(log_unit, expected, expected_mean, sampled, mean, error, np.sqrt(mean_variance) / total)


def _averaged(
    log_seen: Float64Array,
    mean_seen: Float64Array,
    measured: Measured,
    bias: float,
    spread: float,
    mean_bias: float,
    mean_spread: float,
) -> Estimate:
    expected = measured.expected * np.exp(bias)
    there = expected > 0
    unit = np.where(there, expected, 1.0)
    ratio, error = _average(1.0, spread, measured.sampled / unit, measured.error / unit)
    mean_far, mean_error = _average(
        measured.expected_mean + mean_bias, mean_spread, measured.sampled_mean, measured.mean_error
    )
    log_far = np.where(there, measured.log_unit + np.log(unit * np.maximum(ratio, LEAST_SHARE)), -np.inf)
    log_mass = np.logaddexp(log_seen, log_far)
    share = np.exp(log_far - log_mass)
    apart = mean_far - mean_seen
    # The mean of all moves with that of the unread part, and with its share.
    whole_mean_error = np.hypot(share * mean_error, share * (1 - share) * apart * error)
    return log_mass, mean_seen + share * apart, share * error, whole_mean_error


def _average(
    first: Float64Array | float, first_error: float, second: Float64Array, second_error: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """Two measurements of one number, averaged by their precision; more than two deviations apart they widen the error.

    Their errors are taken to pull the same way: a group of look-alikes in one unread list escapes both.
    """
    both = first_error**2 + second_error**2
    known = both > 0
    divisor = np.where(known, both, 1.0)
    weight = np.where(known, first_error**2 / divisor, 0.0)
    error = (1 - weight) * first_error + weight * second_error
    deviations = np.abs(second - first) / np.sqrt(divisor)
    return first + weight * (second - first), error * np.maximum(1.0, deviations / 2)


def _extremes(
    log_seen: Float64Array,
    mean_seen: Float64Array,
    sharpness: Float64Array,
    unread: Unread,
    shift: Float64Array,
    mean_shift: Float64Array,
) -> Estimate:
    log_far, mean_far = unread.highest(sharpness, log_seen - sharpness * np.maximum(shift, 0.0).max(axis=1))
    # The estimate, and the ends of three standard errors: as much as the highest score and the mean were misjudged.
    log_cases = log_far[:, :, None] + sharpness[:, None] * shift
    log_mass = np.logaddexp(log_seen[:, :, None], log_cases)
    share = np.exp(log_cases - log_mass)[:, :, :, None]
    apart = (mean_far - mean_seen)[:, :, None] + mean_shift
    mean = mean_seen[:, :, None] + (share * apart[:, :, None, :]).reshape(*log_seen.shape, -1)
    return log_mass[:, :, 0], mean[:, :, 0], _third(log_mass), _third(mean)


def _third(cases: npt.NDArray[np.float64]) -> Float64Array:
    """A third of the way from the first to the farthest."""
    error: Float64Array = np.abs(cases[:, :, 1:] - cases[:, :, :1]).max(axis=2) / 3
    return error
