"""Parameters: the dimensions, concentrations and scores that the functions of the sphere accept."""

from __future__ import annotations

import operator
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holue.errors import HolueError, InvalidConcentrationError, InvalidParameterError

FloatArray: TypeAlias = NDArray[np.float64]

#: How far a score may leave [-1, 1]: what rounding does to the product of two half-precision unit vectors.
_SCORE_ROUNDING = 1e-3


def check_dim(dim: int) -> int:
    """Return the dimension as an ``int``; the sphere lives in 2 dimensions or more.

    >>> check_dim(512)
    512
    """
    try:
        if isinstance(dim, bool | np.bool_):
            raise TypeError
        value = operator.index(dim)
    except TypeError:
        raise InvalidParameterError(f"dim must be an integer, got {dim!r}; pass a vector's length") from None
    if value < 2:
        raise InvalidParameterError(f"dim must be at least 2, got {value}; pass a vector's length")
    return value


def check_concentration(concentration: ArrayLike | float, name: str = "concentration") -> FloatArray:
    """Return concentrations as ``float64``; each is finite and not negative (0 is the uniform density).

    >>> check_concentration([0, 12])
    array([ 0., 12.])
    """
    if isinstance(concentration, float) and 0 <= concentration < np.inf:  # root finding asks thousands of times
        return np.array(concentration)
    values = _as_float64(concentration, name, InvalidConcentrationError)
    broken = ~((values >= 0) & (values < np.inf))
    if broken.any():
        raise InvalidConcentrationError(
            f"{name} must be finite and at least 0, got {values[broken].flat[0]}; 0 is the uniform density"
        )
    return values


def check_score(score: ArrayLike) -> FloatArray:
    """Return cosines as ``float64`` within [-1, 1]; what rounding put outside is moved to the end.

    >>> check_score([0.5, 1.0000001])
    array([0.5, 1. ])
    """
    values = _as_float64(score, "score", InvalidParameterError)
    broken = ~(np.abs(values) <= 1 + _SCORE_ROUNDING)
    if broken.any():
        raise InvalidParameterError(
            f"score must be a cosine within [-1, 1], got {values[broken].flat[0]}; normalise the vectors"
        )
    return np.clip(values, -1.0, 1.0)


def check_score_and_concentration(score: ArrayLike, concentration: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Return checked scores and concentrations whose shapes go together.

    >>> check_score_and_concentration([0.1, 0.9], 12.0)
    (array([0.1, 0.9]), array(12.))
    """
    scores, concentrations = check_score(score), check_concentration(concentration)
    try:
        np.broadcast_shapes(scores.shape, concentrations.shape)
    except ValueError:
        raise InvalidConcentrationError(
            f"concentration must broadcast with score: shapes {concentrations.shape} and {scores.shape}; "
            "pass one concentration, or one per score"
        ) from None
    return scores, concentrations


def check_length(length: ArrayLike) -> FloatArray:
    """Return mean resultant lengths as ``float64``; each lies in [0, 1).

    >>> check_length(0.25)
    array(0.25)
    """
    values = _as_float64(length, "length", InvalidParameterError)
    broken = ~((values >= 0) & (values < 1))
    if broken.any():
        raise InvalidParameterError(
            f"length must be at least 0 and less than 1, got {values[broken].flat[0]}; "
            "only samples that are all equal have length 1, and no finite concentration gives them"
        )
    return values


def as_given(values: FloatArray) -> float | FloatArray:
    """Answer a number with a ``float`` and an array with an array."""
    return float(values) if values.ndim == 0 else values


def _as_float64(given: ArrayLike, name: str, error: type[HolueError]) -> FloatArray:
    try:
        values = np.asarray(given)
    except ValueError:
        raise error(f"{name} must be a number or a rectangular array of numbers, got a ragged one") from None
    if values.dtype.kind not in "fiu":
        raise error(f"{name} must be real numbers, got dtype {values.dtype}; convert to float64 first")
    return values.astype(np.float64, copy=False)
