"""CompressedGallery: a gallery in two bytes or one per coordinate, which knows how far each row is from the exact one.

Row ``μ_c`` is kept as codes that stand for ``μ̂_c``: its float16, or ``scale_c · q`` with ``q`` in −127 … 127. What is lost is
known, not estimated: ``errors[c] ≥ ‖μ_c − μ̂_c‖``, so that for every probe ``|z·μ_c − z·μ̂_c| ≤ ‖z‖ errors[c]``; and per part
``residual_norm ≥ ‖Δ‖₂``, the largest singular value of the residuals of all rows together, so that ``‖Δz‖ ≤ ‖z‖ residual_norm``:
for no probe can more than a few of the errors be large at once. The exact rows stay at hand for the few scores that matter;
they may be mapped from disk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidEmbeddingsError, InvalidParameterError
from holue.gallery.embeddings import FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.segment import Mask, Numbers, Part, Segment, places_of

Form = Literal["float16", "int8"]
Codes = npt.NDArray[np.uint16] | npt.NDArray[np.int8]
Float32Array = npt.NDArray[np.float32]

FORMS: tuple[Form, ...] = ("float16", "int8")
PADDED_TO = 16
"""Codes are padded with zeros to a multiple of this width: what a processor multiplies at once."""
LARGEST_CODE = 127
ROWS_COMPRESSED_AT_ONCE = 4096
_UPWARD = 1 + 1e-6
"""Covers the rounding to float32 and of the float64 sums: a bound is rounded up."""


@dataclass(frozen=True, eq=False)
class CompressedPart:
    """The compressed rows of a segment; row ``i`` of all arrays belongs to row ``i`` of ``exact``.

    All versions of a gallery share the arrays of a segment; only ``gone`` is a version's own. Bounds over all rows hold for
    those who have not left.
    """

    codes: Codes  # (n, width): bits of float16, or int8
    scales: Float32Array  # (n,) what one step of a code is worth; 1 for float16
    errors: Float32Array  # (n,) at least ‖μ − μ̂‖
    largest_norm: float  # at least every ‖μ̂‖
    residual_norm: float  # at least the largest singular value of μ − μ̂ over all rows
    exact: FloatArray  # (n, d)
    numbers: Numbers  # (n,) ascending
    gone: Mask | None = None  # (n,) who has left; None where nobody has

    def __len__(self) -> int:
        return len(self.codes)

    def of(self, part: Part) -> CompressedPart:
        """The same as one version of the gallery has it."""
        return self if part.gone is self.gone else replace(self, gone=part.gone)

    def living(self) -> CompressedPart:
        """A copy without the rows of those who left."""
        if self.gone is None:
            return self
        there = ~self.gone
        codes: Any = self.codes[there]
        rows = codes, self.scales[there], self.errors[there]
        return CompressedPart(*rows, self.largest_norm, self.residual_norm, self.exact[there], self.numbers[there])

    @cached_property
    def n_living(self) -> int:
        """How many have not left."""
        return len(self.codes) - (0 if self.gone is None else int(np.count_nonzero(self.gone)))


@dataclass(frozen=True, eq=False)
class CompressedGallery:
    """Compressed parts of one form; made by :func:`compress`.

    >>> gallery = Gallery.from_samples([[1.0, 0.0], [0.6, 0.8]], ["ann", "bob"])
    >>> compress(gallery, "int8")
    CompressedGallery(2 subjects, d=2, int8)
    """

    form: Form
    parts: tuple[CompressedPart, ...]

    def __len__(self) -> int:
        return sum(part.n_living for part in self.parts)

    def __repr__(self) -> str:
        return f"CompressedGallery({len(self)} subjects, d={self.dim}, {self.form})"

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return int(self.parts[0].exact.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes that a scan reads: codes, scales and errors, without the exact rows."""
        return sum(part.codes.nbytes + part.scales.nbytes + part.errors.nbytes for part in self.parts)

    @cached_property
    def error(self) -> float:
        """The largest of the rows' errors."""
        return max(float(part.errors.max()) for part in self.parts)

    @cached_property
    def largest_norm(self) -> float:
        """At least the length of every compressed row."""
        return max(part.largest_norm for part in self.parts)

    @cached_property
    def residual_norm(self) -> float:
        """At least the largest singular value of all residuals: squares of the parts' values add up at most."""
        return float(np.sqrt(sum(part.residual_norm**2 for part in self.parts))) * _UPWARD

    def errors_of(self, numbers: Numbers) -> Float32Array:
        """The errors of some who have not left."""
        found = np.empty(len(numbers), dtype=np.float32)
        for part in self.parts:
            rows = places_of(numbers, part.numbers)
            here = rows >= 0
            if part.gone is not None:
                here &= ~part.gone[rows]
            found[here] = part.errors[rows[here]]
        return found


