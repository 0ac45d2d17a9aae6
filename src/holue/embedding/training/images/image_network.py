"""ImageNetwork: a small recogniser trained from scratch on images of labelled subjects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from holue.embedding.inputs.images import ImageInput
from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.training.arcface import ArcFaceTask, Classifier, Margin
from holue.embedding.training.images.augmentation import Augmentation
from holue.embedding.training.images.backbones import SmallResNet
from holue.embedding.training.pytorch import reproducible, torch
from holue.embedding.training.row_blocks import Rows
from holue.embedding.training.train import TrainingHistory, TrainingSettings, content_hash, held_out_rows, train
from holue.errors import InvalidInputError
from holue.gallery.subjects import as_subjects
from holue.progress import Progress

Tensor = torch.Tensor
Images = npt.NDArray[np.uint8]
NETWORK_SETTINGS = TrainingSettings(epochs=25, batch_size=64, peak_learning_rate=5e-3, weight_decay=5e-2)
"""Faster and longer than heads need: from scratch there is more to learn."""


@dataclass(frozen=True, eq=False)
class ImageNetwork:
    """The trained network, what it reads, and how it came to be."""

    module: SmallResNet
    image_input: ImageInput
    settings: TrainingSettings
    history: TrainingHistory
    details: Mapping[str, object]

    def predict(self, images: Images, *, batch_size: int = 256) -> tuple[Float32Array, Float32Array]:
        """Embeddings (n, d) and features (n, f) of images (n, H, W) or (n, H, W, 3) of the training size."""
        given = as_images(images)
        if given.shape[1:] != self.image_input.shape:
            raise InvalidInputError(
                f"images must be (channels, height, width) = {self.image_input.shape} as in training, got "
                f"{given.shape[1:]}; resize or convert them"
            )
        self.module.eval()
        embeddings, features = [], []
        with torch.no_grad():
            for start in range(0, len(given), batch_size):
                outputs = self.module(_scaled(given[start : start + batch_size]))
                embeddings.append(outputs[0].numpy())
                features.append(outputs[1].numpy())
        return np.concatenate(embeddings), np.concatenate(features)


def train_arcface_network(
    images: Images,
    subjects: object,
    *,
    dim: int = 128,
    first_channels: int = 16,
    augmentation: Augmentation | None = None,
    margin: Margin | None = None,
    settings: TrainingSettings | None = None,
    checkpoint_dir: str | Path | None = None,
    progress: Progress | None = None,
) -> ImageNetwork:
    """Train a small residual network with ArcFace on images (n, H, W) or (n, H, W, 3) of bytes, 32 to 64 pixels.

    Mirrored images are of the same subject only if that is said: ``augmentation=Augmentation(flip=True)``.
    """
    settings, margin = settings or NETWORK_SETTINGS, margin or Margin()
    augmentation = augmentation or Augmentation()
    given = as_images(images)
    names = as_subjects(subjects, len(given), field="subjects")
    held_out = held_out_rows(names, settings)
    channels, height, width = given.shape[1:]

    def load(rows: Rows, rng: np.random.Generator | None) -> Tensor:
        batch = _scaled(given[rows])
        return batch if rng is None else augmentation.apply(batch, rng).contiguous(memory_format=torch.channels_last)

    with reproducible(settings.seed):
        network = SmallResNet(channels=channels, height=height, width=width, first=first_channels, dim=dim)
        classifier = Classifier(network, names[~held_out], dim).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    task = ArcFaceTask(
        classifier,
        names,
        np.flatnonzero(~held_out),
        np.flatnonzero(held_out),
        load,
        margin,
        settings.batch_size,
        content_hash(given, names, held_out, asdict(augmentation)),
    )
    history = train(task, settings, checkpoint_dir=checkpoint_dir, progress=progress)
    network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    colour = "grey" if channels == 1 else "rgb"
    details = {
        "dim": dim,
        "first_channels": first_channels,
        "margin": asdict(margin),
        "augmentation": asdict(augmentation),
        "subjects": len(np.unique(names[~held_out])),
    }
    # The size is only that of the training images, no template that a resized image would miss.
    image_input = ImageInput(height, width, colour, resize=True)
    return ImageNetwork(network, image_input, settings, history, details)


def as_images(images: Images) -> Images:
    """Images (n, H, W), (n, H, W, 1) or (n, H, W, 3) of bytes as (n, channels, H, W).

    >>> as_images(np.zeros((2, 32, 32), np.uint8)).shape
    (2, 1, 32, 32)
    """
    given = np.asarray(images)
    grey = given.ndim == 3
    if given.dtype != np.uint8 or not (grey or (given.ndim == 4 and given.shape[3] in (1, 3))):
        raise InvalidInputError(
            f"images must be bytes (uint8) of shape (n, H, W) or (n, H, W, 3), got {given.dtype} {given.shape}; stack "
            "images of one size, floats in 0..1 as (255 * x).round().astype(np.uint8)"
        )
    return np.ascontiguousarray(given[:, None] if grey else given.transpose(0, 3, 1, 2))


def _scaled(images: Images) -> Tensor:
    """As :class:`ImageInput` prepares them: (x − 127.5) / 127.5."""
    return (torch.from_numpy(images).float() - 127.5) / 127.5
