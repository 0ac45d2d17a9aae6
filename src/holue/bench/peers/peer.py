"""Peer: a store of embeddings under measurement."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from holue.bench.worlds.world import Float32Array

TOP = 5
"""Nearest subjects that each is asked for."""


class Peer(Protocol):
    """Embeddings under integer ids, kept in a place; what returns is on disk."""

    place: str  # where to open it again
    about: str  # what it does, in words

    def enroll(self, ids: list[int], X: Float32Array) -> None:
        """Keep a batch."""

    def remove(self, ids: list[int]) -> None:
        """Take some out."""

    def ask(self, probes: Float32Array) -> list[list[int]]:
        """The nearest of each probe by cosine, best first."""

    def size(self) -> int:
        """Bytes on disk."""

    def close(self) -> None:
        """Let go of it; it can be opened again."""


def folder_bytes(folder: str) -> int:
    """The sizes of all files in a folder."""
    return sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
