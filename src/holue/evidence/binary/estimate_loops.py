"""Estimate loops: sums of lookups become estimates, the highest are listed, and all others are weighed.

An estimate ``ê`` of a score ``s`` has the error law of ``rotation.py``: nearly normal, with the row's standard deviation ``σ``. A
row's *key* ``ê + zσ + β`` is a score that it exceeds with a known small probability. Rows with a key above the *cut* are listed,
to be scored exactly. What a row adds to the mass at sharpness ``a`` has, where it is not listed, the estimate

    g = e^{aê − a²σ²(1−t²)/2},        t = ê − aσ² − ⟨c, z⟩

without the bias of the exponential: ``E e^{aê} = e^{as + a²σ²(1−s²)/2}``, and where ``ê`` is drawn to weigh much it lies ``aσ²``
above ``s``. Per probe and sharpness there are five sums, with ``x = ê − aσ²``: ``Σg, Σxg, Σg², Σxg², Σx²g²``.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.binary.lookup_loops import look_up_block
from holue.evidence.binary.part import BLOCK_ROWS
from holue.evidence.kernels.exponential_sums import _INDEX
from holue.evidence.kernels.holes import find_holes, move_columns
from holue.evidence.kernels.set_bits import first_bit, higher
from holue.evidence.kernels.simd import (
    INT32,
    INT64,
    LONG_VECTOR_LENGTH,
    add_across,
    broadcast,
    constant,
    load,
    maximum,
    multiply_add,
    powers_of_two,
    save,
)
from holue.sphere.compiled import njit

N_SUMS = 5
MASS, MOMENT, SQUARE_MASS, SQUARE_MOMENT, SQUARE_SECOND_MOMENT = range(N_SUMS)
"""Places of the sums Σg, Σxg, Σg², Σxg² and Σx²g² of a probe at one sharpness."""
LARGEST_SQUARE = 0.8
"""Of ``t``: beyond it the error's law is far from that of a probe across the row, and the weight would not fall."""
ROWS_AT_ONCE = 2048
"""Rows that are listed or weighed at once: fewer cost more calls, more leave the second-level cache."""
GROUP = 32
"""Keys compared with the cut at once."""
RAISED_EVERY = 8
"""Chunks after which the cut follows the highest key."""
SIDE_BY_SIDE = 2
_STEP = SIDE_BY_SIDE * LONG_VECTOR_LENGTH  # rows weighed at once
_LOWEST = -120.0  # of a weight's power of two
_LEAST = np.finfo(np.float32).min
_LN_2 = math.log(2.0)


class Codes(NamedTuple):
    """The rows ``first .. last`` of a binary part; ``first`` is the beginning of a block."""

    codes: npt.NDArray[np.uint8]
    weights: npt.NDArray[np.uint16]
    deviations: npt.NDArray[np.uint16]
    scale: npt.NDArray[np.float64]
    gone: npt.NDArray[np.bool_]  # who has left; empty where nobody has
    start: int  # the place of the part's first row among all
    first: int
    last: int


class Probes(NamedTuple):
    """Probes as the loops read them, for one part."""

    tables: npt.NDArray[np.uint8]  # (n, D / 4, 16)
    step: npt.NDArray[np.float64]  # (n,)
    least: npt.NDArray[np.float64]  # (n,)
    base: npt.NDArray[np.float64]  # (n,) ⟨c, z⟩
    beta: npt.NDArray[np.float64]  # (n,) what an estimate may be off beside the law of its error
    z: float  # deviations between estimate and key


class Listing(NamedTuple):
    """What some probes have listed and weighed so far; everything is changed in place."""

    keys: npt.NDArray[np.float32]  # (n, capacity)
    estimates: npt.NDArray[np.float32]
    variances: npt.NDArray[np.float32]
    bases: npt.NDArray[np.float32]
    rows: npt.NDArray[np.int64]  # places among the rows of all parts
    filled: npt.NDArray[np.int64]  # (n,)
    cut: npt.NDArray[np.float32]  # (n,) rows with a key above it are listed
    best: npt.NDArray[np.float32]  # (n,) the highest key
    lower: npt.NDArray[np.float64]  # (n,) the best score is surely no more than this below the highest key
    rise: npt.NDArray[np.float64]  # (n,) rows with keys up to this above the best score are wanted for the sums
    decisive: float  # and rows with keys above this, or above the best score; infinite where no cut may rise for that
    kept: int  # rows that stay listed in any case
    sharpness: npt.NDArray[np.float64]  # (m,) those at which rows that are not listed are weighed
    unit: npt.NDArray[np.float64]  # (n,) weights are multiples of e^{a unit}
    sums: npt.NDArray[np.float64]  # (n, m, 5)


