"""Accumulator: the running top and sums of some probes over the gallery blocks seen so far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.evidence.evidence import NO_SUBJECT, Evidence
from holue.evidence.kernels.binned_sums import (
    SINGLE_BINS,
    add_bins,
    slopes,
    subtract_double,
    subtract_single,
    summed_sharpness,
)
from holue.evidence.kernels.exponential_sums import RunningSums, absorb_cosines, absorb_linked, add_top
from holue.evidence.reproducible_sums import ReproducibleSums
from holue.gallery.embeddings import Float64Array

Int64Array = npt.NDArray[np.int64]

_NO_NUMBERS = np.empty(0, dtype=np.int64)


@dataclass
class Accumulator:
    """Mutable, and private to one thread."""

    sharpness: Float64Array
    top_scores: Float64Array
    top_index: Int64Array
    peak: Float64Array
    window: Int64Array
    bins: Int64Array
    n_subjects: int = 0

    @classmethod
    def start(cls, n_probes: int, sharpness: Float64Array, top_k: int, n_bins: int = SINGLE_BINS) -> Accumulator:
        """Nothing seen yet."""
        nothing = ReproducibleSums.empty(n_probes, len(sharpness), n_bins, 0)
        return cls(
            sharpness,
            np.full((n_probes, top_k), -np.inf),
            np.full((n_probes, top_k), NO_SUBJECT, dtype=np.int64),
            np.full(n_probes, -np.inf),
            nothing.window,
            nothing.bins,
        )

    @property
    def n_bins(self) -> int:
        """Bins of its sums: three of float32 scores, four of float64."""
        return int(self.bins.shape[3])

    @property
    def arrays(self) -> RunningSums:
        """As the loops over float32 scores take them."""
        return RunningSums(self.top_scores, self.top_index, slopes(self.sharpness), self.peak, self.window, self.bins)

    def rows(self, rows: slice) -> Accumulator:
        """A view of some probes: what is added to it is added here, except the count of subjects."""
        return Accumulator(
            self.sharpness,
            self.top_scores[rows],
            self.top_index[rows],
            self.peak[rows],
            self.window[rows],
            self.bins[rows],
        )

    def add(self, other: Accumulator) -> None:
        """Take in what another thread saw."""
        add_top(other.top_scores, other.top_index, self.top_scores, self.top_index)
        add_bins(self.window, self.bins, other.window, other.bins)
        np.maximum(self.peak, other.peak, out=self.peak)
        self.n_subjects += other.n_subjects

    def absorb(self, scores: npt.NDArray[np.floating[Any]]) -> None:
        """Add scores (n, b) to the sums alone."""
        if self.n_bins == SINGLE_BINS:
            nobody = replace(self, top_scores=self.top_scores[:, :0], top_index=self.top_index[:, :0])
            absorb_cosines(scores, scores.shape[1], _NO_NUMBERS, nobody.arrays)
        else:
            absorb_linked(scores, summed_sharpness(self.sharpness, self.n_bins), self.window, self.bins)

    def subtract(self, scores: npt.NDArray[np.floating[Any]]) -> None:
        """Take scores (n, b), which were added before and are not the highest alone, out of the sums."""
        if self.n_bins == SINGLE_BINS:
            subtract_single(scores, slopes(self.sharpness), self.window, self.bins)
        else:
            subtract_double(scores, summed_sharpness(self.sharpness, self.n_bins), self.window, self.bins)

    def evidence(
        self,
        top_scores: Float64Array,
        top_index: Int64Array,
        summed: Float64Array,
    ) -> Evidence:
        """What was seen, as evidence with this top, whose scores were ``summed`` as it says."""
        single = self.n_bins == SINGLE_BINS
        sums = ReproducibleSums(self.window, self.bins, summed.astype(np.float32) if single else summed)
        return Evidence.of_sums(top_scores, top_index, sums, self.n_subjects, self.sharpness)
