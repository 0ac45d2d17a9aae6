"""Maintenance: what one process does at a time on a gallery: snapshots, compaction, the end of an erasure."""

from __future__ import annotations

import time as clock
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from holue.errors import ErasureIncompleteError, StoreError
from holue.store.postgres import schema
from holue.store.postgres.address import Address
from holue.store.postgres.server import LOCK_MINUTES, Server, driver

EDITS_KEPT = 1000
"""Tokens of the last transactions that compaction leaves, for writers that wait to hear what became of theirs."""
EXCHANGE_MILLISECONDS = 250
"""Readers are waited for so long while writers wait too; then writers go first again."""
_RIGHTS = """SELECT format('GRANT %s ON embedding_new TO %s', privilege_type,
  CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END)
  FROM pg_class c, aclexplode(relacl) WHERE c.oid = 'embedding'::regclass
  UNION ALL SELECT format('ALTER TABLE embedding_new OWNER TO %s', relowner::regrole)
  FROM pg_class c WHERE c.oid = 'embedding'::regclass"""
"""Statements that give the new table the owner of the old one, and everybody the same rights."""
_REWRITTEN = ("subject", "subject_past", "sample", "sample_past", "touch", "embedding")


@contextmanager
def maintaining(address: Address) -> Iterator[Server]:
    """A connection of its own, with the gallery's maintenance lock."""
    server = Server(address)
    try:
        with server.explaining("maintaining"):
            server.run("SELECT pg_advisory_lock(hashtextextended(%s, 1))", [address.schema])
            yield server
    finally:
        server.close()


def take_snapshot(server: Server, name: str) -> str:
    """Copy all tables as they are now into a schema of their own; returns the snapshot's URL."""
    url = server.address.snapshot_url(name)
    Address.parse(url)  # refuses a bad name
    server.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    if name in schema.snapshots(server):
        raise StoreError(f"snapshot {name!r} exists already; choose another name")
    target = f"{server.address.schema}@{uuid.uuid4().hex[:12]}"
    schema.copy_tables(server, server.address.schema, target)
    server.run("INSERT INTO snapshot VALUES (%s, %s)", [name, target])
    server.run("COMMIT")
    return url


def restore_snapshot(server: Server, target: Address) -> None:
    """A new gallery from a snapshot, in the same database."""
    source = server.address
    assert source.snapshot is not None
    server.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
    found = schema.snapshot_schema(server, source.snapshot)
    if server.one("SELECT count(*) FROM pg_namespace WHERE nspname = %s", [target.schema]):
        raise StoreError(f"gallery {target.gallery!r} exists already in this database; restore under another name")
    schema.copy_tables(server, found, target.schema)
    server.run(f"UPDATE \"{target.schema}\".meta SET value = %s WHERE key = 'store'", [f'"{uuid.uuid4()}"'])
    server.run("COMMIT")


def forget_before(server: Server, version: int) -> None:
    """Drop states that ended with or before a version, the log before it, and rows that no version shows any more."""
    for table in ("subject_past", "sample_past"):
        server.run(f"DELETE FROM {table} WHERE until <= %s", [version])
    server.run("DELETE FROM touch WHERE version <= %s", [version])
    server.run("DELETE FROM change WHERE version < %s", [version])
    server.run(
        """DELETE FROM embedding e WHERE NOT EXISTS (SELECT 1 FROM sample s WHERE s.number = e.number)
          AND NOT EXISTS (SELECT 1 FROM sample_past p WHERE p.number = e.number)"""
    )
    # A writer that lost its connection asks for its token within seconds.
    server.run("DELETE FROM edit WHERE number <= (SELECT edit FROM head) - %s", [EDITS_KEPT])
    server.run("UPDATE head SET oldest = %s", [version])


def vacuum(server: Server) -> None:
    """Let the server use the space of deleted rows again."""
    for table in _REWRITTEN:
        server.run(f"VACUUM (ANALYZE) {table}")


def rewrite(server: Server, schemas: list[str], patience: float) -> list[str]:
    """Write the tables anew without deleted rows, and have the old files deleted; returns what was not permitted."""
    _wait_for_old_readers(server, patience)
    _exchange_embeddings(server)
    for name in schemas:
        for table in _REWRITTEN:
            if (name, table) != (server.address.schema, "embedding"):
                server.run(f'VACUUM (FULL) "{name}".{table}')
    try:
        server.run("CHECKPOINT")
    except Exception as error:
        if not isinstance(error, driver().errors.InsufficientPrivilege):
            raise
        return ["files that the server deletes at its next checkpoint: this user may not run CHECKPOINT"]
    return []


def _exchange_embeddings(server: Server) -> None:
    """Copy the rows to a new table while others write; they wait only for the last rows and the exchange of the tables.

    Rows never change and come in the order of their numbers, and only a holder of the maintenance lock deletes some.
    """
    server.run("DROP TABLE IF EXISTS embedding_new")  # of an erasure that was interrupted
    schema.make_table(server, "embedding", "embedding_new")
    for statement in server.run(_RIGHTS):
        server.run(statement[0])
    server.run("INSERT INTO embedding_new SELECT * FROM embedding ORDER BY number")
    until = clock.monotonic() + 60 * LOCK_MINUTES
    while True:
        server.run("BEGIN")
        server.run("SELECT 1 FROM head FOR UPDATE")
        try:
            server.run(f"SET LOCAL lock_timeout = '{EXCHANGE_MILLISECONDS}ms'")
            server.run("LOCK TABLE embedding IN ACCESS EXCLUSIVE MODE")
            break
        except Exception as error:  # somebody is filling a copy: writers must not wait for that
            server.roll_back()
            if not isinstance(error, driver().errors.LockNotAvailable) or clock.monotonic() > until:
                raise
            clock.sleep(0.5)
    last = server.one("SELECT max(number) FROM embedding_new") or 0
    server.run("INSERT INTO embedding_new SELECT * FROM embedding WHERE number > %s", [last])
    server.run("DROP TABLE embedding")
    server.run("ALTER TABLE embedding_new RENAME TO embedding")
    server.run("COMMIT")


def _wait_for_old_readers(server: Server, patience: float) -> None:
    now = server.one("SELECT pg_current_xact_id()::xid::text")
    old = """SELECT 'server process ' || pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()
      AND (datname = current_database() OR datname IS NULL) AND greatest(age(backend_xid), age(backend_xmin)) > age(%(now)s::xid)
      UNION ALL SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts WHERE age(transaction) > age(%(now)s::xid)
      UNION ALL SELECT 'replication slot ' || slot_name FROM pg_replication_slots WHERE age(xmin) > age(%(now)s::xid)"""
    until = clock.monotonic() + patience
    while waiting := server.run(old, {"now": now}):
        if clock.monotonic() > until:
            raise ErasureIncompleteError(
                f"the server keeps deleted rows for a transaction that is older than the erasure "
                f"({waiting[0][0]}); end it, then open the store again: the erasure is completed then"
            )
        clock.sleep(0.1)
