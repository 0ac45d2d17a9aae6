"""OnnxEmbedder: a recogniser in an ONNX file, run on images or speech."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from holue.embedding.inputs.model_input import Float32Array, RawArray
from holue.embedding.inputs.samples import Content, Sample, array_samples, digest, find_samples
from holue.embedding.models.chunk_cache import Arrays, ChunkCache
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.models.specification import ModelSpecification, no_such_model, open_specification
from holue.errors import (
    InvalidEmbeddingsError,
    InvalidFileError,
    InvalidParameterError,
    MissingDependencyError,
)
from holue.progress import Progress

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class OnnxEmbedder:
    """Samples → raw embeddings and, where the model has them, bottleneck features.

    Samples are read, prepared and run ``chunk_size`` at a time; with a cache, finished chunks are kept under
    the hash of the model and of their content, so interrupted work resumes and repeated work is only read.
    Utterances of different length are never padded, since that changes the embedding: only those of equal
    length share a batch.
    """

    specification: ModelSpecification
    batch_size: int = 8
    chunk_size: int = 256
    threads: int = 1
    cache: ChunkCache | None = None

    @classmethod
    def open(
        cls, model: str | Path, *, batch_size: int = 8, threads: int = 1, cache_dir: str | Path | None = None
    ) -> OnnxEmbedder:
        """The embedder of a preset (``arcface``, ``campplus``), an ONNX file, or its TOML."""
        for field, value in (("batch_size", batch_size), ("threads", threads)):
            if value < 1:
                raise InvalidParameterError(f"{field} must be at least 1, got {value}")
        cache = None if cache_dir is None else ChunkCache(Path(cache_dir))
        return cls(open_specification(model), batch_size=batch_size, threads=threads, cache=cache)

    @cached_property
    def fingerprint(self) -> str:
        """The model and its preprocessing in one hash."""
        return self.specification.fingerprint()

    def embed_files(self, inputs: Iterable[str | Path], *, progress: Progress | None = None) -> EmbeddingFile:
        """Embed what folders, zips, lists and files hold."""
        return self.embed(find_samples(inputs, self.specification.model_input), progress=progress)

    def embed_arrays(
        self,
        arrays: Sequence[RawArray],
        *,
        sample_id: Sequence[str] | None = None,
        subject_id: Sequence[str] | None = None,
        progress: Progress | None = None,
    ) -> EmbeddingFile:
        """Embed images (H, W, 3) of bytes, or mono waveforms of floats at the model's sample rate."""
        return self.embed(array_samples(arrays, sample_id=sample_id, subject_id=subject_id), progress=progress)

    def embed(self, samples: Sequence[Sample], *, progress: Progress | None = None) -> EmbeddingFile:
        """Embed samples, in their order."""
        if not samples:
            raise InvalidEmbeddingsError("there is no sample to embed")
        parts: list[Arrays] = []
        for start in range(0, len(samples), self.chunk_size):
            chunk = samples[start : start + self.chunk_size]
            parts.append(self._chunk(chunk))
            if progress is not None:
                progress(start + len(chunk), len(samples), chunk[-1].sample_id)
        return self.as_file(samples, parts)

    def as_file(self, samples: Sequence[Sample], parts: Sequence[Arrays]) -> EmbeddingFile:
        """The chunks of some samples, in their order, as one file."""
        logger.info("%d samples embedded by %s", len(samples), self.specification.name)
        features = None
        if self.specification.features is not None:
            features = np.concatenate([part["features"] for part in parts])
        return EmbeddingFile(
            np.concatenate([part["embeddings"] for part in parts]),
            features,
            np.array([sample.sample_id for sample in samples]),
            np.array([sample.subject_id for sample in samples]),
            self.fingerprint,
            self.specification.name,
        )

    def run(self, samples: Sequence[Sample]) -> Arrays:
        """Embed one chunk, whatever the cache holds."""
        return self._run(samples, [sample.read() for sample in samples])

    def _chunk(self, samples: Sequence[Sample]) -> Arrays:
        if self.cache is None:
            return self.run(samples)
        contents = [sample.read() for sample in samples]
        wanted = f"features={self.specification.features}"
        key = ChunkCache.key([self.fingerprint, wanted, *map(digest, contents)])
        known = self.cache.get(key)
        if known is None:
            known = self._run(samples, contents)
            self.cache.put(key, known)
        return known

    def _run(self, samples: Sequence[Sample], contents: Sequence[Content]) -> Arrays:
        # Opened before the samples: a model of the wrong kind would otherwise blame the first of them.
        model_input, limit = self.specification.model_input, self._fixed_batch or self.batch_size
        by_shape: dict[tuple[int, ...], list[tuple[int, Float32Array]]] = defaultdict(list)
        for row, (sample, content) in enumerate(zip(samples, contents, strict=True)):
            raw = model_input.decode(content, sample.origin) if isinstance(content, bytes) else content
            prepared = model_input.prepare(raw, sample.origin)
            by_shape[prepared.shape].append((row, prepared))
        outputs: dict[int, list[Float32Array]] = {}
        for group in by_shape.values():
            for start in range(0, len(group), limit):
                batch = group[start : start + limit]
                rows = [row for row, _ in batch]
                results = self._session_run(np.stack([array for _, array in batch]), samples[rows[0]].origin)
                for place, row in enumerate(rows):
                    outputs[row] = [result[place] for result in results]
        columns = [np.stack([outputs[row][k] for row in range(len(samples))]) for k in range(len(self._output_names))]
        finite = np.all([np.isfinite(column).all(axis=1) for column in columns], axis=0)
        if not finite.all():
            raise InvalidEmbeddingsError(
                f"{samples[int(finite.argmin())].origin}: {self.specification.path.name} gave an output "
                "that is not finite; the sample or the model is damaged"
            )
        return dict(zip(("embeddings", "features"), columns))

    def _session_run(self, batch: Float32Array, origin: str) -> list[Float32Array]:
        count, fixed = len(batch), self._fixed_batch
        if fixed is not None and count < fixed:
            batch = np.concatenate([batch, np.repeat(batch[-1:], fixed - count, axis=0)])
        try:
            results = self._session.run(self._output_names, {self.specification.model_input.name: batch})
        # onnxruntime's exceptions have no public base class of their own.
        except Exception as error:
            raise InvalidFileError(
                f"{self.specification.path}: the model failed on a batch of shape {batch.shape} "
                f"that begins with {origin} ({error})"
            ) from error
        for name, result in zip(self._output_names, results, strict=True):
            if result.ndim != 2 or len(result) != len(batch):
                raise InvalidFileError(
                    f"{self.specification.path}: output {name!r} must be one vector per sample, "
                    f"({len(batch)}, d), got {result.shape}; name another output"
                )
        return [np.asarray(result[:count], dtype=np.float32) for result in results]

    @property
    def _output_names(self) -> list[str]:
        features = self.specification.features
        return [self.specification.embedding] + ([] if features is None else [features])

    @property
    def _fixed_batch(self) -> int | None:
        size = self._session.get_inputs()[0].shape[0]
        return size if isinstance(size, int) else None

    @cached_property
    def _session(self) -> Any:
        path = self.specification.path
        session = open_session(path, threads=self.threads)
        _require_input(session, self.specification)
        available = [output.name for output in session.get_outputs()]
        if self.specification.embedding not in available:
            raise InvalidFileError(
                f"{path}: no output {self.specification.embedding!r} for the embedding; it has {', '.join(available)}"
            )
        if self.specification.features is not None and self.specification.features not in available:
            raise InvalidFileError(
                f"{path}: no output {self.specification.features!r} for the bottleneck features; it has "
                f"{', '.join(available)}; export the model with them, or embed without features"
            )
        return session


