"""Schema: the tables of one gallery on the server, and whole copies of them.

They mirror the tables of the embedded home, checksums included; ``embedding`` holds the rows. ``head`` has one row: who
locks it writes. Every transaction has a number, its edit, so that a follower asks for what came after the last one it saw, and
a token in table ``edit``, by which a writer that lost its connection during the commit finds out what became of it.
"""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from typing import Any

from holue.errors import CorruptStoreError, StoreError
from holue.store.postgres.binary import BYTES, INT, REAL, TEXT
from holue.store.postgres.server import Server
from holue.store.sqlite.database import CHECKED, checked

FORMAT_VERSION = 1
TYPES = {
    "change": [INT, TEXT, REAL, TEXT, INT, INT, INT, INT, INT, INT],
    "touch": [INT, TEXT, INT],
    "subject": [INT, TEXT, INT, TEXT, REAL, TEXT, TEXT, INT],
    "subject_past": [INT, TEXT, INT, TEXT, REAL, TEXT, TEXT, INT, INT],
    "sample": [INT, INT, INT, TEXT, INT],
    "sample_past": [INT, INT, INT, TEXT, INT, INT],
    "operation": [INT, REAL, TEXT, TEXT, TEXT, INT],
    "embedding": [INT, INT, REAL, REAL, TEXT, TEXT, INT, BYTES],
    "erasure": [INT, TEXT, INT],
    "artifact": [TEXT, TEXT, REAL, INT, BYTES, INT],
    "receipt": [INT, TEXT, INT, INT],
}
COLUMNS = {
    **{table: f"{CHECKED[table]}, crc" for table in TYPES if table in CHECKED},
    "touch": "version, kind, number",
    "embedding": "number, subject, time, concentration, medium, enrolled_by, crc, data",
    "erasure": "version, kind, number",
    "artifact": f"{CHECKED['artifact']}, crc, data, edit",
    "receipt": f"{CHECKED['receipt']}, crc, edit",
}
KEYS = {
    "change": ("PRIMARY KEY (version)",),
    "touch": ("PRIMARY KEY (version, kind, number)", "kind, number"),
    "subject": ("PRIMARY KEY (number)",),
    "subject_past": (None, "number", "until"),
    "sample": ("PRIMARY KEY (number)",),
    "sample_past": (None, "number", "until"),
    "operation": ("PRIMARY KEY (number)",),
    "embedding": ("PRIMARY KEY (number)",),
    "erasure": ("PRIMARY KEY (version, kind, number)",),
    "artifact": ("PRIMARY KEY (name)",),
    "receipt": ("PRIMARY KEY (number)",),
}
INLINE_BYTES = 8160
"""Rows up to this size (a page) stay whole: one that is cut into pieces costs a tuple and an index entry per piece."""
EVERY_TABLE = ("meta", "head", *TYPES)
PRIVATE = {
    "embedding": ["data"],
    "artifact": ["data"],
    "subject": ["id", "metadata"],
    "subject_past": ["id", "metadata"],
}
"""Columns of which the server's planner keeps no statistics: these would be copies of values."""


def create(server: Server, dim: int, model: str | None) -> None:
    """Make the tables of a new gallery in one transaction."""
    begin_new(server)
    write_meta(server, {"dim": int(dim), "model": model, "store": str(uuid.uuid4()), "format": FORMAT_VERSION})
    server.run("INSERT INTO head VALUES (true, 0, 0, 0)")
    first = checked((0, "create", 0.0, None, 1, 1, 1, 1, None))
    server.insert("change", COLUMNS["change"], TYPES["change"], [[value] for value in first])
    server.run("COMMIT")


