"""Ranges: where the rows are: large batches in segment files, the last small ones in the database until there are enough.

A small enrolment rides in the transaction that names it, so it costs one sync of the write-ahead log and not two.
"""

from __future__ import annotations

import struct
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holue.errors import CorruptStoreError
from holue.store.sqlite.database import CHECKED, Database, checked, row_checksum
from holue.store.sqlite.files.behind import Behind
from holue.store.sqlite.files.block import COLUMN_BYTES, Block, block_bytes, join_blocks, padded, read_block
from holue.store.sqlite.files.disk import Bytes, Disk
from holue.store.values import Int64Array

HEADER = struct.Struct("<16sIII16s20x")
MAGIC = b"holue-segment\0\0\0"
FORMAT_VERSION = 1
TAIL_BYTES = 4 << 20
"""Rows in the database beyond this go to a segment file."""
SMALL_BYTES = 256 << 10
"""A batch below this rides in the transaction."""
FILE_BYTES = 1 << 30
"""A segment file that has grown beyond this is not appended to."""
FEW = 64
"""Samples up to which their ranges are looked up one by one; beyond, reading all ranges is faster."""
_INSERT = f"INSERT INTO range ({CHECKED['range']}, crc, data) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT = "SELECT number, first, last, n, file, offset, columns_crc FROM range"


@dataclass(frozen=True)
class Range:
    """A named range: samples ``first`` to ``last``, ``n`` of them, in a file or (``file`` None) in the database."""

    number: int
    first: int
    last: int
    n: int
    file: int | None
    offset: int
    columns_crc: int