def open_session(path: Path, *, threads: int = 1) -> Any:
    """An onnxruntime session on the CPU, or a clear error that names the file."""
    try:
        import onnxruntime
    except ImportError as error:
        raise MissingDependencyError("onnxruntime", "embed") from error
    if not path.is_file():
        raise InvalidFileError(no_such_model(path))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    # onnxruntime's exceptions have no public base class of their own.
    except Exception as error:
        raise InvalidFileError(f"{path}: not a usable ONNX model ({error})") from error


def _require_input(session: Any, specification: ModelSpecification) -> None:
    path, wanted = specification.path, specification.model_input
    inputs = {entry.name: entry for entry in session.get_inputs()}
    if wanted.name not in inputs or len(inputs) > 1:
        raise InvalidFileError(
            f"{path}: the model must have the one input {wanted.name!r}, it has {', '.join(inputs)}; correct input.name"
        )
    entry = inputs[wanted.name]
    taken, prepared = list(entry.shape), ("batch", *wanted.shape)
    fits = entry.type == "tensor(float)" and len(taken) == len(prepared)
    for edge, ours in zip(taken[1:], prepared[1:]):
        fits = fits and not (isinstance(edge, int) and ours is not None and edge != ours)
    if not fits:
        raise InvalidFileError(
            f"{path}: input {wanted.name!r} takes {entry.type} {_shape(taken)}, {wanted.kind} is prepared "
            f"as tensor(float) {_shape(prepared)}; use a model for this kind of input, or correct its size"
        )


def _shape(edges: Iterable[object]) -> str:
    return "(" + ", ".join("any" if edge is None else str(edge) for edge in edges) + ")"
