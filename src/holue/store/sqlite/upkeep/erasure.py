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
from holue.store.sqlite.home import DATABASE, DERIVED, SNAPSHOTS, Home
from holue.store.sqlite.reading import read_receipts
from holue.store.sqlite.upkeep.snapshots import names
from holue.store.values import Float32Array, Receipt
from holue.store.windows import search_files


def erase(home: Home, queue: CommitQueue, subjects: list[int], by: str | None) -> Receipt:
    """Erase subjects by number, whether enrolled or removed."""

    def record() -> tuple[Receipt, Float32Array]:
        salt = secrets.token_hex(16)
        digests = sorted({digest(salt, name) for name in ids_of(home, subjects)})
        samples = samples_of(home, subjects)
        rows = rows_of(home, samples)
        version, first = home.tables.last_version() + 1, home.tables.next_numbers()
        take_out(home, with_earlier_names(home, subjects, samples), samples)
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
        _finish(home, queue, read_receipts(home)[-1], rows_of(home, recorded(home, "sample")))


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
        by = home.database.one("SELECT by FROM change WHERE version = ?", [receipt.version])
        home.log("erase", by, {"receipt": receipt.number})

    queue.submit(close)
    return receipt


def _overwrite_everywhere(home: Home) -> list[Float32Array]:
    subjects, samples = recorded(home, "subject"), recorded(home, "sample")
    overwrite(home, samples)
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
    copy = Home(home.path / SNAPSHOTS / name, "rw", home.disk, home.connect)
    try:
        chosen = sorted({*samples, *samples_of(copy, subjects), *recorded(copy, "sample")})
        # A sample that was the subject's when the snapshot was taken may be somebody else's by now, whose files hold it rightly.
        elsewhere = home.tables.owners(chosen)
        rows = rows_of(copy, [sample for sample in chosen if sample not in elsewhere])
        copy.database.run("BEGIN IMMEDIATE")
        take_out(copy, with_earlier_names(copy, subjects, chosen), chosen)
        copy.database.run("COMMIT")
        overwrite(copy, recorded(copy, "sample"))
        copy.database.run("DELETE FROM erasing")
        copy.database.run("VACUUM")
    finally:
        copy.close()
    return rows


def with_earlier_names(home: Home, subjects: list[int], samples: list[int]) -> list[int]:
    """The subjects, and whoever once held these samples and holds no other: the same person under an earlier name."""
    holders = """SELECT subject FROM sample WHERE number IN (SELECT value FROM json_each(?)) UNION
      SELECT subject FROM sample_past WHERE number IN (SELECT value FROM json_each(?))"""
    others = """SELECT EXISTS (SELECT 1 FROM sample WHERE subject = ? AND number NOT IN (SELECT value FROM json_each(?)))
      OR EXISTS (SELECT 1 FROM sample_past WHERE subject = ? AND number NOT IN (SELECT value FROM json_each(?)))"""
    listed = json.dumps(samples)
    former = {row[0] for row in home.database.run(holders, [listed, listed])} - set(subjects)
    return [
        *subjects,
        *(number for number in sorted(former) if not home.database.one(others, [number, listed, number, listed])),
    ]


def take_out(home: Home, subjects: list[int], samples: list[int]) -> None:
    """Record what is to be overwritten, and delete it from all tables."""
    run, many = home.database.run, home.database.run_many
    for table in ("sample", "sample_past"):
        many(f"DELETE FROM {table} WHERE number = ?", ((sample,) for sample in samples))
    many("DELETE FROM moved WHERE sample = ?", ((sample,) for sample in samples))
    many("DELETE FROM touch WHERE kind = 'sample' AND number = ?", ((sample,) for sample in samples))
    for number in subjects:
        run("DELETE FROM subject WHERE number = ?", [number])
        run("DELETE FROM subject_past WHERE number = ?", [number])
        run("DELETE FROM touch WHERE kind = 'subject' AND number = ?", [number])
    many("INSERT OR IGNORE INTO erasing VALUES ('subject', ?)", ((number,) for number in subjects))
    given, _ = home.tables.next_numbers()  # an older snapshot may not have given a number yet
    many("INSERT OR IGNORE INTO erased VALUES (?)", ((number,) for number in subjects if number < given))
    many("INSERT OR IGNORE INTO erasing VALUES ('sample', ?)", ((sample,) for sample in samples))
    for entry, places in home.ranges.holding(np.array(samples, np.int64)):
        home.ranges.rename_erased(entry, places)


def overwrite(home: Home, samples: list[int]) -> None:
    """Overwrite the rows of samples in the segment files."""
    for entry, places in home.ranges.holding(np.array(samples, np.int64)):
        home.ranges.overwrite_erased(entry, places)
    home.ranges.forget()


def samples_of(home: Home, subjects: list[int]) -> list[int]:
    """Samples that belong to the subjects, or belonged to them when they were removed."""
    found = {
        row[0]
        for number in subjects
        for row in home.database.run("SELECT number FROM sample WHERE subject = ?", [number])
    }
    sql = """SELECT number FROM sample_past p WHERE subject = ? AND NOT EXISTS (SELECT 1 FROM sample s WHERE s.number = p.number)
      AND NOT EXISTS (SELECT 1 FROM sample_past q WHERE q.number = p.number AND q.until > p.until)"""
    return sorted(found | {row[0] for number in subjects for row in home.database.run(sql, [number])})


def ids_of(home: Home, subjects: list[int]) -> list[Any]:
    """All ids that the subjects have or had."""
    sql = "SELECT id FROM subject WHERE number = ? UNION SELECT id FROM subject_past WHERE number = ?"
    return [row[0] for number in subjects for row in home.database.run(sql, [number, number])]


def rows_of(home: Home, samples: list[int]) -> Float32Array:
    """The rows that have not been overwritten yet, copied."""
    found = [np.empty((0, home.dim), np.float32)]
    for entry, places in home.ranges.holding(np.array(samples, np.int64)):
        rows = np.array(home.ranges.read(entry).rows[places])
        found.append(rows[rows.any(axis=1)])
    return np.concatenate(found)


def recorded(home: Home, kind: str) -> list[int]:
    """Numbers of the subjects or samples whose erasure is under way."""
    return [row[0] for row in home.database.run("SELECT number FROM erasing WHERE kind = ? ORDER BY number", [kind])]


def _keep(home: Home, receipt: Receipt) -> None:
    home.database.insert("receipt", [(receipt.number, json.dumps(dataclasses.asdict(receipt)))])


def digest(salt: str, name: object) -> str:
    """The salted digest that stands for an id in a receipt."""
    return hashlib.sha256(f"{salt}:{name!r}".encode("utf-8", "surrogatepass")).hexdigest()
