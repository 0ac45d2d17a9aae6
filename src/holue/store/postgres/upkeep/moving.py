"""Moving: a gallery, or a snapshot of one, becomes a new gallery in another home: from a server to a directory, and back.

Numbers, versions, history, artifacts and receipts are the same afterwards; snapshots of the gallery are not moved.
"""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path
from typing import Any

import numpy as np

from holue.errors import StoreError
from holue.store.postgres import schema
from holue.store.postgres.address import SCHEMES, Address
from holue.store.postgres.local.copy import LocalCopy
from holue.store.postgres.local.delta import CopySide, ServerSide, carry
from holue.store.postgres.schema import COLUMNS, TYPES
from holue.store.postgres.server import Server
from holue.store.postgres.upkeep import maintenance
from holue.store.sqlite.database import connect_sqlite
from holue.store.sqlite.files.disk import Disk
from holue.store.sqlite.home import Home, refuse
from holue.store.sqlite.upkeep import snapshots
from holue.store.sqlite.upkeep.erasure import recorded
from holue.store.values import NOBODY


def restore(source: str, target: str) -> None:
    """A new gallery from a gallery or a snapshot; each of the two is a directory or a URL."""
    if not source.startswith(SCHEMES):
        from_directory(Path(source), Address.parse(target))
        return
    given = Address.parse(source)
    if not target.startswith(SCHEMES):
        to_directory(given, Path(target))
        return
    wanted = Address.parse(target)
    if given.snapshot is not None and given.database == wanted.database:
        with maintenance.maintaining(given) as server:
            maintenance.restore_snapshot(server, wanted)
        return
    with tempfile.TemporaryDirectory() as between:
        to_directory(given, Path(between) / "gallery")
        from_directory(Path(between) / "gallery", wanted)


def to_directory(source: Address, target: Path) -> None:
    """A directory from a gallery on a server, as it is now, or from one of its snapshots."""
    server = Server(source)
    copy: LocalCopy | None = None
    try:
        with server.explaining("copying"):
            schema.require(server)
        with server.explaining("copying"), server.reading():
            if source.snapshot is not None:
                place = schema.snapshot_schema(server, source.snapshot)
                server.run("SELECT set_config('search_path', %s, true)", [f'"{place}"'])
            copy = LocalCopy.empty(schema.read_meta(server), keep=False)
            copy.follow(server, schema.read_head(server, copy.seen.edit))
        snapshots.restore(copy.path, target, Disk())
    finally:
        server.close()
        if copy is not None:
            copy.close(keep=False)


def from_directory(source: Path, target: Address) -> None:
    """A gallery on a server from a directory: a store, or one of its snapshots."""
    home = Home(source, "ro", Disk(), connect_sqlite)
    server = Server(target)
    try:
        if problems := home.cheap_problems():
            raise refuse(source, problems)
        home.database.run("BEGIN")
        if recorded(home, "sample"):
            raise StoreError(f"an erasure in {source} was interrupted; open it for writing once, which completes it")
        with server.explaining("copying"):
            schema.begin_new(server)
            _upload(home, server)
            server.run("COMMIT")
    finally:
        server.close()
        home.close()


def _upload(home: Home, server: Server) -> None:
    tables, database = home.tables, home.database
    schema.write_meta(server, {**database.meta(), "store": str(uuid.uuid4()), "format": schema.FORMAT_VERSION})
    version = tables.last_version()
    server.run("INSERT INTO head VALUES (true, 0, %s, %s)", [version, tables.oldest_version()])
    there = ServerSide(server)
    carry(CopySide(database), there, -1)
    _upload_rows(home, server)
    for table in ("operation", "artifact", "receipt"):
        columns = COLUMNS[table].removesuffix(", edit")
        rows: list[tuple[Any, ...]] = database.run(f"SELECT {columns} FROM {table}")
        if rows:
            there.insert(table, rows if table == "operation" else [(*row, 0) for row in rows])
    erased = database.run("SELECT number FROM erased")
    if erased:
        there.insert("erasure", [(version, "subject", number) for (number,) in erased])


def _upload_rows(home: Home, server: Server) -> None:
    words: dict[int, str] = dict(home.database.run("SELECT code, text FROM word"))
    for entry in home.ranges.all():
        block = home.ranges.read(entry)
        kept = np.flatnonzero(block.subjects != NOBODY)  # the others were erased
        if len(kept):
            part = block.take(kept)
            media, by = ([words[code] for code in column.tolist()] for column in (part.medium, part.by))
            columns = [
                part.samples, part.subjects, part.time, part.concentration, media, [name or None for name in by], part.crc,
                part.rows,
            ]  # fmt: skip
            server.insert("embedding", COLUMNS["embedding"], TYPES["embedding"], columns)
