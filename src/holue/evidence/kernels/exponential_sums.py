"""Exponential sums: the compiled loops that turn scores into a running top and running sums.

The fast loops read float32 cosines while they are still in the cache, in chunks of ``CHUNK`` subjects: one pass finds the
chunk's best score, and only if that can enter the top, or raise the running maximum, is anything compared or rescaled. Then per
sharpness ``a`` the chunk adds ``Σ e^{a s}`` and ``Σ s e^{a s}`` (``binned_sums.py``), unless its best score adds nothing to them.

The linked loops are the plain float64 form of the same sums, for every link and precision.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.kernels.binned_sums import (
    DOUBLES_AT_ONCE,
    SINGLE_BINS,
    faint_score,
    greatest_exponent,
    raise_window,
    weigh_double,
    weigh_single,
    window_of,
)
from holue.evidence.kernels.holes import fill_holes, find_holes, move_columns
from holue.evidence.kernels.row_products import multiply_rows
from holue.evidence.kernels.simd import (
    FLOATS,
    INT64,
    POWER_POLYNOMIAL,
    VECTOR_LENGTH,
    add_each,
    constant,
    load,
    multiply_add,
    prefetch,
    row_starts,
    save,
)
from holue.sphere.compiled import njit

CHUNK = 512
"""Subjects weighed at once: 2 KiB of scores."""
GROUP = 32
"""Subjects compared with the top at once, in a chunk whose best score belongs there."""
ROW_TILE_SUBJECTS, ROW_TILE_PROBES = 4, 3
"""Subjects × probes multiplied at once."""
PROBES_ROW_BY_ROW = 5
"""Up to so many probes the memory is slower than multiplying them one by one with each row it brings; measured."""

LEAST_EXPONENT = np.float32(-125.0)  # the least exponent of which 2^r · 2^f is a normal float32
_C0, _C1, _C2, _C3, _C4, _C5 = (np.float32(c) for c in POWER_POLYNOMIAL)
_BIAS, _FRACTION_BITS = np.int32(127), np.int32(23)  # of the float32 format
LINE = 16  # float32 in a cache line
INDEX = types.intp
ANY_ORDER = {"reassoc", "contract", "nsz", "nnan", "ninf", "arcp"}  # sums may be split over SIMD vectors


class RunningSums(NamedTuple):
    """What some probes have seen so far, as the loops take it; everything is changed in place."""

    top_scores: npt.NDArray[np.float64]  # (n, k) best first
    top_index: npt.NDArray[np.int64]  # (n, k)
    slope: npt.NDArray[np.float32]  # (m,) a / ln 2
    peak: npt.NDArray[np.float64]  # (n,) the highest score
    window: npt.NDArray[np.int64]  # (n, m) of the sums, see binned_sums.py
    bins: npt.NDArray[np.int64]  # (n, 2, m, bins) of Σ e^{a s} and of Σ s e^{a s}


@intrinsic
def maximum_of_two(typing_context, left, right):
    """The greater of two float32. Python's ``max`` is honest about NaN, and for that reason is not vectorised."""

    def generate(context, builder, signature, arguments):
        condition = builder.fcmp_ordered(">", *arguments, flags=("fast",))
        return builder.select(condition, *arguments, flags=("fast",))

    return types.float32(types.float32, types.float32), generate


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def row_maximum(row):
    """The greatest value of a row."""
    best = row[0]
    for j in range(row.shape[0]):
        best = maximum_of_two(best, row[j])
    return best


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def power_of_two(exponent):
    """``2^x`` for ``x`` in −126 … 0, in float32."""
    whole = np.rint(exponent)
    f = exponent - whole
    fraction = _C0 + f * (_C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * _C5))))
    return fraction * np.int32((np.int32(whole) + _BIAS) << _FRACTION_BITS).view(np.float32)


@njit(cache=True, nogil=True)
def insert_top(row, numbers, top_scores, top_index):
    """Insert the scores of some numbers into one probe's running top; an equal score never displaces a smaller number."""
    last = top_scores.shape[0] - 1
    worst = top_scores[last]
    for j in range(row.shape[0]):
        if row[j] < worst:
            continue
        score, subject = row[j], numbers[j]
        # Blocks may come in any order, so an equal score has to compare numbers.
        if score == worst and top_index[last] <= subject:
            continue
        place = last
        while place > 0 and (
            top_scores[place - 1] < score or (top_scores[place - 1] == score and top_index[place - 1] > subject)
        ):
            top_scores[place] = top_scores[place - 1]
            top_index[place] = top_index[place - 1]
            place -= 1
        top_scores[place] = score
        top_index[place] = subject
        worst = top_scores[last]


