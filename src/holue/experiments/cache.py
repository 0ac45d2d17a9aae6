"""Cache: embeddings of a whole collection on disk, under the hash of everything they depend on.

Finished chunks are kept as they come, so that interrupted work resumes where it stopped; once all are there, nothing of the
collection is read or decoded again.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from holue.artifact.cache_directory import default_cache_directory
from holue.embedding.inputs.samples import Sample
from holue.embedding.models.chunk_cache import Arrays, ChunkCache
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.errors import InvalidEmbeddingsError, InvalidFileError
from holue.progress import Progress

logger = logging.getLogger(__name__)


def embed_collection(
    samples: Sequence[Sample],
    embedder: OnnxEmbedder,
    *,
    content: Sequence[str],
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> EmbeddingFile:
    """Embed samples whose content is named by ``content``: digests of the files they are in, settings of what is done to them.

    The name of a chunk is the hash of the model's fingerprint, of ``content`` and of the samples in it, so that a changed
    archive, model or degradation is embedded anew and nothing else is.
    """
    if not samples:
        raise InvalidEmbeddingsError("there is no sample to embed")
    cache = ChunkCache(cache_location(cache_dir, "embeddings"))
    parts: list[Arrays] = []
    embedded = 0
    for start in range(0, len(samples), embedder.chunk_size):
        chunk = samples[start : start + embedder.chunk_size]
        key = ChunkCache.key([embedder.fingerprint, *content, *(sample.sample_id for sample in chunk)])
        known = cache.get(key)
        if known is None:
            file = embedder.embed(chunk)
            embedded += len(chunk)
            known = {"embeddings": file.embeddings}
            if file.features is not None:
                known["features"] = file.features
            cache.put(key, known)
        parts.append(known)
        if progress is not None:
            progress(start + len(chunk), len(samples), chunk[-1].sample_id)
    logger.info("%d samples: %d embedded, the others from %s", len(samples), embedded, cache.directory)
    has_features = all("features" in part for part in parts)
    return EmbeddingFile(
        np.concatenate([part["embeddings"] for part in parts]),
        np.concatenate([part["features"] for part in parts]) if has_features else None,
        np.array([sample.sample_id for sample in samples]),
        np.array([sample.subject_id for sample in samples]),
        embedder.fingerprint,
        embedder.specification.name,
    )


def cache_location(cache_dir: str | Path | None, kind: str) -> Path:
    """The folder for one kind of cached work: under ``cache_dir``, else under ``HOLUE_CACHE`` or the user's cache folder.

    >>> cache_location("/somewhere", "heads").as_posix()
    '/somewhere/experiments/heads'
    """
    root = default_cache_directory() if cache_dir is None else Path(cache_dir)
    return root / "experiments" / kind


def file_digest(path: Path) -> str:
    """The hash of a file's bytes."""
    if not path.is_file():
        raise InvalidFileError(
            f"{path}: no such file; set HOLUE_DATA to the folder that holds the data of the experiments"
        )
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
