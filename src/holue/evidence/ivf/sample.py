"""Sample: a few rows of every list, drawn once, packed in one matrix.

The draw is stratified: a list of ``n_l`` rows gives about ``M n_l / K`` of them and at least one, without replacement. The
first row of every list comes first, then the second of every list that gives two, and so on: lists are ordered by size, so
each such level is a run of lists from the first one, and a loop over it is a loop over lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from holue.evidence.ivf.inverted_lists import InvertedLists
from holue.evidence.ivf.kmeans import Float32Array, Rows

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Sample:
    """M rows of the lists: level ``j``, ``vectors[levels[j] : levels[j + 1]]``, is the ``j``-th row of the first lists."""

    at: Rows  # (M,) places among the lists' vectors
    levels: Rows  # (levels + 1,)
    counts: Float32Array  # (L,) q, the rows that each list gives
    vectors: Float32Array  # (M, d)

    @classmethod
    def draw(cls, lists: InvertedLists, n_sample: int, rng: np.random.Generator) -> Self:
        """Draw about ``n_sample`` rows, at least one of every list."""
        wanted = np.rint(n_sample * lists.sizes / len(lists.rows)).astype(np.int64)
        counts = np.minimum(np.maximum(wanted, 1), lists.sizes)
        label = np.repeat(np.arange(len(lists)), lists.sizes)
        shuffled = np.lexsort((rng.random(len(label)), label))
        place = np.arange(len(label)) - lists.starts[:-1][label]
        chosen = place < counts[label]
        # Stable, so that within a level the lists stay in their order.
        return cls.from_places(lists, shuffled[chosen][np.argsort(place[chosen], kind="stable")])

    @classmethod
    def from_places(cls, lists: InvertedLists, at: Rows) -> Self:
        """The sample at known places among the lists' vectors, level after level."""
        label = np.searchsorted(lists.starts, at, side="right") - 1
        counts = np.bincount(label, minlength=len(lists))
        widths = [int((counts > level).sum()) for level in range(int(counts.max()))]
        return cls(at, np.concatenate([[0], np.cumsum(widths)]), counts.astype(np.float32), lists.vectors[at])

    def __len__(self) -> int:
        return len(self.at)

    @cached_property
    def reach(self) -> float:
        """The greatest sharpness whose error the sample itself can tell: ``√(2 ln M) / 2σ``.

        The variance of ``e^{a s}`` is made by scores about ``2 a σ²`` above the mean, which is ``2 a σ`` deviations;
        among M rows the farthest is at about ``√(2 ln M)``. Beyond that the sample holds none of the rows that matter,
        and its variance lies. ``σ² = tr(Σ S)`` is the variance of a typical row's scores, S the second moment of the rows
        and Σ their covariance.
        """
        x = self.vectors.astype(np.float64)
        moment, mean = x.T @ x / len(x), x.mean(axis=0)
        variance = np.einsum("ij,ij->", moment - np.outer(mean, mean), moment)
        return float(np.sqrt(np.log(len(x)) / (2 * variance))) if variance > 0 else np.inf