class Ranges:
    """The ranges of one home. Readers and the writer each have their own."""

    def __init__(self, database: Database, folder: Path, disk: Disk, dim: int, store: uuid.UUID) -> None:
        self._database, self._folder, self._disk, self._dim, self._store = database, folder, disk, dim, store
        self._maps: dict[int, npt.NDArray[np.uint8]] = {}
        self._tails: dict[int, tuple[int, Block]] = {}  # with the checksum, which an erasure by another process changes
        self._end: tuple[int, int] | None = None
        self._tail_bytes: int | None = None
        self._reserved = 0
        self._behind = Behind()

    def path(self, file: int) -> Path:
        """The path of a segment file."""
        return self._folder / f"{file:08d}.segment"

    def all(self) -> list[Range]:
        """All ranges, in ascending order of their samples."""
        return [Range(*row) for row in self._database.run(f"{_SELECT} ORDER BY first")]

    @contextmanager
    def appending(self, block: Block) -> Iterator[None]:
        """Keep a block while the caller goes on; rows in files are on disk when the context ends."""
        with self._behind:
            self.append(block)
            yield

    def append(self, block: Block) -> None:
        """Keep a block; the transaction under way names it. Rows in files are on disk when this returns."""
        size = block_bytes(len(block), self._dim)
        if self._tail_bytes is None:
            self._tail_bytes = int(
                self._database.one("SELECT coalesce(sum(length(data)), 0) FROM range WHERE file IS NULL")
            )
        if size < SMALL_BYTES and self._tail_bytes + size <= TAIL_BYTES:
            columns = block.columns()
            self._insert(block, zlib.crc32(columns), None, 0, b"".join(block.pieces(columns)))
            self._tail_bytes += size
        else:
            self.flush_tail(block)

    def flush_tail(self, block: Block | None = None) -> None:
        """Move the rows in the database, and a block behind them, to a segment file as one range."""
        tails = [Range(*row) for row in self._database.run(f"{_SELECT} WHERE file IS NULL ORDER BY first")]
        kept: dict[int, bytes] = dict(self._database.run("SELECT number, data FROM range WHERE file IS NULL"))
        blocks = [*(self._tail(entry, kept[entry.number]) for entry in tails), *([] if block is None else [block])]
        if not blocks:
            return
        self.write(blocks[0] if len(blocks) == 1 else join_blocks(blocks))
        self._database.run_many("DELETE FROM range WHERE number = ?", ((entry.number,) for entry in tails))
        self._tails.clear()
        self._tail_bytes = 0

    def write(self, block: Block) -> None:
        """Append a block to the last segment file, durably, and name it."""
        file, offset = self.end()
        if file <= self._reserved or offset >= FILE_BYTES:
            file, offset = max(file, self._reserved) + 1, self.create(max(file, self._reserved) + 1)
        pieces, end = _placed(block, offset)
        self._behind.run(lambda: self._disk.write_durably(self.path(file), pieces))
        self._end = (file, end)
        self.name(block, file, offset)

    def reserve(self) -> int:
        """The number of a new file that is written outside of transactions; what is appended later goes to files after it."""
        self._reserved = max(self.end()[0], self._reserved) + 1
        return self._reserved

    def create(self, file: int) -> int:
        """Create a segment file; returns where its first range begins."""
        self._disk.create(self.path(file), self._header(file))
        return HEADER.size

    def write_at(self, file: int, offset: int, block: Block) -> int:
        """Write a block, durably; returns where it ends."""
        pieces, end = _placed(block, offset)
        self._disk.write_durably(self.path(file), pieces)
        return end

    def name(self, block: Block, file: int, offset: int) -> None:
        """Name a range in a file."""
        self._insert(block, block.checksum(), file, offset, None)

    def end(self) -> tuple[int, int]:
        """The last segment file and where its last named range ends; (0, 0) where there is none."""
        if self._end is None:
            sql = "SELECT file, offset, n FROM range WHERE file IS NOT NULL ORDER BY file DESC, offset DESC LIMIT 1"
            rows = self._database.run(sql)
            self._end = (rows[0][0], rows[0][1] + block_bytes(rows[0][2], self._dim)) if rows else (0, 0)
        return self._end

    def forget(self) -> None:
        """Forget what was cached: a transaction was rolled back, or files were changed."""
        self._end = self._tail_bytes = None
        self._tails.clear()
        self._maps.clear()

    def read(self, entry: Range) -> Block:
        """The columns and rows of a range; mapped where it is in a file."""
        if entry.file is None:
            crc, block = self._tails.get(entry.number, (None, None))
            if block is None or crc != entry.columns_crc:
                block = self._tail(entry, self._database.one("SELECT data FROM range WHERE number = ?", [entry.number]))
                self._tails[entry.number] = entry.columns_crc, block
            return block
        end = entry.offset + block_bytes(entry.n, self._dim)
        if len(self._maps.get(entry.file, b"")) < end:
            self._maps[entry.file] = self._map(entry.file, end)
        return read_block(self._maps[entry.file][entry.offset : end], entry.n, self._dim)

    def rename_erased(self, entry: Range, places: Int64Array) -> None:
        """Name the checksum that a range will have once some of its rows are erased; rows in the database are erased at once."""
        old = self.read(entry)
        new = old.erased(places)
        # A checksum that was wrong before stays wrong: an erasure must not hide damage.
        crc = new.checksum() if old.checksum() == entry.columns_crc else entry.columns_crc
        values = (entry.first, entry.last, entry.n, entry.file, entry.offset, crc)
        sql = "UPDATE range SET columns_crc = ?, crc = ? WHERE number = ?"
        self._database.run(sql, [crc, row_checksum(values), entry.number])
        if entry.file is None:
            self._database.run("UPDATE range SET data = ? WHERE number = ?", [b"".join(new.pieces()), entry.number])
            self._tails.clear()

    def overwrite_erased(self, entry: Range, places: Int64Array) -> None:
        """Overwrite erased rows of a range in its file, durably. Doing it again changes nothing."""
        if entry.file is None:
            return
        block = self.read(entry)
        start = entry.offset + padded(len(block) * COLUMN_BYTES)
        width = self._dim * 4
        zeros = bytes(width)
        rows = [(start + place * width, zeros) for place in places.tolist()]
        self._disk.write_durably(self.path(entry.file), [(entry.offset, block.erased(places).columns()), *rows])

    def holding(self, samples: Int64Array) -> list[tuple[Range, Int64Array]]:
        """The ranges that hold some of these samples, and at which places."""
        found = []
        wanted = np.sort(samples)
        for entry in self._around(wanted) if len(wanted) <= FEW else self.all():
            here = wanted[np.searchsorted(wanted, entry.first) : np.searchsorted(wanted, entry.last, side="right")]
            if len(here):
                numbers = self.read(entry).samples
                place = np.searchsorted(numbers, here)
                there = place[numbers[np.minimum(place, entry.n - 1)] == here]
                if len(there):
                    found.append((entry, there))
        return found

    def _around(self, samples: Int64Array) -> list[Range]:
        """The ranges in which a few samples, ascending, would be. Ranges do not overlap: each is the last that begins before."""
        found: list[Range] = []
        for sample in samples.tolist():
            if not found or sample > found[-1].last:
                rows = self._database.run(f"{_SELECT} WHERE first <= ? ORDER BY first DESC LIMIT 1", [sample])
                found += [Range(*row) for row in rows if row[2] >= sample]
        return found

    def check_files(self) -> list[tuple[Path, str, list[Range]]]:
        """Segment files that are missing, cut off or of another store: cheap, whatever their size."""
        problems = []
        files: dict[int, list[Range]] = {}
        for entry in self.all():
            if entry.file is not None:
                files.setdefault(entry.file, []).append(entry)
        for file, entries in files.items():
            path = self.path(file)
            end = max(entry.offset + block_bytes(entry.n, self._dim) for entry in entries)
            try:
                with path.open("rb") as stream:
                    header = stream.read(HEADER.size)
                size = path.stat().st_size
            except OSError as error:
                problems.append((path, f"cannot be read ({error.strerror})", entries))
                continue
            if size < end:
                cut = [entry for entry in entries if entry.offset + block_bytes(entry.n, self._dim) > size]
                problems.append((path, f"is cut off: {size} bytes of {end}", cut))
            if header != self._header(file):
                problems.append((path, "has a damaged header, or belongs to another store", entries))
        return problems

    def _tail(self, entry: Range, data: bytes | None) -> Block:
        if data is None or len(data) != block_bytes(entry.n, self._dim):
            raise CorruptStoreError(f"gallery.db: samples {entry.first} to {entry.last} are missing or cut off")
        return read_block(np.frombuffer(data, np.uint8), entry.n, self._dim)

    def _map(self, file: int, end: int) -> npt.NDArray[np.uint8]:
        path = self.path(file)
        try:
            mapped = np.memmap(path, np.uint8, mode="r")
        except (OSError, ValueError) as error:
            raise CorruptStoreError(f"{path} cannot be mapped ({error}); restore it from a snapshot") from error
        if len(mapped) < end:
            raise CorruptStoreError(f"{path} is cut off: {len(mapped)} bytes of {end}; restore it from a snapshot")
        return np.asarray(mapped)

    def _header(self, file: int) -> bytes:
        return HEADER.pack(MAGIC, FORMAT_VERSION, self._dim, file, self._store.bytes)

    def _insert(self, block: Block, columns_crc: int, file: int | None, offset: int, data: bytes | None) -> None:
        values = (int(block.samples[0]), int(block.samples[-1]), len(block), file, offset, columns_crc)
        self._database.run(_INSERT, (*checked(values), data))


def _placed(block: Block, offset: int) -> tuple[list[tuple[int, Bytes]], int]:
    """The pieces of a block with their offsets in a file, and where the last one ends."""
    pieces: list[tuple[int, Bytes]] = []
    for piece in block.pieces():
        pieces.append((offset, piece))
        offset += len(piece)
    return pieces, offset
