"""Bounded loops: the compiled inside of bounded sums; chunks and sums as in ``loops.py``, with what certifies them.

Beside mass and moment a chunk adds what bounds the error of both (see ``bounds.py``): with ``w = e^{a(ŝ−p)}``, ``x = ŝ − p`` and
the row's own error ``e``, the seven sums ``Σw, Σxw, Σx²w, Σw², Σxw², Σx²w², Σew``.

A row's *key* ``ŝ + e`` is the most its exact score can be. The subjects with the highest keys are kept, to be scored exactly.

What is compiled here contains functions of ``loops.py`` and ``lanes.py``: after a change there, touch this file and
``compressed_loops.py`` and ``code_tiles.py``, or the cache keeps the old ones.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.kernels.exponential_sums import (
    _ANY_ORDER,
    _WHOLE,
    CHUNK,
    _greater,
    _highest,
    _insert,
    _power_of_two,
)
from holue.evidence.kernels.simd import (
    FLOATS,
    INT32,
    INT64,
    LANES,
    add_across,
    any_above,
    constant,
    greater,
    load,
    multiply_add,
    powers_of_two,
    spread,
)
from holue.sphere.compiled import njit

SUMS = 7
"""Sums per probe and sharpness."""

_LOWEST = np.float32(-44.0)  # of a weight's power of two: all that is less may be left out, and is bounded
_LEAST = np.finfo(np.float32).min
_STEP = 4 * LANES  # scores weighed side by side


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def _weigh_with_errors(row, errors, peak, slope):
    """The seven sums of a few scores."""
    s0 = s1 = s2 = q0 = q1 = q2 = e1 = np.float32(0.0)
    for j in range(row.shape[0]):
        x = row[j] - peak
        w = _power_of_two(_greater(slope * x, _LOWEST))
        xw = x * w
        s0 += w
        s1 += xw
        s2 += x * xw
        q0 += w * w
        q1 += w * xw
        q2 += xw * xw
        e1 += errors[j] * w
    return s0, s1, s2, q0, q1, q2, e1


def _add_weighed(builder, sums, x, w, e):
    """Add one vector to each of the seven sums."""
    xw = builder.fmul(x, w)
    for total, term in zip(sums, (w, xw)):
        builder.store(builder.fadd(builder.load(total), term), total)
    for total, (left, right) in zip(sums[2:], ((x, xw), (w, w), (w, xw), (xw, xw), (e, w))):
        builder.store(multiply_add(builder, left, right, builder.load(total)), total)


@intrinsic
def _weigh_lanes(typing_context, row, errors, end, peak, slope, lowest):
    """The seven sums over the first ``end`` scores, a multiple of 32; ``slope·lowest`` is the least exponent.

    Of 32 scores that all lie below it none is weighed: at a high sharpness that is most of them.
    """

    def generate(context, builder, signature, arguments):
        row, errors, end, *numbers = arguments
        scores, own_errors = (
            context.make_array(kind)(context, builder, array).data for kind, array in zip(signature.args, (row, errors))
        )
        peak, slope, lowest = (spread(builder, number) for number in numbers)
        sums = [cgutils.alloca_once_value(builder, constant(0.0)) for _ in range(SUMS)]
        with cgutils.for_range_slice(builder, INT64(0), end, INT64(_STEP)) as (j, _):
            places = [builder.add(j, INT64(first)) for first in range(0, _STEP, LANES)]
            below = [builder.fsub(load(builder, scores, at, FLOATS), peak) for at in places]
            with builder.if_then(any_above(builder, below, lowest)):
                # Two vectors at a time: with four side by side the seven sums would not stay in registers.
                for pair in (slice(0, 2), slice(2, 4)):
                    held = [greater(builder, x, lowest) for x in below[pair]]
                    for at, x, w in zip(places[pair], held, powers_of_two(builder, slope, held)):
                        _add_weighed(builder, sums, x, w, load(builder, own_errors, at, FLOATS))
        results = [add_across(builder, builder.load(total)) for total in sums]
        return context.make_tuple(builder, signature.return_type, results)

    single = types.float32
    return types.UniTuple(single, SUMS)(row, errors, _WHOLE, single, single, single), generate


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh_chunk(row, errors, peak, slope, sums):
    """Add a chunk to one probe's seven sums at one sharpness."""
    whole = row.shape[0] - row.shape[0] % _STEP
    lowest = _LOWEST / slope if slope > 0 else _LEAST
    chunk = _weigh_lanes(row, errors, whole, peak, slope, lowest)
    for number in range(SUMS):
        sums[number] += chunk[number]
    if whole < row.shape[0]:
        rest = _weigh_with_errors(row[whole:], errors[whole:], peak, slope)
        for number in range(SUMS):
            sums[number] += rest[number]


@njit(cache=True, nogil=True)
def lift(sums, sharpness, rise):
    """Make one probe's sums relative to a maximum that is ``rise`` higher."""
    for t in range(sharpness.shape[0]):
        shrink = np.exp(-sharpness[t] * rise)
        s0, s1, s2, q0, q1, q2, e1 = sums[t]
        sums[t, 0] = shrink * s0
        sums[t, 1] = shrink * (s1 - rise * s0)
        sums[t, 2] = shrink * (s2 - 2 * rise * s1 + rise * rise * s0)
        sums[t, 3] = shrink * shrink * q0
        sums[t, 4] = shrink * shrink * (q1 - rise * q0)
        sums[t, 5] = shrink * shrink * (q2 - 2 * rise * q1 + rise * rise * q0)
        sums[t, 6] = shrink * e1