@njit(cache=True, nogil=True)
def absorb_living(scores, width, numbers, begin, holes, count, moves, sums):
    """``absorb_cosines`` for those of the rows ``begin .. begin + width`` who have not left.

    ``holes`` (3, CHUNK) was filled by ``find_holes``; its last row is filled with numbers.
    """
    if count == width:
        absorb_cosines(scores, width, numbers[begin : begin + width], sums)
    else:
        move_columns(scores, holes, moves)
        fill_holes(numbers, begin, count, holes, moves, holes[2])
        absorb_cosines(scores, count, holes[2], sums)


@njit(cache=True, nogil=True)
def absorb_cosines(scores, width, numbers, sums):
    """Add the first ``width`` columns of contiguous float32 ``scores`` to the running top, maximum and sums.

    ``numbers`` (width,) are the columns' subjects, and read only where one enters the top.
    """
    top_scores, top_index, slope, peak, window, bins = sums
    top_k = top_scores.shape[1]
    for i in range(top_scores.shape[0]):
        for begin in range(0, width, CHUNK):
            row = scores[i, begin : min(begin + CHUNK, width)]
            best = row_maximum(row)
            if top_k > 0 and best >= top_scores[i, top_k - 1]:
                for at in range(0, row.shape[0], GROUP):
                    group = row[at : min(at + GROUP, row.shape[0])]
                    if row_maximum(group) >= top_scores[i, top_k - 1]:
                        insert_top(group, numbers[begin + at :], top_scores[i], top_index[i])
            if best > peak[i]:
                peak[i] = best
                for t in range(slope.shape[0]):
                    higher = window_of(np.float64(slope[t]) * peak[i])
                    if higher > window[i, t]:
                        raise_window(window[i], bins[i], t, higher)
            for t in range(slope.shape[0]):
                if best > faint_score(slope[t], window[i, t]):
                    digits = weigh_single(row, slope[t], window[i, t])
                    for j in range(SINGLE_BINS):
                        bins[i, 0, t, j] += digits[j]
                        bins[i, 1, t, j] += digits[SINGLE_BINS + j]


@intrinsic
def _tile(typing_context, block, row, last, probes, i, length, scores, j):
    """Products of four subjects ``row..`` with three probes ``i..`` in registers, written to ``scores[i.., j..]``.

    They run over the first ``length`` coordinates, a multiple of 8; past the ``last`` subject its own row stands in. Twelve
    vectors of eight sums run side by side, and each loaded coordinate is used three or four times, so that the loads keep up with
    the products. Written out because the automatic vectoriser finds this form only sometimes; and every score is summed in the
    same order, so that equal rows score equally.
    """

    def generate(context, builder, signature, arguments):
        block, row, last, probes, i, length, scores, j = arguments
        subjects, _ = row_starts(context, builder, signature.args[0], block, row, ROW_TILE_SUBJECTS, last)
        directions, _ = row_starts(context, builder, signature.args[3], probes, i, ROW_TILE_PROBES)
        places, _ = row_starts(context, builder, signature.args[6], scores, i, ROW_TILE_PROBES)
        sums = [[cgutils.alloca_once_value(builder, constant(0.0)) for _ in subjects] for _ in directions]
        with cgutils.for_range_slice(builder, INT64(0), length, INT64(VECTOR_LENGTH)) as (t, _):
            # The probes are held and one subject passes at a time: three, one and twelve sums fill sixteen registers.
            held = [load(builder, start, t, FLOATS) for start in directions]
            for number, start in enumerate(subjects):
                g = load(builder, start, t, FLOATS)
                for x, own in zip(held, sums):
                    builder.store(multiply_add(builder, x, g, builder.load(own[number])), own[number])
        for place, own in zip(places, sums):
            save(builder, add_each(builder, [builder.load(total) for total in own]), place, j)
        return context.get_dummy_value()

    return types.void(block, INDEX, INDEX, probes, INDEX, INDEX, scores, INDEX), generate


