"""ShardActor: a shard in a process of its own on a node of Ray; every call is answered in the order it came in."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from holue.artifact.cache_directory import default_cache_directory
from holue.cluster.engine import ray
from holue.cluster.shards.message import Message
from holue.cluster.shards.packed import unpacked, whole
from holue.cluster.shards.shard import Shard
from holue.cluster.shards.shard_file import ShardFile
from holue.evidence.link import cosine_link, power_link
from holue.evidence.scan import scan
from holue.gallery.gallery import Gallery
from holue.recognition.search.search import SearchKind


class ShardActor:
    """What Ray starts; it starts it again where the process dies, and the shard reads its file then."""

    def __init__(self, identity: str, shard: int, cache: str | None = None, threads: int = 1) -> None:
        self._limits = threadpool_limits(1)  # of numpy; a scan brings its own threads
        self._node = str(ray().get_runtime_context().get_node_id())
        home = default_cache_directory() if cache is None else Path(cache)
        self._file = ShardFile(home / "shards" / identity, f"{shard}-{self._node}")
        self._shard, self._number = Shard(self._file, threads), shard
        self._questions = 0
        _load_kernels()

    def about(self) -> dict[str, Any]:
        """Where it runs and what it holds."""
        return {
            "shard": self._number, "node": self._node, "pid": os.getpid(), "versions": list(self._shard.known),
            "subjects": self._shard.rows_held(), "questions": self._questions,
        }  # fmt: skip

    def receive(self, message: Message) -> tuple[str, ...]:
        """Take a piece of a step to another version."""
        return self._shard.receive(message)

    def prepare(self, version: str, kind: SearchKind) -> bool:
        """Make what a kind of search reads."""
        return self._shard.prepare(version, kind)

    def scan(self, *question: bytes) -> bytes:
        """Evidence of a version about some probes, or which versions are here; packed, as the question is."""
        self._questions += 1
        version, kind, probes, sharpness, top_k, link, decisive = unpacked(question)
        # Where the asker may not write to its probes, neither may we, and every loop would be compiled once more for that.
        own = np.require(probes, requirements="W")
        return whole(self._shard.scan(version, kind, own, sharpness, top_k, link, decisive))

    def rows(self, *question: bytes) -> bytes:
        """Directions of a version, or which versions are here."""
        return whole(self._shard.rows(*unpacked(question)))

    def report(self, *question: bytes) -> bytes:
        """How a version is read, or which versions are here."""
        return whole(self._shard.report(*unpacked(question)))

    def leave(self) -> None:
        """Delete the rows from this node's disk, before the process ends."""
        self._file.delete()


def _load_kernels() -> None:
    """Compiled code is read from its cache when it is first called; no question should wait for that."""
    rows = np.eye(16, dtype=np.float32)
    mapped = rows[:8].copy()
    mapped.setflags(write=False)  # loops over rows that may not be written to are compiled by themselves
    gallery = Gallery.of(np.arange(16), mapped, rows[8:]).without(np.array([3]))
    for n_probes, dtype in product((1, 96), (np.float32, np.float64)):
        probes = np.tile(rows[:1], (n_probes, 1)).astype(dtype)
        for link in (cosine_link, power_link):
            scan(probes, gallery, [1.0, 2.0], top_k=2, link=link, threads=1)