class Scratch(NamedTuple):
    """Buffers for one chunk of rows."""

    sums: npt.NDArray[np.uint16]  # (n, ROWS_AT_ONCE)
    holes: npt.NDArray[np.int64]  # (3, ROWS_AT_ONCE)
    rows: npt.NDArray[np.int64]  # (ROWS_AT_ONCE,)
    columns: npt.NDArray[
        np.float32
    ]  # (7, ROWS_AT_ONCE + GROUP): weights, deviations, variances, estimates, keys, weighed, bases


def scratch_for(n_probes: int) -> Scratch:
    """Buffers for so many probes."""
    return Scratch(
        np.empty((n_probes, ROWS_AT_ONCE), dtype=np.uint16),
        np.empty((3, ROWS_AT_ONCE), dtype=np.int64),
        np.empty(ROWS_AT_ONCE, dtype=np.int64),
        np.empty((7, ROWS_AT_ONCE + GROUP), dtype=np.float32),
    )


@intrinsic
def _weigh_vectors(typing_context, estimates, variances, bases, weighed, end, a, unit):
    """The five sums over the first ``end`` rows, a multiple of what is weighed side by side."""

    def generate(context, builder, signature, arguments):
        length = LONG_VECTOR_LENGTH
        kind = ir.VectorType(ir.FloatType(), length)
        starts = [
            context.make_array(own)(context, builder, array).data for own, array in zip(signature.args, arguments[:4])
        ]
        a, unit = (broadcast(builder, number, length) for number in arguments[5:])
        slope = builder.fmul(a, constant(1 / _LN_2, length))
        curve = builder.fmul(builder.fmul(a, a), constant(0.5 / _LN_2, length))
        lowest, most = constant(_LOWEST, length), constant(LARGEST_SQUARE, length)
        sums = [cgutils.alloca_once_value(builder, constant(0.0, length)) for _ in range(N_SUMS)]
        one = constant(1.0, length)
        with cgutils.for_range_slice(builder, INT64(0), arguments[4], INT64(SIDE_BY_SIDE * length)) as (j, _):
            exponents, centres, there = [], [], []
            for number in range(SIDE_BY_SIDE):
                at = builder.add(j, INT64(number * length))
                estimate, variance, base, own = (load(builder, start, at, kind) for start in starts)
                x = multiply_add(builder, builder.fneg(a), variance, estimate)
                t = builder.fsub(x, base)
                square = builder.fneg(maximum(builder, builder.fneg(builder.fmul(t, t)), builder.fneg(most)))
                straight = builder.fmul(slope, builder.fsub(estimate, unit))
                bend = builder.fmul(curve, variance)
                exponent = multiply_add(builder, bend, builder.fsub(square, one), straight)
                exponents.append(maximum(builder, exponent, lowest))
                centres.append(x)
                there.append(own)
            for x, power, own in zip(centres, powers_of_two(builder, one, exponents), there):
                g = builder.fmul(power, own)
                xg = builder.fmul(x, g)
                for total, term in zip(sums, (g, xg)):
                    builder.store(builder.fadd(builder.load(total), term), total)
                for total, (left, right) in zip(sums[2:], ((g, g), (g, xg), (xg, xg))):
                    builder.store(multiply_add(builder, left, right, builder.load(total)), total)
        results = [add_across(builder, builder.load(total)) for total in sums]
        return context.make_tuple(builder, signature.return_type, results)

    single = types.float32
    return types.UniTuple(single, N_SUMS)(estimates, variances, bases, weighed, _INDEX, single, single), generate


