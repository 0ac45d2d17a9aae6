"""Compressed kernel: how probes read the codes of a compressed gallery, and how far the scores they find may be off.

``CodeKernel`` multiplies the codes themselves with few probes (bound by reading them once). For more probes int8 goes to
``TileKernel``, which multiplies whole numbers faster than floating point can; float16 is unpacked, a few rows at a time by
``UnpackingKernel``, for many probes into panels by ``HalfPanelKernel`` or, where those are not the fastest, a block for a matrix
product by ``UnpackedProductKernel``.

A score is off by ``|s − ŝ| ≤ e_c + β``, where ``e_c`` is the compressed row's own error and, with ``ẑ`` the probe as the kernel
holds it,

    β = (‖z − ẑ‖ + γ ‖ẑ‖) max‖μ̂‖ + max(‖z‖ − 1, 0) max e + 2^−22,      γ = n 2^−24 / (1 − n 2^−24)

for products whose every term goes through at most n roundings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from holue.evidence.kernels.exponential_sums import CHUNK
from holue.evidence.kernels.holes import fill_holes, find_holes, holes_scratch, move_columns
from holue.evidence.kernels.kernel import FEW_PROBES, PROBE_BLOCK
from holue.evidence.kernels.packed_panels import PANEL_PROBES, PROBES_PER_PASS, are_fastest, pack_probes, panel_scratch
from holue.evidence.kernels.row_products import RUNNING
from holue.evidence.quantized.bounded_loops import absorb_scores
from holue.evidence.quantized.bounded_sums import BoundedSums
from holue.evidence.quantized.code_loops import (
    UNPACKED,
    Span,
    code_probes,
    measure_probes,
    reads_halves,
    sweep_codes,
    sweep_half_panels,
    sweep_unpacked,
    unpack,
)
from holue.evidence.quantized.code_tiles import code_scratch, pack_probe_codes, sweep_tiles
from holue.gallery.compressed import LARGEST_CODE, CompressedGallery
from holue.gallery.embeddings import Float64Array

Float32Array = npt.NDArray[np.float32]
Scratch = tuple[npt.NDArray[Any], ...]

FEW_CODE_PROBES = {"float16": 6, "int8": 5}
"""Up to so many probes multiplying the codes themselves, anew for each, costs less than unpacking them once; measured."""
LARGEST_PROBE_CODE = 32767
PRODUCT_BLOCK = 2048
"""Subjects per matrix product: the library packs the probes anew for each, so few are slow; the scores fit the L3 cache."""
_UNIT = 2.0**-24
_LONGEST_SUM = 2**31 - 1


class CompressedKernel(Protocol):
    """Probes bound to a way of reading codes."""

    @property
    def beta(self) -> Float64Array:
        """What a score (n,) may be off beside the row's own error."""
        ...

    @property
    def lengths(self) -> Float64Array:
        """``‖z‖`` (n,), which is 1 but for rounding."""
        ...

    @property
    def uses_blas(self) -> bool:
        """Whether it calls the matrix library, which then has to be held to one thread."""
        ...

    def scratch(self) -> Scratch:
        """A worker's own scratch buffers."""
        ...

    def add(self, sums: BoundedSums, span: Span, scratch: Scratch) -> None:
        """Take some rows into the sums."""
        ...


