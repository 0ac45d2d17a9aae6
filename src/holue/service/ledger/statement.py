"""Statement: an SQL statement that is compiled once; compiling it again would cost more than most of them take."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sql


class Statement:
    """A statement for the connections of one engine; its parameters are those that it names.

    >>> engine = sql.create_engine("sqlite://")
    >>> with engine.connect() as connection:
    ...     Statement(engine, sql.select(sql.bindparam("a", type_=sql.Integer))).rows(connection, {"a": 2})
    [(2,)]
    """

    def __init__(self, engine: sql.Engine, statement: sql.Executable) -> None:
        schemas = engine.get_execution_options().get("schema_translate_map")
        compiled: Any = statement.compile(  # type: ignore[attr-defined]
            dialect=engine.dialect,
            **({"schema_translate_map": schemas, "render_schema_translate": True} if schemas else {}),
        )
        self.text = str(compiled)
        self._places: list[str] | None = list(compiled.positiontup) if compiled.positional else None

    def values(self, given: Mapping[str, Any]) -> Any:
        """Parameters as the driver takes them."""
        return given if self._places is None else tuple(given[name] for name in self._places)

    def rows(self, connection: sql.Connection, given: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """What it finds."""
        driver = _driver(connection)
        if driver is not None:
            return driver.execute(self.text, self.values(given)).fetchall()
        return [tuple(row) for row in connection.exec_driver_sql(self.text, self.values(given))]

    def run(self, connection: sql.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute it for each row."""
        driver, values = _driver(connection), [self.values(row) for row in rows]
        if driver is not None:
            driver.executemany(self.text, values)
        else:
            connection.exec_driver_sql(self.text, values)


def _driver(connection: sql.Connection) -> sqlite3.Connection | None:
    """The driver's own connection where that is SQLite's, which answers faster than SQLAlchemy can ask."""
    found = connection.connection.driver_connection
    return found if isinstance(found, sqlite3.Connection) else None
