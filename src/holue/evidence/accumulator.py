"""Accumulator: the running sums of some probes over the gallery blocks seen so far.

It keeps per probe the running maximum ``p`` and, per sharpness ``a``, ``Σ e^{a(g−p)}`` and ``Σ (g−p) e^{a(g−p)}``. Everything
is relative to the running maximum, so nothing overflows at any concentration, and both sums are in float64 whatever the
gallery's precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.evidence.evidence import NO_SUBJECT, Evidence
from holue.evidence.kernels.exponential_sums import RunningSums, close_sums, slopes
from holue.gallery.embeddings import Float64Array


@dataclass
class Accumulator:
    """Mutable, and private to one thread."""

    sharpness: Float64Array
    top_scores: Float64Array
    top_index: npt.NDArray[np.int64]
    peak: Float64Array
    mass: Float64Array
    moment: Float64Array
    n_subjects: int = 0

    @classmethod
    def start(cls, n_probes: int, sharpness: Float64Array, top_k: int) -> Accumulator:
        """Nothing seen yet."""
        return cls(
            sharpness,
            np.full((n_probes, top_k), -np.inf),
            np.full((n_probes, top_k), NO_SUBJECT, dtype=np.int64),
            np.full(n_probes, -np.inf),
            np.zeros((n_probes, len(sharpness))),
            np.zeros((n_probes, len(sharpness))),
        )

    @property
    def arrays(self) -> RunningSums:
        """As the loops take them."""
        slope = slopes(self.sharpness)
        return RunningSums(self.top_scores, self.top_index, self.sharpness, slope, self.peak, self.mass, self.moment)

    def rows(self, rows: slice) -> Accumulator:
        """A view of some probes: what is added to it is added here, except the count of subjects."""
        return Accumulator(
            self.sharpness,
            self.top_scores[rows],
            self.top_index[rows],
            self.peak[rows],
            self.mass[rows],
            self.moment[rows],
        )

    def evidence(self) -> Evidence:
        """What was seen, as evidence."""
        log_mass, mean_score = np.empty_like(self.mass), np.empty_like(self.mass)
        close_sums(self.sharpness, self.peak, self.mass, self.moment, log_mass, mean_score)
        return Evidence(self.top_scores, self.top_index, log_mass, mean_score, self.n_subjects, self.sharpness)
