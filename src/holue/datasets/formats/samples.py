"""Samples: embeddings of single images or utterances with their ids, before pooling.

File format, ``.npz`` or ``.parquet``; one row (one table row) per sample:

    embeddings      (n, d)  numbers, float16 accepted, any norm but zero
    subject_id      (n,)    integers or strings: whose sample it is
    template_id     (n,)    optional: samples of one template are pooled
    media_id        (n,)    optional: frames of one video share a medium (mean within, sum over media)
    sample_id       (n,)    optional: names of the samples, for reports and for protocols that list names
    concentration   (n,)    optional: κ_x > 0
    variance        (n, d) or (n, 1)  optional: σ² > 0 of a Gaussian embedding, gives the quality −H(σ²)
    scale, quality  (n,)    optional: scores, higher = more reliable
    group           (n,)    optional: integers or strings, for rates per group
    group_NAME      (n,)    optional: further groups, such as group_sex and group_age

Any other key is skipped, unless it is nearly one of these: then it is a slip of the pen and an error.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.artifact.archive import write_archive
from holue.datasets.formats.npz import npz_keys, read_npz
from holue.datasets.formats.parquet import parquet_columns, read_parquet, write_parquet
from holue.errors import InvalidFileError, InvalidInputError
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.subjects import Subjects, as_subjects

IDS = ("subject_id", "template_id", "media_id", "sample_id", "group")
SCORES = ("concentration", "scale", "quality")
KEYS = ("embeddings", *IDS, *SCORES, "variance")
GROUP = "group_"
"""How the keys of further groups begin."""
SUFFIXES = (".npz", ".parquet")

ROWS_AT_ONCE = 65536
"""Rows worked on together where a whole file at once would take gigabytes."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows of a file in the format above; build it with :meth:`from_arrays`, which validates.

    ``origin`` is the file the rows came from, for messages.

    >>> samples = Samples.from_arrays({"embeddings": np.eye(3), "subject_id": ["a", "a", "b"]}, origin="here")
    >>> len(samples), samples.subject_id.tolist()
    (3, ['a', 'a', 'b'])
    """

    embeddings: FloatArray
    subject_id: Subjects | None = None
    template_id: Subjects | None = None
    media_id: Subjects | None = None
    sample_id: Subjects | None = None
    group: Subjects | None = None
    concentration: Float64Array | None = None
    scale: Float64Array | None = None
    quality: Float64Array | None = None
    variance: FloatArray | None = None
    more_groups: Mapping[str, Subjects] = field(default_factory=dict)
    origin: str = "samples"

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], *, origin: str) -> Samples:
        """Arrays by the keys of the format → samples, or an error that names the origin and the key."""
        embeddings = _embeddings(np.asarray(arrays["embeddings"]), origin)
        n = len(embeddings)
        given = {key: np.asarray(array) for key, array in arrays.items() if array is not None and _is_known(key)}
        for key, array in given.items():
            if array.ndim == 0 or len(array) != n:
                raise InvalidFileError(
                    f"{origin}: key {key!r} has shape {array.shape}, but 'embeddings' has {n} rows; "
                    "every key needs one entry per row"
                )
        return cls(
            embeddings,
            **{key: _ids(given[key], key, origin) for key in IDS if key in given},
            **{key: _scores(given[key], key, origin) for key in SCORES if key in given},
            variance=_variance(given["variance"], embeddings.shape[1], origin) if "variance" in given else None,
            more_groups={key[len(GROUP) :]: _ids(given[key], key, origin) for key in given if key.startswith(GROUP)},
            origin=origin,
        )

    def __len__(self) -> int:
        return len(self.embeddings)

    @property
    def subjects(self) -> Subjects:
        """The subject of every sample; an error where the file has none."""
        return self.required("subject_id")

    def required(self, key: str) -> Subjects:
        """An optional column that the caller cannot do without."""
        column = self.arrays().get(key)
        if column is None:
            raise InvalidFileError(f"{self.origin}: missing key {key!r}; the file holds {', '.join(self.arrays())}")
        return column

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """The columns that are there, by the keys of the format."""
        columns = {key: getattr(self, key) for key in KEYS}
        more = {GROUP + name: column for name, column in self.more_groups.items()}
        return {key: column for key, column in (columns | more).items() if column is not None}

    def take(self, rows: npt.NDArray[Any]) -> Samples:
        """The samples at ``rows`` (a mask or row numbers)."""
        columns = {key: column[rows] for key, column in self.arrays().items() if key in KEYS}
        more = {name: column[rows] for name, column in self.more_groups.items()}
        return Samples(**columns, more_groups=more, origin=self.origin)


def read_samples(path: str | Path, *, required: tuple[str, ...] = ("embeddings", "subject_id")) -> Samples:
    """A file in the format above, by its suffix."""
    path = Path(path)
    match path.suffix:
        case ".npz":
            keys, read = npz_keys, read_npz
        case ".parquet":
            keys, read = parquet_columns, read_parquet
        case suffix:
            raise InvalidFileError(
                f"{path}: unknown kind of file {suffix!r}; samples are read from {' or '.join(SUFFIXES)}; "
                "write one with np.savez(path, embeddings=X, subject_id=y)"
            )
    optional = (*(key for key in KEYS if key not in required), *(key for key in keys(path) if key.startswith(GROUP)))
    # Missing keys first: they are the likelier complaint, and name what the file holds.
    arrays = read(path, required=required, optional=optional)
    _refuse_slips(keys(path), path)
    return Samples.from_arrays(arrays, origin=str(path))


def write_samples(samples: Samples, path: str | Path) -> None:
    """A file in the format above, by its suffix; the same samples give the same bytes."""
    path = Path(path)
    match path.suffix:
        case ".npz":
            write_archive(path, samples.arrays())
        case ".parquet":
            write_parquet(path, samples.arrays())
        case suffix:
            raise InvalidFileError(
                f"{path}: unknown kind of file {suffix!r}; samples are written to {' or '.join(SUFFIXES)}"
            )


def _is_known(key: str) -> bool:
    return key in KEYS or (key.startswith(GROUP) and len(key) > len(GROUP))


def _refuse_slips(keys: list[str], path: Path) -> None:
    for key in keys:
        near = difflib.get_close_matches(key.lower(), KEYS, n=1, cutoff=0.85)
        if not _is_known(key) and near:
            raise InvalidFileError(f"{path}: unknown key {key!r}; did you mean {near[0]!r}? Rename or remove it")


def _embeddings(array: npt.NDArray[Any], origin: str) -> FloatArray:
    if array.ndim != 2 or array.dtype.kind not in "fiu" or array.shape[1] < 2:
        raise InvalidFileError(
            f"{origin}: key 'embeddings' must be a matrix of real numbers (n, d ≥ 2), "
            f"got shape {array.shape} and dtype {array.dtype}"
        )
    if len(array) == 0:
        raise InvalidFileError(f"{origin}: key 'embeddings' has no rows")
    vectors = array if array.dtype.kind == "f" else array.astype(np.float64)
    # In slices: a mask over 470 000 × 512 entries at once would take a quarter of a gigabyte.
    for start in range(0, len(vectors), ROWS_AT_ONCE):
        block = vectors[start : start + ROWS_AT_ONCE]
        _refuse_row(~np.isfinite(block).all(axis=1), start, "contains NaN or infinity", origin)
        _refuse_row(~block.any(axis=1), start, "is a zero vector, which has no direction,", origin)
    return vectors


def _refuse_row(bad: Any, start: int, fault: str, origin: str) -> None:
    if bad.any():
        row = start + int(bad.argmax())
        raise InvalidFileError(
            f"{origin}: key 'embeddings' {fault} in row {row}; remove the row or embed the sample again"
        )


def _ids(array: npt.NDArray[Any], key: str, origin: str) -> Subjects:
    try:
        return as_subjects(array, field=key)
    except InvalidInputError as error:
        raise InvalidFileError(f"{origin}: {error}") from error


def _scores(array: npt.NDArray[Any], key: str, origin: str) -> Float64Array:
    column = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if column.ndim != 1 or column.dtype.kind not in "fiu":
        raise InvalidFileError(
            f"{origin}: key {key!r} must hold one real number per row, got shape {array.shape} and dtype {array.dtype}"
        )
    numbers = column.astype(np.float64)
    positive = key == "concentration"
    bad = ~np.isfinite(numbers) | (numbers <= 0 if positive else False)
    if bad.any():
        row = int(bad.argmax())
        rule = "positive and finite (exp of a predicted log κ)" if positive else "finite"
        raise InvalidFileError(f"{origin}: key {key!r} must be {rule}: row {row} is {float(numbers[row])}")
    return numbers


def _variance(array: npt.NDArray[Any] | None, dim: int, origin: str) -> FloatArray | None:
    if array is None:
        return None
    if array.ndim != 2 or array.shape[1] not in (1, dim) or array.dtype.kind not in "fiu":
        raise InvalidFileError(
            f"{origin}: key 'variance' must have shape (n, {dim}) or (n, 1), got {array.shape} of dtype {array.dtype}"
        )
    bad = ~(np.isfinite(array) & (array > 0)).all(axis=1)
    if bad.any():
        raise InvalidFileError(
            f"{origin}: key 'variance' must be positive and finite, row {int(bad.argmax())} is not; "
            "a head that predicts log σ² needs exp"
        )
    return array if array.dtype.kind == "f" else array.astype(np.float64)
