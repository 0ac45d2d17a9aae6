"""BoundedSums: the running sums of some probes over the compressed rows seen so far, and the subjects that may score highest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.evidence.evidence import NO_SUBJECT
from holue.evidence.quantized.bounded_loops import N_SUMS, BoundedArrays, combine
from holue.gallery.embeddings import Float64Array


@dataclass
class BoundedSums:
    """Mutable, and private to one thread."""

    keys: Float64Array  # (n, R) the highest keys ŝ + e, best first; −inf where unfilled
    subjects: npt.NDArray[np.int64]  # (n, R) whose they are
    sharpness: Float64Array  # (m,)
    slope: npt.NDArray[np.float32]  # (m,) the same in powers of two
    peak: Float64Array  # (n,) the highest score
    sums: Float64Array  # (n, m, 7)

    @classmethod
    def start(cls, n_probes: int, sharpness: Float64Array, listed: int) -> BoundedSums:
        """Nothing seen yet."""
        return cls(
            np.full((n_probes, listed), -np.inf),
            np.full((n_probes, listed), NO_SUBJECT, dtype=np.int64),
            sharpness,
            # Beyond 1e30 every score but the highest weighs nothing already, and float32 would end.
            np.minimum(sharpness / np.log(2.0), 1e30).astype(np.float32),
            np.full(n_probes, -np.inf),
            np.zeros((n_probes, len(sharpness), N_SUMS)),
        )

    @property
    def arrays(self) -> BoundedArrays:
        """As the loops take them."""
        return BoundedArrays(self.keys, self.subjects, self.sharpness, self.slope, self.peak, self.sums)

    def rows(self, rows: slice) -> BoundedSums:
        """A view of some probes: what is added to it is added here."""
        return BoundedSums(
            self.keys[rows], self.subjects[rows], self.sharpness, self.slope, self.peak[rows], self.sums[rows]
        )

    def add(self, other: BoundedSums) -> None:
        """Take in what another thread saw, which is used up."""
        combine(self.arrays, other.arrays)