def begin_new(server: Server) -> None:
    """Begin a transaction with the empty tables of a new gallery."""
    address = server.address
    server.run("BEGIN")
    # Two processes may create the same gallery at the same moment: the second one waits here, then finds it.
    server.run("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [address.schema])
    if exists(server):
        raise StoreError(
            f"gallery {address.gallery!r} exists already in this database; open it, or choose another name"
        )
    make_tables(server, address.schema)


def write_meta(server: Server, meta: dict[str, Any]) -> None:
    """Keep what holds for the gallery's whole life."""
    for key, value in meta.items():
        server.run("INSERT INTO meta VALUES (%s, %s)", [key, json.dumps(value)])


def require(server: Server) -> None:
    """Refuse a gallery that is not there."""
    if not exists(server):
        raise CorruptStoreError(
            f"there is no gallery {server.address.gallery!r} in this database; create it, or check the URL"
        )


def exists(server: Server) -> bool:
    """Whether the gallery is in the database."""
    return bool(server.one("SELECT count(*) FROM pg_namespace WHERE nspname = %s", [server.address.schema]))


def make_tables(server: Server, schema: str) -> None:
    """Empty tables in a new schema."""
    server.run(f'CREATE SCHEMA "{schema}"')
    place = f'"{schema}".'
    server.run(f"CREATE TABLE {place}meta (key text PRIMARY KEY, value text)")
    server.run(f"CREATE TABLE {place}head (one boolean PRIMARY KEY, edit int8, version int8, oldest int8)")
    server.run(f"CREATE TABLE {place}snapshot (name text PRIMARY KEY, schema text)")
    server.run(f"CREATE TABLE {place}edit (number int8 PRIMARY KEY, token text)")
    for table in TYPES:
        make_table(server, table, place + table)


def make_table(server: Server, table: str, name: str) -> None:
    """An empty table under a name."""
    names = COLUMNS[table].split(", ")
    columns = ", ".join(f"{column} {kind}" for column, kind in zip(names, TYPES[table], strict=True))
    key, *indexes = KEYS[table]
    inline = f" WITH (toast_tuple_target = {INLINE_BYTES})" if table == "embedding" else ""
    server.run(f"CREATE TABLE {name} ({columns}{', ' + key if key else ''}){inline}")
    for index in indexes:
        server.run(f"CREATE INDEX ON {name} ({index})")
    for column in PRIVATE.get(table, ()):
        server.run(f"ALTER TABLE {name} ALTER COLUMN {column} SET STATISTICS 0")
    if table in ("embedding", "artifact"):
        # Compressed bytes could not be searched for after an erasure.
        server.run(f"ALTER TABLE {name} ALTER COLUMN data SET STORAGE EXTERNAL")


def copy_tables(server: Server, source: str, target: str) -> None:
    """Copy all tables into a new schema, in the transaction under way."""
    make_tables(server, target)
    for table in EVERY_TABLE:
        server.run(f'INSERT INTO "{target}".{table} SELECT * FROM "{source}".{table}')


@dataclass(frozen=True)
class Head:
    """Where the gallery stands: its last transaction with its token, and the token of the transaction that was asked about."""

    edit: int
    token: str | None
    version: int
    oldest: int
    store: str
    snapshots: tuple[str, ...]
    asked: str | None


def read_head(server: Server, edit: int) -> Head:
    """Where the gallery stands, and the token of an earlier transaction, in one question."""
    sql = """SELECT head.edit, (SELECT token FROM edit WHERE number = head.edit), version, oldest,
      (SELECT value FROM meta WHERE key = 'store'), ARRAY(SELECT name FROM snapshot ORDER BY name),
      (SELECT token FROM edit WHERE number = %s) FROM head"""
    last, token, version, oldest, store, names, asked = server.run(sql, [edit])[0]
    return Head(last, token, version, oldest, json.loads(store), tuple(names), asked)


def snapshots(server: Server) -> dict[str, str]:
    """The snapshots of the gallery: name and schema."""
    return dict(server.run("SELECT name, schema FROM snapshot ORDER BY name"))


def snapshot_schema(server: Server, name: str) -> str:
    """The schema of one snapshot."""
    found = snapshots(server).get(name)
    if found is None:
        raise StoreError(f"gallery {server.address.gallery!r} has no snapshot {name!r}; status() lists them")
    return found


def read_meta(server: Server) -> dict[str, Any]:
    """What was fixed at creation."""
    return {key: json.loads(value) for key, value in server.run("SELECT key, value FROM meta")}


def size(server: Server) -> int:
    """Bytes of the gallery's tables, indexes included, without its snapshots."""
    sql = """SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::int8 FROM pg_class c JOIN pg_namespace n
      ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'"""
    with server.explaining("reading"):
        found: int = server.one(sql, [server.address.schema])
    return found
