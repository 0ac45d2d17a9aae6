"""Panels: the products of many probes with rows of float32 or float16, sixteen subjects by six probes at a time, and their sums.

A chunk of rows is laid out anew in *panels* of sixteen subjects, coordinate after coordinate, so that a lane belongs to a subject
and a coordinate of a probe is the same for all lanes: no sum has to be taken across lanes. A matrix library does the same; here
the scores are weighed while they are in the cache. Coordinates are summed in stretches, which stay in the first cache, and the
stretches are added: sums of fewer terms are rounded less.

What is compiled here contains functions of ``loops.py`` and ``lanes.py``: after a change there, touch this file.
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

from holue.evidence.kernels.exponential_sums import _LINE, _WHOLE, CHUNK, absorb_cosines
from holue.evidence.kernels.row_products import floats, halves
from holue.evidence.kernels.simd import (
    FLOATS,
    INT64,
    LANES,
    ask_for,
    constant,
    load,
    multiply_add,
    row_starts,
    save,
    spread,
    transposed,
)
from holue.sphere.compiled import njit

Number = TypeVar("Number", np.float32, np.int32)

TILE_SUBJECTS, TILE_PROBES = 16, 6
"""Twelve vectors of sums, two of subjects and a probe fill fifteen of sixteen registers."""
PROBES_AT_ONCE = 48
"""Probes whose scores of a chunk are weighed while they are in the cache."""
STRETCH = 256
"""Coordinates summed at once: 16 KiB of a panel, which stay in the first cache while probes pass; measured."""


@cache
def are_fastest() -> bool:
    """Whether this processor has vectors of eight float32 and no wider ones, of which a matrix library would make better use."""
    features = binding.get_host_cpu_features()
    return bool(features.get("avx2") and features.get("fma") and not features.get("avx512f"))


def panel_scratch(dim: int, dtype: type[Number]) -> npt.NDArray[Number]:
    """Room for the panels of one chunk (panels, d, subjects of a panel), at an address where vectors are loaded whole."""
    shape = CHUNK // TILE_SUBJECTS, dim, TILE_SUBJECTS
    room = np.empty(int(np.prod(shape)) + _LINE, dtype=dtype)
    skipped = -(room.ctypes.data // room.itemsize) % _LINE
    return room[skipped : skipped + len(room) - _LINE].reshape(shape)


def in_tiles(probes: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Probes (n, d), numbers of four bytes, as (tiles, d, probes of a tile); the last tile is filled up with zeros.

    >>> in_tiles(np.ones((7, 2), dtype=np.float32)).shape
    (2, 2, 6)
    """
    n, dim = probes.shape
    tiles = np.zeros((-(-n // TILE_PROBES), dim, TILE_PROBES), dtype=probes.dtype)
    _turn(probes, tiles)
    return tiles


@njit(cache=True, nogil=True)
def _turn(probes, tiles):
    """Write probe after probe across the tiles; numpy's own transposed copy takes several times as long."""
    for tile in range(tiles.shape[0]):
        first = tile * TILE_PROBES
        count = min(TILE_PROBES, probes.shape[0] - first)
        for t in range(probes.shape[1]):
            for number in range(count):
                tiles[tile, t, number] = probes[first + number, t]


@intrinsic
def _fill(typing_context, block, row, last, length, panels, panel, place):
    """Lay eight rows from ``row`` on into the lanes ``place ..`` of a panel; past the ``last`` row that one stands in.

    The first ``length`` coordinates, a multiple of eight, of float32 or of float16 (its bits).
    """
    read = halves if block.dtype == types.uint16 else floats

    def generate(context, builder, signature, arguments):
        block, row, last, length, panels, panel, place = arguments
        starts, width = row_starts(context, builder, signature.args[0], block, row, LANES, last)
        view = context.make_array(signature.args[4])(context, builder, panels)
        size = builder.mul(width, INT64(TILE_SUBJECTS))
        target = builder.gep(view.data, [builder.add(builder.mul(panel, size), place)])
        with cgutils.for_range_slice(builder, INT64(0), length, INT64(LANES)) as (t, _):
            rows = [read(builder, start, t) for start in starts]
            for number, vector in enumerate(transposed(builder, rows)):
                at = builder.mul(builder.add(t, INT64(number)), INT64(TILE_SUBJECTS))
                save(builder, vector, target, at)
        return context.get_dummy_value()

    return types.void(block, _WHOLE, _WHOLE, _WHOLE, panels, _WHOLE, _WHOLE), generate


def _tiler(asking):
    """Products of one panel with one tile of probes over the coordinates ``begin .. end``, in ``scores[i.., j..]``.

    From the first coordinate on they are written there, from a later one they are added to what is there. ``asking`` is for a
    tile that also asks the memory for rows of ``block``, from ``row`` on, which are next: eight bytes, from the byte ``byte`` on,
    for every coordinate.
    """

    def generate(context, builder, signature, arguments):
        panels, panel, tiles, tile, begin, end, scores, i, j, block, row, byte = arguments
        vectors = TILE_SUBJECTS // LANES

        def start(number, array, first, each):
            view = context.make_array(signature.args[number])(context, builder, array)
            dim = cgutils.unpack_tuple(builder, view.shape)[1]
            return builder.gep(view.data, [builder.mul(first, builder.mul(dim, INT64(each)))])

        subjects, held = start(0, panels, panel, TILE_SUBJECTS), start(2, tiles, tile, TILE_PROBES)
        (ahead,), _ = row_starts(context, builder, signature.args[9], block, row, 1)
        ahead = builder.gep(
            builder.bitcast(ahead, ir.IntType(8).as_pointer()), [builder.sub(byte, builder.mul(begin, INT64(8)))]
        )
        sums = [[cgutils.alloca_once_value(builder, constant(0.0)) for _ in range(vectors)] for _ in range(TILE_PROBES)]
        with cgutils.for_range_slice(builder, begin, end, INT64(1)) as (t, _):
            if asking:
                ask_for(builder, builder.gep(ahead, [builder.mul(t, INT64(8))]), 0)
            row = builder.gep(subjects, [builder.mul(t, INT64(TILE_SUBJECTS))])
            column = builder.gep(held, [builder.mul(t, INT64(TILE_PROBES))])
            coordinates = [load(builder, row, INT64(first), FLOATS) for first in range(0, TILE_SUBJECTS, LANES)]
            for number, own in enumerate(sums):
                x = spread(builder, builder.load(builder.gep(column, [INT64(number)])))
                for g, total in zip(coordinates, own):
                    builder.store(multiply_add(builder, x, g, builder.load(total)), total)
        places, _ = row_starts(context, builder, signature.args[6], scores, i, TILE_PROBES)
        first = builder.icmp_signed("==", begin, INT64(0))
        for place, own in zip(places, sums):
            for vector, total in enumerate(own):
                at = builder.add(j, INT64(vector * LANES))
                before = builder.select(first, constant(0.0), load(builder, place, at, FLOATS))
                save(builder, builder.fadd(before, builder.load(total)), place, at)
        return context.get_dummy_value()

    def tile(typing_context, panels, panel, tiles, tile, begin, end, scores, i, j, block, row, byte):
        kinds = panels, _WHOLE, tiles, _WHOLE, _WHOLE, _WHOLE, scores, _WHOLE, _WHOLE, block, _WHOLE, _WHOLE
        return types.void(*kinds), generate

    return intrinsic(tile)


_tile, _asking_tile = _tiler(asking=False), _tiler(asking=True)


@njit(cache=True, nogil=True)
def fill_panels(block, begin, width, panels):
    """Lay the rows ``begin .. begin + width`` out in panels; what the last one has too many repeats the last row."""
    dim = block.shape[1]
    whole, last = dim - dim % LANES, begin + width - 1
    for j in range(0, width, TILE_SUBJECTS):
        for place in range(0, TILE_SUBJECTS, LANES):
            _fill(block, begin + j + place, last, whole, panels, j // TILE_SUBJECTS, place)
            for t in range(whole, dim):
                for lane in range(LANES):
                    panels[j // TILE_SUBJECTS, t, place + lane] = block[min(begin + j + place + lane, last), t]


@njit(cache=True, nogil=True)
def multiply_panels(panels, width, tiles, first_tile, last_tile, scores, block, following):
    """Scores of the first ``width`` subjects in the panels with some tiles of probes; ``scores`` has room for whole ones.

    If the rows of ``block`` from ``following`` on, which is not 0, will be laid out next, they are asked for meanwhile.
    """
    dim = panels.shape[1]
    for j in range(0, width, TILE_SUBJECTS):
        byte = 0
        for begin in range(0, dim, STRETCH):
            end = min(begin + STRETCH, dim)
            for tile in range(first_tile, last_tile):
                i = (tile - first_tile) * TILE_PROBES
                if following:
                    _asking_tile(
                        panels, j // TILE_SUBJECTS, tiles, tile, begin, end, scores, i, j, block, following + j, byte
                    )
                    byte += 8 * (end - begin)
                else:
                    _tile(panels, j // TILE_SUBJECTS, tiles, tile, begin, end, scores, i, j, block, 0, 0)


@njit(cache=True, nogil=True)
def sweep_panels(
    tiles, block, first_subject, panels, scores, top_scores, top_index, sharpness, slope, peak, mass, moment
):
    """Multiply and absorb chunk by chunk, some probes at a time."""
    n = top_scores.shape[0]
    at_once = PROBES_AT_ONCE // TILE_PROBES
    asking = (tiles.shape[0] // at_once - 1) * at_once  # the last group of tiles that is whole
    for begin in range(0, block.shape[0], CHUNK):
        width = min(CHUNK, block.shape[0] - begin)
        fill_panels(block, begin, width, panels)
        for tile in range(0, tiles.shape[0], at_once):
            last_tile = min(tile + at_once, tiles.shape[0])
            following = begin + CHUNK if tile == asking else 0
            multiply_panels(panels, width, tiles, tile, last_tile, scores, block, following)
            at = tile * TILE_PROBES
            own = slice(at, min(at + PROBES_AT_ONCE, n))
            absorb_cosines(
                scores[: own.stop - at],
                width,
                first_subject + begin,
                top_scores[own],
                top_index[own],
                sharpness,
                slope,
                peak[own],
                mass[own],
                moment[own],
            )
