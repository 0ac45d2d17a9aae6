"""Augmentation: small changes to training images that leave the subject the same."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from holue.embedding.training.pytorch import torch
from holue.errors import InvalidParameterError

Tensor = torch.Tensor


@dataclass(frozen=True)
class Augmentation:
    """How far each change may go; 0 and False switch it off.

    ``rotation`` is in degrees; ``zoom``, ``shift`` and ``erase`` are shares of the image; ``brightness`` and
    ``contrast`` are shares of the range of pixel values.

    >>> images = torch.zeros(2, 1, 8, 8)
    >>> Augmentation().apply(images, np.random.default_rng(0)).shape
    torch.Size([2, 1, 8, 8])
    """

    flip: bool = False
    rotation: float = 10.0
    zoom: float = 0.1
    shift: float = 0.08
    brightness: float = 0.2
    contrast: float = 0.2
    erase: float = 0.3

    def __post_init__(self) -> None:
        for name in ("zoom", "shift", "brightness", "contrast", "erase"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidParameterError(f"{name} is a share in [0, 1), got {getattr(self, name)}")
        if not 0 <= self.rotation <= 180:
            raise InvalidParameterError(f"rotation must be 0 to 180 degrees, got {self.rotation}")

    def apply(self, images: Tensor, rng: np.random.Generator) -> Tensor:
        """Images (n, channels, height, width) in −1..1, each changed in its own way."""
        changed = self._moved(images, rng)
        n = len(images)
        if self.brightness or self.contrast:
            factor = _column(rng.uniform(1 - self.contrast, 1 + self.contrast, n))
            offset = _column(rng.uniform(-self.brightness, self.brightness, n))
            changed = (changed * factor + offset).clamp(-1, 1)
        if self.erase:
            changed = self._erased(changed, rng)
        return changed

    def _moved(self, images: Tensor, rng: np.random.Generator) -> Tensor:
        n = len(images)
        angle = np.deg2rad(rng.uniform(-self.rotation, self.rotation, n))
        size = rng.uniform(1 - self.zoom, 1 + self.zoom, n)
        mirror = np.where(rng.random(n) < 0.5, -1.0, 1.0) if self.flip else np.ones(n)
        # The grid spans −1..1, so a shift by a share of the image is twice that share.
        right, down = rng.uniform(-2 * self.shift, 2 * self.shift, (2, n))
        maps = np.empty((n, 2, 3), dtype=np.float32)
        maps[:, 0] = np.stack([mirror * size * np.cos(angle), -size * np.sin(angle), right], axis=1)
        maps[:, 1] = np.stack([mirror * size * np.sin(angle), size * np.cos(angle), down], axis=1)
        grid = torch.nn.functional.affine_grid(torch.from_numpy(maps), list(images.shape), align_corners=False)
        return torch.nn.functional.grid_sample(images, grid, padding_mode="border", align_corners=False)

    def _erased(self, images: Tensor, rng: np.random.Generator) -> Tensor:
        n, _, height, width = images.shape
        kept = torch.ones(n, 1, height, width)
        for row in np.flatnonzero(rng.random(n) < 0.5):
            tall, wide = (max(1, math.ceil(rng.uniform(0, self.erase) * edge)) for edge in (height, width))
            top, left = rng.integers(0, height - tall + 1), rng.integers(0, width - wide + 1)
            kept[row, :, top : top + tall, left : left + wide] = 0
        return images * kept


def _column(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Tensor:
    return torch.from_numpy(values.astype(np.float32))[:, None, None, None]
