"""Kernel: how probes read one gallery block into their running sums. The only hot place.

Four kernels give the same evidence: ``SweepKernel`` for few float32 probes (bound by reading the gallery once), ``PanelKernel``
for many (bound by multiplying) or, where the processor has wider vectors than it uses, ``ProductKernel`` (by the matrix library),
and ``LinkedKernel`` for every other link and precision. Their scores differ by rounding; ``CanonicalKernel`` decides the top
where that matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from holue.evidence.accumulator import Accumulator
from holue.evidence.block import Block
from holue.evidence.kernels.canonical_scores import score_all
from holue.evidence.kernels.exponential_sums import (
    CHUNK,
    absorb_cosines,
    absorb_mass,
    absorb_top,
    sweep,
)
from holue.evidence.kernels.holes import fill_holes, find_holes, holes_scratch, move_columns
from holue.evidence.kernels.packed_panels import PROBES_PER_PASS, are_fastest, pack_probes, panel_scratch, sweep_panels
from holue.evidence.link import Link, cosine_link
from holue.gallery.embeddings import Float64Array, FloatArray

Float32Array = npt.NDArray[np.float32]
Scratch = tuple[npt.NDArray[Any], ...]

FEW_PROBES = 64
"""Up to so many probes the sweep is faster than the matrix library; measured at d = 128 and 512."""
PROBE_BLOCK = 1024
SUBJECT_BLOCK = 2048
SWEEP_BLOCK = 65536
PRODUCT_BLOCK = 2048
"""Subjects per matrix product: the library packs the probes anew for each, so few are slow; the scores fit the L3 cache."""


class Kernel(Protocol):
    """Probes bound to a way of reading gallery blocks."""

    @property
    def block_rows(self) -> int:
        """Subjects this kernel likes to read at once."""
        ...

    @property
    def uses_blas(self) -> bool:
        """Whether it calls the matrix library, which then has to be held to one thread."""
        ...

    def scratch(self) -> Scratch:
        """A worker's own scratch buffers, made once: allocating them for each block costs a tenth of the scan."""
        ...

    def add(self, sums: Accumulator, block: Block, scratch: Scratch) -> None:
        """Take those of one gallery block who have not left into the sums."""
        ...


def kernel_for(probes: FloatArray, link: Link) -> Kernel:
    """The fastest kernel that is exact for these probes and this link."""
    if link is not cosine_link or probes.dtype != np.float32:
        return LinkedKernel(probes, link)
    if len(probes) <= FEW_PROBES:
        return SweepKernel(probes)
    return PanelKernel(probes, pack_probes(probes)) if are_fastest() else ProductKernel(probes)


@dataclass(frozen=True)
class LinkedKernel:
    """One matrix product per block, the link on its scores, sums by the library's exponential in float64."""

    probes: FloatArray
    link: Link
    uses_blas: bool = True

    @property
    def block_rows(self) -> int:
        """Subjects at once."""
        return SUBJECT_BLOCK

    def scratch(self) -> Scratch:
        """None: the link makes new arrays anyway."""
        return ()

    def add(self, sums: Accumulator, block: Block, scratch: Scratch) -> None:
        """Take in one block."""
        held, numbers, there = block.rows.astype(self.probes.dtype, copy=False), block.numbers, ~block.gone
        if len(there):
            numbers = numbers[there]
        for first in range(0, len(self.probes), PROBE_BLOCK):
            rows = slice(first, first + PROBE_BLOCK)
            part = sums.rows(rows)
            scores = self.probes[rows] @ held.T
            if len(there):
                scores = scores[:, there]
            absorb_top(scores, numbers, part.top_scores, part.top_index)
            absorb_mass(self.link(scores, first), part.sharpness, part.peak, part.mass, part.moment)
        sums.n_subjects += block.n_living


