"""Bounds: what sums over approximate scores say for certain about the exact ones.

Some subjects are *listed* and were scored exactly; of the *rest* only approximate scores ``ŝ`` are known, with ``t = s − ŝ``:

    |t_c| ≤ ε_c = e_c + β,        t_c = z·δ_c + r_c  with |r_c| ≤ β  and  ‖Δz‖ ≤ N

where ``e_c`` is the row's own error, ``β`` what the rounding of the probe and of the products adds, ``N`` the norm of all
residuals together. Let ``p̂_c ∝ e^{aŝ_c}`` be the rest's weights, ``ε`` its largest error, ``y = aε``, ``ε̄ = Σp̂ε``,
``A = N‖p̂‖₂ + β ≥ |Σp̂t|`` (Cauchy and Schwarz) and ``V = min(εε̄, (N√max p̂ + β)²) ≥ Σp̂t²``. The rest's mass is off by the
factor ``Σp̂e^{at}``, whose logarithm is

- at least ``aΣp̂t ≥ −a min(ε̄, A)`` (Jensen);
- at most ``ln(1 + (ε̄/ε)(e^y − 1))`` (the chord of a convex function), and ``ln(1 + aA + a²V (e^y − 1 − y)/y²)`` (Taylor).

Where the mass is spread over many subjects their errors cannot all point the same way: ``A`` is then about ``√d`` times
smaller than ``ε``. The rest's mean score moves, with the deviation ``σ̂`` of ``ŝ`` under ``p̂`` and ``X = ŝ − M̂``,

- by at most ``ε + sinh(y) σ̂``: weights between ``e^{−y}`` and ``e^y`` move a mean by at most ``sinh(y)`` deviations;
- by at most ``[A + aV(e^y−1)/y + a(N‖p̂X‖₂ + βσ̂) + a²V max|X| (e^y−1−y)/y²] / (1 − aA)``.

Listed and rest are then put together by their shares. The sums come from float32 chunks: ``ROUNDING`` and ``SQUARE_ROUNDING`` are
their relative errors (64 additions per element of a SIMD vector, and an exponent of at most 44 ln 2 rounded three times); a
weight under ``2^−44`` of the highest may have counted for that, or for nothing.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from holue.evidence.evidence import Evidence
from holue.evidence.precision import Precision
from holue.evidence.quantized.bounded_loops import (
    ERROR_MASS,
    MASS,
    MOMENT,
    SECOND_MOMENT,
    SQUARE_MASS,
    SQUARE_MOMENT,
    SQUARE_SECOND_MOMENT,
)
from holue.gallery.embeddings import Float64Array
from holue.sphere.compiled import compiled

ROUNDING, SQUARE_ROUNDING = 1.2e-5, 2.4e-5
LEAST_WEIGHT, LEAST_SQUARE = 2.0**-43, 2.0**-86
_LARGEST_EXPONENT = 30.0
"""Beyond it Taylor's bound is never the smaller one."""
_EPSILON = 2.3e-16


@compiled
def _log_add(left: float, right: float) -> float:
    larger, smaller = max(left, right), min(left, right)
    if smaller == -math.inf:
        return larger
    return larger + math.log1p(math.exp(smaller - larger))


@compiled
def _share(log_odds: float) -> float:
    """``1/(1 + e^{−x})``."""
    if log_odds >= 0:
        return 1.0 / (1.0 + math.exp(-log_odds))
    return math.exp(log_odds) / (1.0 + math.exp(log_odds))


