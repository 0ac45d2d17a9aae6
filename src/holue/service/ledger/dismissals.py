"""Dismissals: findings of an audit that somebody looked at and left as they are, so that they are not asked again."""

from __future__ import annotations

import time as clock
from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sql

from holue.service.ledger.database import Database
from holue.service.ledger.tables import DISMISSED


@dataclass(frozen=True, order=True)
class Finding:
    """A kind of finding and the numbers it is about: two subjects, or a sample and a subject."""

    kind: str
    first: int
    second: int


class Dismissals:
    """The dismissed findings in a ledger.

    >>> with Database.of_gallery(":memory:") as database:
    ...     dismissals = Dismissals(database)
    ...     dismissals.add(Finding("duplicate", 1, 2), by="ann")
    ...     before = len(dismissals.all())
    ...     dismissals.remove(Finding("duplicate", 1, 2))
    ...     before, len(dismissals.all())
    (1, 0)
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, finding: Finding, *, by: str, now: float | None = None) -> None:
        """Remember that a finding is no fault."""
        row = {**vars(finding), "time": clock.time() if now is None else now, "actor": by}

        def keep(connection: sql.Connection) -> None:
            connection.execute(sql.delete(DISMISSED).where(*_is(finding)))
            connection.execute(sql.insert(DISMISSED), [row])

        self._database.writing(keep)

    def remove(self, finding: Finding) -> None:
        """Ask about a finding again."""
        self._database.writing(lambda connection: connection.execute(sql.delete(DISMISSED).where(*_is(finding))))

    def all(self) -> set[Finding]:
        """All of them."""
        query = sql.select(DISMISSED.c.kind, DISMISSED.c.first, DISMISSED.c.second)
        with self._database.reading() as connection:
            return {Finding(*row) for row in connection.execute(query)}


def forget_subjects(connection: sql.Connection, numbers: Sequence[int]) -> None:
    """Dismissals about erased subjects go."""
    about = DISMISSED.c.first.in_(numbers) | DISMISSED.c.second.in_(numbers)
    connection.execute(sql.delete(DISMISSED).where(about))


def _is(finding: Finding) -> tuple[sql.ColumnElement[bool], ...]:
    return (
        DISMISSED.c.kind == finding.kind,
        DISMISSED.c.first == finding.first,
        DISMISSED.c.second == finding.second,
    )