def compress(gallery: Gallery | FloatArray, form: Form) -> CompressedGallery:
    """Unit directions in half of float32's bytes (``"float16"``) or a quarter (``"int8"``), with each row's certified error.

    ``int8`` has one scale per row: its largest coordinate over 127.

    >>> compressed = compress(np.array([[0.6, 0.8], [0.8, -0.6]], dtype=np.float32), "float16")
    >>> compressed.nbytes, bool(compressed.error < 3e-4)
    (80, True)
    """
    if form not in FORMS:
        raise InvalidParameterError(f"a gallery is compressed to 'float16' or 'int8', got {form!r}")
    if isinstance(gallery, Gallery):
        return CompressedGallery(form, tuple(compress_segment(part.segment, form).of(part) for part in gallery.parts))
    matrix = np.asarray(gallery)
    if matrix.ndim != 2 or matrix.dtype.kind != "f" or matrix.shape[1] == 0:
        raise InvalidEmbeddingsError(
            f"only a matrix of directions (K, d) in floating point is compressed, got {matrix.dtype} of shape {matrix.shape}"
        )
    return CompressedGallery(form, (_compress_rows(matrix, np.arange(len(matrix)), form),))


def compress_segment(segment: Segment, form: Form) -> CompressedPart:
    """All rows of one segment, which nobody has left."""
    return _compress_rows(segment.directions, segment.numbers, form)


def unpack_rows(part: CompressedPart, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """What the codes of some rows stand for, in float64: ``μ̂``."""
    codes = part.codes[rows, : part.exact.shape[1]]
    values = codes.view(np.float16) if codes.dtype == np.uint16 else codes
    return part.scales[rows, None].astype(np.float64) * values.astype(np.float64)


def _compress_rows(exact: FloatArray, numbers: Numbers, form: Form) -> CompressedPart:
    n, dim = exact.shape
    width = -(-dim // PADDED_TO) * PADDED_TO
    codes: Any = np.zeros((n, width), dtype=np.uint16 if form == "float16" else np.int8)
    scales, errors = np.ones(n, dtype=np.float32), np.zeros(n, dtype=np.float32)
    # The largest eigenvalue of ΔᵀΔ or of ΔΔᵀ, whichever is smaller, is the square of the residuals' largest singular value.
    residuals, gram = np.zeros((n, dim) if n < dim else (0, 0)), np.zeros((0, 0) if n < dim else (dim, dim))
    largest_norm = 0.0
    for first in range(0, n, ROWS_COMPRESSED_AT_ONCE):
        rows = slice(first, first + ROWS_COMPRESSED_AT_ONCE)
        given = np.array(exact[rows], dtype=np.float64)
        if not np.isfinite(given).all() or np.abs(given).max(initial=0.0) > 2:
            raise InvalidEmbeddingsError(
                f"rows {first} to {first + len(given) - 1} hold coordinates that no unit vector has (NaN, infinite or above 2); "
                "normalise the embeddings first, for instance with Gallery.from_samples"
            )
        if form == "float16":
            half = given.astype(np.float16)
            codes[rows, :dim] = half.view(np.uint16)
            residual = given - half.astype(np.float64)
        else:
            largest = np.abs(given).max(axis=1)
            scales[rows] = np.where(largest > 0, largest / LARGEST_CODE, 1.0)
            # A row of numbers near the end of float32 would get a scale of 0.
            scales[rows] = np.maximum(scales[rows], np.finfo(np.float32).tiny)
            scale = scales[rows].astype(np.float64)[:, None]
            code = np.clip(np.rint(given / scale), -LARGEST_CODE, LARGEST_CODE)
            codes[rows, :dim] = code.astype(np.int8)
            residual = given - scale * code
        # The smallest normal float32 keeps what rounds to 0 above it.
        errors[rows] = np.sqrt(np.einsum("ij,ij->i", residual, residual)) * _UPWARD + np.finfo(np.float32).tiny
        if n < dim:
            residuals[rows] = residual
        else:
            gram += residual.T @ residual
        given -= residual
        largest_norm = max(largest_norm, float(np.einsum("ij,ij->i", given, given).max(initial=0.0)))
    if n < dim:
        gram = residuals @ residuals.T
    largest_square = float(np.linalg.eigvalsh(gram)[-1]) if n else 0.0
    residual_norm = float(np.sqrt(max(largest_square, 0.0))) * _UPWARD + 1e-12
    largest_norm = float(np.sqrt(largest_norm)) * _UPWARD
    return CompressedPart(codes, scales, errors, largest_norm, residual_norm, exact, numbers)
