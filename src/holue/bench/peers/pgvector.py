"""PostgreSQL with pgvector among the peers, exact."""

from __future__ import annotations

from typing import Any

from holue.bench.peers.peer import TOP
from holue.bench.worlds.world import Float32Array


class Pgvector:
    """A table without an index, on a server of its own from the package pgserver; ``place`` is its URL."""

    about = "PostgreSQL and pgvector, no index (exact), binary COPY; `fsync=on`, `synchronous_commit=on`"

    def __init__(self, place: str, dim: int) -> None:
        import psycopg
        from pgvector.psycopg import register_vector

        self._server: Any = None
        if not place.startswith("postgresql://"):
            from pgserver.postgres_server import get_server

            self._server = get_server(place, cleanup_mode="delete")
        self.place = place if self._server is None else str(self._server.get_uri())
        self._connection = psycopg.connect(self.place, autocommit=True)
        self._connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        register_vector(self._connection)
        columns = f"id int8 PRIMARY KEY, embedding vector({dim})"
        self._connection.execute(f"CREATE TABLE IF NOT EXISTS gallery ({columns})")

    def enroll(self, ids: list[int], X: Float32Array) -> None:
        """Keep a batch."""
        with self._connection.cursor().copy("COPY gallery FROM STDIN WITH (FORMAT BINARY)") as copy:
            copy.set_types(["int8", "vector"])
            for row in zip(ids, X):
                copy.write_row(row)

    def remove(self, ids: list[int]) -> None:
        """Take some out."""
        self._connection.execute("DELETE FROM gallery WHERE id = ANY(%s)", [ids])

    def ask(self, probes: Float32Array) -> list[list[int]]:
        """The nearest of each probe by inner product, best first."""
        sql = f"SELECT id FROM gallery ORDER BY embedding <#> %s LIMIT {TOP}"
        return [[row[0] for row in self._connection.execute(sql, [probe], binary=True)] for probe in probes]

    def size(self) -> int:
        """Bytes on disk: of the table and its key, without the server's own files and log."""
        rows = self._connection.execute("SELECT pg_total_relation_size('gallery')").fetchall()
        return int(rows[0][0])

    def close(self) -> None:
        """Close the connection; a server that was started here is deleted."""
        self._connection.close()
        if self._server is not None:
            self._server.cleanup()
