"""PostgresStore: the home of a gallery in PostgreSQL, which several processes write and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self, TypeVar

from holue.errors import InvalidParameterError, StoreError, StoreUnavailableError
from holue.store.edit import Edit
from holue.store.postgres import schema
from holue.store.postgres.address import Address
from holue.store.postgres.listener import Listener
from holue.store.postgres.local.folder import Derived
from holue.store.postgres.local.replica import Replica
from holue.store.postgres.server import Server
from holue.store.postgres.upkeep import erasure, maintenance, moving, verification
from holue.store.sqlite.home import DERIVED, Home
from holue.store.sqlite.reader import Reader
from holue.store.sqlite.reading import read_status
from holue.store.sqlite.tables import Tables
from holue.store.values import Problem, Receipt, Status
from holue.store.verbs import Verbs

T = TypeVar("T")


class PostgresStore(Reader, Verbs):
    """Made by :meth:`create` and :meth:`open` from a URL like ``postgresql://user@host/database?gallery=door``.

    Reads are answered from a local copy that follows the server's change log; a change of our own can be read at once,
    one of another process as soon as the server has told of it (:meth:`wait`, :meth:`refresh`).
    """

    def __init__(self, address: Address) -> None:
        self.address = address
        self._bytes = 0
        self._listener: Listener | None = None
        self._replica: Replica | None = Replica(address)
        self.dim, self.model = self._replica.dim, self._replica.model
        self._queue = self._replica.queue
        try:
            erasure.complete(self._replica)
        except BaseException:
            self.close()
            raise
        self._listener = Listener(address, self._replica)

    @classmethod
    def create(cls, url: str, *, dim: int, model: str | None = None) -> Self:
        """A new gallery; ``dim`` and ``model`` (the fingerprint of the embedding model) hold for its whole life."""
        address = Address.parse(url)
        if dim < 1:
            raise InvalidParameterError(f"dim must be at least 1, got {dim}")
        server = Server(address)
        try:
            with server.explaining("creating"):
                schema.create(server, dim, model)
        finally:
            server.close()
        return cls(address)

    @classmethod
    def exists(cls, url: str) -> bool:
        """Whether the server has a gallery of that name."""
        server = Server(Address.parse(url))
        try:
            with server.explaining("opening"):
                return schema.exists(server)
        finally:
            server.close()

    @classmethod
    def open(cls, url: str, *, dim: int | None = None, model: str | None = None) -> Self:
        """Open a gallery: copy it to this machine, or bring the copy up to date that a URL with ``copy=keep`` has kept."""
        store = cls(Address.parse(url))
        for field, given, kept in (("dim", dim, store.dim), ("model", model, store.model)):
            if given is not None and given != kept:
                store.close()
                raise InvalidParameterError(
                    f"gallery {store.address.gallery!r} was created with {field}={kept!r}, asked for {given!r}"
                )
        return store

    @classmethod
    def restore(cls, source: str, url: str) -> Self:
        """A new gallery from what :meth:`snapshot` returned, from another gallery, or from a directory; the source stays."""
        moving.restore(source, url)
        return cls(Address.parse(url))

    def close(self) -> None:
        """Close the connections and delete the local copy, or keep it where the URL says ``copy=keep``."""
        if self._listener is not None:
            self._listener.stop()
            self._listener = None
        if self._replica is not None:
            self._replica.close()
            self._replica = None

    # Following

    def refresh(self) -> int:
        """Ask the server for changes now; returns the version reached."""
        return self._open().refresh()

    def wait(self, after: int, timeout: float | None = None) -> int:
        """Return once there is a version later than ``after``, or when the time is over; the newest version."""
        replica = self._open()
        with replica.news:
            replica.news.wait_for(lambda: replica.copy.version > after, timeout)
        return replica.copy.version

    @property
    def age(self) -> float:
        """Seconds since the local copy was known to be current: a few at most while the server is there."""
        return self._open().age

    @property
    def derived(self) -> Derived | None:
        """Where others keep what they make from the samples, if the local copy is kept."""
        return Derived(self._open().copy.path / DERIVED) if self.address.keep_copy else None

    def status(self) -> Status:
        """The store in numbers; ``bytes`` are the server's, as far as it was asked last."""
        replica = self._open()
        try:
            self._bytes = self._queue.alone(lambda: schema.size(replica.server))
        except StoreUnavailableError:
            replica.server.close()
        return self._read(lambda home: read_status(home, self._bytes, replica.copy.snapshots, replica.age))

    def verify(self) -> list[Problem]:
        """Read every row on the server, and every byte of the local copy, and compare checksums."""
        replica = self._open()
        server = Server(self.address)
        try:
            with server.explaining("verifying"):
                found = verification.damage_on_server(server)
        finally:
            server.close()
        return [*found, *self._queue.alone(lambda: verification.damage_of_copy(replica.copy.path))]

    # Writing beside the verbs

    def snapshot(self, name: str | None = None, *, by: str | None = None) -> str:
        """A copy of the gallery as it is now, in a schema of its own; returns its URL. Writing may go on meanwhile."""
        chosen = name or f"version-{self.refresh()}"
        with maintenance.maintaining(self.address) as server:
            url = maintenance.take_snapshot(server, chosen)
        self._log("snapshot", by, {"name": chosen})
        self.refresh()
        return url

    def compact(self, *, forget_before: int | None = None, by: str | None = None) -> None:
        """Let the server reuse space and merge small segments of the copy; with ``forget_before`` also drop older versions."""
        replica = self._open()

        def forget() -> None:
            tables = replica.copy.home.tables
            newest, oldest = tables.last_version(), tables.oldest_version()
            if forget_before is not None:
                if not oldest <= forget_before <= newest:
                    raise InvalidParameterError(
                        f"forget_before must be a version from {oldest} to {newest}, got {forget_before}"
                    )
                maintenance.forget_before(replica.server, forget_before)
            replica.copy.home.log("compact", by, {"forget_before": forget_before})

        with maintenance.maintaining(self.address) as server:
            self._queue.submit(forget)
            maintenance.vacuum(server)
        self._queue.alone(lambda: replica.copy.compact(forget_before))

    def _erase(self, numbers: Sequence[int], by: str | None) -> Receipt:
        return erasure.erase(self._open(), list(numbers), by)

    @property
    def _state(self) -> Tables:
        return self._open().copy.home.tables

    def _apply(self, edit: Edit) -> int:
        return self._open().apply(edit)

    def _artifact_digest(self, name: str) -> str | None:
        return self._open().copy.home.artifact_digest(name)

    def _write_artifact(self, name: str, data: bytes, by: str | None) -> None:
        replica = self._open()
        replica.copy.home.put_artifact(name, data, by)
        replica.stage("artifact", name)

    def _read(self, question: Callable[[Home], T]) -> T:
        return self._open().copy.read(question)

    def _open(self) -> Replica:
        if self._replica is None:
            raise StoreError(f"gallery {self.address.gallery!r} is closed; open it again")
        return self._replica

    def _log(self, verb: str, by: str | None, detail: dict[str, object]) -> None:
        replica = self._open()
        self._queue.submit(lambda: replica.copy.home.log(verb, by, detail))
