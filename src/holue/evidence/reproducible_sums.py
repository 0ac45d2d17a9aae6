"""ReproducibleSums: the sums behind a log-mass and a mean score, the same bits however a gallery is split, ordered and merged.

What is added up is a function of a probe and a row alone, and added without rounding (``kernels/binned_sums.py``). The top of a
gallery has better scores than those that were summed: log-mass and mean score count those in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.evidence.kernels.binned_sums import (
    EMPTY,
    SINGLE_BINS,
    add_bins,
    close_sums,
    slopes,
    subtract_double,
    subtract_single,
    summed_sharpness,
)

Float64Array = npt.NDArray[np.float64]
Int64Array = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ReproducibleSums:
    """Sums of n probes at m sharpnesses, and the scores of the top k as they were summed."""

    window: Int64Array  # (n, m) the power of two that the highest bin ends at
    bins: Int64Array  # (n, 2, m, bins) of Σ e^{a g} and of Σ g e^{a g}
    summed: npt.NDArray[np.floating[Any]]  # (n, k) g of the top; float32 cosines, or float64; −inf where unfilled

    @classmethod
    def empty(cls, n_probes: int, n_sharpness: int, n_bins: int, top_k: int) -> ReproducibleSums:
        """No term."""
        return cls(
            np.full((n_probes, n_sharpness), EMPTY),
            np.zeros((n_probes, 2, n_sharpness, n_bins), dtype=np.int64),
            np.full((n_probes, top_k), -np.inf, dtype=np.float32 if n_bins == SINGLE_BINS else np.float64),
        )

    @property
    def n_bins(self) -> int:
        """Three of float32 scores, four of float64."""
        return int(self.bins.shape[3])

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> ReproducibleSums:
        """The sums of some of the probes."""
        return ReproducibleSums(self.window[rows], self.bins[rows], self.summed[rows])

    def columns(self, columns: slice) -> ReproducibleSums:
        """The sums at some of the sharpnesses."""
        return ReproducibleSums(self.window[:, columns], self.bins[:, :, columns], self.summed)

    def plus(self, other: ReproducibleSums, summed: npt.NDArray[np.floating[Any]]) -> ReproducibleSums:
        """The sums of two disjoint parts, whose top together was ``summed`` as it says."""
        window, bins = self.window.copy(), self.bins.copy()
        add_bins(window, bins, other.window, other.bins)
        return ReproducibleSums(window, bins, summed)

    def close(self, sharpness: Float64Array, top: Float64Array, n_subjects: int) -> tuple[Float64Array, Float64Array]:
        """Log-mass and mean score (n, m) with the scores ``top`` (n, k) in place of those that were summed."""
        rest, summed_at = self.bins.copy(), summed_sharpness(sharpness, self.n_bins)
        if self.n_bins == SINGLE_BINS:
            subtract_single(np.ascontiguousarray(self.summed), slopes(sharpness), self.window, rest)
        else:
            top = self.summed.astype(np.float64, copy=False)  # canonical scores already
            subtract_double(top, summed_at, self.window, rest)
        log_mass, mean_score = np.empty(self.window.shape), np.empty(self.window.shape)
        close_sums(sharpness, summed_at, self.window, rest, top, n_subjects, log_mass, mean_score)
        return log_mass, mean_score


def concatenate_sums(parts: Sequence[ReproducibleSums | None]) -> ReproducibleSums | None:
    """Sums of batches of probes, one after another; None where some have none, or of other scores."""
    given = [part for part in parts if part is not None]
    shapes = {(part.n_bins, part.summed.shape[1]) for part in given}
    if len(given) < len(parts) or len(shapes) != 1:
        return None
    each = ([getattr(part, field.name) for part in given] for field in fields(ReproducibleSums))
    return ReproducibleSums(*map(np.concatenate, each))
