"""Tables: probes as lookup tables, so that four or six coordinates of a row are added by one lookup.

A table has the sums ``Σ ±(Pz)_t`` of its coordinates for every index of its bits, as whole numbers in steps that all tables of a
probe share: ``sum ≈ least + step · entry``. Entries of four tables together fit eight bits. They are rounded at random, up with
the probability of the fraction, so that the rounding of a row's sum over G tables has no bias and, whatever the row,

    P(rounding < −t) ≤ e^{−2t²/(G step²)}                  (Hoeffding 1963)

because its terms are independent and each has a range of one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from holue.evidence.binary.bit_planes import repeated
from holue.evidence.binary.loops.lookup_loops import LOOKUP, NO_COORDINATE, TABLES_AT_ONCE, coordinates_of
from holue.evidence.binary.part import BinaryPart, aligned_zeros
from holue.evidence.binary.rotation import rotation
from holue.gallery.embeddings import Float64Array

LARGEST_BYTE = 255 - TABLES_AT_ONCE
"""What four entries may add to before rounding, which adds less than one to each."""
LARGEST_SUM = 2**16 - 1
CHANCE = 1e-7
"""At most the probability that the rounding of tables takes more from a row's estimate than :meth:`Tables.error_in` says."""
_SEED = 19


@dataclass(frozen=True, eq=False)
class Tables:
    """The lookup tables of n probes, for all parts with as many bits per coordinate: the rotation is one for all."""

    entries: npt.NDArray[np.uint8]  # (n, G, 2^bits)
    step: Float64Array  # (n,)
    least: Float64Array  # (n,) the sum of all tables' least
    added: Float64Array  # (n,) what was taken out of ``least``
    variance: Float64Array  # (n,) of the rounding of a row's sum: the mean over rows

    @classmethod
    def of(cls, probes: Float64Array, planes: int = 1, bits: int = LOOKUP.bits) -> Tables:
        """Tables of unit probes (n, d) for codes of so many planes, with indices of so many bits.

        >>> tables = Tables.of(np.eye(2), bits=4)
        >>> tables.entries.shape, bool((tables.variance < 0.01).all())
        ((2, 16, 16), True)
        """
        n = len(probes)
        rotated = repeated(probes @ rotation(probes.shape[1]), planes)
        coordinates, signs = _layout(rotated.shape[1], bits)
        own = np.where(coordinates == NO_COORDINATE, 0.0, rotated[:, coordinates])
        sums = own @ signs
        ranges = 2 * np.abs(own).sum(axis=2)
        together = ranges.reshape(n, -1, TABLES_AT_ONCE).sum(axis=2)
        step = np.maximum(together.max(axis=1) / LARGEST_BYTE, together.sum(axis=1) / (LARGEST_SUM - ranges.shape[1]))
        step = np.where(step > 0, step, 1.0)
        above = (sums + 0.5 * ranges[:, :, None]) / step[:, None, None]
        below = np.floor(above)
        up = above - below
        entries = below + (_uniform(sums.shape[1:]) < up)
        variance = step**2 * (up * (1 - up)).mean(axis=2).sum(axis=1)
        # What rounding adds to the mean of all indices is known, and taken out: it would be the same for all rows.
        added = step * (entries - above).mean(axis=2).sum(axis=1)
        held = aligned_zeros(entries.shape)
        held[...] = entries
        return cls(held, step, -0.5 * ranges.sum(axis=1) - added, np.abs(added), variance)

    def __len__(self) -> int:
        return len(self.step)

    def error_in(self, part: BinaryPart) -> Float64Array:
        """What tables, steps of weights and float32 take from an estimate (n,) of a part's row, but for ``CHANCE``."""
        rounding = self.added + self.step * np.sqrt(0.5 * self.entries.shape[1] * -np.log(CHANCE))
        # Weights are kept in steps; sums and products are of float32.
        largest = (0.5 * part.scale[1] + 1e-6 * part.largest_weight) * part.largest_sum
        return np.asarray(rounding * part.largest_weight + largest + 1e-6)


@lru_cache(maxsize=8)
def _layout(width: int, bits: int) -> tuple[npt.NDArray[np.int64], Float64Array]:
    """Coordinates (G, bits), and which of them an index takes with a plus (bits, 2^bits)."""
    index = np.arange(2**bits)
    return coordinates_of(width, bits), np.where(index >> np.arange(bits)[:, None] & 1, 1.0, -1.0)


@lru_cache(maxsize=8)
def _uniform(shape: tuple[int, ...]) -> Float64Array:
    """Numbers in 0 … 1, the same in every process: whether an entry is rounded up."""
    return np.random.default_rng(_SEED).random(shape)
