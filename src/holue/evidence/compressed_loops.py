"""Compressed loops: the compiled inside of a scan over codes; chunks and sums as in ``loops.py``, with what certifies them.

Beside mass and moment a chunk adds what bounds the error of both (see ``bounds.py``): with ``w = e^{a(ŝ−p)}``, ``x = ŝ − p`` and
the row's own error ``e``, the seven sums ``Σw, Σxw, Σx²w, Σw², Σxw², Σx²w², Σew``.

A row's *key* ``ŝ + e`` is the most its exact score can be. The subjects with the highest keys are kept, to be scored exactly.

What is compiled here contains functions of ``loops.py``: after a change there, touch this file, or the cache keeps the old ones.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import platform
from functools import cache

import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.loops import (
    _ANY_ORDER,
    _INT64,
    _WHOLE,
    CHUNK,
    GROUP,
    _greater,
    _highest,
    _insert,
    _power_of_two,
    _starts,
    multiply,
    sweep,
)
from holue.sphere.compiled import njit

SUMS = 7
"""Sums per probe and sharpness."""
UNPACKED = 64
"""Rows unpacked at once, so that they are still in the cache when they are multiplied."""
RUNNING = 4
"""Running sums of a product, each of eight lanes: the order of a product is known, and with it its rounding."""

_AHEAD = 1024  # bytes between what is read and what the memory is asked for; measured
_LOWEST = np.float32(-56.0)  # of a weight's power of two: its square is still a normal float32
_INT32 = ir.IntType(32)
_BYTES, _SHORTS = ir.VectorType(ir.IntType(8), 16), ir.VectorType(ir.IntType(16), 16)
_HALVES, _FLOATS = ir.VectorType(ir.HalfType(), 8), ir.VectorType(ir.FloatType(), 8)
_INTS, _MANY_INTS = ir.VectorType(_INT32, 8), ir.VectorType(_INT32, 16)
_CONTRACT = ("contract",)


@cache
def reads_halves() -> bool:
    """Whether this processor converts float16 itself; without it the compiler would call a library that may not be there."""
    features, name = config.CPU_FEATURES, config.CPU_NAME  # type: ignore[attr-defined]
    if features is not None:
        return "+f16c" in features
    if name not in (None, "host"):
        return False
    return bool(binding.get_host_cpu_features().get("f16c")) or platform.machine() in ("aarch64", "arm64")


def _shuffle(builder, vector, order):
    return builder.shuffle_vector(vector, vector, ir.Constant(ir.VectorType(_INT32, len(order)), order))


def _load(builder, start, at, kind):
    return builder.load(builder.bitcast(builder.gep(start, [at]), kind.as_pointer()), align=1)


def _half_step(builder, start, probe, at, total):
    """Eight halves: one conversion, one multiplication that adds."""
    g = builder.fpext(builder.bitcast(_load(builder, start, at, ir.VectorType(ir.IntType(16), 8)), _HALVES), _FLOATS)
    product = builder.fmul(_load(builder, probe, at, _FLOATS), g, flags=_CONTRACT)
    return builder.fadd(total, product, flags=_CONTRACT)


def _byte_step(builder, start, probe, at, total):
    """Sixteen bytes: products with 16-bit probes, added in pairs, which processors have one instruction for."""
    g = builder.sext(_load(builder, start, at, _BYTES), _MANY_INTS)
    x = builder.sext(_load(builder, probe, at, _SHORTS), _MANY_INTS)
    product = builder.mul(g, x)
    pairs = builder.add(*(_shuffle(builder, product, list(range(odd, 16, 2))) for odd in (0, 1)))
    return builder.add(total, pairs)


@intrinsic
def _product(typing_context, codes, row, probes, i, length):
    """The product of one compressed row with one probe, over ``length`` codes, a multiple of 16.

    float16 × float32 is summed in float32, int8 × int16 exactly in int32. Row after row is read, as memory likes best, and asked
    for ahead.
    """
    half = codes.dtype == types.uint16
    step, width = (_half_step, 8) if half else (_byte_step, 16)

    def generate(context, builder, signature, arguments):
        codes, row, probes, i, length = arguments
        (start,), _ = _starts(context, builder, signature.args[0], codes, row, 1)
        (probe,), _ = _starts(context, builder, signature.args[2], probes, i, 1)
        address = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [address, _INT32, _INT32, _INT32])
        prefetch = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        zero = ir.Constant(_FLOATS, [0.0] * 8) if half else ir.Constant(_INTS, [0] * 8)
        sums = [cgutils.alloca_once_value(builder, zero) for _ in range(RUNNING)]
        at_once = _INT64(RUNNING * width)
        whole = builder.sub(length, builder.srem(length, at_once))
        with cgutils.for_range_slice(builder, _INT64(0), whole, at_once) as (t, _):
            line = builder.gep(builder.bitcast(builder.gep(start, [t]), address), [_INT64(_AHEAD)])
            builder.call(prefetch, [line, _INT32(0), _INT32(3), _INT32(1)])  # to read, into every cache, as data
            for number, own in enumerate(sums):
                at = builder.add(t, _INT64(number * width))
                builder.store(step(builder, start, probe, at, builder.load(own)), own)
        with cgutils.for_range_slice(builder, whole, length, _INT64(width)) as (t, _):
            builder.store(step(builder, start, probe, t, builder.load(sums[0])), sums[0])
        add = builder.fadd if half else builder.add
        a, b, c, d = (builder.load(own) for own in sums)
        total = add(add(a, b), add(c, d))
        for distance in (4, 2, 1):
            total = add(total, _shuffle(builder, total, [(lane + distance) % 8 for lane in range(8)]))
        return builder.extract_element(total, _INT32(0))

    result = types.float32 if half else types.int32
    return result(codes, _WHOLE, probes, _WHOLE, _WHOLE), generate


@intrinsic
def _unpack(typing_context, codes, row, scale, length, room, at):
    """Write one compressed row as float32 to row ``at`` of ``room``."""
    half = codes.dtype == types.uint16

    def generate(context, builder, signature, arguments):
        codes, row, scale, length, room, at = arguments
        (start,), _ = _starts(context, builder, signature.args[0], codes, row, 1)
        (place,), _ = _starts(context, builder, signature.args[4], room, at, 1)
        worth = _shuffle(builder, builder.insert_element(ir.Constant(_FLOATS, [0.0] * 8), scale, _INT32(0)), [0] * 8)
        with cgutils.for_range_slice(builder, _INT64(0), length, _INT64(8)) as (t, _):
            if half:
                bits = _load(builder, start, t, ir.VectorType(ir.IntType(16), 8))
                g = builder.fpext(builder.bitcast(bits, _HALVES), _FLOATS)
            else:
                g = builder.sitofp(_load(builder, start, t, ir.VectorType(ir.IntType(8), 8)), _FLOATS)
            target = builder.bitcast(builder.gep(place, [t]), _FLOATS.as_pointer())
            builder.store(builder.fmul(g, worth), target, align=4)
        return context.get_dummy_value()

    return types.void(codes, _WHOLE, types.float32, _WHOLE, room, _WHOLE), generate


@njit(cache=True, nogil=True)
def unpack(codes, scales, begin, width, room):
    """Write the rows ``begin .. begin + width`` as float32 to the first rows of ``room``."""
    for j in range(width):
        _unpack(codes, begin + j, scales[begin + j], codes.shape[1], room, j)


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def _weigh_with_errors(row, errors, peak, slope):
    """The seven sums of one chunk."""
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


@njit(cache=True, nogil=True)
def absorb_scores(scores, width, errors, begin, first_subject, keys, subjects, sharpness, slope, peak, sums):
    """Add the first ``width`` columns of ``scores``, the rows ``begin ..`` of a part, to the highest keys and the seven sums.

    The scores are rounded on the way to what ``key − e`` gives in float32, so that a kept key tells exactly what was summed.
    """
    kept = keys.shape[1]
    room = np.empty(CHUNK, dtype=np.float32)
    for i in range(scores.shape[0]):
        for start in range(0, width, CHUNK):
            size = min(CHUNK, width - start)
            row, key = scores[i, start : start + size], room[:size]
            error = errors[begin + start : begin + start + size]
            for j in range(size):
                key[j] = row[j] + error[j]
                row[j] = key[j] - error[j]
            if _highest(key) >= keys[i, kept - 1]:
                for at in range(0, size, GROUP):
                    group = key[at : min(at + GROUP, size)]
                    if _highest(group) >= keys[i, kept - 1]:
                        _insert(group, first_subject + start + at, keys[i], subjects[i])
            best = _highest(row)
            if best > peak[i]:
                if peak[i] > -np.inf:
                    lift(sums[i], sharpness, best - peak[i])
                peak[i] = best
            highest = np.float32(peak[i])
            for t in range(sharpness.shape[0]):
                if slope[t] * (best - highest) > _LOWEST:
                    chunk = _weigh_with_errors(row, error, highest, slope[t])
                    for number in range(SUMS):
                        sums[i, t, number] += chunk[number]


@njit(cache=True, nogil=True)
def sweep_codes(
    codes,
    scales,
    errors,
    first,
    last,
    probes,
    steps,
    first_subject,
    scores,
    keys,
    subjects,
    sharpness,
    slope,
    peak,
    sums,
):
    """Multiply the codes of the rows ``first .. last`` themselves, chunk by chunk; ``steps`` is what a probe's code is worth."""
    for begin in range(first, last, CHUNK):
        width = min(CHUNK, last - begin)
        for j in range(width):
            for i in range(probes.shape[0]):
                product = _product(codes, begin + j, probes, i, codes.shape[1])
                scores[i, j] = np.float32(product) * (scales[begin + j] * steps[i])
        absorb_scores(scores, width, errors, begin, first_subject + begin, keys, subjects, sharpness, slope, peak, sums)