def compressed_kernel_for(probes: Float64Array, gallery: CompressedGallery) -> CompressedKernel:
    """The fastest kernel for these probes."""
    n, width = len(probes), gallery.parts[0].codes.shape[1]
    if gallery.form == "int8":
        codes, steps = np.zeros((n, width), dtype=np.int16), np.empty(n, dtype=np.float32)
        # The sum of all products has to fit 32 bits; every code may be rounded up by a half.
        code_probes(probes, LARGEST_PROBE_CODE, _LONGEST_SUM / LARGEST_CODE - gallery.dim, codes, steps)
        margins = _margins(probes, codes, steps, gallery, roundings=4)
        if n <= FEW_CODE_PROBES["int8"]:
            return CodeKernel(codes, steps, *margins)
        tiles = pack_probe_codes(codes)
        return TileKernel(tiles, np.resize(steps, len(tiles) * PANEL_PROBES), *margins)
    single, ones = np.zeros((n, width), dtype=np.float32), np.ones(n, dtype=np.float32)
    single[:, : gallery.dim] = probes
    if n <= FEW_CODE_PROBES["float16"] and reads_halves():
        # Four running vectors, their pairs, and three halvings of a vector of eight.
        return CodeKernel(single, ones, *_margins(probes, single, ones, gallery, roundings=width // (8 * RUNNING) + 10))
    # Unpacking rounds once, multiplying once, and a sum of d terms in any order at most d times.
    margins = _margins(probes, single, ones, gallery, roundings=gallery.dim + 3)
    if n <= FEW_PROBES and reads_halves():
        return UnpackingKernel(single, *margins)
    if reads_halves() and are_fastest():
        return HalfPanelKernel(single, pack_probes(single), *margins)
    return UnpackedProductKernel(single, *margins)


def _margins(
    probes: Float64Array,
    held: npt.NDArray[np.generic],
    steps: Float32Array,
    gallery: CompressedGallery,
    *,
    roundings: int,
) -> tuple[Float64Array, Float64Array]:
    """``β`` and ``‖z‖`` (n,) of probes held as ``steps · held``."""
    lengths, off = np.empty(len(probes)), np.empty(len(probes))
    measure_probes(probes, held, steps, lengths, off)
    gamma = roundings * _UNIT / (1 - roundings * _UNIT)
    beta = (off + gamma * (lengths + off)) * gallery.largest_norm + 4 * _UNIT * (1 + gallery.error)
    return beta + np.maximum(lengths - 1, 0.0) * gallery.error, lengths


@dataclass(frozen=True)
class CodeKernel:
    """Products of the codes themselves, and sums, in one loop over the rows."""

    probes: Float32Array | npt.NDArray[np.int16]
    steps: Float32Array  # (n,) what a code of the probe is worth
    beta: Float64Array
    lengths: Float64Array
    uses_blas: bool = False

    def scratch(self) -> Scratch:
        """For the scores of one chunk."""
        return (np.empty((len(self.probes), CHUNK), dtype=np.float32),)

    def add(self, sums: BoundedSums, span: Span, scratch: Scratch) -> None:
        """Take in some rows."""
        sweep_codes(span, self.probes, self.steps, scratch[0], sums.arrays)


@dataclass(frozen=True)
class TileKernel:
    """Products of int8 codes with many probes at once, in tiles."""

    tiles: npt.NDArray[np.int32]  # (tiles, pairs of coordinates, probes of a tile)
    steps: Float32Array  # what a code of each probe is worth, for whole tiles
    beta: Float64Array
    lengths: Float64Array
    uses_blas: bool = False

    def scratch(self) -> Scratch:
        """For the unpacked rows of one chunk, and for the scores of some probes with them."""
        return code_scratch(2 * self.tiles.shape[1]), np.empty((PROBES_PER_PASS, CHUNK), dtype=np.float32)

    def add(self, sums: BoundedSums, span: Span, scratch: Scratch) -> None:
        """Take in some rows."""
        panels, scores = scratch
        sweep_tiles(span, self.tiles, self.steps, panels, scores, sums.arrays)


@dataclass(frozen=True)
class UnpackingKernel:
    """Some rows of float16 unpacked to float32 at a time, and multiplied while they are in the cache."""

    probes: Float32Array
    beta: Float64Array
    lengths: Float64Array
    uses_blas: bool = False

    def scratch(self) -> Scratch:
        """For the scores of one chunk, and for the rows."""
        scores = np.empty((len(self.probes), CHUNK), dtype=np.float32)
        return scores, np.zeros((UNPACKED, self.probes.shape[1]), dtype=np.float32)

    def add(self, sums: BoundedSums, span: Span, scratch: Scratch) -> None:
        """Take in some rows."""
        scores, rows = scratch
        sweep_unpacked(span, self.probes, rows, scores, sums.arrays)


@dataclass(frozen=True)
class HalfPanelKernel:
    """Rows of float16 laid out in float32 panels, as those of many probes with float32 rows are (see ``kernel.py``)."""

    probes: Float32Array
    tiles: Float32Array
    beta: Float64Array
    lengths: Float64Array
    uses_blas: bool = False

    def scratch(self) -> Scratch:
        """For the panels of one chunk and the scores of some probes."""
        return panel_scratch(self.probes.shape[1], np.float32), np.empty((PROBES_PER_PASS, CHUNK), dtype=np.float32)

    def add(self, sums: BoundedSums, span: Span, scratch: Scratch) -> None:
        """Take in some rows."""
        panels, scores = scratch
        sweep_half_panels(span, self.tiles, panels, scores, sums.arrays)


@dataclass(frozen=True)
class UnpackedProductKernel:
    """A block of float16 rows unpacked to float32, and one matrix product with it."""

    probes: Float32Array
    beta: Float64Array
    lengths: Float64Array
    uses_blas: bool = True

    def scratch(self) -> Scratch:
        """For the scores of a block, for its rows, and for the keys of a chunk."""
        scores = np.empty(min(len(self.probes), PROBE_BLOCK) * PRODUCT_BLOCK, dtype=np.float32)
        rows, keys = (
            np.empty((PRODUCT_BLOCK, self.probes.shape[1]), dtype=np.float32),
            np.empty(CHUNK, dtype=np.float32),
        )
        return scores, rows, keys

    def add(self, sums: BoundedSums, span: Span, scratch: Scratch) -> None:
        """Take in some rows."""
        for begin in range(span.first, span.last, PRODUCT_BLOCK):
            width = min(PRODUCT_BLOCK, span.last - begin)
            rows, block = scratch[1][:width], slice(begin, begin + width)
            errors, places = span.errors[block], np.arange(width)
            holes = holes_scratch(width if len(span.gone) else 0)
            count, moves = find_holes(span.gone, begin, width, holes)
            if count < width:
                errors, places[holes[0, :moves]] = np.empty(width, dtype=np.float32), holes[1, :moves]
                fill_holes(span.errors, begin, count, holes, moves, errors)
            if reads_halves():
                unpack(span.codes, begin, width, rows)
            else:
                rows[:] = span.codes[begin : begin + width].view(np.float16)
            for at in range(0, len(self.probes), PROBE_BLOCK):
                probes = self.probes[at : at + PROBE_BLOCK]
                scores = scratch[0][: len(probes) * width].reshape(len(probes), width)
                np.matmul(probes, rows.T, out=scores)
                move_columns(scores, holes, moves)
                own = sums.rows(slice(at, at + PROBE_BLOCK))
                absorb_scores(scores, count, errors, span.numbers[block], places, scratch[2], own.arrays)
