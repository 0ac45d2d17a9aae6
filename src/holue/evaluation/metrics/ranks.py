"""Ranks: where a mated probe's own subject stands among its candidates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holue.errors import InvalidInputError, InvalidParameterError, InvalidSubjectsError
from holue.evaluation.columns import numbers, same_length, subject_ids
from holue.evaluation.metrics.undefined import undefined

NOT_RETURNED = 0
"""The rank of a subject that is not among the candidates."""


def subject_rank(candidates: ArrayLike, subject: ArrayLike) -> NDArray[np.int64]:
    """Rank of each probe's own subject among its candidates: 1 for the best, ``NOT_RETURNED`` (0) if absent.

    ``candidates`` holds subject ids, best first, shape (n, k).

    >>> subject_rank([["ann", "bob"], ["ann", "bob"], ["ann", "bob"]], ["ann", "bob", "eve"])
    array([1, 2, 0])
    """
    rows: NDArray[Any] = np.asarray(candidates)
    if rows.ndim != 2:
        raise InvalidInputError(
            f"candidates must have a row of subject ids per probe, shape (n, k); got shape {rows.shape}"
        )
    own = subject_ids(subject)
    same_length(candidates=rows, subject=own)
    if (rows.dtype.kind in "US") != (own.dtype.kind in "US") and "O" not in (rows.dtype.kind, own.dtype.kind):
        raise InvalidSubjectsError(
            f"candidates and subject must be ids of one type; got {rows.dtype} and {own.dtype}: convert one"
        )
    if rows.shape[1] == 0:
        return np.full(len(rows), NOT_RETURNED, dtype=np.int64)
    hits = np.equal(rows, own[:, None])
    return np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, NOT_RETURNED).astype(np.int64)


def fnir_at_rank(rank: ArrayLike, score: ArrayLike, *, max_rank: int = 1, threshold: float = -math.inf) -> float:
    """FNIR(N, R, T): share of mated probes whose own subject is not among the R best at or above T.

    ``FNIR(N, R, T) = |{p mated : rank(p) > R or score(p) < T}| / |{p mated}|`` (ISO/IEC 19795-1),
    ``rank`` and ``score`` those of each mated probe's own subject (``NOT_RETURNED`` where it has none).
    Give the mated probes only.

    >>> fnir_at_rank([1, 2, 1, 0], [0.9, 0.8, 0.3, 0.0], max_rank=2, threshold=0.5)
    0.5
    """
    _check_max_rank(max_rank)
    if len(np.atleast_1d(rank)) == 0:
        return undefined("fnir", "there is no mated probe")
    ranks, scores = _ranks(rank), numbers("score", score)
    same_length(rank=ranks, score=scores)
    found = (ranks != NOT_RETURNED) & (ranks <= max_rank) & (scores >= threshold)
    return float(1 - found.mean())


def cmc(rank: ArrayLike, *, max_rank: int) -> NDArray[np.float64]:
    """Cumulative match characteristic: share of mated probes found at rank 1, within 2, ... ``max_rank``.

    ``CMC(R) = |{p mated : rank(p) ≤ R}| / |{p mated}|``, without a threshold. Give the mated probes only;
    without any the curve is NaN, with an ``UndefinedMetricWarning``.

    >>> cmc([1, 3, 2, 0], max_rank=3)
    array([0.25, 0.5 , 0.75])
    """
    _check_max_rank(max_rank)
    if len(np.atleast_1d(rank)) == 0:
        return np.full(max_rank, undefined("cmc", "there is no mated probe"))
    ranks = _ranks(rank)
    hits = np.bincount(np.minimum(ranks, max_rank + 1), minlength=max_rank + 2)[1 : max_rank + 1]
    return np.cumsum(hits) / len(ranks)


def _ranks(rank: ArrayLike) -> NDArray[np.int64]:
    rows = numbers("rank", rank)
    wrong = (rows < 0) | (rows != np.floor(rows)) | ~np.isfinite(rows)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInputError(
            f"rank must be a whole number, 1 for the best candidate or {NOT_RETURNED} where the subject "
            f"was not returned; row {row} is {rows[row]}"
        )
    return rows.astype(np.int64)


def _check_max_rank(max_rank: int) -> None:
    if isinstance(max_rank, bool) or max_rank != int(max_rank) or max_rank < 1:
        raise InvalidParameterError(f"max_rank must be a whole number of at least 1; got {max_rank!r}")
