"""Text table: columns of a CSV or of a blank-separated list; errors name the file and the line."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidFileError
from holue.evaluation.protocol import listed
from holue.gallery.subjects import Subjects

Strings = npt.NDArray[np.str_]


def read_csv(path: str | Path, *, columns: Sequence[str], skip_lines: int = 0) -> dict[str, Strings]:
    """The wanted columns of a CSV as strings; other columns may be there and are skipped.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "train.csv").write_text("image,species,individual_id\\n0.jpg,beluga,ab12\\n")
    ...     read_csv(f"{folder}/train.csv", columns=["image", "individual_id"])["image"].tolist()
    ['0.jpg']
    """
    with _text(path) as file:
        for _ in range(skip_lines):
            file.readline()
        reader = csv.reader(file)
        header = next(reader, [])
        missing = [name for name in columns if name not in header]
        if missing:
            raise InvalidFileError(
                f"{path}: missing column {listed(missing)}; expected {listed(columns, shown=12)}, "
                f"found {listed(header, shown=12) or 'an empty file'}"
            )
        at = [header.index(name) for name in columns]
        rows = []
        for row in reader:
            if len(row) != len(header):
                if not row:
                    continue
                raise InvalidFileError(
                    f"{path}: line {reader.line_num + skip_lines} has {len(row)} fields, the header has {len(header)}"
                )
            rows.append([row[i] for i in at])
    if not rows:
        raise InvalidFileError(f"{path}: a header and no rows")
    return {
        name: as_strings(column, f"{path}: column {name!r}") for name, column in zip(columns, zip(*rows, strict=True))
    }


def read_fields(path: str | Path, *, fields: Sequence[str], optional: int = 0) -> dict[str, Strings]:
    """A list without a header: each line holds these fields, and up to ``optional`` more, skipped."""
    rows = []
    with _text(path) as file:
        for number, line in enumerate(file, start=1):
            row = line.split()
            if not len(fields) <= len(row) <= len(fields) + optional:
                if not row:
                    continue
                raise InvalidFileError(
                    f"{path}: line {number} has {len(row)} fields; "
                    f"expected {' '.join(fields)!r}, found {line.strip()!r}"
                )
            rows.append(row[: len(fields)])
    if not rows:
        raise InvalidFileError(f"{path}: the list is empty")
    return {
        name: as_strings(column, f"{path}: field {name!r}") for name, column in zip(fields, zip(*rows, strict=True))
    }


def as_strings(values: Sequence[str], where: str) -> Strings:
    """Strings as an array; one that ends in a NUL character is refused, since NumPy would drop that end.

    >>> as_strings(["ann", "bob"], "here").tolist()
    ['ann', 'bob']
    """
    for row, value in enumerate(values):
        if value.endswith("\0"):
            raise InvalidFileError(f"{where} holds {value!r} in row {row}, which ends in a NUL character; remove it")
    return np.array(values, dtype=np.str_)


def as_ids(column: Strings) -> Subjects:
    """Integers where every entry is one in its plain spelling, strings otherwise (``007`` stays a string).

    >>> as_ids(np.array(["14", "27837"])), as_ids(np.array(["14", "007"]))
    (array([   14, 27837]), array(['14', '007'], dtype='<U3'))
    """
    values = column.tolist()
    try:
        # Through Python's int: NumPy's own conversion of strings is fifty times slower on lists of this size.
        if all(str(int(value)) == value for value in set(values)):
            return np.fromiter(map(int, values), dtype=np.int64, count=len(values))
    except (ValueError, OverflowError):
        pass
    return column


@contextmanager
def _text(path: str | Path) -> Iterator[TextIO]:
    if not Path(path).is_file():
        raise InvalidFileError(f"{path}: no such file")
    with open(path, newline="", encoding="utf-8-sig") as file:
        try:
            yield file
        except UnicodeDecodeError as error:
            raise InvalidFileError(f"{path}: not a UTF-8 text file ({error.reason})") from error
        except csv.Error as error:
            raise InvalidFileError(f"{path}: not a CSV file ({error})") from error
