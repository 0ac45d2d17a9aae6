"""Replica: the server and this process's copy of it, kept in step: transactions go to both, changes of others are followed.

A change is worked out on the copy, which is brought up to date under the server's lock first; what it wrote there goes to the
server, and only once the server has committed is the copy committed too.
"""

from __future__ import annotations

import threading
import time as clock
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from holue.errors import StoreError, StoreUnavailableError
from holue.store.commit import CommitQueue
from holue.store.edit import Edit
from holue.store.postgres import schema
from holue.store.postgres.address import Address
from holue.store.postgres.local.copy import LocalCopy
from holue.store.postgres.local.delta import CopySide, ServerSide, carry
from holue.store.postgres.local.folder import Seen
from holue.store.postgres.schema import COLUMNS, TYPES
from holue.store.postgres.server import Server, driver
from holue.store.sqlite.files.block import row_checksums

SETTLE_SECONDS = 20.0
"""A connection lost during a commit is opened again for so long, to learn what became of the commit."""

WORTH_A_THREAD = 1 << 20
"""Batches of so many bytes are sent to the server while the copy is written; smaller ones before."""


class Replica:
    """One process's view of a gallery; ``queue`` serialises everything that writes to the copy."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.server = Server(address)
        with self.server.explaining("opening"):
            schema.require(self.server)
            meta = schema.read_meta(self.server)
        if meta["format"] > schema.FORMAT_VERSION:
            raise StoreError(
                f"gallery {address.gallery!r} has format version {meta['format']}, this holue reads up to "
                f"{schema.FORMAT_VERSION}; upgrade holue"
            )
        self.dim: int = meta["dim"]
        self.model: str | None = meta["model"]
        self.copy = LocalCopy.prepare(meta, keep=address.keep_copy)
        self.queue = CommitQueue(self._begin, self._commit, self._roll_back, self._explain)
        self.news = threading.Condition()
        self._current_at = clock.monotonic()
        self._fill()

    @property
    def age(self) -> float:
        """Seconds since the copy was known to be current."""
        return clock.monotonic() - self._current_at

    def refresh(self) -> int:
        """Follow the server now; returns the version reached."""
        return self.queue.alone(self._refresh)

    def apply(self, edit: Edit) -> int:
        """Write an edit to the copy; the commit takes it to the server."""
        if edit.batch is None:
            return self.copy.home.apply(edit)
        first = self.copy.home.tables.next_numbers()[1]
        if edit.batch.rows.nbytes < WORTH_A_THREAD:
            _upload_embeddings(self.server, first, edit)
            return self.copy.home.apply(edit)
        with ThreadPoolExecutor(1) as sender:  # the server takes the rows while the copy is written
            sent = sender.submit(_upload_embeddings, self.server, first, edit)
            version = self.copy.home.apply(edit)
            sent.result()
        return version

    def stage(self, table: str, key: Any) -> None:
        """The transaction under way has written this artifact or receipt."""
        self._written.append((table, key))

    def close(self) -> None:
        """Close the connection; the copy is deleted, or kept where the URL asks for it."""

        def close() -> None:
            self.server.close()
            self.copy.close(keep=self.address.keep_copy)

        self.queue.alone(close)

    # Following

    def _refresh(self) -> int:
        for attempt in (1, 2):
            try:
                with self.server.reading():
                    self._follow()
                return self.copy.version
            except Exception as error:
                self.server.roll_back()
                if attempt == 2 or not self._lost(error):
                    raise self.server.explain("following the server", error) from error
        raise AssertionError

    def _follow(self) -> None:
        """Follow inside a transaction on the server."""
        head = schema.read_head(self.server, self.copy.seen.edit)
        if self.copy.cannot_follow(head):
            fresh = LocalCopy.empty(schema.read_meta(self.server), keep=self.address.keep_copy)
            fresh.follow(self.server, head)
            self.copy, old = fresh, self.copy
            old.close(keep=False)
        else:
            self.copy.follow(self.server, head)
        self._is_current()

    def _fill(self) -> None:
        try:
            self.refresh()
        except BaseException:
            self.close()
            raise

    def _is_current(self) -> None:
        with self.news:
            self._current_at = clock.monotonic()
            self.news.notify_all()

    # Transactions

    def _begin(self) -> None:
        self._written: list[tuple[str, Any]] = []
        for attempt in (1, 2):
            try:
                self.server.run("BEGIN")
                self.server.run("SELECT 1 FROM head FOR UPDATE")
                break
            except Exception as error:  # nothing was sent yet: a lost connection may be opened again
                self.server.roll_back()
                if attempt == 2 or not self._lost(error):
                    raise
        self._follow()
        self._edit = self.copy.seen.edit + 1
        self.copy.begin()
        self._before = self.copy.version
        self._logged = self._last_operation()

    def _commit(self) -> None:
        version = self.copy.home.tables.last_version()
        if version == self._before and not self._written and self._last_operation() == self._logged:
            self.server.roll_back()
            self.copy.roll_back()
            return
        token = uuid.uuid4().hex
        self._upload(version, token)
        try:
            self.server.run("COMMIT")
        except Exception as error:
            self._settle(token, error)
        try:
            self.copy.commit()
        except Exception as error:
            raise StoreError(
                f"the change is made and version {version} is on the server, but the local copy cannot be written ({error}); "
                "free space in the temporary directory; the copy catches up by itself"
            ) from error
        self.copy.seen = Seen(version, self._edit, token)
        self._is_current()

    def _upload(self, version: int, token: str) -> None:
        database, server = self.copy.home.database, self.server
        if version > self._before:
            carry(CopySide(database), ServerSide(server), self._before)
        operations = database.run(
            f"SELECT {COLUMNS['operation']} FROM operation WHERE number > ? ORDER BY number", [self._logged]
        )
        if operations:
            ServerSide(server).insert("operation", operations)
        for table, key in dict.fromkeys(self._written):
            column, columns = (
                ("name", "name, sha256, time, crc, data") if table == "artifact" else ("number", "number, content, crc")
            )
            row = database.run(f"SELECT {columns} FROM {table} WHERE {column} = ?", [key])[0]
            server.run(f"DELETE FROM {table} WHERE {column} = %s", [key])
            ServerSide(server).insert(table, [(*row, self._edit)])
        server.run(
            """WITH told AS (INSERT INTO edit VALUES (%s, %s)), done AS (UPDATE head SET edit = %s, version = %s)
              SELECT pg_notify(%s, %s)""",
            [self._edit, token, self._edit, version, self.address.channel, str(self._edit)],
        )

    def _settle(self, token: str, error: Exception) -> None:
        """Find out what became of a commit whose connection was lost; return if it was made."""
        until = clock.monotonic() + SETTLE_SECONDS
        while self._lost(error):
            self.server.close()
            try:
                # Whoever has the lock knows that the lost transaction has ended, one way or the other.
                self.server.run("BEGIN")
                self.server.run("SELECT 1 FROM head FOR UPDATE")
                made = self.server.one("SELECT token FROM edit WHERE number = %s", [self._edit]) == token
                self.server.run("ROLLBACK")
            except Exception as again:
                if clock.monotonic() > until:
                    raise StoreUnavailableError(
                        "the connection was lost during the commit and the server did not come back: it is not known "
                        f"whether the change (version {self.copy.home.tables.last_version()}) was made; look before you repeat it"
                    ) from again
                clock.sleep(0.2)
                continue
            if made:
                return
            break
        raise error

    def _roll_back(self) -> None:
        self.server.roll_back()
        self.copy.roll_back()

    def _last_operation(self) -> int:
        last: int = self.copy.home.database.one("SELECT coalesce(max(number), 0) FROM operation")
        return last

    def _lost(self, error: BaseException) -> bool:
        psycopg = driver()
        lost = isinstance(error, StoreUnavailableError | psycopg.OperationalError | psycopg.InterfaceError)
        return lost and not isinstance(error, psycopg.errors.LockNotAvailable)

    def _explain(self, error: BaseException) -> BaseException:
        explained = self.server.explain("writing", error)
        if isinstance(explained, StoreUnavailableError):
            explained.args = (f"{explained}; the copy was current {self.age:.1f} s ago",)
        return explained


def _upload_embeddings(server: Server, first: int, edit: Edit) -> None:
    batch = edit.batch
    assert batch is not None
    n = len(batch)
    columns = [
        np.arange(first, first + n), edit.owners, batch.time, batch.concentration, batch.medium, [batch.enrolled_by] * n,
        row_checksums(batch.rows), batch.rows,
    ]  # fmt: skip
    server.insert("embedding", COLUMNS["embedding"], TYPES["embedding"], columns)
