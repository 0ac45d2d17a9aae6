"""Code tiles: the products of many probes with int8 codes, in register tiles of sixteen subjects by six probes.

A processor multiplies sixteen pairs of 16-bit numbers at once, and adds neighbours, where it multiplies eight pairs of float32:
this is the one matrix product that is faster than the matrix library's. For it a chunk of rows is unpacked to 16 bits in packed
panels of sixteen subjects, pair of coordinates after pair of coordinates, so that an element of a SIMD vector belongs to one
subject and a pair of a probe's codes is the same for all. A panel stays in the first-level cache while all probes pass.
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

from holue.evidence.kernels.exponential_sums import CHUNK, INDEX
from holue.evidence.kernels.packed_panels import (
    PANEL_PROBES,
    PANEL_SUBJECTS,
    PROBES_PER_PASS,
    pack_probes,
    panel_scratch,
)
from holue.evidence.kernels.simd import (
    FLOATS,
    INT32,
    INT64,
    INTS,
    VECTOR_LENGTH,
    broadcast,
    load,
    prefetch,
    row_starts,
    save,
    shuffle,
    transposed,
)
from holue.evidence.quantized.code_loops import absorb_rows, chunk_scratch, find_living
from holue.sphere.compiled import njit

_SHORTS, _MANY_INTS = ir.VectorType(ir.IntType(16), 16), ir.VectorType(INT32, 16)
_BYTES, _PAIRS = ir.VectorType(ir.IntType(8), 16), ir.VectorType(ir.IntType(16), 8)
LINE = 64  # bytes
_AHEAD = 4096  # bytes between what is unpacked and what is prefetched; measured


def pack_probe_codes(codes: npt.NDArray[np.int16]) -> npt.NDArray[np.int32]:
    """Probe codes (n, width) as (tiles, pairs of coordinates, probes of a tile)."""
    return pack_probes(codes.view(np.int32))


def code_scratch(width: int) -> npt.NDArray[np.int32]:
    """A scratch buffer for the panels of one chunk (panels, pairs of coordinates, subjects of a panel)."""
    return panel_scratch(width // 2, np.int32)


@intrinsic
def _pack_eight_rows(typing_context, codes, row, last, panels, panel, place):
    """Unpack eight rows from ``row`` on into the subjects ``place ..`` of a panel; past the ``last`` row that one stands in."""

    def generate(context, builder, signature, arguments):
        codes, row, last, panels, panel, place = arguments
        starts, width = row_starts(context, builder, signature.args[0], codes, row, VECTOR_LENGTH, last)
        view = context.make_array(signature.args[3])(context, builder, panels)
        size = builder.mul(cgutils.unpack_tuple(builder, view.shape)[1], INT64(PANEL_SUBJECTS))
        target = builder.gep(view.data, [builder.add(builder.mul(panel, size), place)])
        with cgutils.for_range_slice(builder, INT64(0), width, INT64(16)) as (t, _):
            # The rows lie one after another, so what comes next is a line further with every 64 bytes read here.
            for line in range(0, VECTOR_LENGTH * 16, LINE):
                prefetch(builder, builder.gep(starts[0], [builder.mul(t, INT64(VECTOR_LENGTH))]), _AHEAD + line)
            pairs = [builder.bitcast(load(builder, start, t, _BYTES), _PAIRS) for start in starts]
            for number, pair in enumerate(transposed(builder, pairs)):
                wide = builder.sext(builder.bitcast(pair, _BYTES), _SHORTS)
                at = builder.add(builder.mul(t, INT64(PANEL_SUBJECTS // 2)), INT64(number * PANEL_SUBJECTS))
                save(builder, wide, target, at)
        return context.get_dummy_value()

    return types.void(codes, INDEX, INDEX, panels, INDEX, INDEX), generate


@intrinsic
def _multiply_tile(typing_context, panels, panel, probes, tile, scales, steps, scores, i, j):
    """Scores of one panel with one tile of probes, written to ``scores[i.., j..]``.

    Sums of 32 bits, in any order, since they are whole numbers that fit; then ``sum · (scale of the row · step of the probe)``.
    """

    def generate(context, builder, signature, arguments):
        panels, panel, probes, tile, scales, steps, scores, i, j = arguments
        vectors = PANEL_SUBJECTS // VECTOR_LENGTH

        def start(number, array, first, each):
            view = context.make_array(signature.args[number])(context, builder, array)
            pairs = cgutils.unpack_tuple(builder, view.shape)[1]
            return builder.gep(view.data, [builder.mul(first, builder.mul(pairs, INT64(each)))]), pairs

        subjects, pairs = start(0, panels, panel, PANEL_SUBJECTS)
        held, _ = start(2, probes, tile, PANEL_PROBES)
        zero = ir.Constant(INTS, [0] * VECTOR_LENGTH)
        sums = [[cgutils.alloca_once_value(builder, zero) for _ in range(vectors)] for _ in range(PANEL_PROBES)]
        with cgutils.for_range_slice(builder, INT64(0), pairs, INT64(1)) as (t, _):
            row = builder.gep(subjects, [builder.mul(t, INT64(PANEL_SUBJECTS))])
            column = builder.gep(held, [builder.mul(t, INT64(PANEL_PROBES))])
            codes = [
                builder.sext(load(builder, row, INT64(first), _SHORTS), _MANY_INTS)
                for first in range(0, PANEL_SUBJECTS, VECTOR_LENGTH)
            ]
            for number, own in enumerate(sums):
                pair = broadcast(builder, builder.load(builder.gep(column, [INT64(number)])))
                x = builder.sext(builder.bitcast(pair, _SHORTS), _MANY_INTS)
                for g, total in zip(codes, own):
                    # Processors have one instruction for products whose neighbours are added.
                    product = builder.mul(x, g)
                    even, odd = (shuffle(builder, product, list(range(first, 16, 2))) for first in (0, 1))
                    builder.store(builder.add(builder.load(total), builder.add(even, odd)), total)
        places, _ = row_starts(context, builder, signature.args[6], scores, i, PANEL_PROBES)
        worth = context.make_array(signature.args[4])(context, builder, scales).data
        step = context.make_array(signature.args[5])(context, builder, steps).data
        first_probe = builder.mul(tile, INT64(PANEL_PROBES))
        for number, (place, own) in enumerate(zip(places, sums)):
            x = broadcast(builder, builder.load(builder.gep(step, [builder.add(first_probe, INT64(number))])))
            for vector, total in enumerate(own):
                at = builder.add(j, INT64(vector * VECTOR_LENGTH))
                factor = builder.fmul(load(builder, worth, at, FLOATS), x)
                save(builder, builder.fmul(builder.sitofp(builder.load(total), FLOATS), factor), place, at)
        return context.get_dummy_value()

    result = types.void(panels, INDEX, probes, INDEX, scales, steps, scores, INDEX, INDEX)
    return result, generate


@njit(cache=True, nogil=True)
def pack_codes(codes, begin, width, panels):
    """Unpack the rows ``begin .. begin + width`` into panels; what the last one has too many repeats the last row."""
    for j in range(0, width, PANEL_SUBJECTS):
        for place in range(0, PANEL_SUBJECTS, VECTOR_LENGTH):
            _pack_eight_rows(codes, begin + j + place, begin + width - 1, panels, j // PANEL_SUBJECTS, place)


@njit(cache=True, nogil=True)
def multiply_codes(panels, width, probes, first_tile, last_tile, scales, steps, scores, at):
    """Scores of the first ``width`` subjects in the panels with some tiles of probes, written from ``scores[0, at]`` on.

    ``scales`` and the columns of ``scores`` have scratch for whole panels, ``steps`` and the rows for whole tiles.
    """
    for j in range(0, width, PANEL_SUBJECTS):
        for tile in range(first_tile, last_tile):
            i = (tile - first_tile) * PANEL_PROBES
            _multiply_tile(panels, j // PANEL_SUBJECTS, probes, tile, scales, steps, scores, i, at + j)


@njit(cache=True, nogil=True)
def sweep_tiles(span, probes, steps, panels, scores, bounded):
    """Multiply the codes of a span with all probes, chunk by chunk and some probes at a time."""
    codes, scales, _, _, _, first, last = span
    tiles = probes.shape[0]
    worth = np.zeros(CHUNK, dtype=np.float32)
    per_pass = PROBES_PER_PASS // PANEL_PROBES
    scratch = chunk_scratch()
    for begin in range(first, last, CHUNK):
        width = min(CHUNK, last - begin)
        count, moves = find_living(span, begin, width, scratch)
        if count == 0:
            continue
        worth[:width] = scales[begin : begin + width]
        if tiles > per_pass:
            pack_codes(codes, begin, width, panels)
        for tile in range(0, tiles, per_pass):
            if tiles > per_pass:
                multiply_codes(panels, width, probes, tile, min(tile + per_pass, tiles), worth, steps, scores, 0)
            else:  # one panel at a time, which never leaves the first cache
                for j in range(0, width, PANEL_SUBJECTS):
                    size = min(PANEL_SUBJECTS, width - j)
                    pack_codes(codes, begin + j, size, panels)
                    multiply_codes(panels, size, probes, 0, tiles, worth, steps, scores, j)
            absorb_rows(scores, tile * PANEL_PROBES, span, begin, width, scratch, count, moves, bounded)