@compiled
def _rest(
    a: float,
    sums: Float64Array,
    total: Float64Array,
    highest_weight: float,
    n_rest: int,
    error: float,
    beta: float,
    norm: float,
    largest: float,
) -> tuple[float, float, float, float, float]:
    """The rest's mass relative to the peak, the logarithms of its most and its least, its mean ``x``, and that mean's bound."""
    lost, lost_square = n_rest * LEAST_WEIGHT, n_rest * LEAST_SQUARE
    off = ROUNDING * total[MASS] + lost
    mass = max(sums[MASS], 0.0)
    least = mass - off
    y = a * (error + beta)
    if least <= 0.0:  # nothing is known but that it is small beside the listed
        return mass, math.log(mass + off) + y, -math.inf, 0.0, math.inf
    mean_error = min(
        (max(sums[ERROR_MASS], 0.0) + ROUNDING * total[ERROR_MASS] + lost * error) / least + beta, error + beta
    )
    squares = max(sums[SQUARE_MASS], 0.0) + SQUARE_ROUNDING * total[SQUARE_MASS] + lost_square
    length = math.sqrt(squares) / least
    heaviest = min(highest_weight, math.sqrt(squares)) / least
    together = norm * length + beta
    second = min((error + beta) * mean_error, (norm * math.sqrt(heaviest) + beta) ** 2)
    ratio = mean_error / (error + beta)
    up = y + math.log(ratio + (1.0 - ratio) * math.exp(-y))
    curved, grown = 0.5, 1.0
    if y < _LARGEST_EXPONENT:
        if y > 1e-3:
            curved, grown = (math.expm1(y) - y) / (y * y), math.expm1(y) / y
        else:  # the first terms of the series, and more than the others
            curved, grown = 0.5 + y, 1.0 + y
        up = min(up, math.log1p(a * together + a * a * curved * second))
    down = a * min(mean_error, together)

    x, mean_square = sums[MOMENT] / mass, sums[SECOND_MOMENT] / mass
    off_x = (ROUNDING * abs(total[MOMENT]) + 2 * lost + abs(x) * off) / least
    variance = max(mean_square - x * x, 0.0)
    variance += (ROUNDING * total[SECOND_MOMENT] + 4 * lost + mean_square * off) / least
    variance += 2 * abs(x) * off_x + off_x * off_x
    sigma = math.sqrt(variance)
    moved = math.inf
    if y < 700.0:
        moved = error + beta + math.sinh(y) * sigma
    if y < _LARGEST_EXPONENT and a * together < 1.0:
        spread = max(sums[SQUARE_SECOND_MOMENT] - 2 * x * sums[SQUARE_MOMENT] + x * x * sums[SQUARE_MASS], 0.0)
        rounded = total[SQUARE_SECOND_MOMENT] + 2 * abs(x * total[SQUARE_MOMENT]) + x * x * total[SQUARE_MASS]
        spread += SQUARE_ROUNDING * rounded + 4 * lost_square
        across = math.sqrt(spread) / least + off_x * length
        farthest = 2 * (largest + error + beta)
        numerator = (
            together + a * grown * second + a * (norm * across + beta * sigma) + a * a * curved * farthest * second
        )
        moved = min(moved, numerator / (1.0 - a * together))
    return mass, math.log(mass + off) + up, math.log(least) - down, x, moved + off_x


