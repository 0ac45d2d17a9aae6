"""Canonical scores: the cosine of a probe and a row, the same bits however the pair was found.

Kernels sum products in different orders, so the score of one pair differs in its last bits between batch sizes, threads and
processors, and equal rows may score unequally. A canonical score is summed in float64 in one fixed order: sixteen running sums,
coordinate ``t`` in sum ``t mod 16``, added by halves; then the last ``d mod 16`` coordinates one by one. No multiplication is
fused with an addition, so every processor rounds alike. Many pairs are scored in register tiles of several rows by several
probes, each pair summed in the same order.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import itertools

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.kernels.simd import (
    FLOATS,
    INT64,
    LONG_VECTOR_LENGTH,
    VECTOR_LENGTH,
    add_across,
    add_across_each,
    load,
    row_starts,
    save,
)
from holue.sphere.compiled import njit

RUNNING_SUMS = 16
TILE_ROWS, TILE_PROBES = 4, LONG_VECTOR_LENGTH // 4
"""Rows × probes of a register tile: sixteen or eight vectors of sums, half of the registers."""
CACHED_ROWS, CACHED_PROBES = 32, 64
"""Rows and probes scored while they are in the second-level cache; measured."""
_DOUBLES = ir.VectorType(ir.DoubleType(), VECTOR_LENGTH)
_TILE_LENGTH = LONG_VECTOR_LENGTH // 2  # as many float64 as a register holds


@intrinsic
def _dot(typing_context, rows, row, probes, i, length):
    """``Σ rows[row, t] · probes[i, t]`` over the first ``length`` coordinates, a multiple of sixteen, in float64."""

    def generate(context, builder, signature, arguments):
        rows, row, probes, i, length = arguments
        (start,), _ = row_starts(context, builder, signature.args[0], rows, row, 1)
        (probe,), _ = row_starts(context, builder, signature.args[2], probes, i, 1)
        zero = ir.Constant(_DOUBLES, [0.0] * VECTOR_LENGTH)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(RUNNING_SUMS // VECTOR_LENGTH)]

        def eight(at):
            if signature.args[0].dtype == types.float32:
                return builder.fpext(load(builder, start, at, FLOATS), _DOUBLES)
            return load(builder, start, at, _DOUBLES)

        with cgutils.for_range_slice(builder, INT64(0), length, INT64(RUNNING_SUMS)) as (t, _):
            for number, total in enumerate(sums):
                at = builder.add(t, INT64(number * VECTOR_LENGTH))
                product = builder.fmul(eight(at), load(builder, probe, at, _DOUBLES))
                builder.store(builder.fadd(builder.load(total), product), total)
        return add_across(builder, builder.fadd(*(builder.load(total) for total in sums)))

    return types.float64(rows, types.intp, probes, types.intp, types.intp), generate


@njit(cache=True, nogil=True)
def canonical_score(rows, row, probes, i):
    """The canonical score of row ``row`` of float32 or float64 ``rows`` and float64 probe ``i``; both contiguous."""
    dim = rows.shape[1]
    whole = dim - dim % RUNNING_SUMS
    total = _dot(rows, row, probes, i, whole)
    for t in range(whole, dim):
        total += np.float64(rows[row, t]) * probes[i, t]
    return total


@njit(cache=True, nogil=True)
def row_of(numbers, number):
    """The row of a number among ascending ``numbers``, −1 where it is not there; direct where they are contiguous."""
    n = numbers.shape[0]
    if n == 0 or number < numbers[0] or number > numbers[n - 1]:
        return -1
    if numbers[n - 1] - numbers[0] == n - 1:
        return number - numbers[0]
    row, last = 0, n - 1
    while row < last:
        middle = (row + last) // 2
        if numbers[middle] < number:
            row = middle + 1
        else:
            last = middle
    return row if numbers[row] == number else -1


@njit(cache=True, nogil=True)
def score_numbers(rows, numbers, gone, wanted, probes, scores):
    """Write the canonical scores of the ``wanted`` (n, R) numbers that ``rows`` holds and that have not left.

    ``gone`` is empty where nobody has.
    """
    for i in range(wanted.shape[0]):
        for j in range(wanted.shape[1]):
            row = row_of(numbers, wanted[i, j])
            if row >= 0 and (gone.shape[0] == 0 or not gone[row]):
                scores[i, j] = canonical_score(rows, row, probes, i)


@intrinsic
def _score_tile(typing_context, rows, row, probes, i, length, scores):
    """Write ``_dot`` of four rows from ``row`` on with the probes of a tile from ``i`` on to ``scores[i.., row..]``, bit for bit.

    The sixteen running sums do not depend on each other: a loop over all coordinates fills one vector of them for every pair, and
    the next loop the next vector, so that the sums of a whole tile stay in registers.
    """

    def generate(context, builder, signature, arguments):
        rows, row, probes, i, length, scores = arguments
        subjects, _ = row_starts(context, builder, signature.args[0], rows, row, TILE_ROWS)
        held, _ = row_starts(context, builder, signature.args[2], probes, i, TILE_PROBES)
        places, _ = row_starts(context, builder, signature.args[5], scores, i, TILE_PROBES)
        doubles, floats = (ir.VectorType(kind, _TILE_LENGTH) for kind in (ir.DoubleType(), ir.FloatType()))
        zero = ir.Constant(doubles, [0.0] * _TILE_LENGTH)
        firsts = range(0, RUNNING_SUMS, _TILE_LENGTH)
        sums = [[[cgutils.alloca_once(builder, doubles) for _ in firsts] for _ in subjects] for _ in held]

        def coordinates(start, at):
            if signature.args[0].dtype == types.float32:
                return builder.fpext(load(builder, start, at, floats), doubles)
            return load(builder, start, at, doubles)

        for number, first in enumerate(firsts):
            totals = [[parts[number] for parts in own] for own in sums]
            for total in itertools.chain(*totals):
                builder.store(zero, total)
            with cgutils.for_range_slice(builder, INT64(first), length, INT64(RUNNING_SUMS)) as (t, _):
                tile = [coordinates(start, t) for start in subjects]
                for start, own in zip(held, totals):
                    x = load(builder, start, t, doubles)
                    for g, total in zip(tile, own):
                        builder.store(builder.fadd(builder.load(total), builder.fmul(g, x)), total)
        for place, own in zip(places, sums):
            each = [[builder.load(part) for part in parts] for parts in own]
            while len(each[0]) > 1:
                half = len(each[0]) // 2
                each = [[builder.fadd(*pair) for pair in zip(parts[:half], parts[half:])] for parts in each]
            save(builder, add_across_each(builder, [vector for (vector,) in each]), place, row)
        return context.get_dummy_value()

    return types.void(rows, types.intp, probes, types.intp, types.intp, scores), generate


@njit(cache=True, nogil=True)
def score_all(rows, probes, scores):
    """Write the canonical scores (n, b) of all rows, tile by tile; the last tile overlaps the one before it."""
    n, (n_rows, dim) = probes.shape[0], rows.shape
    if n < TILE_PROBES or n_rows < TILE_ROWS:
        for j in range(n_rows):
            for i in range(n):
                scores[i, j] = canonical_score(rows, j, probes, i)
        return
    whole = dim - dim % RUNNING_SUMS
    for first_row in range(0, n_rows, CACHED_ROWS):
        for first in range(0, n, CACHED_PROBES):
            for row in range(first_row, min(first_row + CACHED_ROWS, n_rows), TILE_ROWS):
                j = min(row, n_rows - TILE_ROWS)
                for probe in range(first, min(first + CACHED_PROBES, n), TILE_PROBES):
                    i = min(probe, n - TILE_PROBES)
                    _score_tile(rows, j, probes, i, whole, scores)
                    for t in range(whole, dim):
                        for y in range(i, i + TILE_PROBES):
                            for x in range(j, j + TILE_ROWS):
                                scores[y, x] += np.float64(rows[x, t]) * probes[y, t]


@njit(cache=True, nogil=True)
def select_top(scores, subjects, top_scores, top_index, places):
    """Write the best of every probe's ``subjects`` (n, R), equal scores by the smaller number, and their places among them.

    A negative subject is nobody.
    """
    top_k = top_scores.shape[1]
    for i in range(scores.shape[0]):
        filled = 0
        for j in range(scores.shape[1]):
            score, subject = scores[i, j], subjects[i, j]
            if subject < 0:
                continue
            place = filled
            while place > 0 and (
                top_scores[i, place - 1] < score
                or (top_scores[i, place - 1] == score and top_index[i, place - 1] > subject)
            ):
                if place < top_k:
                    top_scores[i, place], top_index[i, place] = top_scores[i, place - 1], top_index[i, place - 1]
                    places[i, place] = places[i, place - 1]
                place -= 1
            if place < top_k:
                top_scores[i, place], top_index[i, place], places[i, place] = score, subject, j
                filled = min(filled + 1, top_k)
