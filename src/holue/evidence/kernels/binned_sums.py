"""Binned sums: sums of exponentials that are the same bits in whatever order and in however many parts they are added.

They are reproducible sums after Demmel and Nguyen ("Parallel reproducible summation", 2015). The binary digits of every term are
cut at fixed places, multiples of ``BIN_BITS``, into *bins*; the digits of a bin are added as whole numbers, which is exact, so
that order does not matter. Only the highest bins are kept: which they are follows from the greatest term alone, of mass or of
moment. With the window ``E``, a multiple of ``BIN_BITS``, bin ``j`` counts units of ``2^{E − BIN_BITS (j + 1)}``:

    Σ_c e^{a g_c}      ≈  2^E Σ_j mass[j]   2^{−BIN_BITS (j + 1)}
    Σ_c g_c e^{a g_c}  ≈  2^E Σ_j moment[j] 2^{−BIN_BITS (j + 1)}

Float32 scores have three bins: a term is rounded by at most 2^-43 of the greatest. Float64 scores have four: by 2^-65.

A term is a function of the score alone. For a float32 score ``s``, with ``x = s·slope`` and ``slope = a / ln 2`` in float32,

    2^x = 2^r · 2^f,   r = round(x),  f in [−½, ½],   2^f by a polynomial (relative error 2e-7).

``x`` is multiplied and ``r`` subtracted in one rounding, so a term is as exact as its score at every sharpness. What ``slope`` is
rounded by is put right to first order when a sum is closed.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, arg-type, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.kernels.simd import (
    INT32,
    INT64,
    LONG_VECTOR_LENGTH,
    ROUNDER,
    add_across,
    any_above,
    broadcast,
    constant,
    load,
    load_some,
    maximum,
    powers_of_two,
)
from holue.sphere.compiled import njit

BIN_BITS = 22
"""Bits of a bin. Even, or whether a term is rounded up or down at a tie would depend on the window."""
SINGLE_BINS, DOUBLE_BINS = 3, 4
"""Bins of a sum of float32 and of float64 scores."""
EMPTY = -(2**62) // BIN_BITS * BIN_BITS
"""The window of no term."""
DOUBLES_AT_ONCE = 512
"""Float64 scores whose terms are computed before their digits are added, which are SIMD loops of their own."""
LARGEST_SHARPNESS = {SINGLE_BINS: 2.0**20, DOUBLE_BINS: 2.0**49}
"""Up to these an exponent is told to a fraction; beyond, it is a multiple of this one."""

_HEADROOM = 2  # the greatest term is at most 2^{E − 2 + ½}, so that a moment's highest digit fits its bin
_SMALL_SCORE = 1.25  # up to it a moment fits where its mass does: 1.25 · 2^{E − 2 + ½} < 2^{E − 1}
_SCORE_BITS = 32  # of a linked score: below the last bin by these, mass and moment round to 0
_FAINT = -69.0  # relative to the window: less rounds to 0 in every bin of a float32 term, and is still a normal float32
_NARROW = np.float32(45.0)  # slopes at which all cosines are above that
_LENGTH = LONG_VECTOR_LENGTH
_LONG_FLOATS, _LONG_INTS = ir.VectorType(ir.FloatType(), _LENGTH), ir.VectorType(INT32, _LENGTH)
_STEP = 32  # scores weighed side by side
_LEAST = np.finfo(np.float32).min
_LOG_2 = math.log(2.0)
_LOG_2_HIGH = float(np.float32(math.log(2.0)))  # with whole numbers of up to 29 bits its product is exact
_LOG_2_LOW = -1.904654299957768e-09  # what that lacks
_UNIT = 2.0**BIN_BITS
_MASK = np.int64(2**BIN_BITS - 1)
_DOUBLE_FRACTION_BITS = np.int64(52)  # of the float64 format
_DOUBLE_ROUNDER = 1.5 * 2.0**52  # as ROUNDER for a float64
_BIASED_ROUNDER = _DOUBLE_ROUNDER + 1023  # leaves the biased exponent of a float64 in the lowest bits
_DOUBLE_ROUNDER_BITS = np.float64(_DOUBLE_ROUNDER).view(np.int64)
_INDEX = types.intp

Int64Array = npt.NDArray[np.int64]


def slopes(sharpness: npt.NDArray[np.float64]) -> npt.NDArray[np.float32]:
    """Sharpness in powers of two, ``a / ln 2``, as float32 scores are multiplied by it."""
    return np.asarray(np.minimum(sharpness, LARGEST_SHARPNESS[SINGLE_BINS]) / _LOG_2, dtype=np.float32)


def summed_sharpness(sharpness: npt.NDArray[np.float64], n_bins: int) -> npt.NDArray[np.float64]:
    """The sharpness that is really summed at: the float32 slope's, or at most the largest."""
    if n_bins == SINGLE_BINS:
        return slopes(sharpness).astype(np.float64) * _LOG_2
    return np.minimum(sharpness, LARGEST_SHARPNESS[n_bins])


