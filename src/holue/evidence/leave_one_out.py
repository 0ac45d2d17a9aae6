"""Leave-one-out evidence: what everybody but one subject says about a probe, each probe leaving out its own.

Taking the own subject out of finished evidence would subtract nearly equal numbers wherever it dominates. Instead the probes are
taken in groups of neighbouring own subjects: the gallery before and after a group is scanned as ever, only the group's own block
is read with one score per probe masked, and the three evidences merge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np
import numpy.typing as npt

from holue.errors import GalleryTooSmallError
from holue.evidence.accumulator import Accumulator
from holue.evidence.canonical_top import best_places
from holue.evidence.evidence import NO_SUBJECT, Evidence, concatenate, merge
from holue.evidence.kernels.kernel import LinkedKernel, kernel_for
from holue.evidence.link import cosine_link
from holue.evidence.scan import scan
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.gallery import Gallery

Rows = npt.NDArray[np.int64]

MASKED_SUBJECTS = 512
MASKED_PROBES = 4096


@dataclass(frozen=True, eq=False)
class Group:
    """Probes whose own subjects are neighbours: rows ``first`` to ``last`` of the gallery."""

    probes: FloatArray
    own: Rows  # the row of each probe's own subject
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked about every group."""

    sharpness: Float64Array
    top_k: int


Join = Callable[[Sequence[Group], FloatArray, Question], list[Evidence]]
"""Gives the evidence of all rows about each group; wherever it is computed, its bits are those of :func:`evidence_of_rows`."""

_join: ContextVar[Join | None] = ContextVar("join", default=None)


@contextmanager
def joined_by(join: Join) -> Iterator[None]:
    """Have ``join`` compare probes with the gallery while the context lasts, on other machines for example."""
    token = _join.set(join)
    try:
        yield
    finally:
        _join.reset(token)


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
    order = np.argsort(own, kind="stable")
    groups, question = list(_groups(directions, own, order, n_subjects)), Question(a, top_k)
    join = _join.get()
    if join is None:
        batches = [evidence_of_rows(group, enrolled, 0, question, threads) for group in groups]
    else:
        batches = join(groups, enrolled, question)
    batches = [replace(Evidence.empty(0, a, top_k), n_subjects=n_subjects - 1), *batches]
    found = concatenate(batches).take(np.argsort(order))
    named = np.where(found.top_index == NO_SUBJECT, NO_SUBJECT, numbers[found.top_index])
    return replace(found, top_index=named)


def evidence_of_rows(
    group: Group, rows: FloatArray, begin: int, question: Question, threads: int | None = None
) -> Evidence:
    """Evidence about a group of some rows of the gallery, the first of which is ``begin``; each probe leaves out its own.

    The own subjects of a group are all among the rows, or none is. The evidence of several runs of rows merges into that of all.
    """
    a, top_k, end = question.sharpness, question.top_k, begin + len(rows)
    first, last = min(max(group.first, begin), end), max(min(group.last, end), begin)
    if last <= first:  # the own subjects are elsewhere
        return scan(group.probes, rows, a, top_k=top_k, threads=threads).shifted(begin)
    parts = [_masked(group.probes, rows[first - begin : last - begin], group.own - first, first, a, top_k)]
    for start, stop in ((begin, first), (last, end)):
        if stop > start:
            outside = scan(group.probes, rows[start - begin : stop - begin], a, top_k=top_k, threads=threads)
            parts.append(outside.shifted(start))
    merged: Evidence = reduce(merge, parts)
    return merged


def _groups(directions: FloatArray, own: Rows, order: Rows, n_subjects: int) -> Iterator[Group]:
    starts = np.searchsorted(own[order], np.arange(0, n_subjects, MASKED_SUBJECTS))
    for first, begin, end in zip(
        range(0, n_subjects, MASKED_SUBJECTS), starts.tolist(), [*starts[1:].tolist(), len(order)]
    ):
        last = min(first + MASKED_SUBJECTS, n_subjects)
        for at in range(begin, end, MASKED_PROBES):
            rows = order[at : min(at + MASKED_PROBES, end)]
            yield Group(directions[rows], own[rows], first, last)


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
    dtype = np.result_type(probes.dtype, block.dtype, np.float32)
    kernel = kernel_for(np.ascontiguousarray(probes, dtype=dtype), cosine_link, a)
    sums = Accumulator.start(len(probes), a, 0, kernel.n_bins)
    sums.n_subjects = len(block) - 1
    each, summed = np.arange(len(probes)), kernel.scores(block)
    if len(block) > 1:
        # The own term may be too great for the sums of the others: another subject's stands in for it, and is taken out again.
        stand_in = summed[each, (own + 1) % len(block)]
        kept = summed.copy()
        kept[each, own] = stand_in
        sums.absorb(kept)
        sums.subtract(stand_in[:, None])
    numbers = np.tile(np.arange(first, first + len(block)), (len(probes), 1))
    numbers[each, own] = NO_SUBJECT
    asked = np.ascontiguousarray(probes, dtype=np.float64)
    exact = LinkedKernel(asked, cosine_link).scores(block)
    top_scores, top_index, places = best_places(exact, numbers, top_k)
    found = np.where(top_index == NO_SUBJECT, -np.inf, np.take_along_axis(summed, places, axis=1))
    return sums.evidence(top_scores, top_index, found)
