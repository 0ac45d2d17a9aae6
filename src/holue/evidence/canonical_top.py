"""Canonical top: the best subjects of each probe by canonical score, equal scores by the smaller number.

One rule decides every tie, whatever kernel, batch size, thread or part of the gallery found the subjects. A kernel finds
some more subjects than are wanted. They are scored again (``canonical_scores.py``), and the best of them are the top if no
other subject can reach the last of them: a kernel's score is at most a known rounding below the canonical one. Where one could
(more subjects within a rounding than were kept), all subjects are scored canonically for that probe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.evidence.accumulator import Accumulator
from holue.evidence.block import NOBODY as NOBODY  # for the doctest
from holue.evidence.block import Block, read_only
from holue.evidence.evidence import NO_SUBJECT, Evidence
from holue.evidence.kernels.canonical_scores import score_numbers, select_top
from holue.evidence.threads.thread_pool import parallel_map, slices
from holue.gallery.embeddings import Float64Array

FEWEST_SPARE, SPARE_SHARE = 8, 1 / 8
"""Subjects a kernel keeps beside those wanted, at least and per wanted one: farther down the scores lie closer together."""

Rows = npt.NDArray[np.int64]


def kept_by_kernel(top_k: int) -> int:
    """How many subjects a kernel has to keep so that the best ``top_k`` can be told.

    >>> kept_by_kernel(0), kept_by_kernel(5), kept_by_kernel(2000)
    (0, 13, 2250)
    """
    return top_k + max(FEWEST_SPARE, int(top_k * SPARE_SHARE)) if top_k else 0


def rounding_of_scores(dtype: npt.DTypeLike, dim: int) -> float:
    """At most how far a kernel's score of unit vectors, summed in any order, is from the canonical one.

    Every term is rounded at most d + 1 times, by at most ε/2 each (Higham, Accuracy and Stability, 3.1). Twice that, because
    unit vectors have a length of 1 only up to their own rounding.
    """
    return float((dim + 2) * np.finfo(dtype).eps)


def canonical_scores(blocks: Sequence[Block], wanted: Rows, probes: Float64Array, workers: int = 1) -> Float64Array:
    """The canonical scores (n, R) of every probe with its own ``wanted`` (n, R) numbers; −inf where nobody has the number.

    >>> canonical_scores([Block(np.eye(2), np.array([5, 6]), NOBODY)], np.array([[6, -1]]), np.array([[0.6, 0.8]]))
    array([[ 0.8, -inf]])
    """
    each = slices(len(probes), workers)
    if len(each) == 1:
        return _scores(blocks, wanted, probes)
    return np.concatenate(parallel_map(lambda own: _scores(blocks, wanted[own], probes[own]), each))


def _scores(blocks: Sequence[Block], wanted: Rows, probes: Float64Array) -> Float64Array:
    scores = np.full(wanted.shape, -np.inf)
    for rows, numbers, gone in blocks:
        if rows.dtype.char in "fd" and rows.flags.c_contiguous:
            score_numbers(read_only(rows), numbers, gone, wanted, probes, scores)
        else:  # copy the few rows that are wanted, not the segment
            few = np.searchsorted(numbers, np.unique(wanted))
            few = np.unique(few[few < len(numbers)])
            copied = np.ascontiguousarray(rows[few], dtype=np.result_type(rows.dtype, np.float32))
            score_numbers(read_only(copied), numbers[few], gone[few] if len(gone) else gone, wanted, probes, scores)
    return scores


def with_canonical_top(
    found: Accumulator, exact: Float64Array, top_k: int, rounding: float
) -> tuple[Evidence, npt.NDArray[np.bool_]]:
    """Evidence with the best ``top_k`` of those a kernel ``found``, whose canonical scores are ``exact`` (n, R).

    Also for which probes (n,) no other subject can be among them. The sums count the canonical scores in place of the kernel's,
    so that no probability exceeds 1.
    """
    n, kept = exact.shape
    top_scores, top_index, places = best_places(exact, found.top_index, top_k)
    summed = np.where(top_index == NO_SUBJECT, -np.inf, np.take_along_axis(found.top_scores, places, axis=1))
    seen = found.evidence(top_scores, top_index, summed)
    if found.n_subjects <= kept:
        return seen, np.ones(n, dtype=bool)
    return seen, top_scores[:, -1] > found.top_scores[:, -1] + rounding


def best_of(seen: Evidence, top_k: int) -> Evidence:
    """Evidence with the best ``top_k`` of its subjects, which may be in any order.

    >>> some = replace(Evidence.empty(1, [], 3), top_scores=np.array([[0.5, 0.7, 0.7]]), top_index=np.array([[1, 4, 3]]))
    >>> best_of(some, 2).top_index
    array([[3, 4]])
    """
    top_scores, top_index, _ = best_places(seen.top_scores, seen.top_index, top_k)
    return replace(seen, top_scores=top_scores, top_index=top_index)


def best_places(scores: npt.NDArray[np.floating[Any]], subjects: Rows, top_k: int) -> tuple[Float64Array, Rows, Rows]:
    """The best ``top_k`` of some subjects (n, R) by score: their scores, their numbers, and their places among these."""
    shape = len(scores), top_k
    top_scores, top_index, places = np.full(shape, -np.inf), np.full(shape, NO_SUBJECT), np.zeros(shape, dtype=np.int64)
    select_top(scores, subjects, top_scores, top_index, places)
    return top_scores, top_index, places


def with_top_of(
    seen: Evidence,
    probes: npt.NDArray[np.integer[Any]],
    top_scores: Float64Array,
    top_index: Rows,
    summed: npt.NDArray[np.floating[Any]],
) -> Evidence:
    """Evidence of an exact scan with another top of some probes, whose scores were ``summed`` as it says."""
    assert seen.sums is not None
    new = seen.top_scores.astype(np.float64), seen.top_index.copy(), seen.sums.summed.copy()
    for values, better in zip(new, (top_scores, top_index, summed)):
        values[probes] = better
    return Evidence.of_sums(new[0], new[1], replace(seen.sums, summed=new[2]), seen.n_subjects, seen.sharpness)
