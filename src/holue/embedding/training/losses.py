"""Losses: what an embedding, a concentration, a variance or a scale is trained to lower.

Every function takes cosines or unit vectors, never raw embeddings, and returns the mean over the batch.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from holue.embedding.training.pytorch import torch
from holue.sphere.bessel import mean_resultant_length
from holue.sphere.vmf import log_density

Tensor = torch.Tensor
SMALLEST_SINE_SQUARED = 1e-6
"""Below it the slope of the sine, cos θ / sin θ, would swamp a float32 batch; it is taken as constant there."""


def scf_loss(cosine: Tensor, concentration: Tensor, dim: int) -> Tensor:
    """Sphere confidence face: negative log-density of the class centre under the sample's von Mises-Fisher.

        mean over samples of  −κ_x cos θ − log C_d(κ_x)

    The gradient in κ_x is ``A_d(κ_x) − cos θ``: the best concentration is the one whose expected cosine is the one
    seen. Both are exact here at every dimension; a constant added inside the Bessel function's logarithm, as in
    public code, moves the optimum at d = 512 and cos θ = 0.3 from 169 to 364.

    >>> kappa = torch.tensor([168.8], dtype=torch.float64, requires_grad=True)
    >>> scf_loss(torch.tensor([0.3], dtype=torch.float64), kappa, 512).backward()
    >>> bool(kappa.grad.abs() < 1e-4)
    True
    """
    per_sample: Tensor = _NegativeLogDensity.apply(cosine, concentration, dim)  # type: ignore[no-untyped-call]
    return per_sample.mean()


class _NegativeLogDensity(torch.autograd.Function):
    """−log p(s; κ), computed in float64 outside torch: no torch function reaches I_v at order 255."""

    @staticmethod
    def forward(ctx: Any, cosine: Tensor, concentration: Tensor, dim: int) -> Tensor:
        score = np.clip(cosine.detach().double().numpy(), -1.0, 1.0)
        kappa = concentration.detach().double().numpy()
        ctx.save_for_backward(concentration)
        ctx.cosine_dtype = cosine.dtype
        ctx.slope = torch.from_numpy(np.asarray(mean_resultant_length(dim, kappa) - score))
        return torch.from_numpy(np.asarray(-log_density(score, dim, kappa))).to(concentration.dtype)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        (concentration,) = ctx.saved_tensors
        return (-gradient * concentration).to(ctx.cosine_dtype), gradient * ctx.slope.to(gradient.dtype), None


def mutual_likelihood_score(
    first_mean: Tensor, first_log_variance: Tensor, second_mean: Tensor, second_log_variance: Tensor
) -> Tensor:
    """Log-likelihood that two Gaussian embeddings are of one point (PFE), pair by pair.

        s(x, y) = −½ Σ_l [ (μ_x − μ_y)²_l / (σ²_x + σ²_y)_l + ln(σ²_x + σ²_y)_l ] − (d/2) ln 2π

    >>> zero = torch.zeros(1, 2, dtype=torch.float64)
    >>> mutual_likelihood_score(zero, zero, zero, zero).item()  # −ln 2 − ln 2π
    -2.5310...
    """
    # ln(σ²_x + σ²_y) from the logarithms: a variance of 1e-30 must not become ln 0 in float32.
    log_sum = torch.logaddexp(first_log_variance, second_log_variance)
    squared = (first_mean - second_mean).square()
    dim = first_mean.shape[-1]
    return -0.5 * (squared * torch.exp(-log_sum) + log_sum).sum(dim=-1) - 0.5 * dim * math.log(2 * math.pi)


def pfe_loss(
    first_mean: Tensor, first_log_variance: Tensor, second_mean: Tensor, second_log_variance: Tensor
) -> Tensor:
    """Probabilistic face embeddings: minus the mean mutual likelihood score of genuine pairs."""
    return -mutual_likelihood_score(first_mean, first_log_variance, second_mean, second_log_variance).mean()


def with_angular_margin(cosine: Tensor, target: Tensor, margin: float) -> Tensor:
    """The cosines (n, classes), that of each sample to its own class made harder: cos θ → cos(θ + m) (ArcFace).

    Beyond ``θ + m = π`` the cosine would rise again; the line ``cos θ − m sin m`` continues it downwards.
    """
    own = cosine.gather(1, target[:, None])
    sine = (1 - own.square()).clamp(min=SMALLEST_SINE_SQUARED).sqrt()
    turned = own * math.cos(margin) - sine * math.sin(margin)
    hardened = torch.where(own > math.cos(math.pi - margin), turned, own - margin * math.sin(margin))
    return cosine.scatter(1, target[:, None], hardened)


def with_cosine_margin(cosine: Tensor, target: Tensor, margin: float) -> Tensor:
    """The cosines (n, classes), that of each sample to its own class made harder: cos θ → cos θ − m (CosFace)."""
    own = cosine.gather(1, target[:, None])
    return cosine.scatter(1, target[:, None], own - margin)


def arcface_loss(cosine: Tensor, target: Tensor, *, margin: float = 0.5, scale: float = 64.0) -> Tensor:
    """Cross-entropy of ``s·cos(θ_y + m)`` against ``s·cos θ_j``.

    >>> cosine = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    >>> round(arcface_loss(cosine, torch.tensor([0]), margin=0.0, scale=1.0).item(), 4)  # ln(1 + e⁻¹)
    0.3133
    """
    return torch.nn.functional.cross_entropy(scale * with_angular_margin(cosine, target, margin), target)


def cosface_loss(cosine: Tensor, target: Tensor, *, margin: float = 0.35, scale: float = 64.0) -> Tensor:
    """Cross-entropy of ``s·(cos θ_y − m)`` against ``s·cos θ_j``."""
    return torch.nn.functional.cross_entropy(scale * with_cosine_margin(cosine, target, margin), target)


def scaleface_loss(cosine: Tensor, target: Tensor, scale: Tensor, *, margin: float = 0.5) -> Tensor:
    """ArcFace with a scale of its own for every sample: cross-entropy of ``s(x)·cos(θ_y + m)``.

    A sample that its class wins wants a large scale, one that it loses a small: ``s(x)`` is a quality.
    """
    logits = scale[:, None] * with_angular_margin(cosine, target, margin)
    return torch.nn.functional.cross_entropy(logits, target)