@dataclass(frozen=True)
class CanonicalKernel:
    """Canonical scores of few probes, for the top alone; slower than the other kernels."""

    probes: Float64Array
    uses_blas: bool = False

    @property
    def block_rows(self) -> int:
        """Subjects at once."""
        return CHUNK

    def scratch(self) -> Scratch:
        """For the scores of one block."""
        return (np.empty((len(self.probes), CHUNK)),)

    def add(self, sums: Accumulator, block: Block, scratch: Scratch) -> None:
        """Take in one block."""
        scores, numbers, dtype = scratch[0][:, : len(block.rows)], block.numbers, np.result_type(block.rows, np.float32)
        score_all(np.ascontiguousarray(block.rows, dtype=dtype), self.probes, scores)
        if len(block.gone):
            scores, numbers = scores[:, ~block.gone], numbers[~block.gone]
        absorb_top(scores, numbers, sums.top_scores, sums.top_index)
        sums.n_subjects += block.n_living


@dataclass(frozen=True)
class ProductKernel:
    """One float32 matrix product per block into a small buffer, read while it is in the cache."""

    probes: Float32Array
    uses_blas: bool = True

    @property
    def block_rows(self) -> int:
        """Subjects at once."""
        return PRODUCT_BLOCK if len(self.probes) > PROBE_BLOCK // 2 else 2 * PRODUCT_BLOCK

    def scratch(self) -> Scratch:
        """For the scores of one block of probes with one of subjects."""
        return (np.empty(min(len(self.probes), PROBE_BLOCK) * self.block_rows, dtype=np.float32),)

    def add(self, sums: Accumulator, block: Block, scratch: Scratch) -> None:
        """Take in one block."""
        held, numbers, width = block.rows.astype(np.float32, copy=False), block.numbers, len(block.rows)
        holes = holes_scratch(width if len(block.gone) else 0)
        count, moves = find_holes(block.gone, 0, width, holes)
        if count < width:
            fill_holes(numbers, 0, count, holes, moves, holes[2])
            numbers = holes[2]
        for first in range(0, len(self.probes), PROBE_BLOCK):
            rows = slice(first, first + PROBE_BLOCK)
            probes = self.probes[rows]
            scores = scratch[0][: len(probes) * len(held)].reshape(len(probes), len(held))
            np.matmul(probes, held.T, out=scores)
            move_columns(scores, holes, moves)
            absorb_cosines(scores, count, numbers, sums.rows(rows).arrays)
        sums.n_subjects += block.n_living


@dataclass(frozen=True)
class PanelKernel:
    """Products and sums in one loop over chunks laid out in panels; the scores never leave the cache."""

    probes: Float32Array
    tiles: Float32Array
    uses_blas: bool = False

    @property
    def block_rows(self) -> int:
        """Subjects at once."""
        return SWEEP_BLOCK

    def scratch(self) -> Scratch:
        """For the panels of one chunk, the scores of some probes, and who of the chunk has not left."""
        scores = np.empty((PROBES_PER_PASS, CHUNK), dtype=np.float32)
        return panel_scratch(self.probes.shape[1], np.float32), scores, holes_scratch(CHUNK)

    def add(self, sums: Accumulator, block: Block, scratch: Scratch) -> None:
        """Take in one block."""
        held = np.ascontiguousarray(block.rows, dtype=np.float32)
        sweep_panels(self.tiles, held, block.numbers, block.gone, *scratch, sums.arrays)
        sums.n_subjects += block.n_living


@dataclass(frozen=True)
class SweepKernel:
    """Products and sums in one loop over the gallery's rows; the scores of a chunk never leave the cache."""

    probes: Float32Array
    uses_blas: bool = False

    @property
    def block_rows(self) -> int:
        """Subjects at once."""
        return SWEEP_BLOCK

    def scratch(self) -> Scratch:
        """For the scores of one chunk, and who of it has not left."""
        return np.empty((len(self.probes), CHUNK), dtype=np.float32), holes_scratch(CHUNK)

    def add(self, sums: Accumulator, block: Block, scratch: Scratch) -> None:
        """Take in one block."""
        held = np.ascontiguousarray(block.rows, dtype=np.float32)
        sweep(self.probes, held, block.numbers, block.gone, *scratch, sums.arrays)
        sums.n_subjects += block.n_living
