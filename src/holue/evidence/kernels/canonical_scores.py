"""Canonical scores: the cosine of a probe and a row, the same bits however the pair was found.

Kernels sum products in different orders, so the score of one pair differs in its last bits between batch sizes, threads and
processors, and equal rows may score unequally. A canonical score is summed in float64 in one fixed order: sixteen running sums,
coordinate ``t`` in sum ``t mod 16``, added by halves; then the last ``d mod 16`` coordinates one by one. No multiplication is
fused with an addition, so every processor rounds alike.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import math

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.kernels.simd import FLOATS, INT64, VECTOR_LENGTH, add_across, load, row_starts
from holue.sphere.compiled import njit

RUNNING_SUMS = 16
_DOUBLES = ir.VectorType(ir.DoubleType(), VECTOR_LENGTH)


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


@njit(cache=True, nogil=True)
def score_all(rows, probes, scores):
    """Write the canonical scores (n, b) of all rows."""
    for j in range(rows.shape[0]):
        for i in range(probes.shape[0]):
            scores[i, j] = canonical_score(rows, j, probes, i)


@njit(cache=True, nogil=True)
def select_top(scores, subjects, top_scores, top_index):
    """Write the best of every probe's ``subjects`` (n, R), equal scores by the smaller number; a negative one is nobody."""
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
                place -= 1
            if place < top_k:
                top_scores[i, place], top_index[i, place] = score, subject
                filled = min(filled + 1, top_k)


@njit(cache=True, nogil=True)
def replace_terms(sharpness, found, exact, n_subjects, log_mass, mean_score):
    """Replace the terms of ``found`` (n, R) in the sums ``log_mass`` and ``mean_score`` (n, m) by those of ``exact``.

    ``found`` are the best of ``n_subjects``, best first. Afterwards no exact score weighs more than the whole:
    ``a s ≤ log_mass``. Scores of −inf are nobody's.
    """
    n_rest = n_subjects - found.shape[1]
    for i in range(found.shape[0]):
        for t in range(sharpness.shape[0]):
            a, before, mean = sharpness[t], log_mass[i, t], mean_score[i, t]
            if before == -np.inf:
                continue
            # Weights are relative to the mass, scores to the mean. The rest is what the found ones leave of both.
            rest, rest_moment, log_most = 1.0, 0.0, -np.inf
            for j in range(found.shape[1]):
                if exact[i, j] > -np.inf:
                    log_most = max(log_most, a * exact[i, j] - before)
                    weight = math.exp(a * found[i, j] - before)
                    if weight > 0.0:
                        rest -= weight
                        rest_moment -= weight * (found[i, j] - mean)
            rest_mean = 0.0
            if n_rest <= 0 or rest <= 0.0:
                rest = 0.0
            else:
                # None of the rest is above the last found, which says more than a difference of nearly equal sums.
                last = found[i, found.shape[1] - 1]
                rest_mean = min(rest_moment / rest, last - mean)
                rest = min(rest, math.exp(min(a * last - before + math.log(n_rest), 0.0)))
            if rest > 0.0:
                log_most = max(log_most, 0.0)
            if log_most == -np.inf:
                continue
            mass = rest * math.exp(-log_most) if rest > 0.0 else 0.0
            moment = mass * rest_mean
            for j in range(found.shape[1]):
                weight = math.exp(a * exact[i, j] - before - log_most)
                if weight > 0.0:
                    mass += weight
                    moment += weight * (exact[i, j] - mean)
            log_mass[i, t] = before + log_most + math.log(mass)
            mean_score[i, t] = mean + moment / mass
