"""Strangers: probes of nobody enrolled, kept for a stated time and grouped by who seems to be the same person.

Off unless a time is given. Two probes are linked when their cosine reaches the threshold of the calibration in use; a group is
whatever links connect (single linkage). So the groups depend on the probes kept and the threshold alone, not on their order.
"""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sqlalchemy as sql

from holue.errors import InvalidParameterError, NotFoundError
from holue.gallery.embeddings import Embeddings
from holue.live.protection import Rotation, turned, turned_back
from holue.service.ledger.database import Database
from holue.service.ledger.parts import parts
from holue.service.ledger.tables import STRANGERS
from holue.store.values import Float32Array, Float64Array, Int64Array

MOST = 10_000
"""Strangers kept at a time; the oldest give way."""
COMPARED = 1000
"""Strangers that are compared with all before them in one product."""


@dataclass(frozen=True)
class StrangerGroup:
    """Probes that seem to show one person; its number is the smallest of theirs."""

    number: int
    members: tuple[int, ...]
    first_seen: float
    last_seen: float
    expires: float  # when the last of them is deleted


@dataclass(frozen=True, eq=False)
class KeptStrangers:
    """Some strangers as arrays."""

    numbers: Int64Array
    embeddings: Float32Array
    concentration: Float64Array | None  # where every one has it


class Strangers:
    """The strangers in a ledger; ``keep`` is the time in seconds, and None keeps nobody.

    >>> with Database.of_gallery(":memory:") as database:
    ...     strangers = Strangers(database, keep=86_400)
    ...     added = strangers.add([[1, 0], [0, 1], [0.9, 0.1]], request_id="r1", model=None)
    ...     [group.members for group in strangers.groups(0.8, model=None)]
    [(1, 3), (2,)]
    """

    def __init__(
        self,
        database: Database,
        *,
        keep: float | None = None,
        most: int = MOST,
        rotation: Rotation | None = None,
    ) -> None:
        if keep is not None and not 0 < keep < float("inf"):
            raise InvalidParameterError(
                f"keep must be a positive number of seconds, or None to keep nobody; got {keep!r}"
            )
        self._database, self._keep, self._most, self._rotation = database, keep, most, rotation
        self._links: dict[str | None, _Links] = {}
        self._lock = threading.Lock()

    def add(
        self,
        X: object,
        concentration: Sequence[float] | None = None,
        *,
        request_id: str | Sequence[str],
        model: str | None,
        now: float | None = None,
    ) -> list[int]:
        """Keep probes of nobody enrolled, of one request or each of its own; their numbers.

        Does nothing where strangers are not kept.
        """
        vectors = turned(np.asarray(X, "<f4"), self._rotation)
        if self._keep is None or not len(vectors):
            return []
        time = clock.time() if now is None else now
        kappa = [None] * len(vectors) if concentration is None else [float(one) for one in concentration]
        requests = [request_id] * len(vectors) if isinstance(request_id, str) else request_id
        rows = [
            {
                "embedding": vector.tobytes(), "concentration": one, "seen": time, "expires": time + self._keep,
                "model": model, "request_id": asked,
            }
            for vector, one, asked in zip(vectors, kappa, requests)
        ]  # fmt: skip

        def insert(connection: sql.Connection) -> list[int]:
            made = sql.insert(STRANGERS).returning(STRANGERS.c.number, sort_by_parameter_order=True)
            numbers = [int(number) for number in connection.execute(made, rows).scalars()]
            newest = sql.select(STRANGERS.c.number).order_by(STRANGERS.c.number.desc()).offset(self._most).limit(1)
            last = connection.execute(newest).scalars().first()
            if last is not None:
                connection.execute(sql.delete(STRANGERS).where(STRANGERS.c.number <= last))
            return numbers

        return self._database.writing(insert)

    def groups(self, threshold: float, *, model: str | None, now: float | None = None) -> list[StrangerGroup]:
        """Who seems to have come, the largest group first; strangers whose time has come are left out."""
        time = clock.time() if now is None else now
        kept = STRANGERS.c.expires > time, _of_model(model)
        query = sql.select(STRANGERS.c.number, STRANGERS.c.seen, STRANGERS.c.expires).where(*kept)
        with self._lock, self._database.reading() as connection:
            times = {row.number: (row.seen, row.expires) for row in connection.execute(query)}
            links = self._links.get(model)
            if links is None or links.threshold != threshold or not links.numbers() <= times.keys():
                links = self._links[model] = _Links(threshold)
            new = sorted(times.keys() - links.numbers())
            if new:
                links.add(_read(connection, new))
        groups = [
            StrangerGroup(
                members[0], members, min(times[one][0] for one in members), max(times[one][0] for one in members),
                max(times[one][1] for one in members),
            )
            for members in links.groups()
        ]  # fmt: skip
        return sorted(groups, key=lambda group: (-len(group.members), group.number))

    def read(self, numbers: Iterable[int]) -> KeptStrangers:
        """Some strangers, to enrol them or to look at them."""
        wanted = sorted(set(numbers))
        with self._database.reading() as connection:
            found = _read(connection, wanted)
        if len(found.numbers) != len(wanted):
            gone = sorted(set(wanted) - set(found.numbers.tolist()))
            raise NotFoundError(f"strangers {gone} are no longer kept; list the groups again")
        return replace(found, embeddings=turned_back(found.embeddings, self._rotation)) if wanted else found

    def remove(self, numbers: Iterable[int]) -> int:
        """Strangers are no longer kept, for instance because they were enrolled; returns how many went."""
        wanted = sorted(set(numbers))
        return self._delete(STRANGERS.c.number.in_(wanted))

    def purge(self, *, now: float | None = None) -> int:
        """Delete the strangers whose time has come; returns how many went."""
        return self._delete(STRANGERS.c.expires <= (clock.time() if now is None else now))

    def _delete(self, where: sql.ColumnElement[bool]) -> int:
        gone = self._database.writing(
            lambda connection: connection.execute(sql.delete(STRANGERS).where(where)).rowcount
        )
        with self._lock:
            self._links.clear()  # it holds their embeddings
        if gone:
            self._database.scrub([STRANGERS])
        return int(gone)


