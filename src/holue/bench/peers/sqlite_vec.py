"""sqlite-vec among the peers."""

from __future__ import annotations

from pathlib import Path

from holue.bench.peers.peer import TOP, folder_bytes
from holue.bench.worlds.world import Float32Array


class SqliteVec:
    """A ``vec0`` table in SQLite, with the settings of holue's own database."""

    about = "sqlite-vec, `vec0` (exact); write-ahead log, `synchronous=FULL`"

    def __init__(self, place: str, dim: int) -> None:
        import apsw  # the standard library's SQLite may be built without extensions
        import sqlite_vec

        self.place = place
        Path(place).mkdir(exist_ok=True)
        self._database = apsw.Connection(str(Path(place, "gallery.db")))
        self._database.enable_load_extension(True)
        self._database.load_extension(sqlite_vec.loadable_path())
        self._database.pragma("journal_mode", "wal")
        self._database.pragma("synchronous", "full")
        columns = f"id INTEGER PRIMARY KEY, embedding float[{dim}] distance_metric=cosine"
        self._database.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS gallery USING vec0({columns})")

    def enroll(self, ids: list[int], X: Float32Array) -> None:
        """Keep a batch."""
        with self._database:
            rows = ((number, row.tobytes()) for number, row in zip(ids, X))
            self._database.executemany("INSERT INTO gallery (id, embedding) VALUES (?, ?)", rows)

    def remove(self, ids: list[int]) -> None:
        """Take some out."""
        with self._database:
            self._database.executemany("DELETE FROM gallery WHERE id = ?", ((number,) for number in ids))

    def ask(self, probes: Float32Array) -> list[list[int]]:
        """The nearest of each probe by cosine, best first."""
        sql = f"SELECT id FROM gallery WHERE embedding MATCH ? AND k = {TOP}"
        return [[row[0] for row in self._database.execute(sql, (probe.tobytes(),))] for probe in probes]

    def size(self) -> int:
        """Bytes on disk."""
        return folder_bytes(self.place)

    def close(self) -> None:
        """Let go of it; it can be opened again."""
        self._database.close()
