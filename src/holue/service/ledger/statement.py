"""Statement: an SQL statement that is compiled once; compiling it again would cost more than most of them take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sql


class Statement:
    """A statement for the connections of one engine; its parameters are those that it names.

    >>> engine = sql.create_engine("sqlite://")
    >>> with engine.connect() as connection:
    ...     Statement(engine, sql.select(sql.bindparam("a", type_=sql.Integer) + 1)).run(connection, {"a": 2}).scalar()
    3
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

    def run(self, connection: sql.Connection, given: Mapping[str, Any] | None = None) -> sql.CursorResult[Any]:
        """Execute it once."""
        return connection.exec_driver_sql(self.text, None if given is None else self.values(given))

    def run_all(self, connection: sql.Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Execute it for each row."""
        connection.exec_driver_sql(self.text, [self.values(row) for row in rows])
