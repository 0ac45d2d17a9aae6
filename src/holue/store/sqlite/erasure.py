"""Erasure: overwrite samples in every file of a home and its snapshots, then search the files for what was overwritten.

Three steps, each durable before the next: a transaction records whom to erase and takes them out of all tables; rows are
overwritten in the segment files, the snapshots too, and the databases are vacuumed; a transaction keeps the receipt and
closes the record. An interrupted erasure is completed when the store is next opened for writing.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import secrets
import shutil
import time as clock
from typing import Any

import numpy as np

from holue.errors import ErasureIncompleteError
from holue.store.commit import CommitQueue
from holue.store.edit import Edit
from holue.store.sqlite.database import connect_sqlite
from holue.store.sqlite.home import DATABASE, DERIVED, SNAPSHOTS, Home
from holue.store.sqlite.reading import read_receipts
from holue.store.sqlite.snapshots import names
from holue.store.values import Float32Array, Receipt
from holue.store.windows import search_files


def erase(home: Home, queue: CommitQueue, subjects: list[int], by: str | None) -> Receipt:
    """Erase subjects by number, whether enrolled or removed."""

    def record() -> tuple[Receipt, Float32Array]:
        salt = secrets.token_hex(16)
        digests = sorted({_digest(salt, name) for name in _ids_of(home, subjects)})
        samples = _samples_of(home, subjects)
        rows = _rows_of(home, samples)
        version, first = home.tables.last_version() + 1, home.tables.next_numbers()
        _take_out(home, subjects, samples)
        edit = Edit("erase", leaving=subjects, moves=[(sample, None) for sample in samples], by=by)
        home.tables.log_change(version, edit, first, 0)
        number = 1 + (home.database.one("SELECT max(number) FROM receipt") or 0)
        draft = Receipt(number, version, clock.time(), salt, tuple(digests), len(samples), 0, ())
        _keep(home, draft)
        return draft, rows

    draft, rows = queue.submit(record)
    return _finish(home, queue, draft, rows)


def complete(home: Home, queue: CommitQueue) -> None:
    """Finish an erasure that was interrupted."""
    if home.database.one("SELECT count(*) FROM erasing"):
        _finish(home, queue, read_receipts(home)[-1], _rows_of(home, _recorded(home, "sample")))


def _finish(home: Home, queue: CommitQueue, draft: Receipt, rows: Float32Array) -> Receipt:
    found = queue.alone(lambda: _overwrite_everywhere(home))
    vectors = np.unique(np.concatenate([rows, *found]), axis=0)
    paths = sorted(path for path in home.path.rglob("*") if path.is_file())
    searched = search_files(paths, home.path, vectors)
    receipt = dataclasses.replace(draft, compared=len(vectors), files=tuple(searched))

    def close() -> None:
        home.database.run("DELETE FROM receipt WHERE number = ?", [receipt.number])
        _keep(home, receipt)
        home.database.run("DELETE FROM erasing")

    queue.submit(close)
    return receipt


def _overwrite_everywhere(home: Home) -> list[Float32Array]:
    subjects, samples = _recorded(home, "subject"), _recorded(home, "sample")
    _overwrite(home, samples)
    if (home.path / DERIVED).exists():
        shutil.rmtree(home.path / DERIVED)
        home.disk.sync_directory(home.path)
    found = [_erase_in_snapshot(home, name, subjects, samples) for name in names(home.path)]
    home.database.run("VACUUM")
    if not home.database.empty_wal():
        raise ErasureIncompleteError(
            f"{home.path / DATABASE}-wal cannot be emptied while a reader is in a transaction, so it may still hold erased data; "
            "open the store for writing again to complete the erasure"
        )
    return found


def _erase_in_snapshot(home: Home, name: str, subjects: list[int], samples: list[int]) -> Float32Array:
    copy = Home(home.path / SNAPSHOTS / name, "rw", home.disk, connect_sqlite)
    try:
        chosen = sorted({*samples, *_samples_of(copy, subjects), *_recorded(copy, "sample")})
        # A sample that was the subject's when the snapshot was taken may be somebody else's by now, whose files hold it rightly.
        elsewhere = home.tables.owners(chosen)
        rows = _rows_of(copy, [sample for sample in chosen if sample not in elsewhere])
        copy.database.run("BEGIN IMMEDIATE")
        _take_out(copy, subjects, chosen)
        copy.database.run("COMMIT")
        _overwrite(copy, _recorded(copy, "sample"))
        copy.database.run("DELETE FROM erasing")
        copy.database.run("VACUUM")
    finally:
        copy.close()
    return rows


def _take_out(home: Home, subjects: list[int], samples: list[int]) -> None:
    """Record what is to be overwritten, and delete it from all tables."""
    run, many = home.database.run, home.database.run_many
    listed = json.dumps(samples)
    within = "(SELECT value FROM json_each(?))"
    former = {row[0] for row in run(f"SELECT subject FROM sample_past WHERE number IN {within}", [listed])}
    former |= {row[0] for row in run(f"SELECT subject FROM sample WHERE number IN {within}", [listed])}
    for table in ("sample", "sample_past"):
        many(f"DELETE FROM {table} WHERE number = ?", ((sample,) for sample in samples))
    many("DELETE FROM moved WHERE sample = ?", ((sample,) for sample in samples))
    many("DELETE FROM touch WHERE kind = 'sample' AND number = ?", ((sample,) for sample in samples))
    # Whoever once held these samples and holds no other is the same person under an earlier name.
    left = [number for number in former - set(subjects) if not _holds_any(home, number)]
    for number in {*subjects, *left}:
        run("DELETE FROM subject WHERE number = ?", [number])
        run("DELETE FROM subject_past WHERE number = ?", [number])
        run("DELETE FROM touch WHERE kind = 'subject' AND number = ?", [number])
    many("INSERT OR IGNORE INTO erasing VALUES ('subject', ?)", ((number,) for number in {*subjects, *left}))
    given, _ = home.tables.next_numbers()  # an older snapshot may not have given a number yet
    many("INSERT OR IGNORE INTO erased VALUES (?)", ((number,) for number in {*subjects, *left} if number < given))
    many("INSERT OR IGNORE INTO erasing VALUES ('sample', ?)", ((sample,) for sample in samples))
    for entry, places in home.ranges.holding(np.array(samples, np.int64)):
        home.ranges.rename_erased(entry, places)


def _overwrite(home: Home, samples: list[int]) -> None:
    for entry, places in home.ranges.holding(np.array(samples, np.int64)):
        home.ranges.overwrite_erased(entry, places)
    home.ranges.forget()


def _samples_of(home: Home, subjects: list[int]) -> list[int]:
    """Samples that belong to the subjects, or belonged to them when they were removed."""
    found = {
        row[0]
        for number in subjects
        for row in home.database.run("SELECT number FROM sample WHERE subject = ?", [number])
    }
    sql = """SELECT number FROM sample_past p WHERE subject = ? AND NOT EXISTS (SELECT 1 FROM sample s WHERE s.number = p.number)
      AND NOT EXISTS (SELECT 1 FROM sample_past q WHERE q.number = p.number AND q.until > p.until)"""
    return sorted(found | {row[0] for number in subjects for row in home.database.run(sql, [number])})


def _holds_any(home: Home, number: int) -> bool:
    sql = (
        "SELECT EXISTS (SELECT 1 FROM sample WHERE subject = ?) OR EXISTS (SELECT 1 FROM sample_past WHERE subject = ?)"
    )
    return bool(home.database.one(sql, [number, number]))


def _ids_of(home: Home, subjects: list[int]) -> list[Any]:
    sql = "SELECT id FROM subject WHERE number = ? UNION SELECT id FROM subject_past WHERE number = ?"
    return [row[0] for number in subjects for row in home.database.run(sql, [number, number])]


def _rows_of(home: Home, samples: list[int]) -> Float32Array:
    """The rows that have not been overwritten yet, copied."""
    found = [np.empty((0, home.dim), np.float32)]
    for entry, places in home.ranges.holding(np.array(samples, np.int64)):
        rows = np.array(home.ranges.read(entry).rows[places])
        found.append(rows[rows.any(axis=1)])
    return np.concatenate(found)


def _recorded(home: Home, kind: str) -> list[int]:
    return [row[0] for row in home.database.run("SELECT number FROM erasing WHERE kind = ? ORDER BY number", [kind])]


def _keep(home: Home, receipt: Receipt) -> None:
    home.database.insert("receipt", [(receipt.number, json.dumps(dataclasses.asdict(receipt)))])


def _digest(salt: str, name: object) -> str:
    return hashlib.sha256(f"{salt}:{name!r}".encode("utf-8", "surrogatepass")).hexdigest()
