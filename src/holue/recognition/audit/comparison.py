"""Comparison: every sample against its own subject without it, and against the best other subject."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.gallery.left_out import LeftOut, Mask, Rows
from holue.recognition.calibration.leave_one_out import stranger_scores


@dataclass(frozen=True, eq=False)
class Comparison:
    """Scores of n samples, and the weight of each when every subject is probed equally often."""

    left: LeftOut
    other_score: Float64Array  # (n,)
    other: Rows  # (n,) gallery row of the best other subject

    @classmethod
    def of(cls, left: LeftOut, threads: int | None = None) -> Comparison:
        """One pass over the gallery."""
        return cls(left, *stranger_scores(left, threads))

    @cached_property
    def weight(self) -> Float64Array:
        """``1 / (K m_c)``: sums of it are shares of probes."""
        count = np.bincount(self.left.row, minlength=len(self.left.gallery))
        return np.asarray(1.0 / (len(count) * count[self.left.row]))

    def taken(self, threshold: float) -> Mask:
        """Samples that would be accepted as the best other subject."""
        return np.asarray((self.other_score >= threshold) & (self.other_score > self.left.own_score))

    def failed(self, threshold: float) -> Mask:
        """Mated probes that would be rejected or taken for another."""
        own = self.left.own_score
        return self.left.paired & ((own < threshold) | (own < self.other_score))

    def share(self, samples: Mask) -> float:
        """The weight of some samples."""
        return float(self.weight[samples].sum())

    def arbitrary_other(self) -> Float64Array:
        """Score of every sample to the subject enrolled next to its own: somebody, for no reason."""
        left = self.left
        next_row = (left.row + 1) % len(left.gallery)
        directions = left.gallery.directions
        scores = [
            np.einsum("ij,ij->i", left.samples.directions[part], directions[next_row[part]])
            for part in (slice(first, first + 8192) for first in range(0, len(left), 8192))
        ]
        return np.concatenate(scores).astype(np.float64)
