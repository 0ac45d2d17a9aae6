"""Measures: how good the photographs of samples are (size, pose, sharpness, detector score); erased with their subject."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import sqlalchemy as sql

from holue.service.ledger.database import Database
from holue.service.ledger.parts import parts
from holue.service.ledger.tables import MEASURES


class Measures:
    """The measures of samples in a ledger, by the numbers of the samples.

    >>> with Database.of_gallery(":memory:") as database:
    ...     measures = Measures(database)
    ...     measures.put({7: {"size": 84.0, "yaw": -3.5}})
    ...     measures.of([7, 8])
    {7: {'size': 84.0, 'yaw': -3.5}}
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, measured: Mapping[int, Mapping[str, float]]) -> None:
        """Keep the measures of new samples."""
        if not measured:
            return
        rows = [
            {"sample": number, "measures": json.dumps(dict(found), allow_nan=False)}
            for number, found in measured.items()
        ]

        def keep(connection: sql.Connection) -> None:
            delete_measures(connection, list(measured))
            connection.execute(sql.insert(MEASURES), rows)

        self._database.writing(keep)

    def of(self, samples: Sequence[int]) -> dict[int, dict[str, float]]:
        """What is known of some samples."""
        found: dict[int, dict[str, float]] = {}
        with self._database.reading() as connection:
            for some in parts(samples):
                query = sql.select(MEASURES).where(MEASURES.c.sample.in_(some))
                found |= {row.sample: json.loads(row.measures) for row in connection.execute(query)}
        return found


def delete_measures(connection: sql.Connection, samples: Sequence[int]) -> None:
    """The measures of some samples go."""
    for some in parts(samples):
        connection.execute(sql.delete(MEASURES).where(MEASURES.c.sample.in_(some)))
