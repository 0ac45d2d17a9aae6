"""Verification: every row on the server read and compared with its checksum, and the local copy too."""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path

from holue.store.postgres.binary import BYTES, INT
from holue.store.postgres.local.delta import as_rows
from holue.store.postgres.schema import COLUMNS, TYPES, snapshots
from holue.store.postgres.server import Server
from holue.store.sqlite.database import row_checksum
from holue.store.sqlite.files.disk import Disk
from holue.store.sqlite.upkeep.verification import find_damage
from holue.store.values import Problem

_SUBJECT_COLUMN = {"subject": 0, "subject_past": 0, "sample": 1, "sample_past": 1}
"""Where the number of the subject concerned is among a table's values."""
_CHECKED = ("change", "subject", "subject_past", "sample", "sample_past", "operation")


def damage_on_server(server: Server) -> list[Problem]:
    """All damage of a gallery and its snapshots, in one transaction."""
    with server.reading():
        found = _damage_of(server, "server")
        for name, schema in snapshots(server).items():
            server.run("SELECT set_config('search_path', %s, true)", [f'"{schema}"'])
            found += _damage_of(server, f"server, snapshot {name}")
    return found


def damage_of_copy(path: Path) -> list[Problem]:
    """Damage of the local copy."""
    return [
        Problem(f"local copy: {problem.file}", problem.what, problem.subjects) for problem in find_damage(path, Disk())
    ]


def _damage_of(server: Server, place: str) -> list[Problem]:
    found = []
    changed = "a row of table {} has changed (checksum differs)"
    for table in _CHECKED:
        for columns in server.copy_out(table, f"SELECT {COLUMNS[table]} FROM {table}", TYPES[table]):
            for *values, crc in as_rows(columns):
                if row_checksum(values) != crc:
                    column = _SUBJECT_COLUMN.get(table)
                    found.append(Problem(place, changed.format(table), () if column is None else (values[column],)))
    for number, content, crc in server.run("SELECT number, content, crc FROM receipt"):
        if row_checksum((number, content)) != crc:
            found.append(Problem(place, changed.format("receipt")))
    for name, digest, time, crc, data in server.run("SELECT name, sha256, time, crc, data FROM artifact"):
        if row_checksum((name, digest, time)) != crc or hashlib.sha256(data or b"").hexdigest() != digest:
            found.append(Problem(place, f"artifact {name!r} has changed (checksum differs)"))
    return [*found, *_row_damage(server, place), *_missing(server, place)]


def _row_damage(server: Server, place: str) -> list[Problem]:
    query = """SELECT e.number, coalesce(s.subject, e.subject), e.crc, e.data FROM embedding e
      LEFT JOIN sample s ON s.number = e.number ORDER BY e.number"""
    bad = [
        (number, subject)
        for columns in server.copy_out("embedding", query, [INT, INT, INT, BYTES])
        for number, subject, crc, data in as_rows(columns)
        if zlib.crc32(data) != crc
    ]
    if not bad:
        return []
    what = f"{len(bad)} rows have changed (checksum differs), first that of sample {bad[0][0]}"
    return [Problem(place, what, tuple(sorted({subject for _, subject in bad})))]


def _missing(server: Server, place: str) -> list[Problem]:
    lost = server.run(
        """SELECT s.number, s.subject FROM sample s WHERE NOT EXISTS (SELECT 1 FROM embedding e WHERE e.number = s.number)
          ORDER BY s.number"""
    )
    found = []
    if lost:
        whom = tuple(sorted({subject for _, subject in lost}))
        found.append(Problem(place, f"{len(lost)} samples are missing, first {lost[0][0]}", whom))
    first, last, count = server.run("SELECT min(version), max(version), count(*) FROM change")[0]
    version, oldest = server.run("SELECT version, oldest FROM head")[0]
    if (first, last, count) != (oldest, version, version - oldest + 1):
        found.append(Problem(place, f"the change log should hold versions {oldest} to {version}, some are missing"))
    return found