@compiled
def bound_sums(
    sharpness: Float64Array,
    sums: Float64Array,
    peak: Float64Array,
    keys: Float64Array,
    errors: npt.NDArray[np.float32],
    exact: Float64Array,
    n_subjects: int,
    error: float,
    beta: Float64Array,
    norm: Float64Array,
    largest: Float64Array,
    dim: int,
    log_mass: Float64Array,
    mean_score: Float64Array,
    log_mass_bound: Float64Array,
    mean_score_bound: Float64Array,
) -> None:
    """Fill in log-mass, mean score and their bounds for every probe.

    ``keys``, ``errors`` and ``exact`` (n, R) are of the listed subjects; no key of the rest is above the last of them. ``beta``,
    ``norm`` and ``largest`` (n,) are ``β``, ``N`` and the largest cosine a probe can have with any row.
    """
    rest = np.empty(sums.shape[2])
    listed = keys.shape[1]
    n_rest = n_subjects - listed
    for i in range(peak.shape[0]):
        best = exact[i].max()
        ceiling = keys[i, listed - 1]
        for t in range(sharpness.shape[0]):
            a = sharpness[t]
            mass, moment = 0.0, 0.0
            for j in range(listed):
                w = math.exp(a * (exact[i, j] - best))
                mass += w
                moment += w * (exact[i, j] - best)
            log_listed = a * best + math.log(mass)
            mean_listed = best + moment / mass
            # The products of the listed are float64, and so are these sums.
            rounding = a * (dim + 8) * _EPSILON * largest[i] + (listed + 8) * _EPSILON
            if n_rest == 0:
                log_mass[i, t], mean_score[i, t] = log_listed, mean_listed
                log_mass_bound[i, t] = rounding + abs(log_listed) * _EPSILON
                mean_score_bound[i, t] = (dim + listed + 8) * _EPSILON * (1.0 + a) * largest[i]
                continue
            rest[:] = sums[i, t]
            for j in range(listed):
                e = errors[i, j]
                x = np.float64(np.float32(keys[i, j]) - e) - peak[i]
                w = math.exp(a * x)
                rest[MASS] -= w
                rest[MOMENT] -= w * x
                rest[SECOND_MOMENT] -= w * x * x
                rest[SQUARE_MASS] -= w * w
                rest[SQUARE_MOMENT] -= w * w * x
                rest[SQUARE_SECOND_MOMENT] -= w * w * x * x
                rest[ERROR_MASS] -= w * e
            highest = math.exp(min(a * (ceiling + 1e-6 - peak[i]), 0.0))
            size, log_most, log_least, x, moved = _rest(
                a, rest, sums[i, t], highest, n_rest, error, beta[i], norm[i], largest[i]
            )
            # No score of the rest is above the ceiling, which says more than a difference of nearly equal sums.
            log_most = min(log_most + a * peak[i], a * (ceiling + beta[i]) + math.log(n_rest))
            log_rest = min(a * peak[i] + math.log(size), log_most) if size > 0.0 else -math.inf
            log_least += a * peak[i]
            value = _log_add(log_listed, log_rest)
            rise = _log_add(log_listed, log_most) - value
            fall = value - _log_add(log_listed, log_least)
            rounding += (abs(value) + a) * 4 * _EPSILON
            log_mass[i, t] = value
            log_mass_bound[i, t] = max(rise, fall) + rounding
            # Whatever was found, the rest's mean lies among its scores.
            lowest = -largest[i]
            mean_rest = min(max(peak[i] + x, lowest), ceiling + beta[i])
            moved = min(moved, max(ceiling + beta[i] - mean_rest, mean_rest - lowest))
            share = _share(log_rest - log_listed)
            least, most = _share(log_least - log_listed), _share(log_most - log_listed)
            mean_score[i, t] = mean_listed + share * (mean_rest - mean_listed)
            shift = max(most - share, share - least) * abs(mean_listed - mean_rest)
            mean_score_bound[i, t] = most * moved + shift + (dim + listed + 8) * _EPSILON * (1.0 + a) * largest[i]


def float64_precision(seen: Evidence, largest: Float64Array, dim: int) -> Precision:
    """Bounds of evidence that was summed in float64; ``largest`` (n,) is the largest cosine a probe can have with any row.

    A score of d products is off by at most ``η = (d + 8) ε`` of the largest, a weight by the factor ``e^{±aη}``, and a sum of K
    weights by 2^-65 of the greatest for each (see ``binned_sums.py``). A mean moves with the scores and with their weights.
    """
    n, m = seen.log_mass.shape
    eta = ((dim + 8) * _EPSILON * largest)[:, None]
    additions = 32 * _EPSILON + seen.n_subjects * 2.0**-64
    of_weights = seen.sharpness * eta + additions
    log_mass_bound = of_weights + (np.abs(seen.log_mass) + seen.sharpness * largest[:, None]) * 4 * _EPSILON
    # Weights within a factor e^{±y} of the true ones move a mean by at most the range of the scores times tanh(y).
    mean_score_bound = eta + 2 * largest[:, None] * np.tanh(2 * of_weights) + 4 * _EPSILON
    zero = np.zeros((n, m))
    return Precision(log_mass_bound, mean_score_bound, zero, zero, eta[:, 0])
