"""Server: one connection to PostgreSQL, opened when it is needed and opened again when it was lost."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from json.encoder import encode_basestring
from typing import TYPE_CHECKING, Any

import numpy as np

from holue.errors import HolueError, MissingDependencyError, StoreError, StoreLockedError, StoreUnavailableError
from holue.store.postgres.address import Address
from holue.store.postgres.binary import decode, encode
from holue.store.values import SubjectId

if TYPE_CHECKING:
    import psycopg

Row = tuple[Any, ...]
CONNECT_SECONDS = 5
FEW = 8
"""Rows up to which INSERT is faster than COPY."""
LOCK_MINUTES = 5
"""Another writer's transaction is waited for so long, and one whose client has gone silent is ended after as long."""
_SETTINGS = """SELECT set_config('search_path', %s, false), set_config('client_min_messages', 'warning', false),
  set_config('lock_timeout', %s, false), set_config('idle_in_transaction_session_timeout', %s, false),
  set_config('enable_sort', 'off', false), set_config('enable_hashjoin', 'off', false),
  CASE current_setting('synchronous_commit') WHEN 'off' THEN set_config('synchronous_commit', 'on', false) END"""
"""A server may be set to acknowledge before its disk has; what is acknowledged here must survive. Rows are read in the order of
their key: sorting them would write embeddings to temporary files."""
_WITH_ID = ("subject", "subject_past")
"""Tables whose second column is an id: text or integer, kept as JSON."""


def driver() -> Any:
    """The module psycopg."""
    try:
        import psycopg
    except ImportError as error:
        raise MissingDependencyError("psycopg", "postgres") from error
    return psycopg


class Server:
    """SQL on the tables of one gallery; transactions are begun and ended by the caller."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._connection: psycopg.Connection[Row] | None = None

    def connect(self) -> psycopg.Connection[Row]:
        """The connection; a new one where there is none or it was lost."""
        if self._connection is None or self._connection.closed:
            psycopg = driver()
            given = psycopg.conninfo.conninfo_to_dict(self.address.database)
            settings = {"connect_timeout": CONNECT_SECONDS, "application_name": "holue", **given}
            with self.explaining("connecting"):
                self._connection = psycopg.connect(**settings, autocommit=True)
                self.run(_SETTINGS, [f'"{self.address.schema}"', f"{LOCK_MINUTES}min", f"{LOCK_MINUTES}min"])
        assert self._connection is not None
        return self._connection

    @property
    def process(self) -> int | None:
        """The number of the server's process behind the connection."""
        connection = self._connection
        return None if connection is None or connection.closed else connection.info.backend_pid

    def run(self, sql: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Row]:
        """Run one statement; all of its rows."""
        done = self.connect().execute(sql, values or None, binary=True)
        return list(done.fetchall()) if done.description else []

    def one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        """The first value of the first row, or None."""
        rows = self.run(sql, values)
        return rows[0][0] if rows else None

    def insert(self, table: str, names: str, types: Sequence[str], columns: Sequence[Any]) -> None:
        """Insert rows, given as columns, by binary COPY; a few by INSERT, which takes fewer messages."""
        if table in _WITH_ID:
            columns = [columns[0], list(map(id_as_json, columns[1])), *columns[2:]]
        if len(columns[0]) <= FEW:
            rows = zip(*(_plain(column) for column in columns), strict=True)
            with self.connect().cursor() as cursor:
                cursor.executemany(
                    f"INSERT INTO {table} ({names}) VALUES ({', '.join(['%b'] * len(columns))})", list(rows)
                )
            return
        with (
            self.connect().cursor() as cursor,
            cursor.copy(f"COPY {table} ({names}) FROM STDIN (FORMAT BINARY)") as copy,
        ):
            for piece in encode(types, columns):
                copy.write(piece)

    def copy_out(self, table: str, query: str, types: Sequence[str]) -> Iterator[list[Any]]:
        """The rows of a query on a table by binary COPY, as they arrive: the columns of a few hundred at a time."""
        with (
            self.connect().cursor() as cursor,
            cursor.copy(f"COPY ({query}) TO STDOUT (FORMAT BINARY)") as copy,
        ):
            for columns in decode(types, copy):
                if table in _WITH_ID:
                    columns[1] = json.loads(f"[{','.join(columns[1])}]")
                yield columns

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A transaction that sees one state of the gallery and changes nothing."""
        self.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        try:
            # Before the first question, which fixes what is seen: rows of a table that is exchanged after that are not.
            self.run("LOCK TABLE embedding IN ACCESS SHARE MODE")
            yield
        finally:
            self.roll_back()

    def roll_back(self) -> None:
        """Give up the transaction under way, if there is one; a connection that cannot even do this is dropped."""
        try:
            if self._connection is not None:
                self._connection.rollback()
        except Exception:
            self.close()

    def close(self) -> None:
        """Close the connection; the next statement opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()

    @contextmanager
    def explaining(self, verb: str) -> Iterator[None]:
        """Turn the driver's errors into ours."""
        try:
            yield
        except Exception as error:
            raise self.explain(verb, error) from error

    def explain(self, verb: str, error: BaseException) -> BaseException:
        """The error to raise for one of the driver's: the server is gone, a lock was not given, or it refused."""
        psycopg = driver()
        if isinstance(error, HolueError) or not isinstance(error, Exception):
            return error
        what = " ".join(str(error).split())
        explained: StoreError
        if isinstance(error, psycopg.errors.LockNotAvailable):
            explained = StoreLockedError(
                f"{verb} failed: another process has been writing to gallery {self.address.gallery!r} "
                f"for {LOCK_MINUTES} minutes; try again, or end that process"
            )
        elif isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
            explained = StoreUnavailableError(
                f"{verb} failed: the server of gallery {self.address.gallery!r} cannot be reached or has closed the "
                f"connection ({what}); reads go on from the local copy; try again"
            )
        else:
            explained = StoreError(f"{verb} failed: {what}; nothing of this was kept")
        explained.__cause__ = error
        return explained


def id_as_json(name: SubjectId) -> str:
    """A string or an integer as JSON, as ``json.dumps`` writes it, without the twentyfold cost of making an encoder each time.

    >>> id_as_json("ann"), id_as_json(7)
    ('"ann"', '7')
    """
    return encode_basestring(name) if isinstance(name, str) else int.__repr__(name)


def _plain(column: Any) -> Sequence[Any]:
    """The values of a column as the driver takes them; rows of embeddings are bytes."""
    if not isinstance(column, np.ndarray):
        values: Sequence[Any] = column
    elif column.ndim == 2:
        values = [row.tobytes() for row in column]
    else:
        values = column.tolist()
    return values
