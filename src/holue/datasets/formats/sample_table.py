"""Sample table: samples as CSV, one line each; columns with a known name are read by it, all others are the embedding."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidFileError

IDS, NUMBERS = ("subject_id", "media_id", "sample_id"), ("concentration",)
"""The columns with a known name."""
SHOWN = 200
"""Characters of the first line in an error."""


def read_sample_table(path: Path, *, required: Sequence[str] = (), unchecked: bool = False) -> dict[str, Any]:
    """The columns by name, and ``embeddings`` from all columns of other names, in their order; ids are text.

    The first line names the columns. Where a coordinate is no number, the error names line and column; ``unchecked`` reads it as
    NaN instead, for a gallery that lists the rows it leaves out.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as stream:
            reader = csv.reader(stream)
            lines = [(reader.line_num, row) for row in reader if row]  # an empty line says nothing
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InvalidFileError(f"{path}: cannot be read as CSV ({error})") from error
    if len(lines) < 2:
        raise InvalidFileError(f"{path}: no samples; the first line names the columns, each further line is a sample")
    (_, head), *numbered = lines
    rows, at = [row for _, row in numbered], [line for line, _ in numbered]
    if len(set(head)) < len(head):
        raise InvalidFileError(f"{path}: two columns have the same name; each needs its own")
    for name in required:
        if name not in head:
            hint = "; separate the columns by commas" if len(head) == 1 else ""
            raise InvalidFileError(f"{path}: no column {name!r}; the columns are {_some(head)}{hint}")
    for line, row in zip(at, rows):
        if len(row) != len(head):
            raise InvalidFileError(
                f"{path}: line {line} has {len(row)} cells, the first line names {len(head)} columns"
            )
    known = [name for name in head if name in (*IDS, *NUMBERS)]
    coordinates = [place for place, name in enumerate(head) if name not in known]
    if not coordinates:
        raise InvalidFileError(f"{path}: no embedding; every column but {', '.join(known)} is one of its coordinates")
    found: dict[str, Any] = {"embeddings": _numbers(path, head, rows, at, coordinates, unchecked)}
    for name in known:
        place = head.index(name)
        if name in NUMBERS:
            found[name] = _numbers(path, head, rows, at, [place], unchecked)[:, 0]
        else:
            found[name] = _ids(path, name, [row[place] for row in rows], at)
    return found


def _ids(path: Path, name: str, cells: list[str], at: list[int]) -> npt.NDArray[np.str_]:
    """The cells as an array, which would drop a NUL at the end of an id and make it another id."""
    for line, cell in zip(at, cells):
        if "\0" in cell:
            raise InvalidFileError(
                f"{path}: line {line}, column {name!r} holds the character NUL; take it out of the id"
            )
    return np.array(cells)


def _some(head: list[str]) -> str:
    return f"{', '.join(head[:5])} …"[:SHOWN] if len(head) > 5 or len(head[0]) > SHOWN else ", ".join(head)


def _numbers(
    path: Path, head: list[str], rows: list[list[str]], at: list[int], places: list[int], unchecked: bool
) -> np.ndarray:
    found = np.empty((len(rows), len(places)))
    for i, row in enumerate(rows):
        try:
            found[i] = [float(row[place]) for place in places]
        except ValueError:
            found[i] = [_number(path, at[i], head[place], row[place], unchecked) for place in places]
    return found


def _number(path: Path, line: int, column: str, cell: str, unchecked: bool) -> float:
    try:
        return float(cell)
    except ValueError:
        if unchecked:
            return float("nan")
        raise InvalidFileError(
            f"{path}: line {line}, column {column!r} holds {cell!r}, which is no number; every column but the named ones is a "
            "coordinate of the embedding"
        ) from None
