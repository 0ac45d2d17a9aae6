"""Chroma among the peers."""

from __future__ import annotations

from holue.bench.peers.peer import TOP, folder_bytes
from holue.bench.worlds.world import Float32Array


class Chroma:
    """A persistent collection; its index is HNSW, so that answers are approximate."""

    about = "Chroma, persistent client, HNSW (approximate); it syncs by itself"

    def __init__(self, place: str, dim: int) -> None:
        import chromadb
        from chromadb.config import Settings

        self.place = place
        self._client = chromadb.PersistentClient(place, Settings(anonymized_telemetry=False))
        self._most = self._client.get_max_batch_size()
        self._collection = self._client.get_or_create_collection(
            "gallery", configuration={"hnsw": {"space": "ip"}}, embedding_function=None
        )

    def enroll(self, ids: list[int], X: Float32Array) -> None:
        """Keep a batch, in calls as large as it takes."""
        for first in range(0, len(ids), self._most):
            part = slice(first, first + self._most)
            self._collection.add(ids=[str(number) for number in ids[part]], embeddings=X[part])

    def remove(self, ids: list[int]) -> None:
        """Take some out."""
        self._collection.delete(ids=[str(number) for number in ids])

    def ask(self, probes: Float32Array) -> list[list[int]]:
        """The nearest of each probe by inner product, best first."""
        found = self._collection.query(query_embeddings=probes, n_results=TOP, include=[])["ids"]
        return [[int(name) for name in names] for names in found]

    def size(self) -> int:
        """Bytes on disk."""
        return folder_bytes(self.place)

    def close(self) -> None:
        """It stays open as long as its process."""
