"""Agreement: how much the samples of two subjects agree with each other, compared with the samples of one.

With m_c samples of length 1, their sum S_c and the mean cosine of two different ones,

    within_c     = (‖S_c‖² − m_c) / (m_c (m_c − 1))
    between_ab   = S_a · S_b / (m_a m_b)
    agreement_ab = between_ab − (within_a + within_b) / 2

the agreement of two subjects who are one person is about 0, however many samples each has and however much that person varies;
that of two people is negative. The cosine of two templates has neither property: it grows with the number of samples, and
people whose samples vary little are close to their neighbours. What people enrolled twice look like is read off the gallery
itself: every subject with two samples is split in two halves, and the halves are compared as two subjects are.

A medium (one video, say) counts as one sample, the mean of its own. ``within`` of few samples is uncertain: it is averaged
with one pair of the typical cosine, which also stands in for subjects of one sample.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.gallery.left_out import LeftOut, Rows, summed


@dataclass(frozen=True, eq=False)
class Agreement:
    """Sums of the samples of each subject, and how much those agree among themselves."""

    count: Float64Array  # (K,) samples, or media
    length: Float64Array  # (K,) of their sum
    within: Float64Array  # (K,) mean cosine of two of them
    of_halves: Float64Array  # agreement of the halves of every subject that has two samples

    @classmethod
    def of(cls, left: LeftOut) -> Agreement | None:
        """From the samples that count in the templates; None where no subject has two of them.

        >>> samples = [[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [0.0, 1.0]]
        >>> agreement = Agreement.of(LeftOut.of(samples, ["ann", "ann", "bob", "bob"]))
        >>> agreement.count.tolist(), agreement.within.round(2).tolist()
        ([2.0, 2.0], [0.85, 0.95])
        """
        media, medium = np.unique(left.medium[left.weight > 0], return_inverse=True)
        rows = np.flatnonzero(left.weight > 0)
        samples, weight = left.samples.take(rows), left.weight[rows]
        means = summed(samples, medium, weight, len(media))
        row = left.row[rows][np.unique(medium, return_index=True)[1]]
        n_subjects = len(left.gallery)
        count = np.bincount(row, minlength=n_subjects).astype(np.float64)
        if not (count > 1).any():
            return None
        own = np.einsum("ij,ij->i", means, means)
        total = left.length**2 - np.bincount(row, own, minlength=n_subjects)
        typical = float(np.median(total[count > 1] / (count * (count - 1))[count > 1]))
        half = 2 * row + _turn(row) % 2
        sums = np.zeros((2 * n_subjects, means.shape[1]))
        np.add.at(sums, half, means)
        half_count = np.bincount(half, minlength=2 * n_subjects).astype(np.float64)
        half_total = np.einsum("ij,ij->i", sums, sums) - np.bincount(half, own, minlength=2 * n_subjects)
        half_within = _within(half_total, half_count, typical)
        split = np.flatnonzero(count > 1)
        one, two = 2 * split, 2 * split + 1
        between = np.einsum("ij,ij->i", sums[one], sums[two]) / (half_count[one] * half_count[two])
        return cls(
            count,
            left.length,
            _within(total, count, typical),
            between - (half_within[one] + half_within[two]) / 2,
        )

    def between(self, near: Rows, cosine: Float64Array) -> Float64Array:
        """Agreement (K, k) of every subject with its ``near`` ones, whose templates have these cosines."""
        mean = self.length / self.count
        return np.asarray(mean[:, None] * mean[near] * cosine - (self.within[:, None] + self.within[near]) / 2)


def _within(total: Float64Array, count: Float64Array, typical: float) -> Float64Array:
    """Mean cosine of two, averaged with one typical pair; ``total`` is the sum over ordered pairs."""
    return np.asarray((total / 2 + typical) / (count * (count - 1) / 2 + 1))


def _turn(row: Rows) -> Rows:
    """The place of each sample among those of its subject: 0, 1, 2, …"""
    order = np.argsort(row, kind="stable")
    count = np.bincount(row)
    turn = np.empty(len(row), dtype=np.int64)
    turn[order] = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return turn
