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

from holue.errors import StoreError
from holue.store.postgres.server import Server
from holue.store.sqlite.database import CHECKED, checked

FORMAT_VERSION = 1
INT, REAL, TEXT, BYTES = "int8", "float8", "text", "bytea"
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
    "subject": ("PRIMARY KEY (number)", "since"),
    "subject_past": (None, "number", "until"),
    "sample": ("PRIMARY KEY (number)", "since", "subject"),
    "sample_past": (None, "number", "until", "subject"),
    "operation": ("PRIMARY KEY (number)",),
    "embedding": ("PRIMARY KEY (number)",),
    "erasure": ("PRIMARY KEY (version, kind, number)",),
    "artifact": ("PRIMARY KEY (name)",),
    "receipt": ("PRIMARY KEY (number)",),
}
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
    address = server.address
    server.run("BEGIN")
    # Two processes may create the same gallery at the same moment: the second one waits here, then finds it.
    server.run("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [address.schema])
    if exists(server):
        raise StoreError(
            f"gallery {address.gallery!r} exists already in this database; open it, or choose another name"
        )
    make_tables(server, address.schema)
    meta = {"dim": int(dim), "model": model, "store": str(uuid.uuid4()), "format": FORMAT_VERSION}
    for key, value in meta.items():
        server.run("INSERT INTO meta VALUES (%s, %s)", [key, json.dumps(value)])
    server.run("INSERT INTO head VALUES (true, 0, 0, 0)")
    server.copy_in("change", COLUMNS["change"], TYPES["change"], [checked((0, "create", 0.0, None, 1, 1, 1, 1, None))])
    server.run("COMMIT")


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
    for table, types in TYPES.items():
        names = COLUMNS[table].split(", ")
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(names, types, strict=True))
        key, *indexes = KEYS[table]
        server.run(f"CREATE TABLE {place}{table} ({columns}{', ' + key if key else ''})")
        for index in indexes:
            server.run(f"CREATE INDEX ON {place}{table} ({index})")
    for table, columns_ in PRIVATE.items():
        for column in columns_:
            server.run(f"ALTER TABLE {place}{table} ALTER COLUMN {column} SET STATISTICS 0")
    for table in ("embedding", "artifact"):
        # Compressed bytes could not be searched for after an erasure.
        server.run(f"ALTER TABLE {place}{table} ALTER COLUMN data SET STORAGE EXTERNAL")


def copy_tables(server: Server, source: str, target: str) -> None:
    """Copy all tables into a new schema, in the transaction under way."""
    make_tables(server, target)
    for table in EVERY_TABLE:
        server.run(f'INSERT INTO "{target}".{table} SELECT * FROM "{source}".{table}')


@dataclass(frozen=True)
class Head:
    """Where the gallery stands."""

    edit: int
    version: int
    oldest: int
    store: str
    snapshots: tuple[str, ...]


def read_head(server: Server) -> Head:
    """Where the gallery stands, in one question."""
    sql = """SELECT edit, version, oldest, (SELECT value FROM meta WHERE key = 'store'),
      ARRAY(SELECT name FROM snapshot ORDER BY name) FROM head"""
    edit, version, oldest, store, names = server.run(sql)[0]
    return Head(edit, version, oldest, json.loads(store), tuple(names))


def snapshots(server: Server) -> dict[str, str]:
    """The snapshots of the gallery: name and schema."""
    return dict(server.run("SELECT name, schema FROM snapshot ORDER BY name"))


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
