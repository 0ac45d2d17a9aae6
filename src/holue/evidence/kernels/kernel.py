"""Kernel: how probes read one gallery block into their running sums. The only hot place.

Three kernels give the same evidence up to rounding: ``SweepKernel`` for few float32 probes (bound by reading the gallery once),
``PanelKernel`` for many (bound by multiplying), and ``LinkedKernel`` for every other link, precision and sharpness. In each the
score of a probe and a row is the same bits wherever the row stands, so that the sums do not depend on how a gallery is cut.
Kernels' scores differ by rounding; those of ``LinkedKernel`` are canonical, and decide the top where that matters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from holue.evidence.accumulator import Accumulator
from holue.evidence.block import Block, read_only
from holue.evidence.kernels.binned_sums import DOUBLE_BINS, LARGEST_SHARPNESS, SINGLE_BINS, summed_sharpness
from holue.evidence.kernels.canonical_scores import score_all
from holue.evidence.kernels.exponential_sums import CHUNK, absorb_linked, absorb_top, multiply, sweep
from holue.evidence.kernels.holes import holes_scratch
from holue.evidence.kernels.packed_panels import (
    PROBES_PER_PASS,
    pack_probes,
    panel_scratch,
    score_panels,
    sweep_panels,
)
from holue.evidence.kernels.simd import VECTOR_LENGTH
from holue.evidence.link import Link, cosine_link
from holue.gallery.embeddings import Float64Array, FloatArray

Float32Array = npt.NDArray[np.float32]
Scratch = tuple[npt.NDArray[Any], ...]

FEW_PROBES = 64
"""Up to so many probes the sweep is faster than the panels; measured at d = 128 and 512."""
PROBE_BLOCK = 1024
SUBJECT_BLOCK = 2048
SWEEP_BLOCK = 65536


class Kernel(Protocol):
    """Probes bound to a way of reading gallery blocks."""

    @property
    def block_rows(self) -> int:
        """Subjects this kernel likes to read at once."""
        ...

    @property
    def n_bins(self) -> int:
        """Bins of its sums."""
        ...

    def scratch(self) -> Scratch:
        """A worker's own scratch buffers, made once: allocating them for each block costs a tenth of the scan."""
        ...

    def add(self, sums: Accumulator, block: Block, scratch: Scratch) -> None:
        """Take those of one gallery block who have not left into the sums."""
        ...

    def scores(self, rows: FloatArray) -> FloatArray:
        """The scores (n, b) of the probes with some rows, as ``add`` sums them."""
        ...


def kernel_for(probes: FloatArray, link: Link, sharpness: Float64Array) -> Kernel:
    """The fastest kernel that is exact for these probes, this link and this sharpness."""
    fast = link is cosine_link and probes.dtype == np.float32
    if not fast or sharpness.max(initial=0.0) > LARGEST_SHARPNESS[SINGLE_BINS]:
        return LinkedKernel(probes.astype(np.float64), link)
    return SweepKernel(probes) if len(probes) <= FEW_PROBES else PanelKernel(probes, pack_probes(probes))


@dataclass(frozen=True)
class LinkedKernel:
    """Canonical scores, the link on them, sums by the library's exponential in float64."""

    probes: Float64Array
    link: Link
    n_bins: int = DOUBLE_BINS

    @property
    def block_rows(self) -> int:
        """Subjects at once."""
        return SUBJECT_BLOCK

    def scratch(self) -> Scratch:
        """For the scores of one block of probes with one of subjects."""
        return (np.empty(min(len(self.probes), PROBE_BLOCK) * SUBJECT_BLOCK),)

    def add(self, sums: Accumulator, block: Block, scratch: Scratch) -> None:
        """Take in one block."""
        held, numbers, there = _held(block.rows), block.numbers, ~block.gone
        if len(there):
            held, numbers = held[there], numbers[there]
        sharpness = summed_sharpness(sums.sharpness, self.n_bins)
        for first in range(0, len(self.probes), PROBE_BLOCK):
            rows = slice(first, first + PROBE_BLOCK)
            part, probes = sums.rows(rows), self.probes[rows]
            scores = scratch[0][: len(probes) * len(held)].reshape(len(probes), len(held))
            score_all(read_only(held), probes, scores)
            absorb_top(scores, numbers, part.top_scores, part.top_index)
            if len(sharpness):
                absorb_linked(self.link(scores, first), sharpness, part.window, part.bins)
        sums.n_subjects += block.n_living

    def scores(self, rows: FloatArray) -> Float64Array:
        """Canonical scores."""
        scores = np.empty((len(self.probes), len(rows)))
        score_all(read_only(_held(rows)), self.probes, scores)
        return scores

    def linked(self, scores: Float64Array) -> Float64Array:
        """What is summed of the scores (n, k) of all probes; −inf, nobody's, stays."""
        if self.link is cosine_link:
            return scores
        there = scores > -np.inf
        return np.where(there, self.link(np.where(there, scores, 0.0), 0), -np.inf)


def _held(rows: FloatArray) -> FloatArray:
    """Contiguous rows of float32 or float64."""
    return np.ascontiguousarray(rows, dtype=np.result_type(rows.dtype, np.float32))


@dataclass(frozen=True)
class PanelKernel:
    """Products and sums in one loop over chunks laid out in panels; the scores never leave the cache."""

    probes: Float32Array
    tiles: Float32Array
    n_bins: int = SINGLE_BINS

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
        held = read_only(np.ascontiguousarray(block.rows, dtype=np.float32))
        sweep_panels(self.tiles, held, block.numbers, block.gone, *scratch, sums.arrays)
        sums.n_subjects += block.n_living

    def scores(self, rows: FloatArray) -> Float32Array:
        """By panels."""
        found = np.empty((len(self.probes), len(rows)), dtype=np.float32)
        panels, scores, _ = self.scratch()
        score_panels(self.tiles, np.ascontiguousarray(rows, dtype=np.float32), panels, scores, found)
        return found


@dataclass(frozen=True)
class SweepKernel:
    """Products and sums in one loop over the gallery's rows; the scores of a chunk never leave the cache."""

    probes: Float32Array
    n_bins: int = SINGLE_BINS

    @property
    def block_rows(self) -> int:
        """Subjects at once."""
        return SWEEP_BLOCK

    def scratch(self) -> Scratch:
        """For the scores of one chunk, and who of it has not left."""
        return np.empty((len(self.probes), CHUNK), dtype=np.float32), holes_scratch(CHUNK)

    def add(self, sums: Accumulator, block: Block, scratch: Scratch) -> None:
        """Take in one block."""
        held = read_only(np.ascontiguousarray(block.rows, dtype=np.float32))
        sweep(self.probes, held, block.numbers, block.gone, *scratch, sums.arrays)
        sums.n_subjects += block.n_living

    def scores(self, rows: FloatArray) -> Float32Array:
        """Row by row."""
        found = np.empty((len(self.probes), -(-len(rows) // VECTOR_LENGTH) * VECTOR_LENGTH), dtype=np.float32)
        multiply(self.probes, np.ascontiguousarray(rows, dtype=np.float32), 0, len(rows), found, 0)
        return found[:, : len(rows)]
