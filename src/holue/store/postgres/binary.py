"""Binary COPY: rows on their way to and from the server, encoded and decoded column by column.

Each row is the number of its fields (int16), then per field its length (int32, -1 for NULL) and its bytes, all big-endian.
A batch is packed with a few array operations per column, not with a call per value.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack(">ii", 0, 0)
TRAILER = struct.pack(">h", -1)
INT, REAL, TEXT, BYTES = "int8", "float8", "text", "bytea"
ROWS_ENCODED_AT_ONCE = 500
"""Rows in a piece of a stream."""
_NUMBERS = {INT: ">i8", REAL: ">f8"}
_Row = bytes | bytearray | memoryview
_Bytes = npt.NDArray[np.uint8]


def encode(types: Sequence[str], columns: Sequence[Any]) -> Iterator[bytearray]:
    """Rows as the pieces of one COPY stream; a column is an array (2-d for bytea), or a sequence with None for NULL.

    >>> b"".join(encode([INT, TEXT], [np.array([7]), ["ann"]]))[len(HEADER):].hex(" ", -4)
    '00020000 00080000 00000000 00070000 0003616e 6effff'
    """
    yield bytearray(HEADER)
    # Memory of a piece is used again for the next; a stream of tens of megabytes at once costs more in page faults than to fill.
    for first in range(0, len(columns[0]), ROWS_ENCODED_AT_ONCE):
        yield encode_rows(types, [column[first : first + ROWS_ENCODED_AT_ONCE] for column in columns])
    yield bytearray(TRAILER)


def encode_rows(types: Sequence[str], columns: Sequence[Any]) -> bytearray:
    """The rows alone, without the stream's header and trailer."""
    n = len(columns[0])
    fields = [_field(kind, column) for kind, column in zip(types, columns, strict=True)]
    size = np.full(n, 2 + 4 * len(fields), np.int64)
    for lengths, _ in fields:
        size += np.maximum(lengths, 0)
    stream = bytearray(int(size.sum()))
    out, at = np.frombuffer(stream, np.uint8), np.cumsum(size) - size
    _scatter(out, at, np.full(n, len(fields), ">i2").view(np.uint8), 2)
    at = at + 2
    for lengths, data in fields:
        _scatter(out, at, lengths.astype(">i4").view(np.uint8), 4)
        at = at + 4
        held = np.maximum(lengths, 0)
        if isinstance(data, np.ndarray):
            _scatter(out, at[lengths > 0], data, held)
        else:
            with memoryview(stream) as target:
                for start, value in zip(at.tolist(), data, strict=True):
                    target[start : start + len(value)] = value
        at = at + held
    return stream


def decode(types: Sequence[str], stream: Iterable[_Row]) -> Iterator[list[Any]]:
    """The rows of a COPY stream, which gives one at a time, as columns of up to ``ROWS_ENCODED_AT_ONCE`` rows."""
    rest = iter(stream)
    first = next(rest, HEADER)[len(HEADER) :]  # the header comes with the first row
    rows: list[_Row] = []
    for row in chain([first], rest):
        if len(row) <= len(TRAILER):
            continue
        rows.append(row)
        if len(rows) == ROWS_ENCODED_AT_ONCE:
            yield decode_rows(types, rows)
            rows = []
    if rows:
        yield decode_rows(types, rows)


def decode_rows(types: Sequence[str], rows: Sequence[_Row]) -> list[Any]:
    """The columns of rows: arrays of numbers, or lists where a value is NULL or of variable length.

    >>> rows = [encode_rows([INT, TEXT], [np.array([number]), [name]]) for number, name in ((7, "ann"), (8, None))]
    >>> decode_rows([INT, TEXT], rows)
    [array([7, 8]), ['ann', None]]
    """
    data = np.frombuffer(b"".join(rows), np.uint8)
    sizes = np.fromiter(map(len, rows), np.int64, len(rows))
    start = np.cumsum(sizes) - sizes
    at, columns = start + 2, []
    for kind in types:
        lengths = _gather(data, at, 4).view(">i4").ravel().astype(np.int64)
        at = at + 4
        null = lengths < 0
        if kind in _NUMBERS:
            numbers = _gather(data, at[~null], 8).view(_NUMBERS[kind]).ravel().astype(_NUMBERS[kind][1:])
            columns.append(_with_nulls(numbers, null))
        elif lengths.max() <= 0:  # nothing, or NULL, in every row
            nothing = "" if kind == TEXT else b""
            columns.append([None if is_null else nothing for is_null in null.tolist()])
        else:
            places = zip(rows, (at - start).tolist(), lengths.tolist(), strict=True)
            held = [None if length < 0 else row[place : place + length] for row, place, length in places]
            columns.append([None if value is None else str(value, "utf-8") for value in held] if kind == TEXT else held)
        at = at + np.maximum(lengths, 0)
    return columns


def _field(kind: str, column: Any) -> tuple[npt.NDArray[np.int64], Any]:
    """The length of each value, and their bytes: joined, or (long ones) value by value."""
    if kind in _NUMBERS:
        if isinstance(column, np.ndarray):
            return np.full(len(column), 8), np.ascontiguousarray(column, _NUMBERS[kind]).view(np.uint8)
        given = [value for value in column if value is not None]
        lengths = np.fromiter((-1 if value is None else 8 for value in column), np.int64, len(column))
        return lengths, np.array(given, _NUMBERS[kind]).view(np.uint8)
    if kind == TEXT:
        values = [None if value is None else value.encode() for value in column]
        lengths = np.fromiter((-1 if value is None else len(value) for value in values), np.int64, len(values))
        return lengths, np.frombuffer(b"".join(value for value in values if value), np.uint8)
    if isinstance(column, np.ndarray):
        width = column.shape[1] * column.itemsize
        joined = np.ascontiguousarray(column).data.cast("B") if len(column) else memoryview(b"")
        return np.full(len(column), width), [joined[i : i + width] for i in range(0, len(joined), width)]
    return np.fromiter(map(len, column), np.int64, len(column)), list(column)


def _scatter(out: _Bytes, at: npt.NDArray[np.int64], data: _Bytes, lengths: npt.NDArray[np.int64] | int) -> None:
    """Write values, joined in ``data``, to their places."""
    if isinstance(lengths, int):
        out[at[:, None] + np.arange(lengths)] = data.reshape(-1, lengths)
        return
    held = lengths[lengths > 0]
    if len(held) and held.min() == held.max():
        _scatter(out, at, data, int(held[0]))
    elif len(held):
        before = np.cumsum(held) - held
        out[np.repeat(at - before, held) + np.arange(len(data))] = data


def _gather(data: _Bytes, at: npt.NDArray[np.int64], width: int) -> _Bytes:
    values: _Bytes = data[at[:, None] + np.arange(width)]
    return values


def _with_nulls(numbers: npt.NDArray[Any], null: npt.NDArray[np.bool_]) -> Any:
    if not null.any():
        return numbers
    found = np.full(len(null), None, dtype=object)
    found[~null] = numbers.tolist()
    return found.tolist()