@njit(cache=True, nogil=True)
def sweep_unpacked(
    codes,
    scales,
    errors,
    first,
    last,
    probes,
    rows,
    first_subject,
    scores,
    keys,
    subjects,
    sharpness,
    slope,
    peak,
    sums,
):
    """Unpack some of the rows ``first .. last`` at a time to float32 ``rows`` (UNPACKED, width), and multiply them there."""
    for begin in range(first, last, CHUNK):
        width = min(CHUNK, last - begin)
        for at in range(0, width, UNPACKED):
            size = min(UNPACKED, width - at)
            unpack(codes, scales, begin + at, size, rows)
            multiply(probes, rows, 0, size, scores, at)
        absorb_scores(scores, width, errors, begin, first_subject + begin, keys, subjects, sharpness, slope, peak, sums)


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


@njit(cache=True, nogil=True)
def code_probes(probes, largest_code, longest_sum, codes, steps):
    """Probes as int16 with a step each: as fine as the largest code allows, and as the sum of all magnitudes of codes does."""
    for i in range(probes.shape[0]):
        highest, total = 0.0, 0.0
        for t in range(probes.shape[1]):
            highest = max(highest, abs(probes[i, t]))
            total += abs(probes[i, t])
        # Rounded up, so that rounding to float32 cannot make it too fine.
        steps[i] = np.float32(max(highest / largest_code, total / longest_sum) * (1 + 1e-6))
        if steps[i] == 0:
            steps[i] = 1
        for t in range(probes.shape[1]):
            codes[i, t] = np.int16(np.rint(probes[i, t] / np.float64(steps[i])))


