"""Embedding folder: embeddings too many for memory, as arrays that stay on disk until their rows are used.

FOLDER/embeddings.npy   (n, d), of half, single or double precision
FOLDER/features.npy     (n, f), the bottleneck features
FOLDER/subject_id.npy   (n,), whole numbers or names
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.artifact.opened import open_regular, size_of
from holue.artifact.plain_array import NotPlainError, read_array
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.errors import InvalidEmbeddingsError, InvalidFileError

BLOCK = 1 << 16
"""Rows that are checked at a time."""


def load_embedding_folder(folder: str | Path) -> EmbeddingFile:
    """The samples of a folder; ``embeddings`` and ``features`` are mapped, and every number in them is seen to be finite."""
    folder = Path(folder)
    if not folder.is_dir():
        raise InvalidFileError(f"{folder}: no such folder")
    embeddings, features = (_matrix(folder / f"{name}.npy") for name in ("embeddings", "features"))
    subject_id = _array(folder / "subject_id.npy")
    for name, array in (("features", features), ("subject_id", subject_id)):
        if len(array) != len(embeddings):
            raise InvalidFileError(f"{folder}: {name} has {len(array)} rows for {len(embeddings)} embeddings")
    if subject_id.ndim != 1 or subject_id.dtype.kind not in "iuU":
        raise InvalidFileError(
            f"{folder / 'subject_id.npy'}: must hold one whole number or name per row, got {subject_id.dtype} of "
            f"shape {subject_id.shape}"
        )
    rows = np.arange(len(embeddings))
    return EmbeddingFile(embeddings, features, rows, np.asarray(subject_id), "", folder.name)  # type: ignore[arg-type]


def _matrix(path: Path) -> npt.NDArray[Any]:
    array = _array(path)
    if array.ndim != 2 or array.dtype.kind != "f" or array.shape[1] < 2 or not len(array):
        raise InvalidFileError(
            f"{path}: must hold a matrix of floating-point numbers, got {array.dtype} of shape {array.shape}"
        )
    for start in range(0, len(array), BLOCK):
        finite = np.isfinite(array[start : start + BLOCK]).all(axis=1)
        if not finite.all():
            raise InvalidEmbeddingsError(
                f"{path}: NaN or infinity, first in row {start + int(finite.argmin())}; remove the row"
            )
    return array


def _array(path: Path) -> npt.NDArray[Any]:
    try:
        with open_regular(path) as stream:
            return read_array(stream, size_of(stream), mapped=True)
    except FileNotFoundError as error:
        raise InvalidFileError(
            f"{path}: no such file; a folder needs embeddings.npy, features.npy and subject_id.npy"
        ) from error
    except (OSError, NotPlainError) as error:
        raise InvalidFileError(f"{path}: cannot be read ({error}); write it with np.save") from error
