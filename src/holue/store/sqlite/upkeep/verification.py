"""Verification: every byte of a home read and compared with its checksum."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from holue.errors import CorruptStoreError, HolueError
from holue.store.sqlite.database import CHECKED, Connect, connect_sqlite, row_checksum
from holue.store.sqlite.files.disk import Disk
from holue.store.sqlite.files.head import HEAD, read_head
from holue.store.sqlite.files.ranges import Range
from holue.store.sqlite.home import DATABASE, SEGMENTS, SNAPSHOTS, Home
from holue.store.sqlite.upkeep.snapshots import names
from holue.store.values import NOBODY, Problem

_SUBJECT_COLUMN = {"subject": 0, "subject_past": 0, "sample": 1, "sample_past": 1}
"""Where the number of the subject concerned is among a table's values."""


def find_damage(path: Path, disk: Disk, connect: Connect = connect_sqlite) -> list[Problem]:
    """All damage of a home and of its snapshots."""
    found = damage_of(path, disk, connect)
    for name in names(path):
        inside = damage_of(path / SNAPSHOTS / name, disk, connect_sqlite)
        found += [Problem(f"{SNAPSHOTS}/{name}/{problem.file}", problem.what, problem.subjects) for problem in inside]
    return found


def damage_of(path: Path, disk: Disk, connect: Connect) -> list[Problem]:
    """The damage of a home, without its snapshots."""
    try:
        home = Home(path, "ro", disk, connect)
    except HolueError as error:
        return [Problem(DATABASE, str(error))]
    try:
        home.database.run("BEGIN")
        found = home.cheap_problems()
        if (path / HEAD).exists() and read_head(path) is None:
            found.append(Problem(HEAD, "has changed (checksum differs)"))
        return [*found, *_database_damage(home), *_row_damage(home)]
    except Exception as error:  # SQLite's own, whichever binding raised it
        return [Problem(DATABASE, f"cannot be read ({error})")]
    finally:
        home.close()


def _database_damage(home: Home) -> list[Problem]:
    found = [Problem(DATABASE, str(row[0])) for row in home.database.run("PRAGMA integrity_check") if row[0] != "ok"]
    for table, columns in CHECKED.items():
        for *values, crc in home.database.run(f"SELECT {columns}, crc FROM {table}"):
            if row_checksum(values) != crc:
                place = _SUBJECT_COLUMN.get(table)
                whom = (values[place],) if place is not None else ()
                found.append(Problem(DATABASE, f"a row of table {table} has changed (checksum differs)", whom))
    for name, digest, data in home.database.run("SELECT name, sha256, data FROM artifact"):
        if hashlib.sha256(data or b"").hexdigest() != digest:
            found.append(Problem(DATABASE, f"artifact {name!r} has changed (checksum differs)"))
    return found


def _row_damage(home: Home) -> list[Problem]:
    found = []
    for entry in home.ranges.all():
        file = DATABASE if entry.file is None else f"{SEGMENTS}/{home.ranges.path(entry.file).name}"
        try:
            block = home.ranges.read(entry)
        except CorruptStoreError:
            if entry.file is None:
                found.append(Problem(file, "rows are missing or cut off", home.subjects_of([entry])))
            continue  # a file that cannot be mapped was reported by the cheap checks
        if block.checksum() != entry.columns_crc:
            what = f"the columns of samples {entry.first} to {entry.last} have changed (checksum differs)"
            found.append(Problem(file, what, home.subjects_of([entry])))
            continue
        bad = block.samples[block.bad_rows()]
        if len(bad):
            what = f"{len(bad)} rows have changed (checksum differs), first that of sample {int(bad[0])}"
            found.append(Problem(file, what, _owners(home, bad.tolist())))
        found += _unknown_samples(home, entry, file, block.samples[block.subjects != NOBODY])
    return found


def _unknown_samples(home: Home, entry: Range, file: str, samples: np.ndarray) -> list[Problem]:
    """Samples that a table names but no segment holds."""
    sql = "SELECT number, subject FROM sample WHERE number BETWEEN ? AND ?"
    rows = np.array(home.database.run(sql, [entry.first, entry.last]), np.int64).reshape(-1, 2)
    lost = rows[~np.isin(rows[:, 0], samples)]
    if not len(lost):
        return []
    return [
        Problem(
            file, f"{len(lost)} samples are missing, first {int(lost[0, 0])}", tuple(np.unique(lost[:, 1]).tolist())
        )
    ]


def _owners(home: Home, samples: list[int]) -> tuple[int, ...]:
    return tuple(sorted(set(home.tables.owners(samples).values())))
