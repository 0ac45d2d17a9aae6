"""holue among the peers: the living gallery, with its whole answer."""

from __future__ import annotations

from pathlib import Path

import holue
from holue.bench.peers.peer import TOP, folder_bytes
from holue.bench.worlds.world import Float32Array


class Living:
    """A directory of ``holue.open``; an answer has decision, probabilities and reason beside the nearest."""

    about = "`holue.open`, exact, the whole answer; each change synced"

    def __init__(self, place: str, dim: int) -> None:
        self.place = place
        self._gallery = holue.open(place, create=True, dim=dim, method="galue", threshold=0.5, threads=1)

    def enroll(self, ids: list[int], X: Float32Array) -> None:
        """Keep a batch."""
        self._gallery.enroll(X, ids)

    def remove(self, ids: list[int]) -> None:
        """Take some out."""
        self._gallery.remove(ids)

    def ask(self, probes: Float32Array) -> list[list[int]]:
        """The nearest of each probe by cosine, best first."""
        found: list[list[int]] = self._gallery.identify(probes, top_k=TOP).candidate_subjects.tolist()
        return found

    def size(self) -> int:
        """Bytes on disk."""
        return folder_bytes(self.place)

    def templates(self) -> int:
        """Bytes of the kept templates, which can be made again from the samples."""
        return folder_bytes(str(Path(self.place, "derived")))

    def close(self) -> None:
        """Let go of it; it can be opened again."""
        self._gallery.close()
