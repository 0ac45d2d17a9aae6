"""Erasure: take subjects out of all tables and snapshots on the server, rewrite the tables' files, and search them.

Three steps, each durable before the next: a transaction deletes the rows everywhere and keeps a draft of the receipt; the
tables are written anew without them; a transaction keeps the receipt. An interrupted erasure is completed by the next
process that opens the gallery. Other processes erase their copies when they follow the change.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import time as clock
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from holue.errors import ErasureIncompleteError
from holue.store.edit import Edit
from holue.store.postgres import schema
from holue.store.postgres.local.replica import Replica
from holue.store.postgres.server import Server, driver
from holue.store.postgres.upkeep.maintenance import maintaining, rewrite
from holue.store.sqlite.reading import read_receipts
from holue.store.sqlite.upkeep.erasure import digest, ids_of, rows_of, samples_of, take_out, with_earlier_names
from holue.store.values import Float32Array, Receipt, Searched
from holue.store.windows import CHUNK, forms, search_files, search_streams

OLD_READER_SECONDS = 60.0
"""A transaction that began before an erasure is waited for so long; the server keeps deleted rows for it."""
OF_THE_OPERATOR = (
    "the server's write-ahead log, archives, backups, standby servers and logs: they belong to the server's operator"
)
OF_OTHERS = (
    "the local copies of other processes, which erase theirs when they follow this version, and copies kept on other machines "
    "(copy=keep), which are erased when the gallery is next opened there"
)


def erase(replica: Replica, subjects: list[int], by: str | None) -> Receipt:
    """Erase subjects by number, whether enrolled or removed."""
    with maintaining(replica.address) as keeper:
        draft, vectors = replica.queue.submit(lambda: _record(replica, subjects, by))
        return _finish(replica, keeper, draft, vectors, by, OLD_READER_SECONDS)


def complete(replica: Replica) -> None:
    """Finish erasures that were interrupted; one that another process is about to finish is waited for.

    While another transaction still prevents it, the erasure stays open: its receipt lists no files and is not clean.
    """
    if not _pending(replica):
        return
    with suppress(ErasureIncompleteError), maintaining(replica.address) as keeper:
        replica.refresh()
        for draft in _pending(replica):
            _finish(replica, keeper, draft, np.empty((0, replica.dim), np.float32), None, patience=1.0)


def _pending(replica: Replica) -> list[Receipt]:
    return [receipt for receipt in replica.copy.read(read_receipts) if not receipt.files]


def _record(replica: Replica, subjects: list[int], by: str | None) -> tuple[Receipt, Float32Array]:
    home, server = replica.copy.home, replica.server
    salt = secrets.token_hex(16)
    digests = tuple(sorted({digest(salt, name) for name in ids_of(home, subjects)}))
    samples = samples_of(home, subjects)
    rows = [rows_of(home, samples)]
    whom = with_earlier_names(home, subjects, samples)
    version, first = home.tables.last_version() + 1, home.tables.next_numbers()
    for place in schema.snapshots(server).values():
        rows.append(_erase_in_snapshot(replica, place, whom, samples, version))
    take_out(home, whom, samples)
    _delete(server, server.address.schema, whom, samples, version)
    edit = Edit("erase", leaving=subjects, moves=[(sample, None) for sample in samples], by=by)
    home.tables.log_change(version, edit, first, 0)
    number = 1 + (home.database.one("SELECT max(number) FROM receipt") or 0)
    draft = Receipt(number, version, clock.time(), salt, digests, len(samples), 0, ())
    _keep(replica, draft)
    return draft, np.unique(np.concatenate(rows), axis=0)


def _erase_in_snapshot(
    replica: Replica, place: str, subjects: list[int], samples: list[int], version: int
) -> Float32Array:
    """Take subjects out of a snapshot; returns the embeddings that nobody else has by now."""
    server = replica.server
    theirs = f"""SELECT number FROM "{place}".sample WHERE subject = ANY(%s) UNION
      SELECT number FROM "{place}".sample_past p WHERE subject = ANY(%s)
      AND NOT EXISTS (SELECT 1 FROM "{place}".sample s WHERE s.number = p.number)
      AND NOT EXISTS (SELECT 1 FROM "{place}".sample_past q WHERE q.number = p.number AND q.until > p.until)"""
    chosen = sorted({*samples, *(row[0] for row in server.run(theirs, [subjects, subjects]))})
    earlier = f"""SELECT DISTINCT subject FROM (SELECT number, subject FROM "{place}".sample UNION ALL
      SELECT number, subject FROM "{place}".sample_past) h WHERE number = ANY(%s) AND NOT EXISTS
      (SELECT 1 FROM "{place}".sample s WHERE s.subject = h.subject AND NOT s.number = ANY(%s)) AND NOT EXISTS
      (SELECT 1 FROM "{place}".sample_past s WHERE s.subject = h.subject AND NOT s.number = ANY(%s))"""
    whom = {*subjects, *(row[0] for row in server.run(earlier, [chosen, chosen, chosen]))}
    elsewhere = replica.copy.home.tables.owners(chosen)
    gone = [sample for sample in chosen if sample not in elsewhere]
    found = server.run(f'SELECT data FROM "{place}".embedding WHERE number = ANY(%s)', [gone])
    given = server.one(f'SELECT max(next_subject) FROM "{place}".change')  # it may not have given a number yet
    _delete(server, place, [number for number in whom if number < given], chosen, version)
    return np.frombuffer(b"".join(bytes(row[0]) for row in found), np.float32).reshape(-1, replica.dim)


def _delete(server: Server, place: str, subjects: list[int], samples: list[int], version: int) -> None:
    """Delete subjects and samples from the tables of a schema, and tell followers."""
    for kind, tables, numbers in (
        ("subject", ("subject", "subject_past"), subjects),
        ("sample", ("sample", "sample_past", "embedding"), samples),
    ):
        for table in tables:
            server.run(f'DELETE FROM "{place}".{table} WHERE number = ANY(%s)', [numbers])
        server.run(f'DELETE FROM "{place}".touch WHERE kind = %s AND number = ANY(%s)', [kind, numbers])
        told = f'INSERT INTO "{place}".erasure SELECT %s, %s, unnest(%s::int8[]) ON CONFLICT DO NOTHING'
        server.run(told, [version, kind, numbers])


def _finish(
    replica: Replica, keeper: Server, draft: Receipt, vectors: Float32Array, by: str | None, patience: float
) -> Receipt:
    replica.queue.alone(lambda: replica.copy.overwrite_erased())
    schemas = [keeper.address.schema, *schema.snapshots(keeper).values()]
    not_searched = [*rewrite(keeper, schemas, patience), OF_THE_OPERATOR, OF_OTHERS]
    copy = replica.copy
    searched = [
        dataclasses.replace(entry, file=f"local copy: {entry.file}")
        for entry in search_files(copy.files(), copy.path, vectors)
    ]
    rows = _search_rows(keeper, schemas, vectors)
    files, denied = _search_files(keeper, [*schemas, keeper.address.service_schema], vectors)
    if sum(entry.found for entry in files) and not sum(entry.found for entry in rows) and not _in_artifacts(files):
        held = next(entry.file for entry in files if entry.found)
        raise ErasureIncompleteError(
            f"{held} still holds erased bytes, though no row does: the server keeps deleted rows for another transaction; "
            "end old transactions, then open the store again: the erasure is completed then"
        )
    receipt = dataclasses.replace(
        draft, compared=len(vectors), files=(*searched, *rows, *files), not_searched=(*denied, *not_searched)
    )
    replica.queue.submit(lambda: _close(replica, receipt, by))
    return receipt


def _close(replica: Replica, receipt: Receipt, by: str | None) -> None:
    kept = next(entry for entry in read_receipts(replica.copy.home) if entry.number == receipt.number)
    if not kept.files:
        _keep(replica, receipt)
        replica.copy.home.log("erase", by, {"receipt": receipt.number})


def _search_rows(server: Server, schemas: list[str], vectors: Float32Array) -> list[Searched]:
    wanted = [form for vector in vectors for form in forms(vector) if len(form) == vector.nbytes]  # as float32
    found = []
    for place in schemas:
        size, held = server.run(
            f'SELECT coalesce(sum(length(data)), 0)::int8, count(*) FILTER (WHERE data = ANY(%s)) FROM "{place}".embedding',
            [wanted],
        )[0]
        found.append(Searched(f"rows: {place}.embedding", size, held))
    return found


def _search_files(server: Server, schemas: list[str], vectors: Float32Array) -> tuple[list[Searched], list[str]]:
    """Read the files of all tables and indexes through the server, where this user may."""
    relations = """WITH t AS (SELECT c.oid, c.reltoastrelid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname = ANY(%s) AND c.relkind = 'r'),
      r AS (SELECT oid FROM t UNION SELECT reltoastrelid FROM t WHERE reltoastrelid <> 0)
      SELECT x.oid::regclass::text, pg_relation_filepath(x.oid) FROM (SELECT oid FROM r UNION
      SELECT indexrelid FROM pg_index WHERE indrelid IN (SELECT oid FROM r)) x ORDER BY 2"""
    named = server.run(relations, [schemas])
    try:
        streams = {
            f"server: {path} ({name})": partial(_read_file, server, path)
            for name, first in named
            for path in _parts(server, first)
        }
        return search_streams(streams, vectors), []
    except Exception as error:
        if not isinstance(error, driver().errors.InsufficientPrivilege):
            raise
        return [], [
            "the files of the tables: this user may not read them (role pg_read_server_files); rows were searched"
        ]


def _parts(server: Server, path: str) -> Iterator[str]:
    """The files of a relation: PostgreSQL begins another one after each gigabyte."""
    part, number = path, 0
    while server.one("SELECT (pg_stat_file(%s, true)).size", [part]) is not None:
        yield part
        number += 1
        part = f"{path}.{number}"


def _read_file(server: Server, path: str) -> Iterator[bytes]:
    offset = 0
    while data := server.one("SELECT pg_read_binary_file(%s, %s, %s, true)", [path, offset, CHUNK]):
        yield bytes(data)
        offset += len(data)


def _in_artifacts(files: list[Searched]) -> bool:
    return any(entry.found and "artifact" in entry.file for entry in files)


def _keep(replica: Replica, receipt: Receipt) -> None:
    database = replica.copy.home.database
    database.run("DELETE FROM receipt WHERE number = ?", [receipt.number])
    database.insert("receipt", [(receipt.number, json.dumps(dataclasses.asdict(receipt)))])
    replica.stage("receipt", receipt.number)
