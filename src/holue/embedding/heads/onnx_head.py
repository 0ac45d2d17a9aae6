"""OnnxHead: an exported head, used without torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.models.embedder import open_session
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.models.onnx_name import onnx_file
from holue.errors import (
    CorruptArtifactError,
    InvalidEmbeddingsError,
    InvalidParameterError,
    NewerArtifactError,
)
from holue.gallery.embeddings import as_vectors

FORMAT = 1


@dataclass(frozen=True, eq=False)
class OnnxHead:
    """What ``export_head`` wrote: ``kind`` scf, pfe, scaleface or arcface, and its ``record``."""

    path: Path
    record: Mapping[str, Any]

    @classmethod
    def load(cls, path: str | Path) -> OnnxHead:
        """From ``path.onnx`` and ``path.json``, whichever of the two is named."""
        onnx_path = onnx_file(path)
        json_path = onnx_path.with_suffix(".json")
        for part in (json_path, onnx_path):
            if not part.is_file():
                raise CorruptArtifactError(
                    f"{part}: no such file; a head is {onnx_path.name} and {json_path.name}, as `holue train` writes them"
                )
        try:
            record = json.loads(json_path.read_text(encoding="utf-8"))
            digest = hashlib.sha256(onnx_path.read_bytes()).hexdigest()
            known, written = int(record["format"]), str(record["onnx_sha256"])
            missing = {"kind", "output", "feature_dim", "recogniser"} - record.keys()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CorruptArtifactError(f"{json_path}: not the record of a head ({error}); export it again") from error
        if known > FORMAT:
            raise NewerArtifactError(f"{json_path}: format {known} is newer than {FORMAT}; update holue")
        if missing:
            raise CorruptArtifactError(f"{json_path}: lacks {', '.join(sorted(missing))}; it is no record of a head")
        if digest != written:
            raise CorruptArtifactError(f"{onnx_path}: the file is not the one {json_path.name} was written for")
        return cls(onnx_path, record)

    @property
    def kind(self) -> str:
        """``scf``, ``pfe``, ``scaleface`` or ``arcface``."""
        return str(self.record["kind"])

    @property
    def output(self) -> str:
        """The key of what it gives: ``concentration``, ``variance``, ``scale`` or ``embedding``."""
        return str(self.record["output"])

    def predict(self, features: object, *, batch_size: int = 4096) -> Float32Array:
        """The head's output for features (n, f): (n,) for a concentration or scale, else (n, d)."""
        given = as_vectors(features, field="features").astype(np.float32)
        if given.shape[1] != self.record["feature_dim"]:
            raise InvalidEmbeddingsError(
                f"features have {given.shape[1]} numbers, {self.path.name} was trained on {self.record['feature_dim']}; "
                "use features of the recogniser it belongs to"
            )
        parts = (given[start : start + batch_size] for start in range(0, len(given), batch_size))
        outputs = [self._session.run([self.output], {"features": part})[0] for part in parts]
        return np.concatenate(outputs)

    def predict_file(self, file: EmbeddingFile) -> Float32Array:
        """The head's output for the samples of a file, which must be of the head's own recogniser."""
        if file.features is None:
            raise InvalidEmbeddingsError(
                f"the embeddings of {file.model or 'an unnamed model'} carry no features, which {self.path.name} reads; "
                "embed again with a model that has them as an output"
            )
        if self.record["recogniser"] and file.fingerprint != self.record["recogniser"]:
            raise InvalidEmbeddingsError(
                f"{self.path.name} was trained on the recogniser {self.record['recogniser'][:12]}, the features are of "
                f"{file.fingerprint[:12] or 'an unknown one'}; embed with the same model, or train a head for this one"
            )
        return self.predict(file.features)

    def reembed(self, file: EmbeddingFile) -> EmbeddingFile:
        """The samples with this head's embedding in place of the recogniser's, under a fingerprint of both."""
        if self.output != "embedding":
            raise InvalidParameterError(
                f"{self.path.name} is a {self.kind} head and gives a {self.output}, no embedding; use predict_file"
            )
        both = f"{file.fingerprint}\n{self.record['onnx_sha256']}"
        return replace(
            file,
            embeddings=self.predict_file(file),
            fingerprint=hashlib.sha256(both.encode()).hexdigest(),
            model=f"{file.model}+{self.path.stem}",
        )

    @cached_property
    def _session(self) -> Any:
        return open_session(self.path)
