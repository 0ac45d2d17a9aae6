"""List loops: the compiled inside of approximate evidence: reading inverted lists, and weighing those that were not read."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, unreachable"
# Compiled functions have no Python types to check.

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from holue.evidence.kernels.exponential_sums import (
    ANY_ORDER,
    CHUNK,
    LEAST_EXPONENT,
    LINE,
    PROBES_ROW_BY_ROW,
    ROW_TILE_PROBES,
    RunningSums,
    maximum_of_two,
    multiply,
    power_of_two,
    sweep,
)
from holue.evidence.kernels.simd import VECTOR_LENGTH
from holue.sphere.compiled import njit

Float32Array = npt.NDArray[np.float32]

PROBES_PER_VISIT = 48
"""Probes that visit a list at once; a multiple of three."""
BINS = 16
"""Mean scores of lists told apart by the model of the unseen."""
N_TAIL_SUMS = 8
EXPECTED_MASS, EXPECTED_MOMENT, SAMPLED_MASS, SAMPLED_MOMENT = range(4)
MASS_VARIANCE, MOMENT_VARIANCE, COVARIANCE, NORMAL_VARIANCE = range(4, N_TAIL_SUMS)
"""Places of the sums that ``estimate`` writes; the last is the variance of the mass were the lists' scores normal."""
HALVINGS = 12
"""Steps of the search for a score: to 1/2^12, a tenth of a nat at a sharpness of 400."""
_HALF, _ONE, _TO_BITS = np.float32(0.5), np.float32(1.0), np.float32(1.0 / math.log(2.0))
_FULL, _FULL_WINDOW = 1e30, 2**40
_NOTHING = 40.0  # in nats: the logarithm of 10^10 rows, and of 10^-7 of the mass
_MEDIAN_OF_HIGHEST = math.log(2.0)  # rows expected above the median of the highest score
_HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


