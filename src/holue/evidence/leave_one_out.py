"""Leave-one-out evidence: what everybody but one subject says about a probe, each probe leaving out its own.

Taking the own subject out of finished evidence would subtract nearly equal numbers wherever it dominates. Instead the probes are
taken in groups of neighbouring own subjects: the gallery before and after a group is scanned as ever, only the group's own block
is read with one score per probe masked, and the three evidences merge.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from holue.errors import GalleryTooSmallError
from holue.evidence.accumulator import Accumulator
from holue.evidence.block import NOBODY, Block
from holue.evidence.canonical_top import (
    best_of,
    canonical_scores,
    kept_by_kernel,
    rounding_of_scores,
    with_canonical_top,
    with_top_of,
)
from holue.evidence.evidence import NO_SUBJECT, Evidence, concatenate, merge
from holue.evidence.kernels.exponential_sums import absorb_mass, absorb_top
from holue.evidence.scan import scan
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.gallery import Gallery

Rows = npt.NDArray[np.int64]

MASKED_SUBJECTS = 512
MASKED_PROBES = 4096


def evidence_of_others(
    directions: FloatArray,
    own: Rows,
    gallery: Gallery,
    sharpness: npt.ArrayLike,
    *,
    top_k: int = 5,
    threads: int | None = None,
) -> Evidence:
    """Evidence of the gallery without the subject of number ``own[i]`` about probe ``i``; it covers K − 1 subjects.

    >>> z = np.array([[1.0, 0.0], [0.0, 1.0]])
    >>> others = evidence_of_others(z, np.array([0, 1]), Gallery.of(np.array([7, 8]), z), [50.0], top_k=1)
    >>> others.top_index.ravel().tolist(), others.n_subjects
    ([1, 0], 1)
    """
    n_subjects = len(gallery)
    if n_subjects < 2:
        raise GalleryTooSmallError("leaving a subject out needs a gallery of at least 2 subjects, got 1")
    enrolled, numbers = gallery.directions, gallery.numbers
    own = np.searchsorted(numbers, own)
    a = np.atleast_1d(np.asarray(sharpness, dtype=np.float64))
    batches = [replace(Evidence.empty(0, a, top_k), n_subjects=n_subjects - 1)]
    order = np.argsort(own, kind="stable")
    starts = np.searchsorted(own[order], np.arange(0, n_subjects, MASKED_SUBJECTS))
    for first, begin, end in zip(
        range(0, n_subjects, MASKED_SUBJECTS), starts.tolist(), [*starts[1:].tolist(), len(order)]
    ):
        last = min(first + MASKED_SUBJECTS, n_subjects)
        for at in range(begin, end, MASKED_PROBES):
            rows = order[at : min(at + MASKED_PROBES, end)]
            probes = directions[rows]
            parts = [_masked(probes, enrolled[first:last], own[rows] - first, first, a, top_k)]
            for start, stop in ((0, first), (last, n_subjects)):
                if stop > start:
                    outside = scan(probes, enrolled[start:stop], a, top_k=top_k, threads=threads)
                    parts.append(outside.shifted(start))
            batches.append(reduce(merge, parts))
    found = concatenate(batches).take(np.argsort(order))
    named = np.where(found.top_index == NO_SUBJECT, NO_SUBJECT, numbers[found.top_index])
    return replace(found, top_index=named)


def evidence_of_one(score: Float64Array, row: Rows, sharpness: npt.ArrayLike) -> Evidence:
    """Evidence of a single subject per probe, number ``row[i]`` at cosine ``score[i]``; −inf for nobody."""
    a = np.atleast_1d(np.asarray(sharpness, dtype=np.float64))
    there = np.isfinite(score)
    known = np.where(there, score, 0.0)[:, None]
    return Evidence(
        score[:, None],
        np.where(there, row, NO_SUBJECT)[:, None],
        np.where(there[:, None], a * known, -np.inf),
        np.broadcast_to(known, (len(score), len(a))),
        1,
        a,
    )


def _masked(probes: FloatArray, block: FloatArray, own: Rows, first: int, a: Float64Array, top_k: int) -> Evidence:
    """Evidence of a block, whose rows are numbered from ``first``, each probe without its ``own`` row of the block."""
    sums = Accumulator.start(len(probes), a, kept_by_kernel(top_k))
    dtype = np.result_type(probes.dtype, block.dtype, np.float32)
    scores = probes.astype(dtype, copy=False) @ block.astype(dtype, copy=False).T
    scores[np.arange(len(probes)), own] = -np.inf
    numbers = np.arange(first, first + len(block))
    absorb_top(scores, numbers, sums.top_scores, sums.top_index)
    # A masked score may fill a place that nobody else wants.
    sums.top_index[sums.top_scores == -np.inf] = NO_SUBJECT
    absorb_mass(scores, a, sums.peak, sums.mass, sums.moment)
    sums.n_subjects = len(block) - 1
    found = sums.evidence()
    if top_k == 0:
        return found
    asked = np.ascontiguousarray(probes, dtype=np.float64)
    exact = canonical_scores([Block(block, numbers, NOBODY)], found.top_index, asked)
    seen, certain = with_canonical_top(found, exact, top_k, rounding_of_scores(dtype, block.shape[1]))
    uncertain = np.flatnonzero(~certain)
    if len(uncertain):
        others = np.tile(numbers, (len(uncertain), 1))
        others[np.arange(len(uncertain)), own[uncertain]] = NO_SUBJECT
        every = replace(
            seen.take(uncertain),
            top_scores=canonical_scores([Block(block, numbers, NOBODY)], others, asked[uncertain]),
            top_index=others,
        )
        seen = with_top_of(seen, uncertain, best_of(every, top_k))
    return seen
