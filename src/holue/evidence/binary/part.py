"""BinaryPart: the rows of a segment in one or two bits per coordinate, with what estimates of their cosines need.

A row is kept relative to the segment's mean ``c``: ``μ = c + r·o`` with ``o`` a unit vector. Its code are the bits of a vector
``y`` close to the rotated ``o`` in direction (``rotation.py``, ``bit_planes.py``), beside two numbers, with ``f`` their cosine:

    weight = r / (f ‖y‖)               estimate = ⟨c, z⟩ + weight · ⟨y, Pz⟩
    deviation = r √(1/f² − 1)/√(D−1)   the standard deviation of the estimate's error, for a probe across the row

Both are kept in sixteen bits, in equal steps between their extremes in the segment; the deviation is rounded up. The mean takes
out what all rows have in common: the errors of rows that are alike go together, and would not average out in the sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidEmbeddingsError
from holue.evidence.binary.bit_planes import LEVELS, planes_of, values_of
from holue.evidence.binary.rotation import rotated_width, rotation
from holue.evidence.block import NOBODY, Block
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.segment import Mask, Numbers, Part

BLOCK_ROWS = 64
"""Rows whose codes lie together, byte by byte: what a processor looks up at once."""
ENCODED_AT_ONCE = 64 * BLOCK_ROWS
LARGEST_STEP = 2**16 - 1
CACHE_LINE = 64
_LEAST_WEIGHT = 1e-30  # a row at the mean itself has none
# Byte 2i of a block belongs to row i, byte 2i + 1 to row 32 + i: sums of 16 bits then come out in the order of the rows.
_PLACES = np.concatenate([np.arange(0, BLOCK_ROWS, 2), np.arange(1, BLOCK_ROWS, 2)])

Codes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class BinaryPart:
    """The codes of a segment's rows; all versions of a gallery share the arrays, only ``gone`` is a version's own.

    >>> rows = np.eye(4, dtype=np.float32)
    >>> part = BinaryPart.of_rows(rows, np.arange(4))
    >>> part.codes.shape, len(part)
    ((1, 8, 64), 4)
    """

    codes: Codes  # (blocks, planes · D / 8, 64) bit t of byte j of a row: whether sign 8j + t of its planes is a plus
    weights: npt.NDArray[np.uint16]  # (n,) in steps, see ``scale``
    deviations: npt.NDArray[np.uint16]  # (n,)
    scale: Float64Array  # (4,) least weight, step of weights, least deviation, step of deviations
    centre: Float64Array  # (d,) c
    extremes: npt.NDArray[np.float32]  # (3, blocks) of a block's rows, see ``summary_of``
    typical: Float64Array  # (2,) mean weight, mean deviation
    exact: FloatArray  # (n, d)
    numbers: Numbers  # (n,) ascending
    shared: float = (
        0.0  # what of the errors of all rows goes together, as a share of the deviation (``shared_error.py``)
    )
    mean_factor: float = (
        1.0  # by what the standard errors of the mean score are larger than those of independent errors
    )
    one_bit_share: float | None = (
        None  # of the rows, what one bit would need scored (``bits_needed.py``); None: not measured
    )
    gone: Mask | None = None  # (n,) who has left; None where nobody has

    @classmethod
    def of_rows(cls, exact: FloatArray, numbers: Numbers, planes: int = 1) -> BinaryPart:
        """The codes of unit rows (n, d), with one or two bits per coordinate."""
        n, dim = exact.shape
        width, turn = rotated_width(dim), rotation(dim)
        centre = _mean(exact)
        codes = aligned_zeros((-(-n // BLOCK_ROWS), planes * width // 8, BLOCK_ROWS))
        weights, deviations = np.empty(n), np.empty(n)
        for first in range(0, n, ENCODED_AT_ONCE):
            rows = slice(first, first + ENCODED_AT_ONCE)
            given = np.asarray(exact[rows], dtype=np.float64)
            if not np.isfinite(given).all() or np.abs(given).max(initial=0.0) > 2:
                raise InvalidEmbeddingsError(
                    f"rows {first} to {first + len(given) - 1} hold coordinates that no unit vector has (NaN, infinite or "
                    "above 2); normalise the embeddings first, for instance with Gallery.from_samples"
                )
            rotated = (given - centre).astype(np.float32) @ turn.astype(np.float32)
            bits = planes_of(rotated, planes)
            pack_signs(bits, codes[first // BLOCK_ROWS : -(-(first + len(given)) // BLOCK_ROWS)])
            y = values_of(bits, planes)
            square = np.einsum("ij,ij->i", rotated, rotated, dtype=np.float64)
            along = np.einsum("ij,ij->i", y, rotated, dtype=np.float64)
            # f = ⟨y, Po⟩/(r ‖y‖): a row at the mean itself has r = 0, and both numbers are 0.
            there = along > 0
            weights[rows] = np.where(there, square / np.where(there, along, 1.0), 0.0)
            lengths = np.einsum("ij,ij->i", y, y, dtype=np.float64)
            across = np.maximum(weights[rows] ** 2 * lengths - square, 0.0)
            deviations[rows] = np.sqrt(across / (width - 1))
        scale = np.empty(4)
        steps = _in_steps(weights, scale[:2], np.rint), _in_steps(deviations, scale[2:], np.ceil)
        return cls(codes, *steps, scale, centre, *summary_of(*steps, scale), exact, numbers)

    def __len__(self) -> int:
        return len(self.numbers)

    def of(self, part: Part) -> BinaryPart:
        """The same as one version of the gallery has it."""
        return self if part.gone is self.gone else replace(self, gone=part.gone)

    @cached_property
    def n_living(self) -> int:
        """How many have not left."""
        return len(self.numbers) - (0 if self.gone is None else int(np.count_nonzero(self.gone)))

    @property
    def dim(self) -> int:
        """The number of coordinates of a row, d."""
        return int(self.exact.shape[1])

    @property
    def width(self) -> int:
        """The number of coordinates of a rotated row, D."""
        return rotated_width(self.dim)

    @property
    def planes(self) -> int:
        """The number of bits per coordinate."""
        return int(self.codes.shape[1]) * 8 // self.width

    @property
    def largest_sum(self) -> float:
        """At least the sum of a code's signs over any unit probe, each plane by its level: ``Σ_p LEVELS_p √D``."""
        return float(sum(LEVELS[self.planes]) * np.sqrt(self.width))

    @property
    def largest_weight(self) -> float:
        """At least every weight."""
        return float(self.scale[0] + LARGEST_STEP * self.scale[1])

    @property
    def largest_deviation(self) -> float:
        """At least every deviation."""
        return float(self.scale[2] + LARGEST_STEP * self.scale[3])

    @property
    def nbytes(self) -> int:
        """Bytes that a scan reads: codes, weights, deviations and extremes, without the exact rows."""
        return self.codes.nbytes + self.weights.nbytes + self.deviations.nbytes + self.extremes.nbytes

    @property
    def block(self) -> Block:
        """The exact rows of those who have not left."""
        return Block(self.exact, self.numbers, NOBODY if self.gone is None else self.gone)


