"""Embeddings: unit directions on the hypersphere, with an optional concentration each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_array

from holue.errors import InvalidConcentrationError, InvalidEmbeddingsError

FloatArray = npt.NDArray[np.floating[Any]]
Float64Array = npt.NDArray[np.float64]

HALF_TOLERANCE, UNIT_TOLERANCE = 2e-3, 1e-5
"""How far a norm may be from 1 and still count as a direction: the rounding of float16, and of float32 and wider."""


@dataclass(frozen=True, eq=False)
class Embeddings:
    """Directions ``z`` (n, d) of unit length and, where known, concentrations ``κ_x`` (n,).

    Build it with :meth:`from_samples`, which validates and normalises; the constructor trusts.
    """

    directions: FloatArray
    concentrations: Float64Array | None = None

    @classmethod
    def from_samples(cls, X: object, concentration: object = None, *, dim: int | None = None, field: str = "X") -> Self:
        """Raw vectors → directions, in the precision they came in (float16 becomes float32, integers float64).

        >>> Embeddings.from_samples([[3.0, 4.0]], concentration=50).directions
        array([[0.6, 0.8]])
        """
        vectors = as_vectors(X, dim=dim, field=field)
        return cls(normalize(vectors, field=field), as_concentrations(concentration, len(vectors)))

    def __len__(self) -> int:
        return len(self.directions)

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return int(self.directions.shape[1])

    def take(self, rows: slice | npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Embeddings:
        """The embeddings at ``rows`` (anything that indexes a numpy axis)."""
        kappa = self.concentrations
        return Embeddings(self.directions[rows], None if kappa is None else kappa[rows])


def as_vectors(X: object, *, dim: int | None = None, field: str = "X") -> FloatArray:
    """``X`` as a finite float32 or float64 matrix (n, d ≥ 2), or a clear error."""
    vectors = _plain_matrix(X, 2 if dim is None else 1)
    if vectors is None:
        vectors = _checked_matrix(X, dim, field)
    row = _first_not_finite(vectors)
    if row is not None:
        raise InvalidEmbeddingsError(
            f"{field} contains NaN or infinity, first in row {row}; remove the row or embed the sample again"
        )
    if dim is not None and vectors.shape[1] != dim:
        raise InvalidEmbeddingsError(
            f"{field} has {vectors.shape[1]} features, but OpenSetRecognizer is expecting {dim} features as input: "
            "probes and gallery must come from the same embedding model"
        )
    if getattr(X, "dtype", None) == np.float16:
        return vectors.astype(np.float32)
    return vectors


def _plain_matrix(X: object, fewest: int) -> FloatArray | None:
    """``X`` where it is a matrix as it is needed already, which the check of any other object would give back unchanged."""
    if type(X) is not np.ndarray or X.dtype.char not in "fd" or not X.dtype.isnative or X.ndim != 2:
        return None
    return X if X.shape[0] >= 1 and X.shape[1] >= fewest else None


def _checked_matrix(X: object, dim: int | None, field: str) -> FloatArray:
    _check_kind(X, field)
    try:
        # scikit-learn's own border check: its wording is what users of the field recognise.
        vectors: FloatArray = check_array(
            X,
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,
            ensure_min_features=2 if dim is None else 1,  # a known dimension has a better message of its own
            input_name=field,
        )
    except (ValueError, TypeError) as error:
        raise InvalidEmbeddingsError(f"{field}: {error}") from error
    return vectors


def _check_kind(X: object, field: str) -> None:
    """Refuse what scikit-learn would convert silently, or whose values it would print: embeddings can be personal data."""
    if hasattr(X, "toarray"):
        return  # sparse: scikit-learn says so well
    try:
        given = X if hasattr(X, "dtype") and hasattr(X, "ndim") else np.asarray(X)
    except ValueError as error:
        raise InvalidEmbeddingsError(
            f"{field} has rows of different lengths; every embedding needs the same width"
        ) from error
    kind, ndim = getattr(given.dtype, "kind", "f"), given.ndim
    if kind == "O":
        raise InvalidEmbeddingsError(
            f"{field} is an object array; embeddings must be numbers of one width: convert with np.asarray(X, dtype=float)"
        )
    if kind in "SUMmV":
        raise InvalidEmbeddingsError(
            f"{field} has dtype {given.dtype}; embeddings are numbers: could not convert string to float"
        )
    if np.ma.isMaskedArray(X) and np.ma.getmaskarray(X).any():
        raise InvalidEmbeddingsError(f"{field} is a masked array with hidden values; fill or remove those rows first")
    if kind == "c":
        raise InvalidEmbeddingsError(f"{field}: Complex data not supported; embeddings are real numbers")
    if ndim != 2:
        raise InvalidEmbeddingsError(
            f"{field}: Expected 2D array, got {ndim}D array instead. Reshape your data with X.reshape(1, -1) if it is one "
            "embedding; rows are embeddings, columns are coordinates"
        )


def _first_not_finite(vectors: FloatArray) -> int | None:
    # A row's sum is finite only if its entries are, and needs no mask of the whole matrix; a sum that overflows is
    # looked at entry by entry.
    with np.errstate(all="ignore"):
        suspects = np.flatnonzero(~np.isfinite(vectors.sum(axis=1)))
    return next((int(row) for row in suspects if not np.isfinite(vectors[row]).all()), None)


def normalize(vectors: FloatArray, *, field: str = "X") -> FloatArray:
    """Rows divided by their Euclidean norm; a zero row is an error, overflow is not possible."""
    largest = np.maximum(vectors.max(axis=1, keepdims=True), -vectors.min(axis=1, keepdims=True))
    zero = largest[:, 0] == 0
    if zero.any():
        raise InvalidEmbeddingsError(
            f"{field} has a zero vector in row {int(zero.argmax())}: it has no direction; remove the row"
        )
    directions: FloatArray = vectors / largest
    directions /= np.sqrt(np.einsum("ij,ij->i", directions, directions))[:, None]
    return directions


def as_directions(X: object, *, field: str) -> FloatArray:
    """``X`` as it is, once every row is seen to be a unit vector: formulas do not rescale their input."""
    vectors = as_vectors(X, field=field)
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    off = np.abs(norms - 1) > (HALF_TOLERANCE if getattr(X, "dtype", None) == np.float16 else UNIT_TOLERANCE)
    if off.any():
        row = int(off.argmax())
        raise InvalidEmbeddingsError(
            f"{field} must hold unit vectors: row {row} has norm {norms[row]:.6g}; "
            "divide it by its norm, or use OpenSetRecognizer, which does"
        )
    return vectors


def as_concentrations(value: object, n: int, *, field: str = "concentration") -> Float64Array | None:
    """Concentrations (n,) from a scalar, (n,) or (n, 1); None stays None."""
    if value is None:
        return None
    given = np.asarray(value)
    if given.dtype.kind not in "iuf":
        raise InvalidConcentrationError(f"{field} must be real numbers, got dtype {given.dtype}")
    if given.ndim == 2 and given.shape[1] == 1:
        given = given[:, 0]
    if given.ndim > 1 or (given.ndim == 1 and len(given) != n):
        raise InvalidConcentrationError(f"{field} must be one number per embedding: got shape {given.shape} for {n}")
    kappa = np.broadcast_to(given.astype(np.float64), (n,))
    bad = ~(np.isfinite(kappa) & (kappa > 0))
    if bad.any():
        row = int(bad.argmax())
        raise InvalidConcentrationError(
            f"{field} must be positive and finite: entry {row} is {float(kappa[row])!r}; "
            "a head that predicts log κ needs exp, a variance needs its inverse"
        )
    return kappa
