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

from holue.evidence.kernels.exponential_sums import _INDEX, CHUNK, multiply
from holue.evidence.kernels.packed_panels import PANEL_PROBES, PROBES_PER_PASS, multiply_panels, pack_panels
from holue.evidence.kernels.row_products import halves, multiply_rows
from holue.evidence.kernels.simd import INT64, VECTOR_LENGTH, row_starts, save
from holue.evidence.quantized.bounded_loops import absorb_probes, absorb_scores
from holue.sphere.compiled import njit


class Span(NamedTuple):
    """The rows ``first .. last`` of a compressed part, which begins at subject ``first_subject`` of the gallery."""

    codes: npt.NDArray[np.generic]
    scales: npt.NDArray[np.float32]
    errors: npt.NDArray[np.float32]
    first: int
    last: int
    first_subject: int


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

    return types.void(codes, _INDEX, scratch, _INDEX), generate


@njit(cache=True, nogil=True)
def unpack(codes, begin, width, scratch):
    """Write the rows ``begin .. begin + width`` of float16 as float32 to the first rows of ``scratch``."""
    for j in range(width):
        _unpack(codes, begin + j, scratch, j)


@njit(cache=True, nogil=True)
def sweep_codes(span, probes, steps, scores, bounded):
    """Multiply the codes of a span themselves, chunk by chunk; ``steps`` is what a probe's code is worth."""
    codes, scales, errors, first, last, first_subject = span
    scratch = np.empty(CHUNK, dtype=np.float32)
    for begin in range(first, last, CHUNK):
        width = min(CHUNK, last - begin)
        for j in range(0, width, VECTOR_LENGTH):
            for i in range(probes.shape[0]):
                multiply_rows(codes, begin + j, last - 1, probes, i, codes.shape[1], scores, j)
        for i in range(probes.shape[0]):
            for j in range(width):
                scores[i, j] *= scales[begin + j] * steps[i]
        absorb_scores(scores, width, errors, begin, first_subject + begin, scratch, bounded)


@njit(cache=True, nogil=True)
def sweep_unpacked(span, probes, rows, scores, bounded):
    """Unpack some float16 rows of a span at a time to float32 ``rows`` (UNPACKED, width), and multiply them there."""
    codes, _, errors, first, last, first_subject = span
    scratch = np.empty(CHUNK, dtype=np.float32)
    for begin in range(first, last, CHUNK):
        width = min(CHUNK, last - begin)
        for at in range(0, width, UNPACKED):
            size = min(UNPACKED, width - at)
            unpack(codes, begin + at, size, rows)
            multiply(probes, rows, 0, size, scores, at)
        absorb_scores(scores, width, errors, begin, first_subject + begin, scratch, bounded)


@njit(cache=True, nogil=True)
def sweep_half_panels(span, tiles, panels, scores, bounded):
    """Pack some float16 rows of a span into float32 panels, and multiply them with some probes at a time."""
    codes, _, errors, first, last, first_subject = span
    per_pass = PROBES_PER_PASS // PANEL_PROBES
    scratch = np.empty(CHUNK, dtype=np.float32)
    for begin in range(first, last, CHUNK):
        width = min(CHUNK, last - begin)
        pack_panels(codes, begin, width, panels)
        for tile in range(0, tiles.shape[0], per_pass):
            multiply_panels(panels, width, tiles, tile, min(tile + per_pass, tiles.shape[0]), scores, codes, 0)
            at, subject = tile * PANEL_PROBES, first_subject + begin
            absorb_probes(scores, at, width, errors, begin, subject, scratch, bounded)


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
