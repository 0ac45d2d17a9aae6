"""Packed panels: the products of many probes with rows of float32 or float16, and their sums.

As in GotoBLAS, a chunk of rows is packed into *panels* of sixteen subjects, coordinate after coordinate, and multiplied in
register tiles of sixteen subjects by six probes: an element of a SIMD vector belongs to one subject, and a coordinate of a probe
is the same for all, so no vector has to be added up. Unlike in a matrix library the scores are summed while they are in the
cache. Coordinates are summed in blocks, which stay in the first-level cache, and the blocks are added: sums of fewer terms are
rounded less.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

from functools import cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.kernels.exponential_sums import CHUNK, INDEX, LINE, RunningSums, absorb_living
from holue.evidence.kernels.holes import find_holes
from holue.evidence.kernels.row_products import floats, halves
from holue.evidence.kernels.simd import (
    FLOATS,
    INT64,
    VECTOR_LENGTH,
    broadcast,
    constant,
    load,
    multiply_add,
    prefetch,
    row_starts,
    save,
    transposed,
)
from holue.sphere.compiled import njit

Number = TypeVar("Number", np.float32, np.int32)

PANEL_SUBJECTS, PANEL_PROBES = 16, 6
"""Twelve vectors of sums, two of subjects and a probe fill fifteen of sixteen registers."""
PROBES_PER_PASS = 48
"""Probes whose scores of a chunk are weighed while they are in the cache."""
COORDINATE_BLOCK = 256
"""Coordinates summed at once: 16 KiB of a panel, which stay in the first cache while probes pass; measured."""


@cache
def are_fastest() -> bool:
    """Whether this processor has SIMD vectors of eight float32, and no wider ones that a matrix library makes better use of.

    On AMD's processors with AVX-512 (Zen 4) a matrix product with the sums took 1.03 to 1.7 times as long; others were not
    measured.
    """
    features = binding.get_host_cpu_features()
    wider = features.get("avx512f") and not binding.get_host_cpu_name().startswith("znver")
    return bool(features.get("avx2") and features.get("fma") and not wider)


def panel_scratch(dim: int, dtype: type[Number]) -> npt.NDArray[Number]:
    """A scratch buffer for the panels of one chunk (panels, d, subjects of a panel), aligned to cache lines."""
    shape = CHUNK // PANEL_SUBJECTS, dim, PANEL_SUBJECTS
    scratch = np.empty(int(np.prod(shape)) + LINE, dtype=dtype)
    skipped = -(scratch.ctypes.data // scratch.itemsize) % LINE
    return scratch[skipped : skipped + len(scratch) - LINE].reshape(shape)


def pack_probes(probes: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Probes (n, d), numbers of four bytes, as (tiles, d, probes of a tile); the last tile is filled up with zeros.

    >>> pack_probes(np.ones((7, 2), dtype=np.float32)).shape
    (2, 2, 6)
    """
    n, dim = probes.shape
    tiles = np.zeros((-(-n // PANEL_PROBES), dim, PANEL_PROBES), dtype=probes.dtype)
    _transpose(probes, tiles)
    return tiles


@njit(cache=True, nogil=True)
def _transpose(probes, tiles):
    """Write probe after probe across the tiles; numpy's own transposed copy takes several times as long."""
    for tile in range(tiles.shape[0]):
        first = tile * PANEL_PROBES
        count = min(PANEL_PROBES, probes.shape[0] - first)
        for t in range(probes.shape[1]):
            for number in range(count):
                tiles[tile, t, number] = probes[first + number, t]


@intrinsic
def _pack_eight_rows(typing_context, block, row, last, length, panels, panel, place):
    """Pack eight rows from ``row`` on into the subjects ``place ..`` of a panel; past the ``last`` row that one stands in.

    The first ``length`` coordinates, a multiple of eight, of float32 or of float16 (its bits).
    """
    read = halves if block.dtype == types.uint16 else floats

    def generate(context, builder, signature, arguments):
        block, row, last, length, panels, panel, place = arguments
        starts, width = row_starts(context, builder, signature.args[0], block, row, VECTOR_LENGTH, last)
        view = context.make_array(signature.args[4])(context, builder, panels)
        size = builder.mul(width, INT64(PANEL_SUBJECTS))
        target = builder.gep(view.data, [builder.add(builder.mul(panel, size), place)])
        with cgutils.for_range_slice(builder, INT64(0), length, INT64(VECTOR_LENGTH)) as (t, _):
            rows = [read(builder, start, t) for start in starts]
            for number, vector in enumerate(transposed(builder, rows)):
                at = builder.mul(builder.add(t, INT64(number)), INT64(PANEL_SUBJECTS))
                save(builder, vector, target, at)
        return context.get_dummy_value()

    return types.void(block, INDEX, INDEX, INDEX, panels, INDEX, INDEX), generate


def _tile_multiplier(prefetching):
    """Products of one panel with one tile of probes over the coordinates ``begin .. end``, in ``scores[i.., j..]``.

    From the first coordinate on they are written there, from a later one they are added to what is there. ``prefetching`` is for
    a tile that also prefetches rows of ``block``, from ``row`` on, which are next: eight bytes, from the byte ``byte`` on, for
    every coordinate.
    """

    def generate(context, builder, signature, arguments):
        panels, panel, tiles, tile, begin, end, scores, i, j, block, row, byte = arguments
        vectors = PANEL_SUBJECTS // VECTOR_LENGTH

        def start(number, array, first, each):
            view = context.make_array(signature.args[number])(context, builder, array)
            dim = cgutils.unpack_tuple(builder, view.shape)[1]
            return builder.gep(view.data, [builder.mul(first, builder.mul(dim, INT64(each)))])

        subjects, held = start(0, panels, panel, PANEL_SUBJECTS), start(2, tiles, tile, PANEL_PROBES)
        (ahead,), _ = row_starts(context, builder, signature.args[9], block, row, 1)
        ahead = builder.gep(
            builder.bitcast(ahead, ir.IntType(8).as_pointer()), [builder.sub(byte, builder.mul(begin, INT64(8)))]
        )
        sums = [
            [cgutils.alloca_once_value(builder, constant(0.0)) for _ in range(vectors)] for _ in range(PANEL_PROBES)
        ]
        with cgutils.for_range_slice(builder, begin, end, INT64(1)) as (t, _):
            if prefetching:
                prefetch(builder, builder.gep(ahead, [builder.mul(t, INT64(8))]), 0)
            row = builder.gep(subjects, [builder.mul(t, INT64(PANEL_SUBJECTS))])
            column = builder.gep(held, [builder.mul(t, INT64(PANEL_PROBES))])
            coordinates = [
                load(builder, row, INT64(first), FLOATS) for first in range(0, PANEL_SUBJECTS, VECTOR_LENGTH)
            ]
            for number, own in enumerate(sums):
                x = broadcast(builder, builder.load(builder.gep(column, [INT64(number)])))
                for g, total in zip(coordinates, own):
                    builder.store(multiply_add(builder, x, g, builder.load(total)), total)
        places, _ = row_starts(context, builder, signature.args[6], scores, i, PANEL_PROBES)
        first = builder.icmp_signed("==", begin, INT64(0))
        for place, own in zip(places, sums):
            for vector, total in enumerate(own):
                at = builder.add(j, INT64(vector * VECTOR_LENGTH))
                before = builder.select(first, constant(0.0), load(builder, place, at, FLOATS))
                save(builder, builder.fadd(before, builder.load(total)), place, at)
        return context.get_dummy_value()

    def tile(typing_context, panels, panel, tiles, tile, begin, end, scores, i, j, block, row, byte):
        kinds = panels, INDEX, tiles, INDEX, INDEX, INDEX, scores, INDEX, INDEX, block, INDEX, INDEX
        return types.void(*kinds), generate

    return intrinsic(tile)


_multiply_tile, _multiply_tile_and_prefetch = _tile_multiplier(prefetching=False), _tile_multiplier(prefetching=True)


@njit(cache=True, nogil=True)
def pack_panels(block, begin, width, panels):
    """Pack the rows ``begin .. begin + width`` into panels; what the last one has too many repeats the last row."""
    dim = block.shape[1]
    whole, last = dim - dim % VECTOR_LENGTH, begin + width - 1
    for j in range(0, width, PANEL_SUBJECTS):
        for place in range(0, PANEL_SUBJECTS, VECTOR_LENGTH):
            _pack_eight_rows(block, begin + j + place, last, whole, panels, j // PANEL_SUBJECTS, place)
            for t in range(whole, dim):
                for subject in range(VECTOR_LENGTH):
                    panels[j // PANEL_SUBJECTS, t, place + subject] = block[min(begin + j + place + subject, last), t]


@njit(cache=True, nogil=True)
def multiply_panels(panels, width, tiles, first_tile, last_tile, scores, block, next_row):
    """Scores of the first ``width`` subjects in the panels with some tiles of probes; ``scores`` has scratch for whole ones.

    If the rows of ``block`` from ``next_row`` on, which is not 0, will be packed next, they are prefetched.
    """
    dim = panels.shape[1]
    for j in range(0, width, PANEL_SUBJECTS):
        byte = 0
        for begin in range(0, dim, COORDINATE_BLOCK):
            end = min(begin + COORDINATE_BLOCK, dim)
            for tile in range(first_tile, last_tile):
                i = (tile - first_tile) * PANEL_PROBES
                if next_row:
                    _multiply_tile_and_prefetch(
                        panels, j // PANEL_SUBJECTS, tiles, tile, begin, end, scores, i, j, block, next_row + j, byte
                    )
                    byte += 8 * (end - begin)
                else:
                    _multiply_tile(panels, j // PANEL_SUBJECTS, tiles, tile, begin, end, scores, i, j, block, 0, 0)


@njit(cache=True, nogil=True)
def sweep_panels(tiles, block, numbers, gone, panels, scores, holes, sums):
    """Multiply and absorb chunk by chunk, some probes at a time; ``gone`` is empty where nobody has left."""
    n = sums.peak.shape[0]
    per_pass = PROBES_PER_PASS // PANEL_PROBES
    last_whole = (tiles.shape[0] // per_pass - 1) * per_pass  # the last group of tiles that is whole
    for begin in range(0, block.shape[0], CHUNK):
        width = min(CHUNK, block.shape[0] - begin)
        count, moves = find_holes(gone, begin, width, holes)
        if count == 0:
            continue
        pack_panels(block, begin, width, panels)
        for tile in range(0, tiles.shape[0], per_pass):
            last_tile = min(tile + per_pass, tiles.shape[0])
            next_row = begin + CHUNK if tile == last_whole else 0
            multiply_panels(panels, width, tiles, tile, last_tile, scores, block, next_row)
            at = tile * PANEL_PROBES
            own = slice(at, min(at + PROBES_PER_PASS, n))
            part = RunningSums(
                sums.top_scores[own],
                sums.top_index[own],
                sums.slope,
                sums.peak[own],
                sums.window[own],
                sums.bins[own],
            )
            absorb_living(scores[: own.stop - at], width, numbers, begin, holes, count, moves, part)


@njit(cache=True, nogil=True)
def score_panels(tiles, block, panels, scores, found):
    """Write the scores (n, b) of all rows, as ``sweep_panels`` sums them."""
    per_pass = PROBES_PER_PASS // PANEL_PROBES
    for begin in range(0, block.shape[0], CHUNK):
        width = min(CHUNK, block.shape[0] - begin)
        pack_panels(block, begin, width, panels)
        for tile in range(0, tiles.shape[0], per_pass):
            multiply_panels(panels, width, tiles, tile, min(tile + per_pass, tiles.shape[0]), scores, block, 0)
            at = tile * PANEL_PROBES
            for i in range(at, min(at + PROBES_PER_PASS, found.shape[0])):
                found[i, begin : begin + width] = scores[i - at, :width]
