"""Reading: a version, and samples, out of a home."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from holue.errors import CorruptStoreError
from holue.store.sqlite.files.block import Block, join_blocks
from holue.store.sqlite.files.ranges import Range
from holue.store.sqlite.home import Home
from holue.store.values import Float32Array, Int64Array, Receipt, Sample, Searched, Segment, Status, Subject, SubjectId
from holue.store.view import View

Read = Callable[[Callable[[Home], Any]], Any]


def read_view(home: Home, version: int | None, read: Read, *, serve: bool) -> View:
    """Segments and what has moved; blocks that are still in the database are joined to one segment without a number."""
    newest = home.tables.last_version()
    chosen = newest if version is None else version
    next_sample = home.tables.next_sample_at(chosen)
    segments: list[Segment] = []
    tail: list[Block] = []
    missing: list[tuple[int, int]] = []
    for entry in home.ranges.all():
        if entry.first >= next_sample:
            break
        block: Block | None
        block, lost = _sound(home, entry) if serve else (home.ranges.read(entry), [])
        missing += lost
        if block is None:
            continue
        if entry.file is None:
            tail.append(block)
        else:
            segments.append(block.segment(entry.number))
    if tail:
        segments.append(join_blocks(tail).segment(0))

    def find(subject: SubjectId) -> Subject | None:
        found: Subject | None = read(lambda home: home.tables.subject_at(chosen, "id", subject))
        return found

    def get(number: int) -> Subject | None:
        found: Subject | None = read(lambda home: home.tables.subject_at(chosen, "number", number))
        return found

    def names(numbers: Sequence[int] | None = None) -> list[tuple[int, SubjectId]]:
        found: list[tuple[int, SubjectId]] = read(lambda home: home.tables.names_at(chosen, numbers))
        return found

    moved, moved_to = home.tables.moved_at(None if chosen == newest else chosen)
    no_medium = home.database.one("SELECT code FROM word WHERE text = ''")
    concerned = {number for first, last in missing for number in home.tables.subjects_between(chosen, first, last)}
    return View(
        chosen, home.dim, tuple(segments), moved, moved_to, next_sample, find, get, names, no_medium,
        tuple(missing), tuple(sorted(concerned)),
    )  # fmt: skip


def _sound(home: Home, entry: Range) -> tuple[Block | None, list[tuple[int, int]]]:
    """What of a range has its checksums, and the first and last sample of what has not."""
    try:
        block = home.ranges.read(entry)
    except CorruptStoreError:
        return None, [(entry.first, entry.last)]
    if block.checksum() != entry.columns_crc:
        return None, [(entry.first, entry.last)]
    bad = block.bad_rows()
    if not len(bad):
        return block, []
    lost = [(sample, sample) for sample in block.samples[bad].tolist()]
    kept = np.delete(np.arange(len(block)), bad)
    return (block.take(kept) if len(kept) else None), lost


def read_sample(home: Home, numbers: list[int]) -> list[Sample]:
    """Samples by number, with all that was given."""
    wanted = np.array(numbers, np.int64)
    found: dict[int, tuple[Block, int]] = {}
    for entry, places in home.ranges.holding(wanted):
        block = home.ranges.read(entry)
        found |= {int(block.samples[place]): (block, int(place)) for place in places}
    words = home.words({int(column[place]) for block, place in found.values() for column in (block.by, block.medium)})
    samples = []
    for number in numbers:
        if number not in found:
            raise CorruptStoreError(f"sample {number} is in no segment; run verify")
        block, place = found[number]
        subject, origin = home.database.run("SELECT subject, origin FROM sample WHERE number = ?", [number])[0]
        kappa = float(block.concentration[place])
        by = words.get(int(block.by[place])) or None
        medium = words.get(int(block.medium[place]), "")
        row = np.array(block.rows[place])
        known = None if np.isnan(kappa) else kappa
        samples.append(Sample(number, subject, medium, row, known, float(block.time[place]), origin, by))
    return samples


def read_rows(home: Home, numbers: Int64Array) -> Float32Array:
    """The embeddings of samples by number, copied; the numbers ascend."""
    rows = np.empty((len(numbers), home.dim), np.float32)
    seen = 0
    for entry, places in home.ranges.holding(numbers):
        block = home.ranges.read(entry)
        rows[np.searchsorted(numbers, block.samples[places])] = block.rows[places]
        seen += len(places)
    if seen < len(numbers):
        raise CorruptStoreError("samples are in no segment; run verify")
    return rows


def read_status(home: Home, n_bytes: int, snapshots: tuple[str, ...], age: float | None = None) -> Status:
    """A home in numbers, beside those that its files or its server know."""
    one = home.database.one
    names = home.database.run("SELECT name FROM artifact ORDER BY name")
    return Status(
        home.tables.last_version(), home.tables.oldest_version(), home.dim, home.model, one("SELECT count(*) FROM subject"),
        one("SELECT count(*) FROM sample"), one("SELECT count(*) FROM range"), n_bytes, snapshots,
        tuple(row[0] for row in names), age,
    )  # fmt: skip


def read_receipts(home: Home) -> list[Receipt]:
    """The receipts of all erasures."""
    return [
        receipt_from(json.loads(row[0])) for row in home.database.run("SELECT content FROM receipt ORDER BY number")
    ]


def receipt_from(content: dict[str, Any]) -> Receipt:
    """A receipt out of its JSON."""
    files = tuple(Searched(**entry) for entry in content["files"])
    texts = {name: tuple(content.get(name, ())) for name in ("digests", "not_searched")}
    return Receipt(**{**content, "files": files, **texts})