@intrinsic
def _prefetch_rows(typing_context, block, row, last):
    """Prefetch the four subjects from ``row``, which are next: the processor does not predict the end of short rows."""

    def generate(context, builder, signature, arguments):
        block, row, last = arguments
        starts, width = row_starts(context, builder, signature.args[0], block, row, ROW_TILE_SUBJECTS, last)
        with cgutils.for_range_slice(builder, INT64(0), width, INT64(LINE)) as (t, _):
            for start in starts:
                prefetch(builder, builder.gep(start, [t]), 0)
        return context.get_dummy_value()

    return types.void(block, INDEX, INDEX), generate


@njit(cache=True, nogil=True)
def multiply(probes, block, begin, width, scores, at):
    """Products of the probes with the rows ``begin .. begin + width`` of a block, written to ``scores`` from column ``at`` on.

    Three probes at a time, but few of them, and what is left of many, one by one; eight columns at a time, so ``scores`` is as
    wide as the next multiple.
    """
    n, dim = probes.shape
    last, whole = block.shape[0] - 1, dim - dim % VECTOR_LENGTH
    if n <= PROBES_ROW_BY_ROW:
        for j in range(0, width, VECTOR_LENGTH):
            for i in range(n):
                multiply_rows(block, begin + j, last, probes, i, whole, scores, at + j)
    else:
        threes = n - n % ROW_TILE_PROBES
        for j in range(0, width, VECTOR_LENGTH):
            for four in range(j, min(j + VECTOR_LENGTH, width), ROW_TILE_SUBJECTS):
                _prefetch_rows(block, begin + four + ROW_TILE_SUBJECTS, last)
                for i in range(0, threes, ROW_TILE_PROBES):
                    _tile(block, begin + four, last, probes, i, whole, scores, at + four)
            for i in range(threes, n):
                multiply_rows(block, begin + j, last, probes, i, whole, scores, at + j)
    for t in range(whole, dim):
        for i in range(n):
            for j in range(width):
                scores[i, at + j] += probes[i, t] * block[begin + j, t]


@njit(cache=True, nogil=True)
def sweep(probes, block, numbers, gone, scores, holes, sums):
    """Multiply and absorb chunk by chunk: for few probes, where a gallery row is worth reading only once.

    ``gone`` is empty where nobody has left. ``scores`` (n, CHUNK) and ``holes`` (3, CHUNK) are scratch buffers.
    """
    for begin in range(0, block.shape[0], CHUNK):
        width = min(CHUNK, block.shape[0] - begin)
        count, moves = find_holes(gone, begin, width, holes)
        if count > 0:
            multiply(probes, block, begin, width, scores, 0)
            absorb_living(scores, width, numbers, begin, holes, count, moves, sums)


@njit(cache=True, nogil=True)
def add_top(scores, numbers, top_scores, top_index):
    """Insert the tops that another thread found, each with numbers of its own."""
    if top_scores.shape[1] > 0:
        for i in range(scores.shape[0]):
            for j in range(scores.shape[1]):
                if numbers[i, j] >= 0:
                    insert_top(scores[i, j : j + 1], numbers[i, j : j + 1], top_scores[i], top_index[i])


@njit(cache=True, nogil=True)
def absorb_top(scores, numbers, top_scores, top_index):
    """Insert a block's scores, of any precision, into the running top."""
    if top_scores.shape[1] > 0:
        for i in range(scores.shape[0]):
            insert_top(scores[i], numbers, top_scores[i], top_index[i])


@njit(cache=True, nogil=True)
def absorb_linked(linked, sharpness, window, bins):
    """Add a block's linked float64 scores (n, b) to the running sums."""
    weights = np.empty((2, DOUBLES_AT_ONCE))
    for i in range(linked.shape[0]):
        highest, largest = -np.inf, 0.0
        for j in range(linked.shape[1]):
            score = linked[i, j]
            highest = max(highest, score)
            largest = max(largest, abs(score) if score > -np.inf else 0.0)
        if highest == -np.inf:
            continue
        for t in range(sharpness.shape[0]):
            higher = window_of(greatest_exponent(linked[i], sharpness[t], highest, largest))
            if higher > window[i, t]:
                raise_window(window[i], bins[i], t, higher)
            weigh_double(linked[i], sharpness[t], window[i, t], 1, weights, bins[i], t)
