"""ScaleFace: a scale for every sample inside ArcFace, large where its class wins clearly."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holue.embedding.heads.networks import PositiveHead
from holue.embedding.heads.trained_head import TrainedHead
from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.training.class_centres import ClassCentres
from holue.embedding.training.losses import scaleface_loss
from holue.embedding.training.pytorch import reproducible, torch
from holue.embedding.training.row_blocks import Rows, mean_over
from holue.embedding.training.train import TrainingSettings, content_hash, train
from holue.embedding.training.training_samples import TrainingSamples, batch_count, shuffled_batches
from holue.errors import InvalidParameterError
from holue.gallery.embeddings import Float64Array
from holue.gallery.subjects import Subjects
from holue.progress import Progress

Tensor = torch.Tensor
LOWEST, HIGHEST, INITIAL = 1.0, 128.0, 16.0
LARGEST_COSINES = 1 << 26
"""Cosines of held-out samples and classes that are in memory at a time: 256 MiB."""


def train_scaleface(
    file: EmbeddingFile,
    *,
    centres: ClassCentres | None = None,
    margin: float = 0.5,
    hidden: int = 64,
    settings: TrainingSettings | None = None,
    checkpoint_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> TrainedHead:
    """Learn ``s(x)`` from bottleneck features by the cross-entropy of ``s(x)·cos(θ_y + m)``.

    Classes are the subjects of ``file`` with their ``centres``; where none are given the centre of a subject is the
    mean of its samples, and the sample itself is left out of its own; subjects with one sample are then left out, and
    counted in ``details``. Held-out subjects are told from each other.
    """
    if not 0 <= margin < np.pi / 2:
        raise InvalidParameterError(f"margin must be in [0, π/2) radians, got {margin}")
    settings = settings or TrainingSettings()
    samples = TrainingSamples.from_file(file, settings, pairs=centres is None)
    own = samples.cosines(centres)
    centres = samples.centres() if centres is None else centres
    with reproducible(settings.seed):
        head = PositiveHead(samples.scale, lower=LOWEST, upper=HIGHEST, initial=INITIAL, hidden=hidden)
    task = _ScaleFaceTask(head, samples, centres, own, margin, settings.batch_size)
    history = train(task, settings, checkpoint_dir=checkpoint_dir, progress=progress)
    details = {"margin": margin, "hidden": hidden, "lower": LOWEST, "upper": HIGHEST, **samples.counts}
    return TrainedHead("scaleface", "scale", head, samples.feature_dim, file.fingerprint, settings, history, details)


@dataclass(frozen=True, eq=False)
class _ScaleFaceTask:
    module: PositiveHead
    samples: TrainingSamples
    centres: ClassCentres
    own_cosines: Float64Array
    margin: float
    batch_size: int

    @property
    def identity(self) -> str:
        weights = np.ascontiguousarray(self.centres.directions)
        bounds = [LOWEST, HIGHEST, INITIAL, self.margin]
        return content_hash("scaleface", self.samples.identity(), weights, self.own_cosines, bounds)

    @property
    def steps(self) -> int:
        return batch_count(len(self.samples.seen), self.batch_size)

    def batches(self, rng: np.random.Generator) -> Iterable[tuple[Tensor, ...]]:
        competing = _Competing.of(self.centres, self.samples.subjects[self.samples.seen])
        for rows in shuffled_batches(self.samples.seen, self.batch_size, rng):
            yield self._batch(rows, competing)

    def loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        features, cosine, target = batch
        return scaleface_loss(cosine, target, self.module(features), margin=self.margin)

    def held_out_loss(self) -> float | None:
        held = self.samples.held_out
        if not len(held):
            return None
        competing = _Competing.of(self.centres, self.samples.subjects[held])
        size = max(LARGEST_COSINES // len(competing.classes), 1)
        return mean_over(held, lambda rows: float(self.loss(self._batch(rows, competing))), size)

    def _batch(self, rows: Rows, competing: _Competing) -> tuple[Tensor, ...]:
        target = np.searchsorted(competing.classes, self.centres.rows(self.samples.subjects[rows]))
        cosine = self.samples.directions_at(rows) @ competing.weights.T
        cosine[np.arange(len(rows)), target] = self.own_cosines[rows]
        features = self.samples.features_at(rows)
        return torch.from_numpy(features), torch.from_numpy(cosine), torch.from_numpy(target)


@dataclass(frozen=True, eq=False)
class _Competing:
    """The classes that samples are told from, by their place among the centres, and their directions."""

    classes: Rows
    weights: Float32Array

    @classmethod
    def of(cls, centres: ClassCentres, subjects: Subjects) -> _Competing:
        classes = np.unique(centres.rows(np.unique(subjects)))
        return cls(classes, np.ascontiguousarray(centres.directions[classes], dtype=np.float32))
