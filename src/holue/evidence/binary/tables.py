"""Tables: probes as lookup tables, so that four coordinates of a row are added by one lookup.

For each group of four coordinates a table has the sixteen sums ``Σ ±(Pz)_t`` that a code of four bits can ask for, as whole
numbers of seven bits in steps that all groups share: ``sum ≈ least + step · entry``. What the rounding does to the sum of a whole
row is certified: it is at most the sum over groups of each table's largest error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.evidence.binary.part import BinaryPart
from holue.evidence.binary.rotation import rotation
from holue.gallery.embeddings import Float64Array

LARGEST_ENTRY = 127
"""Two entries are added in eight bits."""
LARGEST_SUM = 2**16 - 1
# Which of four coordinates a code of four bits takes with a plus.
_SIGNS = np.where((np.arange(16)[:, None] >> np.arange(4)) & 1, 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class Tables:
    """The lookup tables of n probes, for all parts: the rotation is one for all."""

    entries: npt.NDArray[np.uint8]  # (n, D / 4, 16)
    step: Float64Array  # (n,)
    least: Float64Array  # (n,) the sum of all tables' least
    error: Float64Array  # (n,) at least what a row's sum is off

    @classmethod
    def of(cls, probes: Float64Array) -> Tables:
        """Tables of unit probes (n, d).

        >>> tables = Tables.of(np.eye(2))
        >>> tables.entries.shape, bool((tables.error < 0.1).all())
        ((2, 16, 16), True)
        """
        n = len(probes)
        rotated = probes @ rotation(probes.shape[1])
        sums = rotated.reshape(n, -1, 4) @ _SIGNS.T
        least = sums.min(axis=2)
        ranges = sums.max(axis=2) - least
        step = np.maximum(ranges.max(axis=1) / LARGEST_ENTRY, ranges.sum(axis=1) / (LARGEST_SUM - ranges.shape[1]))
        step = np.where(step > 0, step, 1.0)
        entries = np.rint((sums - least[:, :, None]) / step[:, None, None])
        off = np.abs(sums - least[:, :, None] - step[:, None, None] * entries).max(axis=2).sum(axis=1)
        return cls(entries.astype(np.uint8), step, least.sum(axis=1), off)

    def __len__(self) -> int:
        return len(self.step)

    def error_in(self, part: BinaryPart) -> Float64Array:
        """At least what an estimate (n,) of a part's rows is off through tables, steps of weights and float32."""
        # A sum of D coordinates of a unit vector, each with a sign, is at most √D; sums and products are of float32.
        largest = (0.5 * part.scale[1] + 1e-6 * part.largest_weight) * np.sqrt(part.width)
        return np.asarray(self.error * part.largest_weight + largest + 1e-6)
