"""Heads: small networks on the bottleneck features of a frozen recogniser."""

from __future__ import annotations

import math

import numpy as np

from holue.embedding.training.pytorch import torch
from holue.embedding.training.training_samples import FeatureScale
from holue.gallery.embeddings import FloatArray

Tensor = torch.Tensor


class _Trunk(torch.nn.Module):
    """Features, standardised by the training set's mean and deviation → outputs, with or without a hidden layer."""

    mean: Tensor
    deviation: Tensor

    def __init__(self, scale: FeatureScale, hidden: int, outputs: int, dropout: float) -> None:
        super().__init__()
        # A feature that never varies carries nothing; dividing by its deviation would be by zero.
        deviation = np.where(scale.deviation > 1e-6, scale.deviation, np.float32(1.0))
        self.register_buffer("mean", torch.from_numpy(scale.mean))
        self.register_buffer("deviation", torch.from_numpy(deviation))
        width = len(scale.mean)
        layers: list[torch.nn.Module] = [torch.nn.Dropout(dropout)] if dropout else []
        if hidden:
            layers += [torch.nn.Linear(width, hidden), torch.nn.GELU()]
        self.last = torch.nn.Linear(hidden or width, outputs)
        self.layers = torch.nn.Sequential(*layers)

    def start_at_zero(self) -> None:
        """Make the first outputs 0, so that training begins at the bound head's initial value."""
        torch.nn.init.zeros_(self.last.weight)
        torch.nn.init.zeros_(self.last.bias)

    def forward(self, features: Tensor) -> Tensor:
        outputs: Tensor = self.last(self.layers((features - self.mean) / self.deviation))
        return outputs


class PositiveHead(torch.nn.Module):
    """One positive number per sample within ``lower < value < upper``: a concentration, or a scale.

        value = lower · (upper/lower)^σ(u + u₀)

    with ``u`` the network's output and ``u₀`` such that training starts at ``initial``.
    """

    def __init__(
        self,
        scale: FeatureScale,
        *,
        lower: float,
        upper: float,
        initial: float,
        hidden: int = 64,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.trunk = _Trunk(scale, hidden, 1, dropout)
        self.trunk.start_at_zero()
        self.log_lower, self.log_ratio = math.log(lower), math.log(upper / lower)
        share = min(max(math.log(initial / lower) / self.log_ratio, 0.01), 0.99)
        self.offset = math.log(share / (1 - share))

    def forward(self, features: Tensor) -> Tensor:
        """(n, f) → (n,)."""
        share = torch.sigmoid(self.trunk(features) + self.offset)
        return torch.exp(self.log_lower + self.log_ratio * share)[:, 0]


class LogVarianceHead(torch.nn.Module):
    """A log-variance per coordinate, within a factor ``e^reach`` of where training starts.

    ln σ² = initial + reach · tanh(u / reach)
    """

    initial: Tensor

    def __init__(
        self,
        scale: FeatureScale,
        *,
        initial: FloatArray,
        reach: float = math.log(1e3),
        hidden: int = 64,
        dropout: float = 0.2,
    ) -> None:
        super().__init__()
        self.trunk = _Trunk(scale, hidden, len(initial), dropout)
        self.trunk.start_at_zero()
        self.reach = reach
        self.register_buffer("initial", torch.from_numpy(np.asarray(initial, dtype=np.float32)))

    def forward(self, features: Tensor) -> Tensor:
        """(n, f) → (n, d)."""
        return self.initial + self.reach * torch.tanh(self.trunk(features) / self.reach)


class ProjectionHead(torch.nn.Module):
    """A new embedding of ``dim`` coordinates, whose length is free."""

    def __init__(self, scale: FeatureScale, *, dim: int = 128, hidden: int = 0, dropout: float = 0.2) -> None:
        super().__init__()
        self.trunk = _Trunk(scale, hidden, dim, dropout)

    def forward(self, features: Tensor) -> Tensor:
        """(n, f) → (n, dim)."""
        projected: Tensor = self.trunk(features)
        return projected


class Exponential(torch.nn.Module):
    """e^x, for what is trained as a logarithm and used as itself."""

    def forward(self, logarithm: Tensor) -> Tensor:
        """Element by element."""
        return torch.exp(logarithm)
