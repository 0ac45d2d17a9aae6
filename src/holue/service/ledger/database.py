"""Database: the ledger's tables in a file of the gallery's home, or in a schema beside the gallery's in PostgreSQL.

The file lies inside the home directory, so that the store's search after an erasure reads it too. Writes of several threads that
wait at the same time share one transaction.
"""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import sqlalchemy as sql
from sqlalchemy.exc import DBAPIError, OperationalError

from holue.errors import CorruptStoreError, ErasureIncompleteError, HolueError, StoreError, StoreUnavailableError
from holue.service.ledger.statement import Statement
from holue.service.ledger.tables import ADDED, BYTES, META, METADATA, VERSION
from holue.store.commit import CommitQueue
from holue.store.postgres.address import SCHEMES, Address

T = TypeVar("T")
FOLDER, FILE = "service", "ledger.db"
BUSY_SECONDS = 30
LOG_PAGES = 256
"""Pages of SQLite's log until it is begun anew. Syncing a file that grows takes longer than one that is overwritten."""


class Database:
    """Made by :meth:`of_gallery`; a context manager.

    >>> with Database.of_gallery(":memory:") as database, database.reading() as connection:
    ...     connection.execute(sql.select(sql.func.count()).select_from(META)).scalar_one() > 0
    True
    """

    def __init__(self, engine: sql.Engine, *, file: Path | None, lock: int, folder: Any = None) -> None:
        self.engine, self.file = engine, file
        self._lock, self._folder = lock, folder
        self._queue = CommitQueue(self._begin, self._commit, self._rollback, _explain)
        self._connection: sql.Connection | None = None
        self._thread = threading.local()
        self._direct, self._asking = _direct(file), threading.Lock()
        try:
            self._make_tables()
        except BaseException as error:
            engine.dispose()
            raise _explain(error) from error

    @classmethod
    def of_gallery(cls, place: str | os.PathLike[str]) -> Self:
        """The ledger of a gallery: a directory, a ``postgresql://`` URL or ``":memory:"``; made where there is none."""
        name = os.fspath(place)
        if name.startswith(SCHEMES):
            return cls._on_server(Address.parse(name))
        if name == ":memory:":
            # A temporary file, so that the code is the same as for a directory.
            folder = tempfile.TemporaryDirectory(prefix="holue-ledger-")
            return cls._in_file(Path(folder.name) / FILE, folder)
        if not Path(name).is_dir():
            raise StoreError(f"{name} does not exist; create the gallery first, then its ledger")
        (Path(name) / FOLDER).mkdir(mode=0o700, exist_ok=True)
        return cls._in_file(Path(name) / FOLDER / FILE, None)

    @classmethod
    def exists(cls, place: str | os.PathLike[str]) -> bool:
        """Whether a gallery has a ledger already."""
        name = os.fspath(place)
        if name.startswith(SCHEMES):
            address = Address.parse(name)
            engine = _server_engine(address)
            try:
                return sql.inspect(engine).has_table(META.name, schema=address.service_schema)
            except Exception as error:
                raise _explain(error) from error
            finally:
                engine.dispose()
        return (Path(name) / FOLDER / FILE).is_file()

    @classmethod
    def _in_file(cls, path: Path, folder: Any) -> Self:
        if not path.exists():
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        engine = sql.create_engine(
            sql.URL.create("sqlite", database=str(path)), connect_args={"timeout": BUSY_SECONDS}, pool_size=8
        )
        sql.event.listen(engine, "connect", _prepare_sqlite)
        sql.event.listen(engine, "begin", _begin_sqlite)
        return cls(engine, file=path, lock=0, folder=folder)

    @classmethod
    def _on_server(cls, address: Address) -> Self:
        schema = address.service_schema
        engine = _server_engine(address).execution_options(schema_translate_map={None: schema})
        return cls(engine, file=None, lock=zlib.crc32(schema.encode()))

    @property
    def on_server(self) -> bool:
        """Whether the tables are in PostgreSQL."""
        return self.file is None

    @contextmanager
    def reading(self) -> Iterator[sql.Connection]:
        """A transaction that sees one state of the tables."""
        try:
            with self.engine.connect() as connection:
                yield connection
        except DBAPIError as error:
            raise _explain(error) from error

    def one(self, statement: Statement, given: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """The only row of a statement, by column, or None. In a file it takes microseconds and waits for nobody."""
        if self._direct is not None:
            # On an error it is asked again below, where locks are waited for and errors are explained.
            with self._asking, suppress(sqlite3.Error):
                asked = self._direct.execute(statement.text, statement.values(given))
                rows = asked.fetchall()
                return dict(zip([column[0] for column in asked.description], rows[0])) if rows else None
        with self.reading() as connection:
            row = connection.exec_driver_sql(statement.text, statement.values(given)).mappings().one_or_none()
            return None if row is None else dict(row)

    def writing(self, work: Callable[[sql.Connection], T]) -> T:
        """Run the work in a transaction, alone among all processes, and return once it is durable.

        ``work`` raises an InvalidInputError before it has written anything, or writes all of its change.
        """
        beside, self._thread.beside = getattr(self._thread, "beside", None), None
        if beside is None:
            return self._queue.submit(lambda: work(self._writer))

        def both() -> T:
            result = work(self._writer)
            beside(self._writer, result)
            return result

        return self._queue.submit(both)

    @contextmanager
    def beside(self, also: Callable[[sql.Connection, Any], None]) -> Iterator[None]:
        """The next :meth:`writing` of this thread inside the block also does this, in its transaction, with its result."""
        self._thread.beside = also
        try:
            yield
        finally:
            self._thread.beside = None

    def meta(self, key: str) -> Any:
        """What was fixed when the ledger was made."""
        with self.reading() as connection:
            value = connection.execute(sql.select(META.c.value).where(META.c.key == key)).scalar_one()
        return json.loads(value)

    def secret(self) -> bytes:
        """A random key of this ledger: it decides which answers are sampled, and names the same probe again."""
        return bytes.fromhex(self.meta("secret"))

    def scrub(self, tables: Sequence[sql.Table], *, whole: bool = False) -> None:
        """Have the bytes of deleted rows gone from the files; ``tables`` are those that rows were deleted from.

        SQLite overwrites deleted rows, and its log is emptied here; with ``whole`` the file is also written anew. PostgreSQL
        writes the tables anew.
        """
        self._queue.alone(lambda: self._scrub(tables, whole))

    def problems(self) -> list[str]:
        """Damage that SQLite finds in its file; the pages of PostgreSQL are the server's to check."""
        if self.on_server:
            return []
        with self.reading() as connection:
            found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        return [str(line) for line in found if line != "ok"]

    def close(self) -> None:
        """Close all connections."""
        self._queue.alone(self._release)
        with self._asking:
            if self._direct is not None:
                self._direct.close()
                self._direct = None
        self.engine.dispose()
        if self._folder is not None:
            self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Inside

    @property
    def _writer(self) -> sql.Connection:
        assert self._connection is not None
        return self._connection

    def _begin(self) -> None:
        if self._connection is None:
            self._connection = self.engine.connect().execution_options(writing=True)
        self._connection.begin()
        self._hold_lock(self._connection)

    def _hold_lock(self, connection: sql.Connection) -> None:
        if self.on_server:
            connection.exec_driver_sql("SELECT pg_advisory_xact_lock(%s, 0)", (self._lock - 2**31,))

    def _commit(self) -> None:
        self._writer.commit()
        # A server may end an idle connection. That of a file is kept: opening one takes as long as writing a row.
        if self.on_server:
            self._release()

    def _rollback(self) -> None:
        if self._connection is not None:
            try:
                self._connection.rollback()
            except DBAPIError:
                self._connection.invalidate()
            self._release()

    def _release(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _make_tables(self) -> None:
        with self.engine.connect().execution_options(writing=True) as connection, connection.begin():
            self._hold_lock(connection)
            schema = self.engine.get_execution_options().get("schema_translate_map", {None: None})[None]
            if schema is not None:
                connection.execute(sql.schema.CreateSchema(schema, if_not_exists=True))
            if not sql.inspect(connection).has_table(META.name, schema=schema):
                METADATA.create_all(connection, checkfirst=False)
                if schema is not None:
                    for table, column in BYTES.items():
                        place = f'ALTER TABLE "{schema}".{table.name} ALTER COLUMN {column}'
                        # An erasure searches for the bytes, which it would not find compressed.
                        connection.exec_driver_sql(f"{place} SET STORAGE EXTERNAL")
                        connection.exec_driver_sql(f"{place} SET STATISTICS 0")
                meta = {"version": VERSION, "secret": secrets.token_hex(32)}
                rows = [{"key": key, "value": json.dumps(value)} for key, value in meta.items()]
                connection.execute(sql.insert(META), rows)
            else:
                METADATA.create_all(connection, tables=ADDED)
            version = int(connection.execute(sql.select(META.c.value).where(META.c.key == "version")).scalar_one())
            if version > VERSION:
                raise StoreError(f"the ledger has version {version}, this holue reads up to {VERSION}; upgrade holue")
            for number in range(version, VERSION):
                MIGRATIONS[number](connection)
            if version < VERSION:
                connection.execute(sql.update(META).where(META.c.key == "version").values(value=str(VERSION)))

    def _scrub(self, tables: Sequence[sql.Table], whole: bool) -> None:
        try:
            busy = self._rewrite_tables(tables) if self.on_server else self._empty_log(whole)
        except Exception as error:
            raise _explain(error) from error
        if busy:
            raise ErasureIncompleteError(
                f"{self.file}-wal cannot be emptied while a reader is in a transaction, so it may still hold erased data; "
                "erase again"
            )

    def _rewrite_tables(self, tables: Sequence[sql.Table]) -> bool:
        schema = self.engine.get_execution_options()["schema_translate_map"][None]
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            for table in tables:
                connection.exec_driver_sql(f'VACUUM (FULL) "{schema}".{table.name}')
        return False

    def _empty_log(self, whole: bool) -> bool:
        connection = self.engine.raw_connection()
        try:
            cursor = connection.cursor()
            if whole:
                cursor.execute("VACUUM")
            busy, _, _ = cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.close()
        return bool(busy)


MIGRATIONS: dict[int, Callable[[sql.Connection], None]] = {}
"""The step from each version of the layout to the next one."""


def _server_engine(address: Address) -> sql.Engine:
    from holue.store.postgres.server import CONNECT_SECONDS, driver

    psycopg = driver()
    given = {"connect_timeout": CONNECT_SECONDS, **psycopg.conninfo.conninfo_to_dict(address.database)}

    def connect() -> Any:
        connection = psycopg.connect(**given)
        if connection.execute("SHOW synchronous_commit").fetchone() == ("off",):
            connection.execute("SET synchronous_commit = on")
        connection.commit()
        return connection

    return sql.create_engine("postgresql+psycopg://", creator=connect, pool_pre_ping=True, pool_size=8)


def _direct(file: Path | None) -> sqlite3.Connection | None:
    """A connection for single questions that are asked one after the other, from any thread."""
    if file is None:
        return None
    return sqlite3.connect(file, timeout=0.1, isolation_level=None, check_same_thread=False)


def _prepare_sqlite(connection: Any, record: object) -> None:
    connection.isolation_level = None  # transactions are begun by _begin_sqlite
    pragmas = ("journal_mode = WAL", "synchronous = FULL", "secure_delete = ON", "temp_store = MEMORY")
    for pragma in (*pragmas, f"wal_autocheckpoint = {LOG_PAGES}"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: sql.Connection) -> None:
    driver: Any = connection.connection.driver_connection
    driver.execute("BEGIN IMMEDIATE" if connection.get_execution_options().get("writing") else "BEGIN")


def _explain(error: BaseException) -> BaseException:
    if isinstance(error, HolueError) or not isinstance(error, Exception):
        return error
    explained: StoreError
    what = " ".join(str(getattr(error, "orig", None) or error).split())
    if "malformed" in what or "not a database" in what:
        explained = CorruptStoreError(f"the ledger cannot be read ({what}); restore it from a backup")
    elif isinstance(error, OperationalError | sqlite3.OperationalError):
        explained = StoreUnavailableError(f"the ledger cannot be reached ({what}); try again")
    else:
        explained = StoreError(f"the ledger failed: {what}")
    explained.__cause__ = error
    return explained
