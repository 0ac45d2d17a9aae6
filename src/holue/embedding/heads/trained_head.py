"""TrainedHead: a head after training, with what is worth knowing about how it came to be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from holue.embedding.inputs.model_input import Float32Array
from holue.embedding.training.pytorch import torch
from holue.embedding.training.train import TrainingHistory, TrainingSettings
from holue.gallery.embeddings import as_vectors


@dataclass(frozen=True, eq=False)
class TrainedHead:
    """``kind`` is ``scf``, ``pfe``, ``scaleface`` or ``arcface``; ``output`` names what the module gives.

    ``recogniser`` is the fingerprint of the model whose features the head reads.
    """

    kind: str
    output: str
    module: torch.nn.Module
    feature_dim: int
    recogniser: str
    settings: TrainingSettings
    history: TrainingHistory
    details: Mapping[str, float | int | str]

    def predict(self, features: object, *, batch_size: int = 4096) -> Float32Array:
        """The head's output for features (n, f): (n,) for a concentration or scale, else (n, d)."""
        given = as_vectors(features, dim=self.feature_dim, field="features").astype(np.float32)
        self.module.eval()
        with torch.no_grad():
            parts = [self.module(torch.from_numpy(part)).numpy() for part in _in_parts(given, batch_size)]
        return np.concatenate(parts)


def _in_parts(array: Float32Array, size: int) -> list[Float32Array]:
    return [array[start : start + size] for start in range(0, len(array), size)]
