"""Block: samples that were written together, as columns; the same bytes in a segment file and in the database.

Layout, little-endian, each part padded to 64 bytes: the columns (44 bytes per sample: number, subject, time,
concentration, checksum of its row, codes of medium and enroller), then the rows (float32). The range's checksum in the
database covers the columns, and the columns hold one CRC-32 per row: damage is traced to the sample.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.store.values import NOBODY, Float32Array, Float64Array, Int64Array, Segment

ALIGNMENT = 64
_COLUMNS = {
    "samples": "<i8",
    "subjects": "<i8",
    "time": "<f8",
    "concentration": "<f8",
    "crc": "<u4",
    "medium": "<u4",
    "by": "<u4",
}
COLUMN_BYTES = sum(np.dtype(kind).itemsize for kind in _COLUMNS.values())


@dataclass(frozen=True, eq=False)
class Block:
    """The columns and rows of a range; views of a mapped file, or arrays."""

    samples: Int64Array
    subjects: Int64Array
    time: Float64Array
    concentration: Float64Array
    crc: npt.NDArray[np.uint32]
    medium: npt.NDArray[np.uint32]
    by: npt.NDArray[np.uint32]
    rows: Float32Array

    def __len__(self) -> int:
        return len(self.samples)

    def columns(self) -> bytes:
        """The bytes of the columns, as the checksum of the range covers them."""
        return b"".join(np.ascontiguousarray(getattr(self, name)).tobytes() for name in _COLUMNS)

    def checksum(self) -> int:
        """CRC-32 of the columns."""
        return zlib.crc32(self.columns())

    def pieces(self, columns: bytes | None = None) -> list[bytes | memoryview]:
        """All bytes, padded; those of the columns may be given."""
        columns = self.columns() if columns is None else columns
        rows = np.ascontiguousarray(self.rows).data.cast("B")
        return [columns, bytes(-len(columns) % ALIGNMENT), rows, bytes(-len(rows) % ALIGNMENT)]

    def segment(self, number: int) -> Segment:
        """The block as readers see it."""
        return Segment(number, self.samples, self.subjects, self.rows, self.concentration, self.time, self.medium)

    def bad_rows(self) -> Int64Array:
        """Places of rows whose bytes do not have their checksum."""
        return np.flatnonzero(row_checksums(self.rows) != self.crc)

    def take(self, keep: npt.NDArray[Any]) -> Block:
        """Some of the rows, copied."""
        return Block(*(np.array(getattr(self, name)[keep]) for name in (*_COLUMNS, "rows")))

    def erased(self, places: Int64Array) -> Block:
        """A copy of the block in which some rows are zero and belong to nobody; their numbers stay, in order."""
        block = self.take(np.arange(len(self)))
        block.rows[places] = 0
        block.subjects[places] = NOBODY
        for column in (block.time, block.concentration, block.medium, block.by):
            column[places] = 0
        block.crc[places] = zlib.crc32(bytes(self.rows.shape[1] * 4))
        return block


def row_checksums(rows: Float32Array) -> npt.NDArray[np.uint32]:
    """CRC-32 of each row."""
    width = rows.shape[1] * rows.itemsize
    data = np.ascontiguousarray(rows).data.cast("B") if len(rows) else memoryview(b"")
    crc32 = zlib.crc32
    return np.fromiter((crc32(data[i : i + width]) for i in range(0, len(data), width)), np.uint32, len(rows))


def padded(size: int) -> int:
    """The size with its padding."""
    return size + -size % ALIGNMENT


def block_bytes(n: int, dim: int) -> int:
    """The size of a block of ``n`` rows.

    >>> block_bytes(1, 16)
    128
    """
    return padded(n * COLUMN_BYTES) + padded(n * dim * 4)


def read_block(data: npt.NDArray[np.uint8], n: int, dim: int) -> Block:
    """Views of the columns and rows in the bytes of a block."""
    views: list[npt.NDArray[Any]] = []
    offset = 0
    for kind in _COLUMNS.values():
        size = n * np.dtype(kind).itemsize
        views.append(data[offset : offset + size].view(kind))
        offset += size
    start = padded(offset)
    views.append(data[start : start + n * dim * 4].view("<f4").reshape(n, dim))
    return Block(*views)


def join_blocks(blocks: list[Block]) -> Block:
    """Blocks in ascending order of their samples, as one."""
    return Block(
        *(np.concatenate([getattr(block, name) for block in blocks]) for name in (*_COLUMNS, "rows")),
    )