def products(probes: Float32Array, vectors: Float32Array) -> Float32Array:
    """The products (n, M) of probes with some vectors; of one probe by the sweep's loop, which reads faster than a library."""
    if len(probes) > 1:
        return probes @ vectors.T
    scores = np.empty((1, -(-len(vectors) // VECTOR_LENGTH) * VECTOR_LENGTH), dtype=np.float32)
    multiply(probes, vectors, 0, len(vectors), scores, 0)
    return scores[:, : len(vectors)]


@njit(cache=True, nogil=True)
def count_nearer(along, aside, own, ratios, counts):
    """Of trials ``x + t e``: the lists, its own among them, whose centres are at least as near as that of its own list.

    ``along`` and ``aside`` (n, L) are the centres' scores with x and with e, ``ratios`` (g,) the values of t, ``counts`` (n, g)
    the result.
    """
    for i in range(len(along)):
        for g in range(len(ratios)):
            t = ratios[g]
            limit = along[i, own[i]] + t * aside[i, own[i]]
            count = 0
            for number in range(along.shape[1]):
                count += along[i, number] + t * aside[i, number] >= limit
            counts[i, g] = count


@njit(cache=True, nogil=True)
def visitors_of(near):
    """The probes that are near each list, list after list, and where each list's begin."""
    n, n_lists = near.shape
    firsts = np.zeros(n_lists + 1, dtype=np.int64)
    for i in range(n):
        for number in range(n_lists):
            firsts[number + 1] += near[i, number]
    firsts = np.cumsum(firsts)
    visitors, filled = np.empty(firsts[n_lists], dtype=np.int64), firsts.copy()
    for i in range(n):
        for number in range(n_lists):
            if near[i, number]:
                visitors[filled[number]] = i
                filled[number] += 1
    return visitors, firsts


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def _load_into_cache(vectors, begin, end):
    """Read a float of every cache line of these rows in order, as memory likes best: the products find them in the cache."""
    total = np.float32(0.0)
    for row in range(begin, end):
        for t in range(0, vectors.shape[1], LINE):
            total += vectors[row, t]
    return total


@njit(cache=True, nogil=True)
def visit(probes, vectors, places, gone, starts, visitors, firsts, sums):
    """Read every list into the sums of its visitors: the probes ``visitors[firsts[l] : firsts[l + 1]]`` visit list ``l``.

    ``places`` (K,) name the vectors; ``gone`` (K,) is who has left, and empty where nobody has.

    Of many probes the sweep multiplies three at once, and one or two left over more slowly than three: empty ones fill up, whose
    sums stand so high that nothing is ever added to them.
    """
    n, dim = probes.shape
    per_visit = 1 if n == 1 else PROBES_PER_VISIT
    top_scores, top_index, slope, peak, window, bins = sums
    k, m = top_scores.shape[1], slope.shape[0]
    held = np.empty((per_visit, dim), dtype=np.float32)
    scores, holes = np.empty((per_visit, CHUNK), dtype=np.float32), np.empty((3, CHUNK), dtype=np.int64)
    held_scores, held_index = np.empty((per_visit, k)), np.empty((per_visit, k), dtype=np.int64)
    held_peak, held_window = np.empty(per_visit), np.empty((per_visit, m), dtype=np.int64)
    held_bins = np.empty((per_visit, *bins.shape[1:]), dtype=np.int64)
    loaded = np.float32(0.0)
    for number in range(starts.shape[0] - 1):
        for first in range(firsts[number], firsts[number + 1], per_visit):
            count = min(per_visit, firsts[number + 1] - first)
            for i in range(count):
                probe = visitors[first + i]
                held[i] = probes[probe]
                held_scores[i], held_index[i] = top_scores[probe], top_index[probe]
                held_peak[i], held_window[i], held_bins[i] = peak[probe], window[probe], bins[probe]
            if count > PROBES_ROW_BY_ROW and first == firsts[number]:
                loaded += _load_into_cache(vectors, starts[number], starts[number + 1])
            filled = count if count <= PROBES_ROW_BY_ROW else -(-count // ROW_TILE_PROBES) * ROW_TILE_PROBES
            for i in range(count, filled):
                held[i], held_scores[i], held_peak[i], held_window[i] = 0.0, _FULL, _FULL, _FULL_WINDOW
            part = RunningSums(
                held_scores[:filled],
                held_index[:filled],
                slope,
                held_peak[:filled],
                held_window[:filled],
                held_bins[:filled],
            )
            span = slice(starts[number], starts[number + 1])
            sweep(held[:filled], vectors[span], places[span], gone[span], scores[:filled], holes, part)
            for i in range(count):
                probe = visitors[first + i]
                top_scores[probe], top_index[probe] = held_scores[i], held_index[i]
                peak[probe], window[probe], bins[probe] = held_peak[i], held_window[i], held_bins[i]
    return loaded


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def _select(near, means, scatter, lift, expansion, square, expand, squares):
    """What a sampled row stands for, and what makes its square a variance: 0 for lists that are near.

    Returns the highest ``s̄ + lift·v`` of the others.
    """
    highest = LEAST_EXPONENT
    for number in range(near.shape[0]):
        there = _ONE - np.float32(near[number])
        expand[number] = there * expansion[number]
        squares[number] = there * square[number]
        highest = maximum_of_two(highest, means[number] + lift * scatter[number] + (there - _ONE) * -LEAST_EXPONENT)
    return highest


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def _expect(means, expand, squares, counts, scatter, elongation, a, top, weights, moments):
    """Mass, moment and sampling variance of far lists of normal scores, and the expected weight and moment in each list.

    With ``v`` the variance of a list's scores and ``h = e^{a s̄ + a² v/2 − top}``: ``Σ n h``, ``Σ n h (s̄ + a v)``, and
    ``Σ c h² (e^{a² v} − 1 − a² v)``, what the linear control leaves of the variance.
    """
    mass, moment, variance = np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for number in range(means.shape[0]):
        lift = a * elongation * scatter[number]
        h = power_of_two(maximum_of_two((a * (means[number] + _HALF * lift) - top) * _TO_BITS, LEAST_EXPONENT))
        spread = a * lift
        weights[number] = h
        moments[number] = h * (means[number] + lift)
        rows = expand[number] * counts[number]
        mass += rows * h
        moment += rows * moments[number]
        variance += squares[number] * counts[number] * h * h * (power_of_two(spread * _TO_BITS) - _ONE - spread)
    return mass, moment, variance


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def _add_level(scores, means, weights, moments, expand, squares, a, top):
    """One sampled row of each list: by how much mass and moment exceed what is expected, and the squares of that."""
    total, moment = np.float32(0.0), np.float32(0.0)
    xx, xy, yy = np.float32(0.0), np.float32(0.0), np.float32(0.0)
    for number in range(scores.shape[0]):
        score = scores[number]
        weight = power_of_two(maximum_of_two((a * score - top) * _TO_BITS, LEAST_EXPONENT))
        below = score - means[number]
        h = weights[number]
        u = weight - h - a * h * below
        v = score * weight - moments[number] - (h + a * moments[number]) * below
        total += expand[number] * u
        moment += expand[number] * v
        xx += squares[number] * u * u
        xy += squares[number] * u * v
        yy += squares[number] * v * v
    return total, moment, xx, xy, yy


@njit(cache=True, nogil=True)
def estimate(scores, means, near, scatter, elongation, levels, counts, expansion, square, a, tops, sums):
    """The mass of the lists that are not near, expected and sampled, into ``sums`` (n, N_TAIL_SUMS), all relative to ``e^tops``.

    Within a list, ``δ_c = s_c − s̄_l`` over all rows sums to 0, so ``w − a h_l δ`` has the same total as ``w = e^{a s −
    top}`` and less variance; likewise ``s w − h'_l δ``. The variance is that around the expected ``h_l``, so that one row
    of a list is enough to tell it, and an expectation that is off widens it. The variances are those of the sampled mass and
    moment.
    """
    a32 = np.float32(a)
    scratch = np.empty((4, means.shape[1]), dtype=np.float32)
    # By index and not by unpacking: the compiler then knows that a row is contiguous.
    expand, squares, weights, moments = scratch[0], scratch[1], scratch[2], scratch[3]
    for i in range(scores.shape[0]):
        stretch = np.float32(elongation[i])
        highest = _select(near[i], means[i], scatter, _HALF * a32 * stretch, expansion, square, expand, squares)
        if np.all(near[i]):
            sums[i] = 0.0
            tops[i] = 0.0
            continue
        top = a * highest
        tops[i] = top
        top32 = np.float32(top)
        mass, moment, normal = _expect(
            means[i], expand, squares, counts, scatter, stretch, a32, top32, weights, moments
        )
        sums[i] = 0.0
        for level in range(levels.shape[0] - 1):
            part = scores[i, levels[level] : levels[level + 1]]
            added = _add_level(part, means[i], weights, moments, expand, squares, a32, top32)
            sums[i, SAMPLED_MASS] += added[0]
            sums[i, SAMPLED_MOMENT] += added[1]
            sums[i, MASS_VARIANCE] += added[2]
            sums[i, COVARIANCE] += added[3]
            sums[i, MOMENT_VARIANCE] += added[4]
        sums[i, EXPECTED_MASS], sums[i, EXPECTED_MOMENT], sums[i, NORMAL_VARIANCE] = mass, moment, normal
        sums[i, SAMPLED_MASS] += mass
        sums[i, SAMPLED_MOMENT] += moment


@njit(cache=True, nogil=True)
def _log_below(x):
    """``ln Φ(x)``."""
    if x > -8.0:
        return math.log(0.5 * math.erfc(-x / math.sqrt(2.0)))
    return -0.5 * x * x - _HALF_LOG_TWO_PI - math.log(-x) + math.log1p(-1.0 / (x * x))


@njit(cache=True, nogil=True)
def _score_exceeded_by(counts, places, deviations, expected):
    """The score above which so many rows are expected; at most 1, and at least 0, where it makes no difference any more."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        above = 0.0
        for b in range(BINS):
            if counts[b] > 0:
                above += counts[b] * 0.5 * math.erfc((middle - places[b]) / (deviations[b] * math.sqrt(2.0)))
        if above > expected:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


@njit(cache=True, nogil=True)
def _truncated(counts, places, deviations, top, a):
    """Log-mass of normal scores up to ``t``, ``ln Σ_b n_b e^{a m_b + a²σ_b²/2} Φ((t − m_b − aσ_b²)/σ_b)``; and their mean."""
    log_total, mean = -np.inf, 0.0
    for b in range(BINS):
        if counts[b] == 0:
            continue
        tilted = places[b] + a * deviations[b] ** 2
        x = (top - tilted) / deviations[b]
        log_share = _log_below(x)
        part = math.log(counts[b]) + a * 0.5 * (places[b] + tilted) + log_share
        part_mean = tilted - deviations[b] * math.exp(-0.5 * x * x - _HALF_LOG_TWO_PI - log_share)
        both = max(log_total, part) + math.log1p(math.exp(-abs(log_total - part)))
        mean += math.exp(part - both) * (part_mean - mean)
        log_total = both
    return log_total, mean


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def _range_of_means(near, means):
    """The lowest and the highest mean of the lists that are not near; 2 and −2 where all are."""
    lowest, highest = np.float32(2.0), np.float32(-2.0)
    for number in range(near.shape[0]):
        aside = np.float32(near[number]) * np.float32(4.0)
        lowest = -maximum_of_two(-lowest, -means[number] - aside)
        highest = maximum_of_two(highest, means[number] - aside)
    return lowest, highest


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def _assign(near, means, lowest, per_bin, bins):
    """The bin of every list's mean, and the one after the last for the lists that are near."""
    for number in range(near.shape[0]):
        place = min(np.int32((means[number] - lowest) * per_bin), np.int32(BINS - 1))
        bins[number] = np.int32(BINS) if near[number] else max(place, np.int32(0))


@njit(cache=True, nogil=True)
def expect_highest(means, near, sizes, scatter, elongation, sharpness, log_seen, log_mass, mean_score):
    """Log-mass and mean score (n, m) of the lists that are not near, were their scores normal around the lists' means.

    The scores end where 0.7 rows are expected above: the median of the highest. Where even a score eight deviations above
    the highest mean, of every row, would be nothing beside what was seen, the mass is 0.
    """
    widest = np.max(scatter)
    bins = np.empty(sizes.shape[0], dtype=np.int32)
    # The last bin is for the lists that are near.
    counts, places, squares, deviations = np.empty(BINS + 1), np.empty(BINS + 1), np.empty(BINS + 1), np.empty(BINS)
    for i in range(means.shape[0]):
        lowest, highest = _range_of_means(near[i], means[i])
        limit = highest + 8.0 * math.sqrt(widest * elongation[i])
        negligible = True
        if lowest <= highest:
            for t in range(sharpness.shape[0]):
                negligible &= log_seen[i, t] - sharpness[t] * limit > _NOTHING
        if negligible:
            log_mass[i] = -np.inf
            mean_score[i] = 0.0
            continue
        _assign(near[i], means[i], lowest, np.float32(BINS / max(highest - lowest, 1e-9)), bins)
        counts[:] = 0.0
        places[:] = 0.0
        squares[:] = 0.0
        for number in range(sizes.shape[0]):
            b = bins[number]
            counts[b] += sizes[number]
            places[b] += sizes[number] * means[i, number]
            squares[b] += sizes[number] * scatter[number]
        for b in range(BINS):
            if counts[b] > 0:
                places[b] /= counts[b]
                deviations[b] = max(math.sqrt(squares[b] * elongation[i] / counts[b]), 1e-6)
        top = _score_exceeded_by(counts, places, deviations, _MEDIAN_OF_HIGHEST)
        for t in range(sharpness.shape[0]):
            log_mass[i, t], mean_score[i, t] = _truncated(counts, places, deviations, top, sharpness[t])
