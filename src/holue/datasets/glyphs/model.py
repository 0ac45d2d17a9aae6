"""GlyphEmbedder: the recogniser of glyphs that comes with the package, with its quality heads; needs no torch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from holue.datasets.glyphs.rendering import Pixels
from holue.datasets.glyphs.samples import GlyphSamples
from holue.embedding.heads.norm_concentration import NormConcentration
from holue.embedding.heads.onnx_head import OnnxHead
from holue.embedding.models.embedder import OnnxEmbedder
from holue.embedding.models.embedding_file import EmbeddingFile, Names
from holue.errors import CorruptArtifactError, InvalidInputError
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.recognition.quality.sample import pfe_quality

FOLDER = Path(__file__).parent / "model"
NETWORK, RECORD = "network", "model.json"
HEADS = ("scf", "pfe", "scaleface")
"""Files of a model: the network and each head as ONNX with a JSON beside it, and a record of all of them."""


@dataclass(frozen=True, eq=False)
class GlyphEmbedder:
    """Images of glyphs → embeddings, and what three heads and the norm say about the quality of each sample.

    ``record`` tells the command, the seed, the versions, the training glyphs and the recognition rates it was shipped with.
    """

    embedder: OnnxEmbedder
    heads: Mapping[str, OnnxHead]
    norm_concentration: NormConcentration
    record: Mapping[str, Any]

    @classmethod
    def load(cls, folder: str | Path) -> GlyphEmbedder:
        """The model in a folder, as ``holue train glyphs`` writes it; a changed file is refused."""
        folder = Path(folder)
        try:
            record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
            checksums = {str(name): str(digest) for name, digest in record["sha256"].items()}
            norm = NormConcentration.from_json(json.dumps(record["norm_concentration"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptArtifactError(
                f"{folder / RECORD}: not the record of a glyph model ({error}); run: holue train glyphs --out {folder}"
            ) from error
        missing = set(model_files()) - checksums.keys()
        if missing:
            raise CorruptArtifactError(
                f"{folder / RECORD}: no checksum of {', '.join(sorted(missing))}; train it again"
            )
        for name, digest in checksums.items():
            if file_checksum(folder / name) != digest:
                raise CorruptArtifactError(
                    f"{folder / name}: not the file {RECORD} was written for; install holue again, or train it again"
                )
        embedder = OnnxEmbedder.open(folder / f"{NETWORK}.toml", batch_size=256)
        return cls(embedder, {kind: OnnxHead.load(folder / kind) for kind in HEADS}, norm, record)

    def embed(self, samples: GlyphSamples | Pixels) -> GlyphEmbeddings:
        """Embed samples, or bare images (n, 32, 32) of bytes."""
        if isinstance(samples, GlyphSamples):
            file = embed_glyphs(self.embedder, samples)
        else:
            images = np.asarray(samples)
            if images.ndim != 3:
                raise InvalidInputError(
                    f"images must have shape (n, 32, 32), got {images.shape}; put a single image into a list"
                )
            file = self.embedder.embed_arrays(list(images))
        kappa, variance, scale = (self.heads[kind].predict_file(file) for kind in HEADS)
        return GlyphEmbeddings(
            file,
            kappa.astype(np.float64),
            pfe_quality(variance),
            scale.astype(np.float64),
            self.norm_concentration.transform(file.embeddings),
        )


@dataclass(frozen=True, eq=False)
class GlyphEmbeddings:
    """Embeddings (n, d) with the qualities of their samples (n,); higher = more reliable.

    ``concentration`` is κ_x of the SCF head, ``norm_concentration`` the one fitted to the length of the embedding.
    """

    file: EmbeddingFile
    concentration: Float64Array
    pfe: Float64Array
    scale: Float64Array
    norm_concentration: Float64Array

    def __len__(self) -> int:
        return len(self.file)

    @property
    def directions(self) -> FloatArray:
        """The embeddings, each divided by its norm."""
        return self.file.directions

    @property
    def subject_id(self) -> Names:
        """The label of the glyph each sample shows, "" where bare images were given."""
        return self.file.subject_id

    @property
    def norm(self) -> Float64Array:
        """The length of the raw embeddings."""
        return self.file.norms

    @property
    def qualities(self) -> dict[str, Float64Array]:
        """The columns of a protocol: ``concentration``, ``pfe``, ``scale`` and ``norm``."""
        return {"concentration": self.concentration, "pfe": self.pfe, "scale": self.scale, "norm": self.norm}


@cache
def glyph_embedder() -> GlyphEmbedder:
    """The model that comes with the package, checked against its checksums.

    >>> from holue.datasets.glyphs.rendering import render
    >>> embedder = glyph_embedder()
    >>> embedder.embed(np.stack([render("A"), render("Б")])).directions.shape
    (2, 128)
    """
    return GlyphEmbedder.load(FOLDER)


def embed_glyphs(embedder: OnnxEmbedder, samples: GlyphSamples) -> EmbeddingFile:
    """Embeddings and features alone, under the names of the samples."""
    names, subjects = samples.sample_id.tolist(), samples.subject_id.tolist()
    return embedder.embed_arrays(list(samples.images), sample_id=names, subject_id=subjects)


def model_files() -> list[str]:
    """The files whose checksums a record holds."""
    return [f"{NETWORK}.onnx", f"{NETWORK}.toml", *(f"{kind}.{end}" for kind in HEADS for end in ("onnx", "json"))]


def file_checksum(path: Path) -> str:
    """The SHA-256 of a file, or "" where there is none."""
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
