"""The embedding of inputs into one file: what ``holue embed`` does."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from holue.artifact.cache_directory import default_cache_directory
from holue.embedding.cluster_embedder import ClusterEmbedder
from holue.embedding.faces.detector import FaceDetector
from holue.embedding.faces.photographs import embed_photographs
from holue.embedding.inputs.images import ImageInput
from holue.embedding.inputs.samples import find_samples
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.recordings.recordings import embed_recordings
from holue.embedding.recordings.speech_detector import SpeechDetector
from holue.errors import InvalidParameterError
from holue.progress import Progress


def embed_to_file(
    model: str | Path,
    inputs: Iterable[str | Path],
    out: str | Path,
    *,
    detect: str | Path | None = None,
    which: str | int = "one",
    features: bool = True,
    batch_size: int = 8,
    threads: int = 1,
    cache_dir: str | Path | None = None,
    progress: Progress | None = None,
    cluster: str | None = None,
) -> EmbeddingFile:
    """Embed folders, zips, lists and files with ``model`` (a preset, an ONNX file or its TOML) into ``out``.

    With ``detect``, a face detector (``yunet`` or its ONNX file), the inputs are whole photographs, and ``which`` says which of
    the faces in one are meant: ``one`` (there must be no other), ``largest``, ``central``, ``all`` or a number from the left.
    With a model of speech ``detect`` is a speech detector (``silero`` or its ONNX file), and the inputs are long recordings.

    With ``cluster`` (``local``, or the address of a Ray cluster) its nodes embed; the inputs must be at the same paths there.

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
    faces = detect is not None and isinstance(embedder.specification.model_input, ImageInput)
    if which != "one" and not faces:
        raise InvalidParameterError(
            f"which={which!r} chooses among the faces that a detector finds; add detect='yunet', and a model of images"
        )
    if cluster is not None and detect is not None:
        raise InvalidParameterError("cluster embeds inputs as they are; leave detect out, or embed on this machine")
    paths = [Path(entry) for entry in inputs]
    samples = find_samples(paths, embedder.specification.model_input)
    if cluster is not None:
        file = ClusterEmbedder(embedder, cluster).embed(paths, samples, progress=progress)
    elif detect is None:
        file = embedder.embed(samples, progress=progress)
    elif faces:
        file = embed_photographs(embedder, FaceDetector.open(detect), samples, which=which, progress=progress)
    else:
        file = embed_recordings(embedder, SpeechDetector.open(detect), samples, progress=progress)
    file.save(out)
    return file
