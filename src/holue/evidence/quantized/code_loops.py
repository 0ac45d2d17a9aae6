"""Code loops: the compiled inside of a scan over codes: products of codes, and how exactly probes are held."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import platform
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import binding  # type: ignore[import-untyped]
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.kernels.exponential_sums import CHUNK, INDEX, multiply
from holue.evidence.kernels.holes import fill_holes, find_holes, move_columns
from holue.evidence.kernels.packed_panels import PANEL_PROBES, PROBES_PER_PASS, multiply_panels, pack_panels
from holue.evidence.kernels.row_products import halves, multiply_rows
from holue.evidence.kernels.simd import INT64, VECTOR_LENGTH, row_starts, save
from holue.evidence.quantized.bounded_loops import absorb_probes
from holue.sphere.compiled import njit


class Span(NamedTuple):
    """The rows ``first .. last`` of a compressed part."""

    codes: npt.NDArray[np.generic]
    scales: npt.NDArray[np.float32]
    errors: npt.NDArray[np.float32]
    numbers: npt.NDArray[np.int64]
    gone: npt.NDArray[np.bool_]  # who has left; empty where nobody has
    first: int
    last: int


class ChunkScratch(NamedTuple):
    """Scratch buffers for one chunk of rows."""

    holes: npt.NDArray[np.int64]  # (3, CHUNK) which columns move to where somebody has left
    places: npt.NDArray[np.int64]  # (CHUNK,) which row each column is of: its own, but for those that have moved
    errors: npt.NDArray[np.float32]  # (CHUNK,) of those who have not left
    keys: npt.NDArray[np.float32]  # (CHUNK,)


UNPACKED = 64
"""Rows unpacked at once, so that they are still in the cache when they are multiplied."""


@cache
def reads_halves() -> bool:
    """Whether this processor converts float16 itself; without it the compiler would call a library that may not be there."""
    features, name = config.CPU_FEATURES, config.CPU_NAME  # type: ignore[attr-defined]
    if features is not None:
        return "+f16c" in features
    if name not in (None, "host"):
        return False
    return bool(binding.get_host_cpu_features().get("f16c")) or platform.machine() in ("aarch64", "arm64")


@intrinsic
def _unpack(typing_context, codes, row, scratch, at):
    """Write one row of float16 as float32 to row ``at`` of ``scratch``."""

    def generate(context, builder, signature, arguments):
        codes, row, scratch, at = arguments
        (start,), length = row_starts(context, builder, signature.args[0], codes, row, 1)
        (place,), _ = row_starts(context, builder, signature.args[2], scratch, at, 1)
        with cgutils.for_range_slice(builder, INT64(0), length, INT64(VECTOR_LENGTH)) as (t, _):
            save(builder, halves(builder, start, t), place, t)
        return context.get_dummy_value()

    return types.void(codes, INDEX, scratch, INDEX), generate


@njit(cache=True, nogil=True)
def unpack(codes, begin, width, scratch):
    """Write the rows ``begin .. begin + width`` of float16 as float32 to the first rows of ``scratch``."""
    for j in range(width):
        _unpack(codes, begin + j, scratch, j)


@njit(cache=True, nogil=True)
def chunk_scratch():
    """Scratch buffers, made once for a span."""
    holes = np.empty((3, CHUNK), dtype=np.int64)
    return ChunkScratch(holes, np.arange(CHUNK), np.empty(CHUNK, dtype=np.float32), np.empty(CHUNK, dtype=np.float32))


@njit(cache=True, nogil=True)
def find_living(span, begin, width, scratch):
    """How many of the rows ``begin .. begin + width`` have not left, and how many columns move; errors follow."""
    count, moves = find_holes(span.gone, begin, width, scratch.holes)
    if count < width:
        fill_holes(span.errors, begin, count, scratch.holes, moves, scratch.errors)
    return count, moves


@njit(cache=True, nogil=True)
def absorb_rows(scores, at, span, begin, width, scratch, count, moves, bounded):
    """Add the scores of those of the rows ``begin .. begin + width`` who have not left, with the probes from ``at`` on."""
    rows = slice(begin, begin + width)
    numbers, places = span.numbers[rows], scratch.places
    if count == width:
        absorb_probes(scores, at, width, span.errors[rows], numbers, places, scratch.keys, bounded)
    else:
        move_columns(scores, scratch.holes, moves)
        # Numbers are not copied: few are read, and they would be as much memory as a sixtieth of the codes.
        for k in range(moves):
            places[scratch.holes[0, k]] = scratch.holes[1, k]
        absorb_probes(scores, at, count, scratch.errors, numbers, places, scratch.keys, bounded)
        for k in range(moves):
            places[scratch.holes[0, k]] = scratch.holes[0, k]


@njit(cache=True, nogil=True)
def sweep_codes(span, probes, steps, scores, bounded):
    """Multiply the codes of a span themselves, chunk by chunk; ``steps`` is what a probe's code is worth."""
    codes, scales, _, _, _, first, last = span
    scratch = chunk_scratch()
    for begin in range(first, last, CHUNK):
        width = min(CHUNK, last - begin)
        count, moves = find_living(span, begin, width, scratch)
        if count == 0:
            continue
        for j in range(0, width, VECTOR_LENGTH):
            for i in range(probes.shape[0]):
                multiply_rows(codes, begin + j, last - 1, probes, i, codes.shape[1], scores, j)
        for i in range(probes.shape[0]):
            for j in range(width):
                scores[i, j] *= scales[begin + j] * steps[i]
        absorb_rows(scores, 0, span, begin, width, scratch, count, moves, bounded)


@njit(cache=True, nogil=True)
def sweep_unpacked(span, probes, rows, scores, bounded):
    """Unpack some float16 rows of a span at a time to float32 ``rows`` (UNPACKED, width), and multiply them there."""
    codes, _, _, _, _, first, last = span
    scratch = chunk_scratch()
    for begin in range(first, last, CHUNK):
        width = min(CHUNK, last - begin)
        count, moves = find_living(span, begin, width, scratch)
        if count == 0:
            continue
        for at in range(0, width, UNPACKED):
            size = min(UNPACKED, width - at)
            unpack(codes, begin + at, size, rows)
            multiply(probes, rows, 0, size, scores, at)
        absorb_rows(scores, 0, span, begin, width, scratch, count, moves, bounded)


@njit(cache=True, nogil=True)
def sweep_half_panels(span, tiles, panels, scores, bounded):
    """Pack some float16 rows of a span into float32 panels, and multiply them with some probes at a time."""
    codes, _, _, _, _, first, last = span
    per_pass = PROBES_PER_PASS // PANEL_PROBES
    scratch = chunk_scratch()
    for begin in range(first, last, CHUNK):
        width = min(CHUNK, last - begin)
        count, moves = find_living(span, begin, width, scratch)
        if count == 0:
            continue
        pack_panels(codes, begin, width, panels)
        for tile in range(0, tiles.shape[0], per_pass):
            multiply_panels(panels, width, tiles, tile, min(tile + per_pass, tiles.shape[0]), scores, codes, 0)
            absorb_rows(scores, tile * PANEL_PROBES, span, begin, width, scratch, count, moves, bounded)


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