@njit(cache=True, nogil=True)
def measure_probes(probes, held, steps, lengths, off):
    """``‖z‖`` of every probe, and ``‖z − ẑ‖`` of what is held of it, in float64."""
    for i in range(probes.shape[0]):
        own, missed = 0.0, 0.0
        for t in range(probes.shape[1]):
            difference = probes[i, t] - np.float64(steps[i]) * np.float64(held[i, t])
            own += probes[i, t] * probes[i, t]
            missed += difference * difference
        lengths[i], off[i] = np.sqrt(own), np.sqrt(missed)


@njit(cache=True, nogil=True, fastmath=_ANY_ORDER)
def exact_products(rows, probes, places, products):
    """Products of every probe's own exact ``rows`` (n, R, d) in float64, each written to its place."""
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            total = 0.0
            for t in range(rows.shape[2]):
                total += np.float64(rows[i, j, t]) * probes[i, t]
            products[i, places[i, j]] = total


@njit(cache=True, nogil=True)
def exact_top(rows, probes, subjects, top_scores, top_index):
    """The top among every probe's own float32 ``rows`` (n, R, d) of ``subjects``, as a scan of each probe alone finds it."""
    scores = np.empty((1, CHUNK), dtype=np.float32)
    none, no_slope, no_sums = np.empty(0), np.empty(0, dtype=np.float32), np.empty((1, 0))
    for i in range(rows.shape[0]):
        peak = np.full(1, -np.inf)
        one = slice(i, i + 1)
        sweep(probes[one], rows[i], 0, scores, top_scores[one], top_index[one], none, no_slope, peak, no_sums, no_sums)
        for place in range(top_index.shape[1]):
            if top_index[i, place] >= 0:
                top_index[i, place] = subjects[i, top_index[i, place]]


@njit(cache=True, nogil=True)
def in_gallery_order(listed, subjects, places):
    """Write every probe's listed subjects in ascending order, and the places they had."""
    for i in range(listed.shape[0]):
        places[i] = np.argsort(listed[i])
        for j in range(listed.shape[1]):
            subjects[i, j] = listed[i, places[i, j]]