@njit(cache=True, nogil=True)
def window_of(exponent):
    """The window of sums whose greatest term is ``2^exponent``, up to rounding."""
    return -np.int64(np.floor(-(np.rint(exponent) + _HEADROOM) / BIN_BITS)) * BIN_BITS


@njit(cache=True, nogil=True)
def raise_window(window, bins, t, higher):
    """Raise the window of the sums ``bins`` (2, m, bins) at sharpness ``t``; what falls below the last bin is dropped."""
    n_bins = bins.shape[2]
    rise = min((higher - window[t]) // BIN_BITS, n_bins)
    for number in range(2):
        for j in range(n_bins - 1, -1, -1):
            bins[number, t, j] = bins[number, t, j - rise] if j >= rise else 0
    window[t] = higher


def _add_digits(builder, bins, value):
    """Add the digits of a vector to its three bins: rounding to a bin's unit leaves its whole number in the lowest bits."""
    for number, total in enumerate(bins):
        rounder = constant(_bin_rounder(number), _LENGTH)
        rounded = builder.fadd(value, rounder)
        builder.store(builder.add(builder.load(total), builder.bitcast(rounded, _LONG_INTS)), total)
        if number + 1 < len(bins):
            value = builder.fsub(value, builder.fsub(rounded, rounder))


def _bin_rounder(number):
    return ROUNDER * 2.0 ** (-BIN_BITS * (number + 1))


def _weigher(wide):
    """The digits of ``2^{slope·s − E}``, then of ``s 2^{slope·s − E}``, added over a row of scores, as an intrinsic.

    ``rounder`` is ``ROUNDER − E``. ``wide`` is for exponents that may leave the format: scores are held at ``faint``, below which
    a term adds nothing, and 32 neighbours that are all below it are left out.
    """

    def generate(context, builder, signature, arguments):
        row, end, *numbers = arguments
        start = context.make_array(signature.args[0])(context, builder, row).data
        slope, rounder, faint = (broadcast(builder, number, _LENGTH) for number in numbers)
        zero = ir.Constant(_LONG_INTS, [0] * _LENGTH)
        mass, moment = ([cgutils.alloca_once_value(builder, zero) for _ in range(SINGLE_BINS)] for _ in range(2))
        n_added = cgutils.alloca_once_value(builder, INT32(0))  # vectors

        def add(scores, some=None):
            if wide:
                scores = [maximum(builder, s, faint) for s in scores]
            for s, weight in zip(scores, powers_of_two(builder, slope, scores, rounder)):
                if some is not None:
                    weight = builder.select(some, weight, constant(0.0, _LENGTH))
                _add_digits(builder, mass, weight)
                _add_digits(builder, moment, builder.fmul(s, weight))
            builder.store(builder.add(builder.load(n_added), INT32(len(scores))), n_added)

        whole = builder.sub(end, builder.srem(end, INT64(_STEP)))
        with cgutils.for_range_slice(builder, INT64(0), whole, INT64(_STEP)) as (j, _):
            places = [builder.add(j, INT64(first)) for first in range(0, _STEP, _LENGTH)]
            scores = [load(builder, start, at, _LONG_FLOATS) for at in places]
            if wide:
                with builder.if_then(any_above(builder, scores, faint)):
                    add(scores)
            else:
                add(scores)
        with cgutils.for_range_slice(builder, whole, end, INT64(_LENGTH)) as (j, _):
            scores, some = load_some(builder, start, j, end, _LONG_FLOATS)
            add([scores], some)
        results = []
        for bins in (mass, moment):
            for number, total in enumerate(bins):
                # Every term has added the bits of the rounder itself, too. 512 digits of 22 bits and a sign fit 32 bits.
                bits = INT32(_LENGTH * int(np.float32(_bin_rounder(number)).view(np.int32)) & 0xFFFFFFFF)
                own = builder.sub(add_across(builder, builder.load(total)), builder.mul(builder.load(n_added), bits))
                results.append(builder.sext(own, INT64))
        return context.make_tuple(builder, signature.return_type, results)

    def weigh(typing_context, row, end, slope, rounder, faint):
        return types.UniTuple(types.int64, 2 * SINGLE_BINS)(row, _INDEX, *[types.float32] * 3), generate

    return intrinsic(weigh)


_weigh_all, _weigh_noticed = _weigher(wide=False), _weigher(wide=True)


@njit(cache=True, nogil=True, error_model="numpy")
def faint_score(slope, window):
    """The float32 score below which a term adds nothing to the sums of this window."""
    return np.float32((window + _FAINT) / np.float64(slope)) if slope > 0 else _LEAST


@njit(cache=True, nogil=True)
def weigh_single(row, slope, window):
    """The digits (6,) of a row of up to 512 float32 scores: of mass, then of moment."""
    rounder = np.float32(ROUNDER - window)
    if slope < _NARROW:
        return _weigh_all(row, row.shape[0], slope, rounder, _LEAST)
    return _weigh_noticed(row, row.shape[0], slope, rounder, faint_score(slope, window))


@njit(cache=True, nogil=True)
def exponent_double(score, a):
    """The power of two that ``e^{a g}`` is."""
    return a * score / _LOG_2


@njit(cache=True, nogil=True)
def greatest_exponent(row, a, highest, largest):
    """The power of two that no term ``e^{a g}`` or ``g e^{a g}`` of a row of float64 scores exceeds, up to headroom.

    ``highest`` is the greatest score, and ``largest`` the greatest absolute value of a finite one. Linked scores may be large: a
    moment above its window would carry into a bin that is not there, and be dropped or kept depending on the order of the parts.
    """
    if largest <= _SMALL_SCORE:
        return np.rint(exponent_double(highest, a))
    greatest = -np.inf
    for j in range(row.shape[0]):
        if row[j] > -np.inf:
            bits = max(np.ceil(np.log2(max(abs(row[j]) / _SMALL_SCORE, 1.0))), 0.0)
            greatest = max(greatest, np.rint(exponent_double(row[j], a)) + bits)
    return greatest


@njit(cache=True, nogil=True)
def weigh_double(row, a, window, sign, weights, bins, t):
    """Add ``sign`` times the digits of ``e^{a g}`` and ``g e^{a g}`` of a row of float64 scores to ``bins`` (2, m, bins).

    ``weights`` is a scratch buffer. Scores of −inf are nobody's.
    """
    lowest = np.float64(-BIN_BITS * DOUBLE_BINS - _HEADROOM - _SCORE_BITS)
    for begin in range(0, row.shape[0], DOUBLES_AT_ONCE):
        count = min(DOUBLES_AT_ONCE, row.shape[0] - begin)
        for j in range(count):  # without a branch or a call, so that it is compiled to SIMD vectors
            score = row[begin + j]
            whole = np.rint(exponent_double(score, a))
            rest = (a * score - whole * _LOG_2_HIGH) - whole * _LOG_2_LOW
            rest = rest if rest > -0.5 else -0.5
            weights[0, j] = rest if rest < 0.5 else 0.5
            counts = (whole - window >= lowest) & (score > -np.inf)
            below = whole - window if counts else lowest
            power = np.int64(np.float64(below + _BIASED_ROUNDER).view(np.int64) << _DOUBLE_FRACTION_BITS)
            weights[1, j] = power.view(np.float64) if counts else 0.0
        for j in range(count):
            if weights[1, j] > 0.0:
                weights[0, j] = math.exp(weights[0, j]) * weights[1, j]
                weights[1, j] = weights[0, j] * row[begin + j]
            else:
                weights[0, j] = 0.0
        for number in range(2):
            digits = _add_double_digits(weights[number], count)
            for j in range(DOUBLE_BINS):
                bins[number, t, j] += sign * digits[j]


@njit(cache=True, nogil=True)
def _add_double_digits(values, count):
    """The digits of the first ``count`` values, added bin by bin: rounding leaves a whole number in the lowest bits."""
    first = second = third = fourth = np.int64(0)
    for j in range(count):
        value = values[j] * _UNIT
        rounded = value + _DOUBLE_ROUNDER
        first += np.float64(rounded).view(np.int64) - _DOUBLE_ROUNDER_BITS
        value = (value - (rounded - _DOUBLE_ROUNDER)) * _UNIT
        rounded = value + _DOUBLE_ROUNDER
        second += np.float64(rounded).view(np.int64) - _DOUBLE_ROUNDER_BITS
        value = (value - (rounded - _DOUBLE_ROUNDER)) * _UNIT
        rounded = value + _DOUBLE_ROUNDER
        third += np.float64(rounded).view(np.int64) - _DOUBLE_ROUNDER_BITS
        value = (value - (rounded - _DOUBLE_ROUNDER)) * _UNIT
        fourth += np.float64(value + _DOUBLE_ROUNDER).view(np.int64) - _DOUBLE_ROUNDER_BITS
    return first, second, third, fourth


@njit(cache=True, nogil=True)
def add_bins(window, bins, other_window, other_bins):
    """Add the sums of another part to those of n probes, ``window`` (n, m) and ``bins`` (n, 2, m, bins)."""
    n, _, m, n_bins = bins.shape
    for i in range(n):
        for t in range(m):
            if other_window[i, t] > window[i, t]:
                raise_window(window[i], bins[i], t, other_window[i, t])
            fall = min((window[i, t] - other_window[i, t]) // BIN_BITS, n_bins)
            for number in range(2):
                for j in range(fall, n_bins):
                    bins[i, number, t, j] += other_bins[i, number, t, j - fall]


@njit(cache=True, nogil=True)
def subtract_single(values, slope, window, bins):
    """Take the terms of some float32 scores (n, k), which were added before, out of the sums; −inf was not."""
    for i in range(values.shape[0]):
        count = 0
        while count < values.shape[1] and values[i, count] > -np.inf:
            count += 1
        for t in range(slope.shape[0]):
            for begin in range(0, count, 512):
                digits = weigh_single(values[i, begin : min(begin + 512, count)], slope[t], window[i, t])
                for j in range(SINGLE_BINS):
                    bins[i, 0, t, j] -= digits[j]
                    bins[i, 1, t, j] -= digits[SINGLE_BINS + j]


@njit(cache=True, nogil=True)
def subtract_double(values, sharpness, window, bins):
    """The same of float64 scores."""
    weights = np.empty((2, DOUBLES_AT_ONCE))
    for i in range(values.shape[0]):
        for t in range(sharpness.shape[0]):
            weigh_double(values[i], sharpness[t], window[i, t], -1, weights, bins[i], t)


@njit(cache=True, nogil=True)
def _value(bins):
    """``Σ_j bins[j] 2^{−BIN_BITS (j + 1)}``, the same for all digits that stand for one number."""
    carry, total, unit = np.int64(0), 0.0, _UNIT ** -bins.shape[0]
    for j in range(bins.shape[0] - 1, -1, -1):
        digits = bins[j] + carry
        carry = digits >> BIN_BITS if j > 0 else np.int64(0)
        total += np.float64(digits - (carry << BIN_BITS)) * unit
        unit *= _UNIT
    return total


@njit(cache=True, nogil=True)
def close_sums(sharpness, summed_at, window, rest, top, n_subjects, log_mass, mean_score):
    """Write ``ln Σ e^{a g}`` and ``Σ g e^{a g} / Σ e^{a g}`` of the scores ``top`` (n, k), best first, and of the ``rest``.

    The rest was summed at the sharpness ``summed_at``, which is ``a`` up to rounding; none of it is above the last of the top. So
    no score weighs more than the whole: ``a g ≤ log_mass``. Scores of −inf are nobody's; of no subject −inf and 0.
    """
    for i in range(window.shape[0]):
        count = 0
        while count < top.shape[1] and top[i, count] > -np.inf:
            count += 1
        n_rest = n_subjects - count
        for t in range(sharpness.shape[0]):
            a, log_rest, rest_mean = sharpness[t], -np.inf, 0.0
            mass = _value(rest[i, 0, t]) if n_rest > 0 and window[i, t] > EMPTY else 0.0
            if mass > 0.0:
                rest_mean = _value(rest[i, 1, t]) / mass
                if count > 0:
                    rest_mean = min(rest_mean, top[i, count - 1])
                log_rest = window[i, t] * _LOG_2 + math.log(mass) + (a - summed_at[t]) * rest_mean
                if count > 0:
                    log_rest = min(log_rest, a * top[i, count - 1] + math.log(n_rest))
            if count == 0:
                log_mass[i, t], mean_score[i, t] = log_rest, rest_mean
                continue
            best = top[i, 0]
            # Relative to the best of the top, or to the rest where that weighs more.
            log_unit = max(log_rest, a * best)
            weight = math.exp(log_rest - log_unit)
            total, moment = weight, weight * (rest_mean - best)
            for j in range(count):
                weight = math.exp(a * top[i, j] - log_unit)
                total += weight
                moment += weight * (top[i, j] - best)
            log_mass[i, t] = log_unit + math.log(total)
            mean_score[i, t] = best + moment / total
