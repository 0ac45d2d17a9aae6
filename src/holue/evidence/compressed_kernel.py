"""Compressed kernel: how probes read the codes of a compressed gallery, and how far the scores they find may be off.

Three kernels find the same scores: ``CodeKernel`` multiplies the codes themselves (bound by reading them once),
``UnpackingKernel`` unpacks a few rows at a time for some probes more, ``UnpackedProductKernel`` a block for many probes.

A score is off by ``|s − ŝ| ≤ e_c + β``, where ``e_c`` is the compressed row's own error and, with ``ẑ`` the probe as the kernel
holds it,

    β = (‖z − ẑ‖ + γ ‖ẑ‖) max‖μ̂‖ + max(‖z‖ − 1, 0) max e + 2^−22,      γ = n 2^−24 / (1 − n 2^−24)

for products whose every term goes through at most n roundings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from holue.evidence.bounded_sums import BoundedSums
from holue.evidence.compressed_loops import (
    RUNNING,
    UNPACKED,
    absorb_scores,
    code_probes,
    measure_probes,
    reads_halves,
    sweep_codes,
    sweep_unpacked,
    unpack,
)
from holue.evidence.kernel import FEW_PROBES, PROBE_BLOCK, PRODUCT_BLOCK
from holue.evidence.loops import CHUNK
from holue.gallery.compressed import LARGEST_CODE, CompressedGallery, CompressedPart
from holue.gallery.embeddings import Float64Array

Float32Array = npt.NDArray[np.float32]

FEWEST_PROBES = {"float16": 6, "int8": 16}
"""Up to so many probes multiplying the codes themselves, anew for each, costs less than unpacking them once; measured."""
LARGEST_PROBE_CODE = 32767
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

    def room(self) -> tuple[Float32Array, ...]:
        """A thread's own place for what is computed on the way."""
        ...

    def add(
        self, sums: BoundedSums, part: CompressedPart, first: int, last: int, start: int, room: tuple[Float32Array, ...]
    ) -> None:
        """Take the rows ``first .. last`` of a part, which begins at subject ``start``, into the sums."""
        ...


def compressed_kernel_for(probes: Float64Array, gallery: CompressedGallery) -> CompressedKernel:
    """The fastest kernel for these probes."""
    n, width = len(probes), gallery.parts[0].codes.shape[1]
    if n <= FEWEST_PROBES[gallery.form] and gallery.form == "int8":
        codes, steps = np.zeros((n, width), dtype=np.int16), np.empty(n, dtype=np.float32)
        # The sum of all products has to fit 32 bits; every code may be rounded up by a half.
        code_probes(probes, LARGEST_PROBE_CODE, _LONGEST_SUM / LARGEST_CODE - gallery.dim, codes, steps)
        return CodeKernel(codes, steps, *_margins(probes, codes, steps, gallery, roundings=4))
    single, ones = np.zeros((n, width), dtype=np.float32), np.ones(n, dtype=np.float32)
    single[:, : gallery.dim] = probes
    if n <= FEWEST_PROBES[gallery.form] and reads_halves():
        # Four running sums, their pairs, and three halvings of eight lanes.
        return CodeKernel(single, ones, *_margins(probes, single, ones, gallery, roundings=width // (8 * RUNNING) + 10))
    # Unpacking rounds once, multiplying once, and a sum of d terms in any order at most d times.
    margins = _margins(probes, single, ones, gallery, roundings=gallery.dim + 3)
    if n <= FEW_PROBES and (gallery.form == "int8" or reads_halves()):
        return UnpackingKernel(single, *margins)
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

    def room(self) -> tuple[Float32Array, ...]:
        """For the scores of one chunk."""
        return (np.empty((len(self.probes), CHUNK), dtype=np.float32),)

    def add(
        self, sums: BoundedSums, part: CompressedPart, first: int, last: int, start: int, room: tuple[Float32Array, ...]
    ) -> None:
        """Take in some rows."""
        arrays = part.codes, part.scales, part.errors
        sweep_codes(*arrays, first, last, self.probes, self.steps, start, room[0], *sums.arrays)


@dataclass(frozen=True)
class UnpackingKernel:
    """Some rows unpacked to float32 at a time, and multiplied while they are in the cache."""

    probes: Float32Array
    beta: Float64Array
    lengths: Float64Array
    uses_blas: bool = False

    def room(self) -> tuple[Float32Array, ...]:
        """For the scores of one chunk, and for the rows."""
        scores = np.empty((len(self.probes), CHUNK), dtype=np.float32)
        return scores, np.zeros((UNPACKED, self.probes.shape[1]), dtype=np.float32)

    def add(
        self, sums: BoundedSums, part: CompressedPart, first: int, last: int, start: int, room: tuple[Float32Array, ...]
    ) -> None:
        """Take in some rows."""
        scores, rows = room
        arrays = part.codes, part.scales, part.errors
        sweep_unpacked(*arrays, first, last, self.probes, rows, start, scores, *sums.arrays)


@dataclass(frozen=True)
class UnpackedProductKernel:
    """A block of rows unpacked to float32, and one matrix product with it."""

    probes: Float32Array
    beta: Float64Array
    lengths: Float64Array
    uses_blas: bool = True

    def room(self) -> tuple[Float32Array, ...]:
        """For the scores of a block, and for its rows."""
        scores = np.empty(min(len(self.probes), PROBE_BLOCK) * PRODUCT_BLOCK, dtype=np.float32)
        return scores, np.empty((PRODUCT_BLOCK, self.probes.shape[1]), dtype=np.float32)

    def add(
        self, sums: BoundedSums, part: CompressedPart, first: int, last: int, start: int, room: tuple[Float32Array, ...]
    ) -> None:
        """Take in some rows."""
        for begin in range(first, last, PRODUCT_BLOCK):
            width = min(PRODUCT_BLOCK, last - begin)
            rows = room[1][:width]
            if part.codes.dtype == np.uint16 and not reads_halves():
                rows[:] = part.codes[begin : begin + width].view(np.float16)
            else:
                unpack(part.codes, part.scales, begin, width, rows)
            for at in range(0, len(self.probes), PROBE_BLOCK):
                probes = self.probes[at : at + PROBE_BLOCK]
                scores = room[0][: len(probes) * width].reshape(len(probes), width)
                np.matmul(probes, rows.T, out=scores)
                own = sums.rows(slice(at, at + PROBE_BLOCK))
                absorb_scores(scores, width, part.errors, begin, start + begin, *own.arrays)
