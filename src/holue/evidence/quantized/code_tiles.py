"""Code tiles: the products of many probes with int8 codes, sixteen subjects by six probes at a time, in whole numbers.

A processor multiplies sixteen pairs of 16-bit numbers at once, and adds neighbours, where it multiplies eight pairs of float32:
this is the one matrix product that is faster than the matrix library's. For it a chunk of rows is unpacked to 16 bits in *panels*
of sixteen subjects, pair of coordinates after pair of coordinates, so that a lane belongs to a subject and a pair of a probe's
codes is the same for all lanes. A panel stays in the first cache while all probes pass.

What is compiled here contains functions of ``bounded_loops.py`` and ``lanes.py``: after a change there, touch this file.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.kernels.exponential_sums import _WHOLE, CHUNK
from holue.evidence.kernels.packed_panels import PROBES_AT_ONCE, TILE_PROBES, TILE_SUBJECTS, in_tiles, panel_scratch
from holue.evidence.kernels.simd import (
    FLOATS,
    INT32,
    INT64,
    INTS,
    LANES,
    ask_for,
    load,
    row_starts,
    save,
    shuffle,
    spread,
    transposed,
)
from holue.evidence.quantized.bounded_loops import absorb_probes
from holue.sphere.compiled import njit

_SHORTS, _MANY_INTS = ir.VectorType(ir.IntType(16), 16), ir.VectorType(INT32, 16)
_BYTES, _PAIRS = ir.VectorType(ir.IntType(8), 16), ir.VectorType(ir.IntType(16), 8)
_LINE = 64  # bytes
_AHEAD = 4096  # bytes between what is unpacked and what the memory is asked for; measured


def code_tiles(codes: npt.NDArray[np.int16]) -> npt.NDArray[np.int32]:
    """Probe codes (n, width) as (tiles, pairs of coordinates, probes of a tile)."""
    return in_tiles(codes.view(np.int32))


def code_scratch(width: int) -> npt.NDArray[np.int32]:
    """Room for the panels of one chunk (panels, pairs of coordinates, subjects of a panel)."""
    return panel_scratch(width // 2, np.int32)


@intrinsic
def _fill(typing_context, codes, row, last, panels, panel, place):
    """Unpack eight rows from ``row`` on into the lanes ``place ..`` of a panel; past the ``last`` row that one stands in."""

    def generate(context, builder, signature, arguments):
        codes, row, last, panels, panel, place = arguments
        starts, width = row_starts(context, builder, signature.args[0], codes, row, LANES, last)
        view = context.make_array(signature.args[3])(context, builder, panels)
        size = builder.mul(cgutils.unpack_tuple(builder, view.shape)[1], INT64(TILE_SUBJECTS))
        target = builder.gep(view.data, [builder.add(builder.mul(panel, size), place)])
        with cgutils.for_range_slice(builder, INT64(0), width, INT64(16)) as (t, _):
            # The rows lie one after another, so what comes next is a line further with every 64 bytes read here.
            for line in range(0, LANES * 16, _LINE):
                ask_for(builder, builder.gep(starts[0], [builder.mul(t, INT64(LANES))]), _AHEAD + line)
            pairs = [builder.bitcast(load(builder, start, t, _BYTES), _PAIRS) for start in starts]
            for number, pair in enumerate(transposed(builder, pairs)):
                wide = builder.sext(builder.bitcast(pair, _BYTES), _SHORTS)
                at = builder.add(builder.mul(t, INT64(TILE_SUBJECTS // 2)), INT64(number * TILE_SUBJECTS))
                save(builder, wide, target, at)
        return context.get_dummy_value()

    return types.void(codes, _WHOLE, _WHOLE, panels, _WHOLE, _WHOLE), generate


@intrinsic
def _tile(typing_context, panels, panel, probes, tile, scales, steps, scores, i, j):
    """Scores of one panel with one tile of probes, written to ``scores[i.., j..]``.

    Sums of 32 bits, in any order, since they are whole numbers that fit; then ``sum · (scale of the row · step of the probe)``.
    """

    def generate(context, builder, signature, arguments):
        panels, panel, probes, tile, scales, steps, scores, i, j = arguments
        vectors = TILE_SUBJECTS // LANES

        def start(number, array, first, each):
            view = context.make_array(signature.args[number])(context, builder, array)
            pairs = cgutils.unpack_tuple(builder, view.shape)[1]
            return builder.gep(view.data, [builder.mul(first, builder.mul(pairs, INT64(each)))]), pairs

        subjects, pairs = start(0, panels, panel, TILE_SUBJECTS)
        held, _ = start(2, probes, tile, TILE_PROBES)
        zero = ir.Constant(INTS, [0] * LANES)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(vectors)] for _ in range(TILE_PROBES)]
        with cgutils.for_range_slice(builder, INT64(0), pairs, INT64(1)) as (t, _):
            row = builder.gep(subjects, [builder.mul(t, INT64(TILE_SUBJECTS))])
            column = builder.gep(held, [builder.mul(t, INT64(TILE_PROBES))])
            codes = [
                builder.sext(load(builder, row, INT64(first), _SHORTS), _MANY_INTS)
                for first in range(0, TILE_SUBJECTS, LANES)
            ]
            for number, own in enumerate(sums):
                pair = spread(builder, builder.load(builder.gep(column, [INT64(number)])))
                x = builder.sext(builder.bitcast(pair, _SHORTS), _MANY_INTS)
                for g, total in zip(codes, own):
                    # Processors have one instruction for products whose neighbours are added.
                    product = builder.mul(x, g)
                    even, odd = (shuffle(builder, product, list(range(first, 16, 2))) for first in (0, 1))
                    builder.store(builder.add(builder.load(total), builder.add(even, odd)), total)
        places, _ = row_starts(context, builder, signature.args[6], scores, i, TILE_PROBES)
        worth = context.make_array(signature.args[4])(context, builder, scales).data
        step = context.make_array(signature.args[5])(context, builder, steps).data
        first_probe = builder.mul(tile, INT64(TILE_PROBES))
        for number, (place, own) in enumerate(zip(places, sums)):
            x = spread(builder, builder.load(builder.gep(step, [builder.add(first_probe, INT64(number))])))
            for vector, total in enumerate(own):
                at = builder.add(j, INT64(vector * LANES))
                factor = builder.fmul(load(builder, worth, at, FLOATS), x)
                save(builder, builder.fmul(builder.sitofp(builder.load(total), FLOATS), factor), place, at)
        return context.get_dummy_value()

    result = types.void(panels, _WHOLE, probes, _WHOLE, scales, steps, scores, _WHOLE, _WHOLE)
    return result, generate


@njit(cache=True, nogil=True)
def fill_panels(codes, begin, width, panels):
    """Unpack the rows ``begin .. begin + width`` into panels; what the last one has too many repeats the last row."""
    for j in range(0, width, TILE_SUBJECTS):
        for place in range(0, TILE_SUBJECTS, LANES):
            _fill(codes, begin + j + place, begin + width - 1, panels, j // TILE_SUBJECTS, place)


@njit(cache=True, nogil=True)
def multiply_panels(panels, width, probes, first_tile, last_tile, scales, steps, scores, at):
    """Scores of the first ``width`` subjects in the panels with some tiles of probes, written from ``scores[0, at]`` on.

    ``scales`` and the columns of ``scores`` have room for whole panels, ``steps`` and the rows for whole tiles.
    """
    for j in range(0, width, TILE_SUBJECTS):
        for tile in range(first_tile, last_tile):
            i = (tile - first_tile) * TILE_PROBES
            _tile(panels, j // TILE_SUBJECTS, probes, tile, scales, steps, scores, i, at + j)


@njit(cache=True, nogil=True)
def sweep_tiles(
    codes,
    scales,
    errors,
    first,
    last,
    probes,
    steps,
    panels,
    first_subject,
    scores,
    keys,
    subjects,
    sharpness,
    slope,
    peak,
    sums,
):
    """Multiply the codes of the rows ``first .. last`` with all probes, chunk by chunk and some probes at a time."""
    tiles = probes.shape[0]
    worth = np.zeros(CHUNK, dtype=np.float32)
    at_once = PROBES_AT_ONCE // TILE_PROBES
    room = np.empty(CHUNK, dtype=np.float32)
    for begin in range(first, last, CHUNK):
        width = min(CHUNK, last - begin)
        worth[:width] = scales[begin : begin + width]
        if tiles > at_once:
            fill_panels(codes, begin, width, panels)
        for tile in range(0, tiles, at_once):
            if tiles > at_once:
                multiply_panels(panels, width, probes, tile, min(tile + at_once, tiles), worth, steps, scores, 0)
            else:  # one panel at a time, which never leaves the first cache
                for j in range(0, width, TILE_SUBJECTS):
                    size = min(TILE_SUBJECTS, width - j)
                    fill_panels(codes, begin + j, size, panels)
                    multiply_panels(panels, size, probes, 0, tiles, worth, steps, scores, j)
            at, subject = tile * TILE_PROBES, first_subject + begin
            absorb_probes(scores, at, width, errors, begin, subject, room, keys, subjects, sharpness, slope, peak, sums)
