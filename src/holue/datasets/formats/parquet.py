"""Parquet table: columns as arrays, list columns as matrices; errors name the file and the column."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.artifact import whole_file
from holue.datasets.formats.table import as_strings
from holue.errors import InvalidFileError, MissingDependencyError
from holue.evaluation.protocol import listed


def read_parquet(
    path: str | Path, *, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, npt.NDArray[Any]]:
    """The wanted columns of a table; a ``list`` or ``fixed_size_list`` column becomes a matrix (n, d)."""
    path = Path(path)
    arrow, table = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    names = parquet_columns(path)
    missing = [name for name in required if name not in names]
    if missing:
        raise InvalidFileError(
            f"{path}: missing key {listed(missing)}; the table holds {listed(names, shown=12) or 'no columns'}"
        )
    wanted = [*required, *(name for name in optional if name in names and name not in required)]
    try:
        # ParquetFile, not read_table: the latter reads meaning into folder names such as ``part=3``.
        columns = table.ParquetFile(path, page_checksum_verification=True).read(columns=wanted)
        return {name: _to_numpy(columns.column(name), name, path) for name in wanted}
    except InvalidFileError:
        raise
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise InvalidFileError(f"{path}: the table is damaged or cut short ({error}); write it again") from error


def parquet_columns(path: str | Path) -> list[str]:
    """The names of the columns of a table."""
    path = Path(path)
    if not path.is_file():
        raise InvalidFileError(f"{path}: no such file")
    arrow, table = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    try:
        return list(table.read_schema(path).names)
    except (arrow.ArrowException, OSError, ValueError) as error:
        raise InvalidFileError(f"{path}: not a Parquet table, or cut short ({error})") from error


def write_parquet(path: str | Path, columns: Mapping[str, npt.NDArray[Any]]) -> None:
    """One row per sample; a matrix becomes a ``fixed_size_list`` column."""
    arrow, table = _pyarrow("pyarrow"), _pyarrow("pyarrow.parquet")
    made = arrow.table({name: _to_arrow(arrow, array) for name, array in columns.items()})
    with whole_file(path) as stream:
        table.write_table(made, stream, write_page_checksum=True)


def _to_arrow(arrow: Any, array: npt.NDArray[Any]) -> Any:
    if array.ndim == 1:
        return arrow.array(array)
    return arrow.FixedSizeListArray.from_arrays(arrow.array(array.ravel()), array.shape[1])


def _to_numpy(column: Any, name: str, path: Path) -> npt.NDArray[Any]:
    arrow = _pyarrow("pyarrow")
    kind = arrow.types
    if column.null_count:
        row = int(np.argmin(column.is_valid().to_numpy()))
        raise InvalidFileError(f"{path}: key {name!r} is null in row {row}; remove the row or fill it")
    values = column.combine_chunks()
    if kind.is_dictionary(values.type):
        values = values.dictionary_decode()
    if kind.is_list(values.type) or kind.is_large_list(values.type) or kind.is_fixed_size_list(values.type):
        return _matrix(values, name, path)
    if kind.is_string(values.type) or kind.is_large_string(values.type):
        # NumPy refuses a zero-width string type: an empty column keeps the narrowest one.
        return as_strings(values.to_pylist(), f"{path}: key {name!r}")
    if kind.is_integer(values.type) or kind.is_floating(values.type):
        return np.asarray(values.to_numpy(zero_copy_only=False))
    raise InvalidFileError(
        f"{path}: key {name!r} has type {values.type}; expected numbers, strings or lists of numbers"
    )


def _matrix(values: Any, name: str, path: Path) -> npt.NDArray[Any]:
    compute = _pyarrow("pyarrow.compute")
    flat = values.flatten()
    if flat.null_count:
        raise InvalidFileError(f"{path}: key {name!r} has null entries inside its lists; fill or remove those rows")
    widths = compute.list_value_length(values).to_numpy(zero_copy_only=False)
    if len(widths) == 0:
        return np.empty((0, 0))
    odd = widths != widths[0]
    if odd.any():
        row = int(odd.argmax())
        raise InvalidFileError(
            f"{path}: key {name!r} has lists of different lengths: {widths[0]} in row 0 and {widths[row]} in row {row}"
        )
    return np.asarray(flat.to_numpy(zero_copy_only=False)).reshape(len(widths), int(widths[0]))


def _pyarrow(module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "report") from error
