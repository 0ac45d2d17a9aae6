"""The embedding of inputs into one file: what ``holue embed`` does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from holue.embedding.models.chunk_cache import default_cache_directory
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.errors import InvalidParameterError
from holue.progress import Progress


def embed_to_file(
    model: str | Path,
    inputs: Iterable[str | Path],
    out: str | Path,
    *,
    features: bool = True,
    batch_size: int = 8,
    threads: int = 1,
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> EmbeddingFile:
    """Embed folders, zips, lists and files with ``model`` (a preset, an ONNX file or its TOML) into ``out``.

    Interrupted work resumes from ``cache_dir`` (by default that of the user). ``features=False`` leaves the
    bottleneck features out of a model that has them.
    """
    out = Path(out)
    if out.suffix != ".npz":
        raise InvalidParameterError(f"out must end in .npz, got {out}")
    embedder = OnnxEmbedder.open(
        model,
        batch_size=batch_size,
        threads=threads,
        cache_dir=cache_dir or default_cache_directory() / "embeddings",
    )
    if not features:
        embedder = replace(embedder, specification=embedder.specification.without_features())
    file = embedder.embed_files(inputs, progress=progress)
    file.save(out)
    return file
