"""LanceDB among the peers."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from holue.bench.peers.peer import TOP, folder_bytes
from holue.bench.worlds.world import Float32Array


class Lance:
    """A table without an index, so that the search is exact. It syncs nothing itself (see ``strace``); here its files are."""

    about = "LanceDB, no index (exact); its files synced after each change, which it does not do itself"

    def __init__(self, place: str, dim: int) -> None:
        import lancedb
        import pyarrow as pa

        self.place, self._dim, self._pa = place, dim, pa
        self._schema = pa.schema([("id", pa.int64()), ("vector", pa.list_(pa.float32(), dim))])
        self._table = lancedb.connect(place).create_table("gallery", schema=self._schema, exist_ok=True)
        self._synced: set[str] = set()
        self._sync()

    def enroll(self, ids: list[int], X: Float32Array) -> None:
        """Keep a batch."""
        pa = self._pa
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(X.ravel()), self._dim)
        self._table.add(pa.table({"id": pa.array(ids), "vector": vectors}, schema=self._schema))
        self._sync()

    def remove(self, ids: list[int]) -> None:
        """Take some out."""
        self._table.delete(f"id IN ({', '.join(map(str, ids))})")
        self._sync()

    def ask(self, probes: Float32Array) -> list[list[int]]:
        """The nearest of each probe by cosine, best first."""
        asked: Any = self._table.search(probes if len(probes) > 1 else probes[0])
        asked = asked.distance_type("dot").limit(TOP)
        found = asked.select(["id", "_distance"]).to_arrow()["id"].to_pylist()
        return [found[first : first + TOP] for first in range(0, len(found), TOP)]

    def size(self) -> int:
        """Bytes on disk."""
        return folder_bytes(self.place)

    def close(self) -> None:
        """Nothing is open."""

    def _sync(self) -> None:
        """Sync what is new, and the directories."""
        for path in Path(self.place).rglob("*"):
            name = str(path)
            if path.is_dir() or name not in self._synced:
                handle = os.open(path, os.O_RDONLY)
                os.fsync(handle)
                os.close(handle)
                self._synced.add(name)
