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
from holue.embedding.training.class_centres import ClassCentres, leave_one_out_cosines
from holue.embedding.training.losses import scaleface_loss
from holue.embedding.training.pytorch import reproducible, torch
from holue.embedding.training.train import TrainingSettings, content_hash, train
from holue.embedding.training.training_samples import Rows, TrainingSamples, batch_count, shuffled_batches
from holue.errors import InvalidParameterError
from holue.gallery.embeddings import Float64Array
from holue.progress import Progress

Tensor = torch.Tensor
LOWEST, HIGHEST, INITIAL = 1.0, 128.0, 16.0


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
    if centres is None:
        own = leave_one_out_cosines(samples.directions, samples.subjects)
        centres = ClassCentres.from_samples(samples.directions, samples.subjects)
    else:
        own = centres.cosines(samples.directions, samples.subjects)
    with reproducible(settings.seed):
        head = PositiveHead(samples.features[samples.seen], lower=LOWEST, upper=HIGHEST, initial=INITIAL, hidden=hidden)
    task = _ScaleFaceTask(head, samples, centres, own, margin, settings.batch_size)
    history = train(task, settings, checkpoint_dir=checkpoint_dir, progress=progress)
    details = {"margin": margin, "hidden": hidden, "lower": LOWEST, "upper": HIGHEST, **samples.counts}
    feature_dim = samples.features.shape[1]
    return TrainedHead("scaleface", "scale", head, feature_dim, file.fingerprint, settings, history, details)


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
        classes = self._classes(self.samples.seen)
        for rows in shuffled_batches(self.samples.seen, self.batch_size, rng):
            yield self._batch(rows, classes)

    def loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        features, cosine, target = batch
        return scaleface_loss(cosine, target, self.module(features), margin=self.margin)

    def held_out_loss(self) -> float | None:
        rows = self.samples.held_out
        return float(self.loss(self._batch(rows, self._classes(rows)))) if len(rows) else None

    def _classes(self, rows: Rows) -> Rows:
        return np.unique(self.centres.rows(self.samples.subjects[rows]))

    def _batch(self, rows: Rows, classes: Rows) -> tuple[Tensor, ...]:
        target = np.searchsorted(classes, self.centres.rows(self.samples.subjects[rows]))
        weights: Float32Array = self.centres.directions[classes].astype(np.float32)
        cosine = self.samples.directions[rows] @ weights.T
        cosine[np.arange(len(rows)), target] = self.own_cosines[rows]
        features = self.samples.features[rows]
        return torch.from_numpy(features), torch.from_numpy(cosine), torch.from_numpy(target)
