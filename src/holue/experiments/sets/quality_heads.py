"""QualityHeads: SCF, PFE and ScaleFace trained on the same people, and what they say about other samples."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holue.embedding.heads.norm_concentration import NormConcentration
from holue.embedding.heads.pfe import train_pfe
from holue.embedding.heads.scaleface import train_scaleface
from holue.embedding.heads.scf import train_scf
from holue.embedding.heads.trained_head import TrainedHead
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.training.class_centres import ClassCentres
from holue.embedding.training.train import TrainingSettings
from holue.errors import InvalidEmbeddingsError
from holue.evaluation.protocol import ProtocolPart
from holue.experiments.cache import cache_location
from holue.gallery.embeddings import Embeddings, Float64Array, FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.subjects import Subjects
from holue.recognition.quality.sample import pfe_quality


@dataclass(frozen=True, eq=False)
class TrainingPeople:
    """What the heads learn from, of people who are in no other part.

    ``references`` are good samples, whose mean is the centre of a subject; ``learning`` are other samples of the same subjects,
    good and poor; ``pairs`` hold every sample once, good or poor, so that no pair shares its source.
    """

    references: EmbeddingFile
    learning: EmbeddingFile
    pairs: EmbeddingFile


@dataclass(frozen=True, eq=False)
class QualityHeads:
    """The three heads, and the concentration that needs none."""

    scf: TrainedHead
    pfe: TrainedHead
    scaleface: TrainedHead
    norm: NormConcentration

    @classmethod
    def train(
        cls, people: TrainingPeople, *, settings: TrainingSettings, cache_dir: Path | None = None
    ) -> QualityHeads:
        """Train all of them, or read what an earlier run with the same samples and settings has trained."""
        checkpoints = cache_location(cache_dir, "heads")
        centres = ClassCentres.from_samples(people.references.embeddings, people.references.subject_id)
        return cls(
            train_scf(people.learning, centres=centres, settings=settings, checkpoint_dir=checkpoints),
            train_pfe(people.pairs, settings=settings, checkpoint_dir=checkpoints),
            train_scaleface(people.learning, centres=centres, settings=settings, checkpoint_dir=checkpoints),
            NormConcentration.fit(people.learning.embeddings, people.learning.subject_id, centres=centres),
        )

    def qualities(self, file: EmbeddingFile) -> dict[str, Float64Array]:
        """The quality columns of a protocol: ``concentration``, ``pfe``, ``scale`` and ``norm``; higher = more reliable."""
        features = required_features(file)
        return {
            "concentration": self.scf.predict(features).astype(np.float64),
            "pfe": pfe_quality(self.pfe.predict(features)),
            "scale": self.scaleface.predict(features).astype(np.float64),
            "norm": file.norms,
        }

    def part(
        self, gallery: EmbeddingFile, probes: EmbeddingFile, levels: Subjects, *, norm_only: bool = False
    ) -> ProtocolPart:
        """A part of a protocol: the gallery pooled per subject, every probe by itself with its qualities and its level.

        With ``norm_only`` the concentration is the one from the embedding's length.
        """
        qualities = self.qualities(probes)
        enrolled_concentration = self.qualities(gallery)["concentration"]
        if norm_only:
            qualities["concentration"] = self.norm.transform(probes.embeddings)
            enrolled_concentration = self.norm.transform(gallery.embeddings)
        return ProtocolPart(
            Gallery.from_samples(gallery.directions, gallery.subject_id, concentration=enrolled_concentration),
            Embeddings.from_samples(probes.directions, qualities["concentration"]),
            probes.subject_id,
            qualities=qualities,
            groups=levels,
            probe_samples=probes.sample_id,
        )


def required_features(file: EmbeddingFile) -> FloatArray:
    """The bottleneck features, without which no head can be trained or used."""
    if file.features is None:
        raise InvalidEmbeddingsError(
            f"the embeddings of {file.model} carry no bottleneck features; use a model that has them as an output"
        )
    return file.features
