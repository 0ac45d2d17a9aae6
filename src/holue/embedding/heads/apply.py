"""The application of a head to a file of embeddings: what ``holue apply`` does."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from holue.artifact.archive import read_archive, write_archive
from holue.embedding.heads.norm_head import NormHead, norm_file, read_record
from holue.embedding.heads.onnx_head import OnnxHead
from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.errors import InvalidEmbeddingsError, InvalidParameterError

ABOUT_THE_EMBEDDING = ("concentration", "variance", "scale")
"""What heads say of an embedding, which no longer holds for another one."""


def load_head(path: str | Path) -> OnnxHead | NormHead:
    """What ``holue train`` wrote: ``path.json`` alone for norm, with ``path.onnx`` beside it for all others."""
    record = norm_file(path)
    if record.is_file() and read_record(record).get("kind") == NormHead.kind:
        return NormHead.load(record)
    return OnnxHead.load(path)


def apply_to_file(head: OnnxHead | NormHead, file: str | Path, out: str | Path) -> Float32Array:
    """Write ``file`` to ``out`` with the head's output under its own key, and return that output.

    The key is ``concentration`` (scf, norm), ``variance`` (pfe), ``scale`` (scaleface) or, in place of the recogniser's,
    ``embeddings`` (arcface). Every other array is kept.
    """
    out = Path(out)
    if out.suffix != ".npz":
        raise InvalidParameterError(f"out must end in .npz, got {out}")
    arrays, samples = read_archive(file), EmbeddingFile.load(file)
    if isinstance(head, NormHead) or head.output != "embedding":
        arrays[head.output] = output = head.predict_file(samples)
    else:
        stale = [key for key in ABOUT_THE_EMBEDDING if key in arrays]
        if stale:
            raise InvalidEmbeddingsError(
                f"{file}: the key {stale[0]!r} is about the embedding that {head.path.name} would replace; apply "
                f"{head.path.name} to a file without it, then train and apply other heads on the new embedding"
            )
        projected = head.reembed(samples)
        output = projected.embeddings.astype(np.float32, copy=False)
        arrays |= {"embeddings": output}
        arrays |= {"fingerprint": np.asarray(projected.fingerprint), "model": np.asarray(projected.model)}
    write_archive(out, arrays)
    return output
