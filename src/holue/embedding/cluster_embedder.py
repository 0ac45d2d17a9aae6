"""ClusterEmbedder: samples embedded on the nodes of a Ray cluster, as a Ray Data pipeline.

Every node finds the samples itself, at the same paths, so that only embeddings travel. Ray Data starts up to one worker for each
processor, gives each the next chunk when it is free, and holds them back where finished chunks wait to be taken. Chunks and
batches are those of one machine, and so are the bits. Finished chunks are kept by the process that asks: interrupted work
continues where it stopped.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from holue.cluster.engine import connect, disconnect, ray
from holue.cluster.local_ray import LOCAL, LocalRay
from holue.cluster.nodes import nodes
from holue.embedding.inputs.samples import Sample, find_samples
from holue.embedding.models.chunk_cache import Arrays, ChunkCache
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.errors import InvalidEmbeddingsError, InvalidFileError, InvalidParameterError, MissingDependencyError
from holue.progress import Progress


@dataclass(frozen=True, eq=False)
class ClusterEmbedder:
    """The embedder of this process, which knows the chunks and keeps them, and the address of a Ray cluster."""

    embedder: OnnxEmbedder
    address: str

    def embed(
        self, inputs: Sequence[Path], samples: Sequence[Sample], *, progress: Progress | None = None
    ) -> EmbeddingFile:
        """Embed the samples that were found in ``inputs``, in their order."""
        starts = range(0, len(samples), self.embedder.chunk_size)
        known: dict[int, Arrays] = {}
        for start in starts:
            kept = None if self.embedder.cache is None else self.embedder.cache.get(self._key(samples, start))
            if kept is not None:
                known[start] = kept
        done = sum(len(self._chunk(samples, start)) for start in known)
        missing = [start for start in starts if start not in known]
        for start, arrays in self._streamed(inputs, samples, missing) if missing else ():
            known[start] = arrays
            if self.embedder.cache is not None:
                self.embedder.cache.put(self._key(samples, start), arrays)
            done += len(arrays["embeddings"])
            if progress is not None:
                progress(done, len(samples), samples[start].sample_id)
        return self.embedder.as_file(samples, [known[start] for start in starts])

    def _chunk(self, samples: Sequence[Sample], start: int) -> Sequence[Sample]:
        return samples[start : start + self.embedder.chunk_size]

    def _key(self, samples: Sequence[Sample], start: int) -> str:
        """What names a chunk here: its files as they are, unread."""
        wanted = f"features={self.embedder.specification.features} batch={self.embedder.batch_size}"
        return ChunkCache.key([self.embedder.fingerprint, wanted, *map(_stamp, self._chunk(samples, start))])

    def _streamed(
        self, inputs: Sequence[Path], samples: Sequence[Sample], starts: Sequence[int]
    ) -> Iterator[tuple[int, Arrays]]:
        """Chunks as they are finished, in any order."""
        engine = ray()
        own = LocalRay() if self.address == LOCAL and not engine.is_initialized() else None
        joined = own is None and not engine.is_initialized()
        if joined:
            connect(self.address)
        try:
            yield from self._pipeline(inputs, samples, starts)
        finally:
            if own is not None:
                own.close()
            elif joined:
                disconnect()

    def _pipeline(
        self, inputs: Sequence[Path], samples: Sequence[Sample], starts: Sequence[int]
    ) -> Iterator[tuple[int, Arrays]]:
        data = _ray_data()
        processors = max(1, sum(node.processors for node in nodes()))
        worker = {
            "embedder": replace(self.embedder, cache=None),
            "inputs": [str(path.resolve()) for path in inputs],
            "n_samples": len(samples),
        }
        chunks = data.from_items([{"start": start} for start in starts], override_num_blocks=len(starts)).map_batches(
            _Worker,
            fn_constructor_kwargs=worker,
            batch_size=1,
            num_cpus=1,
            compute=data.ActorPoolStrategy(min_size=1, max_size=processors),
        )
        open_ones: dict[int, list[dict[str, Any]]] = {}
        for block in chunks.iter_batches(batch_size=None, batch_format="numpy"):
            for start in np.unique(block["start"]).tolist():
                rows = block["start"] == start
                open_ones.setdefault(start, []).append({name: block[name][rows] for name in block})
                parts = open_ones[start]
                if sum(len(part["row"]) for part in parts) < len(self._chunk(samples, start)):
                    continue
                del open_ones[start]
                order = np.argsort(np.concatenate([part["row"] for part in parts]))
                names = [name for name in block if name not in ("start", "row")]
                yield start, {name: np.concatenate([part[name] for part in parts])[order] for name in names}
        if open_ones:
            raise InvalidEmbeddingsError(f"the nodes left {len(open_ones)} chunks unfinished; run the command again")


class _Worker:
    """Embeds chunks in a process of Ray."""

    def __init__(self, embedder: OnnxEmbedder, inputs: list[str], n_samples: int) -> None:
        self._embedder = embedder
        try:
            self._samples = find_samples(inputs, embedder.specification.model_input)
        except InvalidFileError as error:
            raise InvalidFileError(
                f"on node {_node()}: {error}; inputs must be at the same path on every node"
            ) from error
        if len(self._samples) != n_samples:
            raise InvalidFileError(
                f"node {_node()} finds {len(self._samples)} samples, and {n_samples} were found where the command runs; inputs "
                "must be the same on every node"
            )

    def __call__(self, chunks: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for start in chunks["start"].tolist():
            arrays = self._embedder.run(self._samples[start : start + self._embedder.chunk_size])
            n = len(arrays["embeddings"])
            yield {"start": np.full(n, start), "row": np.arange(n), **arrays}


def _node() -> str:
    return str(ray().util.get_node_ip_address())


def _stamp(sample: Sample) -> str:
    if sample.file is None:
        raise InvalidParameterError(f"{sample.origin} is in memory; a cluster embeds files")
    kept = os.stat(sample.file)
    return f"{sample.sample_id}\0{sample.file}\0{kept.st_size}\0{kept.st_mtime_ns}"


def _ray_data() -> Any:
    try:
        from ray import data
    except ImportError as error:  # Ray without its extra "data"
        raise MissingDependencyError("ray.data", "cluster") from error
    # The command has its own progress bar, and says in its own words what fails.
    data.DataContext.get_current().enable_progress_bars = False
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    return data
