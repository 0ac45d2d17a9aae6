"""Completion: log-mass and mean score of everybody, from exact scores of the listed and sums of estimates of the rest.

A row was listed where its estimate was above its cut ``u``. Over the draw of the rotation a row with score ``s`` was listed with
probability ``π = Φ((s − u)/σ)``, and its weight ``g`` (``weight_loops.py``), where it was not, has the mean
``e^{as} Φ((u − s − aσ²)/σ)``. So the listed rows count

    h = e^{as} Φ((s + aσ² − u)/σ) / Φ((s − u)/σ)

and ``Σ_listed h + Σ_rest g`` has the mean ``Σ e^{as}``, whatever the cut. At a low sharpness ``h`` is about ``e^{as}`` and the
rest is what its codes say; at a high one the rest adds nothing and the listed are weighted by ``1/π``, a Horvitz-Thompson
estimate. The derivative by ``a`` is the same for ``Σ s e^{as}``, which gives the mean score. Standard errors are those of sums
over independent errors, of an error that all rows share (``shared_error.py``), and of the sample of the rest.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
# Compiled functions have no Python types to check.

from __future__ import annotations

import math

import numpy as np

from holue.evidence.binary.loops.weight_loops import (
    MASS,
    MOMENT,
    SQUARE_MASS,
    SQUARE_MOMENT,
    SQUARE_SECOND_MOMENT,
)
from holue.sphere.compiled import njit

_ROOT_OF_TWO_PI = math.sqrt(2.0 * math.pi)
_FARTHEST = -8.0  # deviations below the cut: what was listed from farther away weighs no more than from here
_SURE = 6.0  # deviations above it: listed but for one in a milliard
_FAINT = -80.0  # nats below the best: nothing, even where it stands for many
_LEAST_ACROSS = 0.05
_LOG_ROUNDING, _MEAN_ROUNDING = 1e-6, 1e-7  # of a scan in float32, which is what exact evidence is


@njit(cache=True, nogil=True)
def _normal(u):
    """``Φ(u)``."""
    return 0.5 * math.erfc(-u / math.sqrt(2.0))


@njit(cache=True, nogil=True, error_model="numpy")
def _places(scores, deviations, bases, cuts, sigmas, above, missed):
    """Of every listed row: its deviation for this probe, how many of them its score is above the cut, and ``1 − π``."""
    for j in range(scores.shape[0]):
        across = 1.0 - (scores[j] - bases[j]) * (scores[j] - bases[j])
        sigmas[j] = deviations[j] * math.sqrt(max(across, _LEAST_ACROSS))
        sure = cuts[j] == -np.inf or sigmas[j] == 0.0
        above[j] = _SURE if sure else min(max((scores[j] - cuts[j]) / sigmas[j], _FARTHEST), _SURE)
        missed[j] = 0.0 if above[j] == _SURE else _normal(-above[j])


@njit(cache=True, nogil=True, error_model="numpy")
def complete(scores, deviations, bases, cuts, sharpness, weighed, unit, sums, sampled, typical, shared, results):
    """Write log-mass, mean score and their standard errors of one probe to ``results`` (4, m).

    ``scores``, ``deviations``, ``bases`` and ``cuts`` (R,) are of the listed; ``weighed`` (m,) is where a sharpness is among
    ``sums`` (m, 5), −1 where the rest weighs nothing. ``sampled`` (m, 4) is what sampling the rest adds: sums of ``g²``, ``xg²``
    and ``x²g²`` that stand for the variances, and what the known number of rows takes from the first.
    """
    n = scores.shape[0]
    sigmas, above, missed, weights, means = np.empty((5, n))
    _places(scores, deviations, bases, cuts, sigmas, above, missed)
    best = scores.max() if n else unit
    for m in range(sharpness.shape[0]):
        a = sharpness[m]
        mass, moment = 0.0, 0.0  # in units of e^{a best}
        for j in range(n):
            weights[j], means[j] = 0.0, scores[j]
            if a * (scores[j] - best) > _FAINT:
                weights[j] = math.exp(a * (scores[j] - best))
                if missed[j] > 0.0:
                    v = above[j] + a * sigmas[j]
                    there = _normal(v)
                    means[j] += sigmas[j] * math.exp(-0.5 * v * v) / (_ROOT_OF_TWO_PI * there)
                    weights[j] *= there / (1.0 - missed[j])
                mass += weights[j]
                moment += weights[j] * means[j]
        share, factor = 0.0, 0.0
        rest = weighed[m] >= 0 and sums[weighed[m], MASS] > 0.0
        if rest:
            factor = math.exp(a * (unit - best))
            share = factor * sums[weighed[m], MASS]
            mass += share
            moment += factor * sums[weighed[m], MOMENT]
            share /= mass
        mean = moment / mass
        variance, mean_variance = 0.0, 0.0
        for j in range(n):
            if missed[j] > 0.0:
                own = weights[j] / mass
                own *= own * missed[j]
                variance += own
                mean_variance += own * (means[j] - mean) ** 2
        if rest:
            own = sums[weighed[m]]
            scale = (factor / mass) ** 2
            v = typical * typical
            kept = math.exp(-a * a * v)  # what of the square of a weight is not its variance
            first = own[SQUARE_MOMENT] - mean * own[SQUARE_MASS]
            second = own[SQUARE_SECOND_MOMENT] - mean * (2.0 * own[SQUARE_MOMENT] - mean * own[SQUARE_MASS])
            variance += scale * own[SQUARE_MASS] * (1.0 - kept)
            spread = second * (1.0 - kept) + kept * (2.0 * a * v * first + (v - a * a * v * v) * own[SQUARE_MASS])
            mean_variance += scale * max(spread, 0.0)
            variance += scale * max(sampled[weighed[m], 0] - sampled[weighed[m], 3], 0.0)
            about = sampled[weighed[m], 2] - mean * (2.0 * sampled[weighed[m], 1] - mean * sampled[weighed[m], 0])
            mean_variance += scale * max(about, 0.0)
            common = shared * typical * share
            variance += (a * common) ** 2
            mean_variance += (common * (1.0 + a * (1.0 - share) * abs(own[MOMENT] / own[MASS] - mean))) ** 2
        results[0, m], results[1, m] = a * best + math.log(mass), mean
        results[2, m] = math.sqrt(variance + _LOG_ROUNDING**2)
        results[3, m] = math.sqrt(mean_variance + _MEAN_ROUNDING**2)
