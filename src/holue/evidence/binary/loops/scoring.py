"""Scoring: canonical scores of the rows that probes have listed."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.binary.loops.estimate_loops import Listing
from holue.evidence.kernels.canonical_scores import canonical_score
from holue.evidence.kernels.simd import INT64, prefetch, row_starts
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.sphere.compiled import njit

AHEAD = 4
"""Rows between what is scored and what is prefetched."""
_LINE = 64  # bytes


@intrinsic
def _prefetch_row(typing_context, rows, row):
    """Prefetch a row of a contiguous matrix."""

    def generate(context, builder, signature, arguments):
        (start,), width = row_starts(context, builder, signature.args[0], *arguments, 1)
        each = _LINE // (signature.args[0].dtype.bitwidth // 8)
        with cgutils.for_range_slice(builder, INT64(0), width, INT64(each)) as (t, _):
            prefetch(builder, builder.gep(start, [t]), 0)
        return context.get_dummy_value()

    return types.void(rows, types.intp), generate


@njit(cache=True, nogil=True)
def _score(exact, start, probes, keys, rows, filled, levels, scores):
    wanted = np.empty(keys.shape[1], dtype=np.int64)
    for i in range(probes.shape[0]):
        count = 0
        for j in range(filled[i]):
            row = rows[i, j] - start
            if keys[i, j] > levels[i] and 0 <= row < exact.shape[0] and np.isnan(scores[i, j]):
                wanted[count] = j
                count += 1
        for number in range(min(AHEAD, count)):
            _prefetch_row(exact, rows[i, wanted[number]] - start)
        for number in range(count):
            if number + AHEAD < count:
                _prefetch_row(exact, rows[i, wanted[number + AHEAD]] - start)
            j = wanted[number]
            scores[i, j] = canonical_score(exact, rows[i, j] - start, probes, i)


def score_listed(
    exact: FloatArray,
    start: int,
    probes: Float64Array,
    listing: Listing,
    levels: npt.NDArray[Any],
    scores: Float64Array,
) -> None:
    """Write the canonical scores of listed rows with keys above each probe's level, where there is none yet.

    ``exact`` are the rows of one part, whose first has the place ``start`` among all.
    """
    if exact.dtype.char in "fd" and exact.flags.c_contiguous:
        _score(exact, start, probes, listing.keys, listing.rows, listing.filled, levels, scores)
        return
    for i in range(len(probes)):  # copy the few rows that are wanted
        filled = listing.filled[i]
        rows = listing.rows[i, :filled] - start
        wanted = (
            (listing.keys[i, :filled] > levels[i]) & (rows >= 0) & (rows < len(exact)) & np.isnan(scores[i, :filled])
        )
        places = np.flatnonzero(wanted)
        few = np.ascontiguousarray(exact[rows[places]], dtype=np.result_type(exact.dtype, np.float32))
        for place, j in enumerate(places):
            scores[i, j] = canonical_score(few, place, probes, i)
