"""Embeddings as they travel: rows checked, packed into a body, or as the documents of samples."""

from __future__ import annotations

import io
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.client.files import read_npy
from holue.errors import InvalidConcentrationError, InvalidEmbeddingsError

RAW, NPY = "application/octet-stream", "application/x-npy"


def as_rows(X: object) -> npt.NDArray[Any]:
    """Embeddings (n, d), given as numbers or as the path of an ``.npy`` file."""
    rows = np.atleast_2d(read_npy(X)) if isinstance(X, str | os.PathLike) else np.asarray(X)
    if rows.ndim != 2 or rows.dtype.kind not in "fiu":
        raise InvalidEmbeddingsError(f"X must be numbers of shape (n, d), got {rows.dtype} of shape {rows.shape}")
    kept = rows if rows.dtype in (np.float32, np.float64) else rows.astype(np.float64)
    return np.ascontiguousarray(kept)


def as_kappa(given: object) -> npt.NDArray[np.float64] | None:
    """Concentrations (n,), where they are given."""
    if given is None:
        return None
    kappa = np.asarray(given, dtype=np.float64)
    if kappa.ndim != 1:
        raise InvalidConcentrationError(f"concentration must have shape (n,), got {kappa.shape}")
    return kappa


def media_type(rows: npt.NDArray[Any]) -> str:
    """The type of the body that holds rows."""
    return RAW if rows.dtype == np.float32 else NPY


def packed(rows: npt.NDArray[Any]) -> bytes:
    """The body itself: raw float32, or an ``.npy`` file of float64."""
    if rows.dtype == np.float32:
        return rows.astype("<f4", copy=False).tobytes()
    stream = io.BytesIO()
    np.save(stream, rows, allow_pickle=False)
    return stream.getvalue()


def samples_of(
    X: object, concentration: object, medium: str | Sequence[str], origin: str | Sequence[str | None] | None
) -> list[dict[str, Any]]:
    """Samples as documents, one for each row."""
    rows, kappa = as_rows(X).tolist(), as_kappa(concentration)
    media = [medium] * len(rows) if isinstance(medium, str) else list(medium)
    origins = [origin] * len(rows) if origin is None or isinstance(origin, str) else list(origin)
    return [
        {
            "embedding": row, "medium": media[place], "origin": origins[place],
            **({} if kappa is None else {"concentration": float(kappa[place])}),
        }
        for place, row in enumerate(rows)
    ]  # fmt: skip
