"""Columns: one value per probe, checked at the border."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holue.errors import InvalidInputError, InvalidSubjectsError

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def flags(name: str, values: ArrayLike) -> BoolArray:
    """Check a column of yes-or-no values: booleans, or numbers that are all 0 or 1."""
    rows = np.asarray(values)
    if rows.ndim != 1:
        raise InvalidInputError(f"{name} must have one value per probe, shape (n,); got shape {rows.shape}")
    if len(rows) == 0:
        raise InvalidInputError(f"{name} is empty; at least one probe is needed")
    if rows.dtype == np.bool_:
        return rows
    if rows.dtype.kind in "iuf":
        wrong = (rows != 0) & (rows != 1)
    else:
        wrong = np.array([not isinstance(value, bool | np.bool_) for value in rows])
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InvalidInputError(
            f"{name} must be booleans (or 0 and 1); row {row} is {rows[row]!r}: compare or convert it first"
        )
    return rows.astype(np.bool_)


def subject_ids(values: ArrayLike) -> NDArray[Any]:
    """Check a column of subject ids: one per probe, all of one type; ``None`` or NaN where unknown."""
    rows = np.asarray(values)
    if rows.ndim != 1:
        raise InvalidSubjectsError(f"subject must have one id per probe, shape (n,); got shape {rows.shape}")
    return rows


def numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """Check a column of real numbers, one per probe, none of them NaN; infinities are in order."""
    rows = np.asarray(values)
    if rows.ndim != 1:
        raise InvalidInputError(f"{name} must have one number per probe, shape (n,); got shape {rows.shape}")
    if len(rows) == 0:
        raise InvalidInputError(f"{name} is empty; at least one probe is needed")
    if rows.dtype.kind not in "biuf":
        raise InvalidInputError(f"{name} must be real numbers; got dtype {rows.dtype}")
    if rows.dtype.kind == "f" and np.isnan(rows).any():
        row = int(np.argmax(np.isnan(rows)))
        raise InvalidInputError(
            f"{name} must not be NaN; row {row} is: leave that probe out, or give it -inf to filter it first"
        )
    return rows


def same_length(**columns: NDArray[Any]) -> int:
    """Check that all columns have as many rows as the first, and return how many."""
    lengths = {name: len(rows) for name, rows in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise InvalidInputError(f"every column must have one row per probe: {listed}")
    return next(iter(lengths.values()))