@intrinsic
def _higher(typing_context, keys, at, bar):
    """Which of the 32 keys from ``at`` on are above the bar, as bits."""

    def generate(context, builder, signature, arguments):
        keys, at, bar = arguments
        start = context.make_array(signature.args[0])(context, builder, keys).data
        bar, found = spread(builder, bar), INT32(0)
        for first in range(0, _STEP, LANES):
            some = builder.fcmp_ordered(">", load(builder, start, builder.add(at, INT64(first)), FLOATS), bar)
            bits = builder.zext(builder.bitcast(some, ir.IntType(LANES)), INT32)
            found = builder.or_(found, builder.shl(bits, INT32(first)))
        return found

    return types.uint32(keys, _WHOLE, types.float32), generate


@intrinsic
def _first_bit(typing_context, bits):
    """The place of the lowest bit that is set."""

    def generate(context, builder, signature, arguments):
        return builder.zext(builder.cttz(arguments[0], ir.IntType(1)(1)), INT64)

    return _WHOLE(types.uint32), generate


@njit(cache=True, nogil=True)
def _list(room, size, first_subject, i, keys, subjects):
    """Put the first keys of a chunk among the highest of probe ``i``; the rest of ``room`` is −inf.

    Subjects come in the gallery's order, so one with an equal key stays behind those before it.
    """
    last = keys.shape[1] - 1
    for at in range(0, size, _STEP):
        found = _higher(room, at, np.float32(keys[i, last]))
        while found:
            j = at + _first_bit(found)
            found &= found - np.uint32(1)
            key, place = room[j], last
            if key > keys[i, last]:
                while place > 0 and keys[i, place - 1] < key:
                    keys[i, place] = keys[i, place - 1]
                    subjects[i, place] = subjects[i, place - 1]
                    place -= 1
                keys[i, place] = key
                subjects[i, place] = first_subject + j


@njit(cache=True, nogil=True)
def _round_to_keys(row, errors, keys):
    """Write ``key = ŝ + e``, round the scores to what ``key − e`` gives in float32, and return the highest key.

    A kept key then tells exactly what was summed.
    """
    most = _LEAST
    for j in range(row.shape[0]):
        key = row[j] + errors[j]
        keys[j] = key
        row[j] = key - errors[j]
        most = _greater(most, key)
    return most


@njit(cache=True, nogil=True)
def absorb_scores(scores, width, errors, begin, first_subject, room, keys, subjects, sharpness, slope, peak, sums):
    """Add the first ``width`` columns of ``scores``, the rows ``begin ..`` of a part, to the highest keys and the seven sums.

    ``room`` (CHUNK,) is for the keys of a chunk: made anew for each, it would cost a tenth of a scan of one probe.
    """
    last = keys.shape[1] - 1
    for i in range(scores.shape[0]):
        for start in range(0, width, CHUNK):
            size = min(CHUNK, width - start)
            row = scores[i, start : start + size]
            error = errors[begin + start : begin + start + size]
            room[size:] = -np.inf
            most = _round_to_keys(row, error, room)
            if most > keys[i, last]:
                _list(room, size, first_subject + start, i, keys, subjects)
            if most > peak[i]:
                best = _highest(row)
                if best > peak[i]:
                    if peak[i] > -np.inf:
                        lift(sums[i], sharpness, best - peak[i])
                    peak[i] = best
            highest = np.float32(peak[i])
            for t in range(sharpness.shape[0]):
                if slope[t] * (most - highest) > _LOWEST:
                    _weigh_chunk(row, error, highest, slope[t], sums[i, t])


@njit(cache=True, nogil=True)
def absorb_probes(scores, at, width, errors, begin, first_subject, room, keys, subjects, sharpness, slope, peak, sums):
    """``absorb_scores`` for some of the probes, from ``at`` on: as many as there are, and as ``scores`` has rows for."""
    last = min(at + scores.shape[0], keys.shape[0])
    own = slice(at, last)
    absorb_scores(
        scores[: last - at],
        width,
        errors,
        begin,
        first_subject,
        room,
        keys[own],
        subjects[own],
        sharpness,
        slope,
        peak[own],
        sums[own],
    )


@njit(cache=True, nogil=True)
def combine(keys, subjects, sharpness, peak, sums, other_keys, other_subjects, other_peak, other_sums):
    """Add the keys and sums of another part of the gallery; both are changed."""
    for i in range(keys.shape[0]):
        for j in range(other_keys.shape[1]):
            _insert(other_keys[i, j : j + 1], other_subjects[i, j], keys[i], subjects[i])
        if other_peak[i] > peak[i]:
            if peak[i] > -np.inf:
                lift(sums[i], sharpness, other_peak[i] - peak[i])
            peak[i] = other_peak[i]
        elif other_peak[i] > -np.inf:
            lift(other_sums[i], sharpness, peak[i] - other_peak[i])
        sums[i] += other_sums[i]
