"""Scoring: canonical scores of the rows that probes have listed."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
# Compiled functions have no Python types to check.

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from holue.evidence.binary.estimate_loops import Listing
from holue.evidence.kernels.canonical_scores import canonical_score
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.sphere.compiled import njit


@njit(cache=True, nogil=True)
def _score(exact, start, probes, keys, rows, filled, levels, scores):
    for i in range(probes.shape[0]):
        for j in range(filled[i]):
            row = rows[i, j] - start
            if keys[i, j] > levels[i] and 0 <= row < exact.shape[0] and np.isnan(scores[i, j]):
                scores[i, j] = canonical_score(exact, row, probes, i)


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
