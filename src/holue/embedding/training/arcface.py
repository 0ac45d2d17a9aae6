"""ArcFace: an embedding learned by telling the training subjects apart, with a margin between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holue.embedding.heads.networks import ProjectionHead
from holue.embedding.heads.trained_head import TrainedHead
from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.training.class_centres import ClassCentres, leave_one_out_cosines
from holue.embedding.training.losses import arcface_loss
from holue.embedding.training.pytorch import reproducible, torch
from holue.embedding.training.row_blocks import Rows
from holue.embedding.training.train import TrainingSettings, content_hash, train
from holue.embedding.training.training_samples import TrainingSamples, batch_count, shuffled_batches
from holue.errors import InvalidParameterError, InvalidSubjectsError
from holue.gallery.subjects import Subjects
from holue.progress import Progress

Tensor = torch.Tensor
HELD_OUT_SCALE = 16.0
"""The sharpness of the softmax by which held-out subjects are told apart; it only ranks epochs."""


@dataclass(frozen=True)
class Margin:
    """ArcFace's two numbers: the angle added to the own class, and the scale of the logits.

    Gentler than the 0.5 and 64 of networks with millions of images and days: these are for thousands and minutes.
    """

    angle: float = 0.2
    scale: float = 16.0

    def __post_init__(self) -> None:
        if not 0 <= self.angle < np.pi / 2:
            raise InvalidParameterError(f"the margin's angle must be in [0, π/2) radians, got {self.angle}")
        if not 0 < self.scale < np.inf:
            raise InvalidParameterError(f"the margin's scale must be positive and finite, got {self.scale}")


def train_arcface_head(
    file: EmbeddingFile,
    *,
    dim: int = 128,
    hidden: int = 0,
    margin: Margin | None = None,
    settings: TrainingSettings | None = None,
    checkpoint_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> TrainedHead:
    """Learn a new embedding of ``dim`` coordinates from the bottleneck features of another recogniser.

    What a recogniser of human faces sees of an animal is not in its embedding but may be in its features.
    """
    settings, margin = settings or TrainingSettings(), margin or Margin()
    samples = TrainingSamples.from_file(file, settings)
    with reproducible(settings.seed):
        head = ProjectionHead(samples.scale, dim=dim, hidden=hidden)
        task = ArcFaceTask(
            Classifier(head, samples.subjects[samples.seen], dim),
            samples.subjects,
            samples.seen,
            samples.held_out,
            lambda rows, rng: torch.from_numpy(samples.features_at(rows)),
            margin,
            settings.batch_size,
            samples.identity(),
        )
    history = train(task, settings, checkpoint_dir=checkpoint_dir, progress=progress)
    details = {"dim": dim, "hidden": hidden, "margin": margin.angle, "scale": margin.scale, **samples.counts}
    return TrainedHead("arcface", "embedding", head, samples.feature_dim, file.fingerprint, settings, history, details)


class Classifier(torch.nn.Module):
    """A network and one weight vector per training subject; the weights are left behind after training."""

    def __init__(self, network: torch.nn.Module, subjects: Subjects, dim: int) -> None:
        super().__init__()
        keys = np.unique(subjects)
        if len(keys) < 2:
            raise InvalidSubjectsError(f"ArcFace tells subjects apart: {len(keys)} is too few, give at least 2")
        self.network = network
        self.weights = torch.nn.Parameter(torch.randn(len(keys), dim) / dim**0.5)

    def embed(self, inputs: Tensor) -> Tensor:
        """The network's embedding, the first of its outputs where it has several."""
        outputs = self.network(inputs)
        embedding: Tensor = outputs[0] if isinstance(outputs, tuple) else outputs
        return embedding

    def forward(self, inputs: Tensor) -> Tensor:
        """The cosine of every sample to every class (n, classes)."""
        unit = torch.nn.functional.normalize
        return unit(self.embed(inputs)) @ unit(self.weights).T


@dataclass(frozen=True, eq=False)
class ArcFaceTask:
    """ArcFace on whatever ``load`` gives for rows: with a generator for training, without one as it is."""

    module: Classifier
    subjects: Subjects
    seen: Rows
    held_out: Rows
    load: Callable[[Rows, np.random.Generator | None], Tensor]
    margin: Margin
    batch_size: int
    data_identity: str

    @property
    def identity(self) -> str:
        """The data, the margin and what is trained."""
        return content_hash("arcface", self.data_identity, [self.margin.angle, self.margin.scale])

    @property
    def steps(self) -> int:
        """Batches in an epoch."""
        return batch_count(len(self.seen), self.batch_size)

    def batches(self, rng: np.random.Generator) -> Iterable[tuple[Tensor, ...]]:
        """Inputs and classes."""
        keys = np.unique(self.subjects[self.seen])
        for rows in shuffled_batches(self.seen, self.batch_size, rng):
            target = np.searchsorted(keys, self.subjects[rows])
            yield self.load(rows, rng), torch.from_numpy(target)

    def loss(self, batch: tuple[Tensor, ...]) -> Tensor:
        """The mean ArcFace loss of a batch."""
        inputs, target = batch
        return arcface_loss(self.module(inputs), target, margin=self.margin.angle, scale=self.margin.scale)

    def held_out_loss(self) -> float | None:
        """How well held-out subjects are told apart, or None where none are held out."""
        if not len(self.held_out):
            return None
        size = 4 * self.batch_size
        parts = [self.held_out[start : start + size] for start in range(0, len(self.held_out), size)]
        embeddings = np.concatenate([self.module.embed(self.load(rows, None)).numpy() for rows in parts])
        return nearest_centre_loss(embeddings, self.subjects[self.held_out])


def nearest_centre_loss(embeddings: Float32Array, subjects: Subjects) -> float:
    """Cross-entropy of telling samples apart by the centres of subjects the network never saw.

    A sample is left out of its own centre; subjects with one sample only compete. NaN, from embeddings that are
    not finite, is returned as it is: the training loop stops at it.
    """
    if not np.isfinite(embeddings).all():
        return float("nan")
    centres = ClassCentres.from_samples(embeddings, subjects)
    _, code, counts = np.unique(subjects, return_inverse=True, return_counts=True)
    several = counts[code] > 1
    if not several.any():
        raise InvalidSubjectsError("every held-out subject has one sample, so none can be found again; use held_out=0")
    unit = embeddings[several] / np.linalg.norm(embeddings[several], axis=1, keepdims=True)
    cosine = (unit @ centres.directions.T).astype(np.float64)
    own = np.arange(len(unit)), code[several]
    cosine[own] = leave_one_out_cosines(embeddings[several], subjects[several])
    logits = HELD_OUT_SCALE * cosine
    return float(np.mean(np.logaddexp.reduce(logits, axis=1) - logits[own]))
