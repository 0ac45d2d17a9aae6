"""Backbones: small convolutional networks that learn to recognise from scratch, on a CPU, in minutes."""

from __future__ import annotations

from holue.embedding.training.pytorch import torch

Tensor = torch.Tensor
STAGES = 4


class SmallResNet(torch.nn.Module):
    """Images (n, channels, height, width) → embedding (n, dim) and bottleneck features (n, f).

    Four stages halve the image and double the channels, each a strided convolution and a residual block; a 1×1
    convolution to ``reduced`` channels keeps where things are while flattening stays small. Plain convolutions: on
    one core they train faster than depthwise ones with as many weights. The embedding is not
    normalised, so that its length can tell good samples from poor ones.

    >>> embedding, features = SmallResNet(channels=1, height=32, width=32).eval()(torch.zeros(2, 1, 32, 32))
    >>> tuple(embedding.shape), tuple(features.shape)
    ((2, 128), (2, 256))
    """

    def __init__(
        self, *, channels: int, height: int, width: int, first: int = 16, reduced: int = 64, dim: int = 128
    ) -> None:
        super().__init__()
        layers: list[torch.nn.Module] = []
        entering = channels
        for stage in range(STAGES):
            leaving = first * 2**stage
            layers += [_convolution(entering, leaving, stride=2), torch.nn.ReLU(), _ResidualBlock(leaving)]
            entering = leaving
        self.stages = torch.nn.Sequential(*layers)
        self.reduce = torch.nn.Sequential(
            torch.nn.Conv2d(entering, reduced, 1, bias=False), torch.nn.BatchNorm2d(reduced), torch.nn.ReLU()
        )
        # Each stage rounds an odd edge up.
        rows, columns = (-(-edge // 2**STAGES) for edge in (height, width))
        self.feature_dim = reduced * rows * columns
        self.embed = torch.nn.Sequential(torch.nn.Linear(self.feature_dim, dim, bias=False), torch.nn.BatchNorm1d(dim))

    def forward(self, images: Tensor) -> tuple[Tensor, Tensor]:
        """Both outputs, embedding first."""
        features = torch.flatten(self.reduce(self.stages(images)), 1)
        return self.embed(features), features


class _ResidualBlock(torch.nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.change = torch.nn.Sequential(
            _convolution(channels, channels), torch.nn.ReLU(), _convolution(channels, channels)
        )

    def forward(self, images: Tensor) -> Tensor:
        return torch.relu(images + self.change(images))


def _convolution(entering: int, leaving: int, *, stride: int = 1) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Conv2d(entering, leaving, 3, stride=stride, padding=1, bias=False),
        torch.nn.BatchNorm2d(leaving),
    )
