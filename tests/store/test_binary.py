"""Rows of binary COPY, encoded column by column, are what PostgreSQL's documentation says they are."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holue.store.postgres.binary import BYTES, HEADER, INT, REAL, TEXT, TRAILER, decode, decode_rows, encode
from holue.store.postgres.server import id_as_json

TYPES = [INT, REAL, TEXT, INT, TEXT, BYTES]
text = st.none() | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12)
row = st.tuples(
    st.integers(-(2**63), 2**63 - 1), st.none() | st.floats(allow_nan=False), text, st.none() | st.integers(0, 9), text,
    st.binary(min_size=8, max_size=8),
)  # fmt: skip


def slowly(values: tuple[Any, ...]) -> bytes:
    """One row, value by value."""
    parts = [struct.pack(">h", len(values))]
    for kind, value in zip(TYPES, values, strict=True):
        if value is None:
            parts.append(struct.pack(">i", -1))
            continue
        packed = {
            INT: lambda v: struct.pack(">q", v),
            REAL: lambda v: struct.pack(">d", v),
            TEXT: str.encode,
            BYTES: bytes,
        }
        data = packed[kind](value)
        parts += [struct.pack(">i", len(data)), data]
    return b"".join(parts)


@given(st.lists(row, min_size=1, max_size=20))
def test_a_stream_is_its_rows_between_header_and_trailer(rows: list[tuple[Any, ...]]) -> None:
    columns: list[Any] = [list(column) for column in zip(*rows, strict=True)]
    columns[0] = np.array(columns[0])
    columns[-1] = np.frombuffer(b"".join(columns[-1]), np.float32).reshape(len(rows), 2)
    assert b"".join(encode(TYPES, columns)) == HEADER + b"".join(map(slowly, rows)) + TRAILER


@given(st.lists(row, max_size=20))
def test_rows_come_back_as_they_were(rows: list[tuple[Any, ...]]) -> None:
    packed = [slowly(values) for values in rows]
    stream = [HEADER + packed[0], *packed[1:], TRAILER] if rows else [HEADER, TRAILER]
    found = [
        values
        for columns in decode(TYPES, stream)
        for values in zip(*(c.tolist() if isinstance(c, np.ndarray) else c for c in columns), strict=True)
    ]
    assert found == rows


def test_many_rows_come_in_pieces() -> None:
    n = 1201
    pieces = list(encode([INT, TEXT], [np.arange(n), [str(i) for i in range(n)]]))
    assert len(pieces) == 5  # header, 500, 500, 201, trailer
    stream = b"".join(pieces)
    assert stream[: len(HEADER)] == HEADER
    numbers, names = decode_rows(
        [INT, TEXT], [struct.pack(">hiqi", 2, 8, i, len(str(i))) + str(i).encode() for i in range(n)]
    )
    assert numbers.tolist() == list(range(n))
    assert names == [str(i) for i in range(n)]
    assert list(decode([INT], [])) == []


@given(st.text() | st.integers(-(2**63), 2**63 - 1))
def test_ids_are_written_as_json_writes_them(name: str | int) -> None:
    assert id_as_json(name) == json.dumps(name, ensure_ascii=False)