@njit(cache=True, nogil=True)
def raise_unit(listing, i, unit):
    """Make one probe's sums relative to a higher estimate."""
    if listing.unit[i] > -np.inf:
        for m in range(listing.sharpness.shape[0]):
            shrink = math.exp(-listing.sharpness[m] * (unit - listing.unit[i]))
            own = listing.sums[i, m]
            own[MASS] *= shrink
            own[MOMENT] *= shrink
            for number in (SQUARE_MASS, SQUARE_MOMENT, SQUARE_SECOND_MOMENT):
                own[number] *= shrink * shrink
    listing.unit[i] = unit


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh(estimates, variances, bases, weighed, width, i, listing):
    """Add those of the first ``width`` rows that are to be weighed to the sums of probe ``i``; the buffers are a step longer."""
    # At least the key, hence the estimate, of every row that is not listed.
    highest = np.float64(min(listing.best[i], listing.cut[i]))
    if highest == -np.inf:
        return  # all were listed
    if highest > listing.unit[i]:
        raise_unit(listing, i, highest)
    whole = -(-width // _STEP) * _STEP
    for j in range(width, whole):  # nobody's
        weighed[j], estimates[j], variances[j], bases[j] = 0.0, -2.0, 0.0, 0.0
    for m in range(listing.sharpness.shape[0]):
        a, unit = np.float32(listing.sharpness[m]), np.float32(listing.unit[i])
        found = _weigh_vectors(estimates, variances, bases, weighed, whole, a, unit)
        for number in range(N_SUMS):
            listing.sums[i, m, number] += found[number]


@njit(cache=True, nogil=True)
def raise_cut(listing, i, cut):
    """List only rows with a key above ``cut``; the others are weighed."""
    filled, kept = listing.filled[i], 0
    listing.cut[i] = max(cut, listing.cut[i])
    keys, estimates, variances = listing.keys[i], listing.estimates[i], listing.variances[i]
    bases, rows = listing.bases[i], listing.rows[i]
    dropped, columns = 0, np.empty((4, ROWS_AT_ONCE + GROUP), dtype=np.float32)
    for j in range(filled):
        if keys[j] > cut:
            keys[kept], estimates[kept], variances[kept] = keys[j], estimates[j], variances[j]
            bases[kept], rows[kept] = bases[j], rows[j]
            kept += 1
        else:
            columns[0, dropped], columns[1, dropped], columns[2, dropped] = estimates[j], variances[j], bases[j]
            columns[3, dropped] = 1.0
            dropped += 1
            if dropped == ROWS_AT_ONCE:
                _weigh(columns[0], columns[1], columns[2], columns[3], dropped, i, listing)
                dropped = 0
    if dropped:
        _weigh(columns[0], columns[1], columns[2], columns[3], dropped, i, listing)
    listing.filled[i] = kept


@intrinsic
def _estimate_vectors(typing_context, sums, weights, deviations, estimates, keys, end, numbers):
    """Estimates and keys of the first ``end`` rows, a multiple of the vector's length; returns the highest key.

    ``numbers`` are step, least, base, z and β of the probe. Written out: inlined, the plain loop is not vectorised.
    """

    def generate(context, builder, signature, arguments):
        length = LONG_VECTOR_LENGTH
        floats, shorts = ir.VectorType(ir.FloatType(), length), ir.VectorType(ir.IntType(16), length)
        starts = [
            context.make_array(kind)(context, builder, array).data for kind, array in zip(signature.args, arguments[:5])
        ]
        found, weight, deviation, estimates, keys = starts
        step, least, base, z, beta = (
            broadcast(builder, number, length) for number in cgutils.unpack_tuple(builder, arguments[6])
        )
        most = cgutils.alloca_once_value(builder, constant(_LEAST, length))
        with cgutils.for_range_slice(builder, INT64(0), arguments[5], INT64(length)) as (j, _):
            total = builder.uitofp(load(builder, found, j, shorts), floats)
            estimate = multiply_add(
                builder, load(builder, weight, j, floats), multiply_add(builder, step, total, least), base
            )
            key = builder.fadd(multiply_add(builder, z, load(builder, deviation, j, floats), estimate), beta)
            save(builder, estimate, estimates, j)
            save(builder, key, keys, j)
            builder.store(maximum(builder, key, builder.load(most)), most)
        vector = builder.load(most)
        best = builder.extract_element(vector, INT32(0))
        for place in range(1, length):
            other = builder.extract_element(vector, INT32(place))
            best = builder.select(builder.fcmp_ordered(">", other, best), other, best)
        return best

    single = types.float32
    own = types.UniTuple(single, 5)
    return single(sums, weights, deviations, estimates, keys, _INDEX, own), generate


@njit(cache=True, nogil=True)
def _estimate(sums, width, weights, deviations, numbers, estimates, keys):
    """Estimates and keys of the first ``width`` rows; returns the highest key."""
    whole = width - width % LONG_VECTOR_LENGTH
    most = _estimate_vectors(sums, weights, deviations, estimates, keys, whole, numbers)
    step, least, base, z, beta = numbers
    for j in range(whole, width):
        estimates[j] = base + weights[j] * (step * np.float32(sums[j]) + least)
        keys[j] = estimates[j] + z * deviations[j] + beta
        most = max(most, keys[j])
    return most


@njit(cache=True, nogil=True)
def _list_rows(i, width, base, scratch, listing):
    """List the rows of a chunk whose keys are above the cut; they are not weighed."""
    variances, estimates, keys, weighed = scratch.columns[2], scratch.columns[3], scratch.columns[4], scratch.columns[5]
    capacity = listing.keys.shape[1]
    keys[width : width + GROUP] = -np.inf  # nobody's
    for at in range(0, width, GROUP):
        found = higher(keys, at, listing.cut[i])
        while found:
            j = at + first_bit(found)
            found &= found - np.uint32(1)
            place = listing.filled[i]
            listing.keys[i, place] = keys[j]
            listing.estimates[i, place] = estimates[j]
            listing.variances[i, place] = variances[j]
            listing.bases[i, place] = base
            listing.rows[i, place] = scratch.rows[j]
            listing.filled[i] = place + 1
            weighed[j] = 0.0
            estimates[j] = -2.0
            if place + 1 == capacity:
                half = np.partition(listing.keys[i], capacity // 2)[capacity // 2]
                raise_cut(listing, i, half)
                found &= higher(keys, at, listing.cut[i])


@njit(cache=True, nogil=True)
def _raise_to_best(i, listing):
    """Raise the cut as far as the highest key allows (``Listing.lower``), where enough rows stay listed."""
    best = listing.best[i] - listing.lower[i]
    cut = np.float32(min(best + listing.rise[i], max(best, listing.decisive)))
    if cut > listing.cut[i]:
        above = 0
        for j in range(listing.filled[i]):
            above += listing.keys[i, j] > cut
        if above >= listing.kept:
            raise_cut(listing, i, cut)


@njit(cache=True, nogil=True, error_model="numpy")
def _absorb(sums, i, width, probes, scratch, listing):
    """List or weigh the first ``width`` columns of a chunk for probe ``i``."""
    weights, deviations, variances, estimates, keys, weighed, bases = scratch.columns
    base = np.float32(probes.base[i])
    numbers = (
        np.float32(probes.step[i]),
        np.float32(probes.least[i]),
        base,
        np.float32(probes.z),
        np.float32(probes.beta[i]),
    )
    most = _estimate(sums, width, weights, deviations, numbers, estimates, keys)
    listing.best[i] = max(listing.best[i], most)
    listed = most > listing.cut[i]
    if listed:
        _list_rows(i, width, base, scratch, listing)
    if listing.sharpness.shape[0]:
        bases[:width] = base
        _weigh(estimates, variances, bases, weighed, width, i, listing)
    if listed:
        weighed[:width] = 1.0


@njit(cache=True, nogil=True)
def _unpack(codes, begin, width, scratch):
    """Weights, deviations, variances and places of a chunk's rows."""
    weights, deviations, variances = scratch.columns[0], scratch.columns[1], scratch.columns[2]
    least, step, least_deviation, deviation_step = (
        np.float32(codes.scale[0]),
        np.float32(codes.scale[1]),
        np.float32(codes.scale[2]),
        np.float32(codes.scale[3]),
    )
    for j in range(width):
        weights[j] = least + step * np.float32(codes.weights[begin + j])
    for j in range(width):
        deviation = least_deviation + deviation_step * np.float32(codes.deviations[begin + j])
        deviations[j] = deviation
        variances[j] = deviation * deviation
    for j in range(width):
        scratch.rows[j] = codes.start + begin + j


@njit(cache=True, nogil=True)
def read_codes(codes, probes, first, last, scratch, listing):
    """List and weigh some rows for the probes ``first .. last``; those are the listing's probes."""
    for begin in range(codes.first, codes.last, ROWS_AT_ONCE):
        width = min(ROWS_AT_ONCE, codes.last - begin)
        count, moves = find_holes(codes.gone, begin, width, scratch.holes)
        if count == 0:
            continue
        for at in range(0, width, BLOCK_ROWS):
            look_up_block(codes.codes, (begin + at) // BLOCK_ROWS, probes.tables, first, last, scratch.sums, at)
        _unpack(codes, begin, width, scratch)
        if count < width:
            move_columns(scratch.sums, scratch.holes, moves)
            move_columns(scratch.columns[:3], scratch.holes, moves)
            for move in range(moves):
                scratch.rows[scratch.holes[0, move]] = scratch.rows[scratch.holes[1, move]]
        scratch.columns[5, :count] = 1.0
        own = Probes(
            probes.tables,
            probes.step[first:last],
            probes.least[first:last],
            probes.base[first:last],
            probes.beta[first:last],
            probes.z,
        )
        for i in range(last - first):
            _absorb(scratch.sums[i], i, count, own, scratch, listing)
            if begin // ROWS_AT_ONCE % RAISED_EVERY == RAISED_EVERY - 1 and listing.decisive < np.inf:
                _raise_to_best(i, listing)


@njit(cache=True, nogil=True)
def sample_keys(codes, probes, i, blocks, scratch, keys):
    """The keys of probe ``i`` with the rows of some whole blocks: what a first cut is taken from."""
    for number in range(blocks.shape[0]):
        begin = blocks[number] * BLOCK_ROWS
        look_up_block(codes.codes, blocks[number], probes.tables, i, i + 1, scratch.sums, 0)
        _unpack(codes, begin, BLOCK_ROWS, scratch)
        weights, deviations = scratch.columns[0], scratch.columns[1]
        for j in range(BLOCK_ROWS):
            estimate = probes.base[i] + weights[j] * (probes.step[i] * scratch.sums[0, j] + probes.least[i])
            keys[number * BLOCK_ROWS + j] = estimate + probes.z * deviations[j] + probes.beta[i]
