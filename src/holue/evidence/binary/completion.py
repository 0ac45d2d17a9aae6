"""Completion: log-mass and mean score of everybody, from exact scores of the listed and sums of estimates of the rest.

A row was listed where its estimate was above its cut ``u``. Over the draw of the rotation a row with score ``s`` was listed with
probability ``π = Φ((s − u)/σ)``, and its weight ``g`` (``estimate_loops.py``), where it was not, has the mean
``e^{as} Φ((u − s − aσ²)/σ)``. So the listed rows count

    h = e^{as} Φ((s + aσ² − u)/σ) / Φ((s − u)/σ)

and ``Σ_listed h + Σ_rest g`` has the mean ``Σ e^{as}``, whatever the cut. At a low sharpness ``h`` is about ``e^{as}`` and the
rest is what its codes say; at a high one the rest adds nothing and the listed are weighted by ``1/π``, a Horvitz-Thompson
estimate. The derivative by ``a`` is the same for ``Σ s e^{as}``, which gives the mean score. Standard errors are those of sums
over independent errors, and of an error that all rows share (``shared_error.py``).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
# Compiled functions have no Python types to check.

from __future__ import annotations

import math

import numpy as np

from holue.evidence.binary.estimate_loops import (
    MASS,
    MOMENT,
    SQUARE_MASS,
    SQUARE_MOMENT,
    SQUARE_SECOND_MOMENT,
)
from holue.sphere.compiled import njit

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
def _listed(s, deviation, base, cut, a):
    """``ln h`` of a listed row, its ``d ln h / da``, and ``1 − π``."""
    if cut == -np.inf:
        return a * s, s, 0.0
    sigma = deviation * math.sqrt(max(1.0 - (s - base) * (s - base), _LEAST_ACROSS))
    if sigma == 0.0:
        return a * s, s, 0.0
    u = max((s - cut) / sigma, _FARTHEST)
    if u > _SURE:
        return a * s, s, 0.0
    v = u + a * sigma
    listed, weighed = _normal(u), _normal(v)
    density = math.exp(-0.5 * v * v) / math.sqrt(2.0 * math.pi)
    return a * s + math.log(weighed / listed), s + sigma * density / weighed, 1.0 - listed


@njit(cache=True, nogil=True, error_model="numpy")
def complete(scores, deviations, bases, cuts, sharpness, weighed, unit, sums, typical, shared, results):
    """Write log-mass, mean score and their standard errors of one probe to ``results`` (4, m).

    ``scores``, ``deviations``, ``bases`` and ``cuts`` (R,) are of the listed; ``weighed`` (m,) is where a sharpness is among
    ``sums``, −1 where the rest weighs nothing.
    """
    n = scores.shape[0]
    logs, means, missed = np.empty(n), np.empty(n), np.empty(n)
    for m in range(sharpness.shape[0]):
        a = sharpness[m]
        highest = -np.inf
        best = scores.max() if n else -np.inf
        for j in range(n):
            if a * (scores[j] - best) < _FAINT:
                logs[j], means[j], missed[j] = -np.inf, 0.0, 0.0
                continue
            logs[j], means[j], missed[j] = _listed(scores[j], deviations[j], bases[j], cuts[j], a)
            highest = max(highest, logs[j])
        rest = weighed[m] >= 0 and sums[weighed[m], MASS] > 0.0
        if rest:
            highest = max(highest, a * unit + math.log(sums[weighed[m], MASS]))
        mass, moment = 0.0, 0.0
        for j in range(n):
            if logs[j] == -np.inf:
                continue
            h = math.exp(logs[j] - highest)
            mass += h
            moment += h * means[j]
        share, factor = 0.0, 0.0
        if rest:
            factor = math.exp(a * unit - highest)
            share = factor * sums[weighed[m], MASS]
            mass += share
            moment += factor * sums[weighed[m], MOMENT]
            share /= mass
        mean = moment / mass
        variance, mean_variance = 0.0, 0.0
        for j in range(n):
            if missed[j] == 0.0:
                continue
            h = math.exp(logs[j] - highest) / mass
            own = h * h * missed[j]
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
            common = shared * typical * share
            variance += (a * common) ** 2
            mean_variance += (common * (1.0 + a * (1.0 - share) * abs(own[MOMENT] / own[MASS] - mean))) ** 2
        results[0, m], results[1, m] = highest + math.log(mass), mean
        results[2, m] = math.sqrt(variance + _LOG_ROUNDING**2)
        results[3, m] = math.sqrt(mean_variance + _MEAN_ROUNDING**2)