def summary_of(
    weights: npt.NDArray[np.uint16], deviations: npt.NDArray[np.uint16], scale: Float64Array
) -> tuple[npt.NDArray[np.float32], Float64Array]:
    """Of each block of rows (3, blocks) the least and the greatest 1/weight and the greatest deviation/weight; and both means."""
    weight, deviation = scale[0] + scale[1] * weights, scale[2] + scale[3] * deviations
    one = 1.0 / np.maximum(weight, _LEAST_WEIGHT)
    ratio = deviation * one
    firsts = np.arange(0, len(one), BLOCK_ROWS)
    found = [np.minimum.reduceat(one, firsts), *(np.maximum.reduceat(each, firsts) for each in (one, ratio))]
    return np.array(found, dtype=np.float32), np.array([weight.mean(), deviation.mean()])


def aligned_zeros(shape: tuple[int, ...]) -> Codes:
    """Zero bytes that begin with a cache line: a vector of 64 of them is then read at once."""
    size = int(np.prod(shape))
    whole = np.zeros(size + CACHE_LINE, dtype=np.uint8)
    start = -whole.ctypes.data % CACHE_LINE
    return whole[start : start + size].reshape(shape)


def pack_signs(signs: npt.NDArray[np.bool_], codes: Codes) -> None:
    """Write signs (n, W) of rows as blocks (⌈n/64⌉, W/8, 64) of bytes."""
    n, width = signs.shape
    bytes_of_rows = np.zeros((len(codes) * BLOCK_ROWS, width // 8), dtype=np.uint8)
    bytes_of_rows[:n] = np.packbits(signs, axis=1, bitorder="little")
    codes[:, :, _PLACES] = bytes_of_rows.reshape(len(codes), BLOCK_ROWS, -1).transpose(0, 2, 1)


def unpack_signs(codes: Codes, n: int) -> npt.NDArray[np.bool_]:
    """The signs (n, W) that blocks of codes hold: what :func:`pack_signs` was given.

    >>> signs = np.random.default_rng(0).random((70, 64)) < 0.5
    >>> codes = np.empty((2, 8, 64), dtype=np.uint8)
    >>> pack_signs(signs, codes)
    >>> bool((unpack_signs(codes, 70) == signs).all())
    True
    """
    rows = codes[:, :, _PLACES].transpose(0, 2, 1).reshape(-1, codes.shape[1])[:n]
    return np.unpackbits(np.ascontiguousarray(rows), axis=1, bitorder="little").astype(bool)


def _mean(exact: FloatArray) -> Float64Array:
    total = np.zeros(exact.shape[1])
    for first in range(0, len(exact), ENCODED_AT_ONCE):
        total += np.asarray(exact[first : first + ENCODED_AT_ONCE]).sum(axis=0, dtype=np.float64)
    return total / max(len(exact), 1)


def _in_steps(values: Float64Array, scale: Float64Array, rounded: np.ufunc) -> npt.NDArray[np.uint16]:
    """Values as steps from the least to the greatest; ``scale`` receives the least and a step."""
    least, most = values.min(initial=np.inf), values.max(initial=-np.inf)
    scale[:] = (least, (most - least) / LARGEST_STEP) if len(values) else (0.0, 0.0)
    steps = np.zeros(len(values)) if scale[1] == 0 else rounded((values - least) / scale[1] - 1e-9)
    return np.clip(steps, 0, LARGEST_STEP).astype(np.uint16)