def erase_embeddings(connection: sql.Connection, embeddings: Sequence[bytes]) -> int:
    """Delete strangers with exactly these bytes: probes of somebody who was enrolled since."""
    return sum(
        connection.execute(sql.delete(STRANGERS).where(STRANGERS.c.embedding.in_(some))).rowcount
        for some in parts(embeddings)
    )


class _Links:
    """Who is linked to whom, kept up as strangers come: each is compared once with all before it."""

    def __init__(self, threshold: float) -> None:
        self.threshold = threshold
        self._parent: dict[int, int] = {}
        self._directions: list[Float32Array] = []
        self._order: list[int] = []

    def numbers(self) -> set[int]:
        return set(self._parent)

    def add(self, new: KeptStrangers) -> None:
        directions = np.asarray(Embeddings.from_samples(new.embeddings).directions, np.float32)
        for first in range(0, len(directions), COMPARED):
            block = directions[first : first + COMPARED]
            numbers = new.numbers[first : first + COMPARED].tolist()
            self._directions.append(block)
            self._order += numbers
            self._parent |= {number: number for number in numbers}
            everybody = np.concatenate(self._directions)
            for row, column in np.argwhere(block @ everybody.T >= self.threshold):
                self._join(numbers[row], self._order[column])

    def groups(self) -> list[tuple[int, ...]]:
        found: dict[int, list[int]] = {}
        for number in sorted(self._parent):
            found.setdefault(self._root(number), []).append(number)
        return [tuple(members) for members in found.values()]

    def _root(self, number: int) -> int:
        while self._parent[number] != number:
            self._parent[number] = self._parent[self._parent[number]]
            number = self._parent[number]
        return number

    def _join(self, one: int, other: int) -> None:
        first, second = sorted((self._root(one), self._root(other)))
        self._parent[second] = first


def _read(connection: sql.Connection, numbers: Sequence[int]) -> KeptStrangers:
    rows = [
        row
        for some in parts(numbers)
        for row in connection.execute(
            sql.select(STRANGERS.c.number, STRANGERS.c.embedding, STRANGERS.c.concentration)
            .where(STRANGERS.c.number.in_(some))
            .order_by(STRANGERS.c.number)
        )
    ]
    kappa = [row.concentration for row in rows]
    vectors = [np.frombuffer(row.embedding, "<f4").astype(np.float32) for row in rows]
    return KeptStrangers(
        np.array([row.number for row in rows], np.int64),
        np.stack(vectors) if vectors else np.empty((0, 0), np.float32),
        None if not rows or None in kappa else np.array(kappa, np.float64),
    )


def _of_model(model: str | None) -> sql.ColumnElement[bool]:
    return STRANGERS.c.model.is_(None) if model is None else STRANGERS.c.model == model
