"""PFE: probabilistic face embeddings, a variance for every coordinate of every sample."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holue.embedding.heads.networks import Exponential, LogVarianceHead
from holue.embedding.heads.trained_head import TrainedHead
from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.training.losses import pfe_loss
from holue.embedding.training.pytorch import reproducible, torch
from holue.embedding.training.row_blocks import Rows, mean_over, row_blocks
from holue.embedding.training.train import TrainingSettings, content_hash, train
from holue.embedding.training.training_samples import TrainingSamples, batch_count, shuffled_batches
from holue.gallery.subjects import Subjects
from holue.progress import Progress

Tensor = torch.Tensor


def train_pfe(
    file: EmbeddingFile,
    *,
    hidden: int = 64,
    settings: TrainingSettings | None = None,
    checkpoint_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> TrainedHead:
    """Learn ``σ²`` from bottleneck features by the mutual likelihood score of genuine pairs.

    The means are the unit embeddings of the frozen recogniser. In every epoch each sample is paired with another
    of its subject, drawn anew; subjects with one sample are left out, and counted in ``details``. Training starts from
    the within-subject variance of each coordinate.
    """
    settings = settings or TrainingSettings()
    samples = TrainingSamples.from_file(file, settings, pairs=True)
    with reproducible(settings.seed):
        head = LogVarianceHead(samples.scale, initial=_log_within_variance(samples), hidden=hidden)
    task = _PfeTask(head, samples, settings.batch_size)
    history = train(task, settings, checkpoint_dir=checkpoint_dir, progress=progress)
    dim = samples.dim
    details = {"dim": dim, "hidden": hidden, "reach": head.reach, **samples.counts}
    module = torch.nn.Sequential(head, Exponential()).eval()
    return TrainedHead("pfe", "variance", module, samples.feature_dim, file.fingerprint, settings, history, details)


def partners(subjects: Subjects, rng: np.random.Generator) -> Rows:
    """For every sample another one of the same subject: within each subject, a shuffled ring.

    >>> partners(np.array(["ann", "bob", "ann", "bob"]), np.random.default_rng(0))
    array([2, 3, 0, 1])
    """
    order = np.lexsort((rng.random(len(subjects)), subjects))
    sorted_subjects = subjects[order]
    starts = np.flatnonzero(np.r_[True, sorted_subjects[1:] != sorted_subjects[:-1]])
    following = np.arange(1, len(subjects) + 1)
    following[np.r_[starts[1:], len(subjects)] - 1] = starts
    partner = np.empty(len(subjects), dtype=np.intp)
    partner[order] = order[following]
    return partner


def _log_within_variance(samples: TrainingSamples) -> Float32Array:
    seen = samples.seen
    other = seen[partners(samples.subjects[seen], np.random.default_rng(0))]
    # Half the mean squared difference of a pair is the variance of one of them.
    squares = [
        len(places) * np.square(samples.directions_at(seen[places]) - samples.directions_at(other[places])).mean(axis=0)
        for places in row_blocks(np.arange(len(seen)))
    ]
    variance = sum(squares) / len(seen) / 2
    logarithm: Float32Array = np.log(np.maximum(variance, 1e-12)).astype(np.float32)
    return logarithm


@dataclass(frozen=True, eq=False)
class _PfeTask:
    module: LogVarianceHead
    samples: TrainingSamples
    batch_size: int

    @property
    def identity(self) -> str:
        return content_hash("pfe", self.samples.identity(), self.module.reach)

    @property
    def steps(self) -> int:
        return batch_count(len(self.samples.seen), self.batch_size)

    def batches(self, rng: np.random.Generator) -> Iterable[tuple[Tensor, ...]]:
        seen = self.samples.seen
        partner = seen[partners(self.samples.subjects[seen], rng)]
        for places in shuffled_batches(np.arange(len(seen)), self.batch_size, rng):
            yield self._pairs(seen[places], partner[places])

    def loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        features, directions, other_features, other_directions = batch
        return pfe_loss(directions, self.module(features), other_directions, self.module(other_features))

    def held_out_loss(self) -> float | None:
        held = self.samples.held_out
        # The same pairs every epoch, so that the losses can be compared.
        other = held[partners(self.samples.subjects[held], np.random.default_rng(0))] if len(held) else held
        return mean_over(np.arange(len(held)), lambda at: float(self.loss(self._pairs(held[at], other[at]))))

    def _pairs(self, rows: Rows, other: Rows) -> tuple[Tensor, ...]:
        features, directions = self.samples.features_at, self.samples.directions_at
        return tuple(map(torch.from_numpy, (features(rows), directions(rows), features(other), directions(other))))
