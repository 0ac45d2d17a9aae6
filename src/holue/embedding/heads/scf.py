"""SCF: sphere confidence face, a concentration for every sample, learned from how far it is from its centre."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holue.embedding.heads.networks import PositiveHead
from holue.embedding.heads.trained_head import TrainedHead
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.training.class_centres import ClassCentres
from holue.embedding.training.losses import scf_loss
from holue.embedding.training.pytorch import reproducible, torch
from holue.embedding.training.row_blocks import Rows, mean_over
from holue.embedding.training.train import TrainingSettings, content_hash, train
from holue.embedding.training.training_samples import TrainingSamples, batch_count, shuffled_batches
from holue.errors import CalibrationDataError
from holue.gallery.embeddings import Float64Array
from holue.progress import Progress
from holue.sphere.bessel import inverse_mean_resultant_length

Tensor = torch.Tensor
LOWEST, HIGHEST = 0.01, 100.0
"""κ_x stays within these multiples of d: expected cosines from 0.01 to 0.995."""


def train_scf(
    file: EmbeddingFile,
    *,
    centres: ClassCentres | None = None,
    hidden: int = 64,
    settings: TrainingSettings | None = None,
    checkpoint_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> TrainedHead:
    """Learn ``κ_x`` from bottleneck features by the loss ``−κ_x cos θ − log C_d(κ_x)`` (the paper's SCF).

    ``θ`` is the angle to the centre of the sample's subject: to ``centres`` where given (the class weights of the
    recogniser, or means of good samples), else to the mean of the subject's other samples;
    subjects with one sample are then left out, and counted in ``details``.
    """
    settings = settings or TrainingSettings()
    samples = TrainingSamples.from_file(file, settings, pairs=centres is None)
    cosines, dim = samples.cosines(centres), samples.dim
    with reproducible(settings.seed):
        head = PositiveHead(
            samples.scale,
            lower=LOWEST * dim,
            upper=HIGHEST * dim,
            initial=_common_concentration(cosines, dim),
            hidden=hidden,
        )
    task = _ScfTask(head, samples, cosines, dim, settings.batch_size)
    history = train(task, settings, checkpoint_dir=checkpoint_dir, progress=progress)
    details = {"dim": dim, "hidden": hidden, "lower": LOWEST * dim, "upper": HIGHEST * dim, **samples.counts}
    return TrainedHead("scf", "concentration", head, samples.feature_dim, file.fingerprint, settings, history, details)


def _common_concentration(cosines: Float64Array, dim: int) -> float:
    mean = float(cosines.mean())
    if mean <= 0:
        raise CalibrationDataError(
            f"the mean cosine of samples to their centres is {mean:.3g}, it must be positive; check that subjects name "
            "who is shown and that the centres are of this recogniser"
        )
    return float(inverse_mean_resultant_length(dim, min(mean, 0.99)))


@dataclass(frozen=True, eq=False)
class _ScfTask:
    module: PositiveHead
    samples: TrainingSamples
    cosines: Float64Array
    dim: int
    batch_size: int

    @property
    def identity(self) -> str:
        return content_hash("scf", self.samples.identity(), self.cosines, [LOWEST, HIGHEST])

    @property
    def steps(self) -> int:
        return batch_count(len(self.samples.seen), self.batch_size)

    def batches(self, rng: np.random.Generator) -> Iterable[tuple[Tensor, ...]]:
        for rows in shuffled_batches(self.samples.seen, self.batch_size, rng):
            yield self._batch(rows)

    def loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        features, cosines = batch
        return scf_loss(cosines, self.module(features), self.dim)

    def held_out_loss(self) -> float | None:
        return mean_over(self.samples.held_out, lambda rows: float(self.loss(self._batch(rows))))

    def _batch(self, rows: Rows) -> tuple[Tensor, ...]:
        return torch.from_numpy(self.samples.features_at(rows)), torch.from_numpy(self.cosines[rows])
