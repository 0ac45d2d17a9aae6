from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

torch = pytest.importorskip("torch")

from holue.embedding.training.losses import (  # noqa: E402
    arcface_loss,
    cosface_loss,
    mutual_likelihood_score,
    pfe_loss,
    scaleface_loss,
    scf_loss,
)
from holue.sphere.bessel import inverse_mean_resultant_length, mean_resultant_length  # noqa: E402
from holue.sphere.vmf import log_normalizer  # noqa: E402

RNG = np.random.default_rng(5)


def float64(*shape: int, low: float = -0.95, high: float = 0.95) -> torch.Tensor:
    return torch.from_numpy(RNG.uniform(low, high, shape)).requires_grad_()


def scf_at(kappa: float, cosine: float, dim: int) -> tuple[float, float]:
    concentration = torch.tensor([kappa], dtype=torch.float64, requires_grad=True)
    loss = scf_loss(torch.tensor([cosine], dtype=torch.float64), concentration, dim)
    loss.backward()
    assert concentration.grad is not None
    return loss.item(), concentration.grad.item()


def test_scf_is_lowest_at_169_and_not_at_364() -> None:
    best = inverse_mean_resultant_length(512, 0.3)
    assert best == pytest.approx(168.8, abs=0.2)
    lowest, slope = scf_at(best, 0.3, 512)
    assert abs(slope) < 1e-12
    grid = np.geomspace(1, 1e4, 400)
    losses = [scf_at(kappa, 0.3, 512)[0] for kappa in grid]
    assert min(losses) >= lowest
    assert grid[int(np.argmin(losses))] == pytest.approx(best, rel=0.03)  # the grid's step is 2.3 %
    assert scf_at(364.0, 0.3, 512)[0] > lowest + 10


@given(
    kappa=st.floats(1e-2, 1e5),
    cosine=st.floats(-1, 1),
    dim=st.sampled_from([2, 3, 128, 512, 2048]),
)
def test_scf_is_its_formula_and_its_gradient_is_exact(kappa: float, cosine: float, dim: int) -> None:
    loss, slope = scf_at(kappa, cosine, dim)
    expected = -kappa * cosine - log_normalizer(dim, kappa)
    assert loss == pytest.approx(expected, rel=1e-9, abs=1e-9 * max(1.0, kappa))
    assert slope == pytest.approx(mean_resultant_length(dim, kappa) - cosine, rel=1e-12, abs=1e-15)


def test_scf_gradients_agree_with_finite_differences_in_both_arguments() -> None:
    concentration = torch.tensor([5.0, 150.0, 900.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda cosine, kappa: scf_loss(cosine, kappa, 512), (float64(3), concentration), atol=1e-4
    )


def test_scf_keeps_its_gradient_in_float32() -> None:
    kappa = torch.tensor([5e4], dtype=torch.float32, requires_grad=True)
    scf_loss(torch.tensor([0.99], dtype=torch.float32), kappa, 512).backward()
    assert kappa.grad is not None
    expected = mean_resultant_length(512, 5e4) - float(np.float32(0.99))
    assert kappa.grad.item() == pytest.approx(expected, rel=1e-6)  # float32


def test_the_mutual_likelihood_is_the_overlap_of_two_gaussians() -> None:
    # ∫ N(z; μ_x, Σ_x) N(z; μ_y, Σ_y) dz = N(μ_x; μ_y, Σ_x + Σ_y)
    mean_x, mean_y, log_x, log_y = (float64(4, 6, low=-2, high=2) for _ in range(4))
    scores = mutual_likelihood_score(mean_x, log_x, mean_y, log_y).detach().numpy()
    for row in range(4):
        covariance = np.diag(np.exp(log_x[row].detach().numpy()) + np.exp(log_y[row].detach().numpy()))
        expected = multivariate_normal(mean_y[row].detach().numpy(), covariance).logpdf(mean_x[row].detach().numpy())
        assert scores[row] == pytest.approx(expected, rel=1e-10)
    assert pfe_loss(mean_x, log_x, mean_y, log_y).item() == pytest.approx(-scores.mean())


def test_pfe_is_lowest_at_the_variance_of_the_pairs() -> None:
    difference = torch.from_numpy(RNG.standard_normal((5000, 1)))
    zero = torch.zeros_like(difference)
    log_variance = torch.zeros(1, 1, dtype=torch.float64, requires_grad=True)
    # closed form: σ²_x + σ²_y = E (x − y)²
    best = float(torch.log(difference.square().mean() / 2))
    losses = {
        shift: pfe_loss(difference, log_variance + best + shift, zero, log_variance + best + shift).item()
        for shift in (-0.05, 0.0, 0.05)
    }
    assert losses[0.0] < min(losses[-0.05], losses[0.05])


def test_pfe_survives_tiny_variances_in_float32() -> None:
    tiny = torch.full((1, 8), -80.0, requires_grad=True)
    loss = pfe_loss(torch.zeros(1, 8), tiny, torch.zeros(1, 8), tiny)
    loss.backward()
    assert torch.isfinite(loss)
    assert tiny.grad is not None
    assert torch.isfinite(tiny.grad).all()


def cross_entropy(logits: np.ndarray, target: np.ndarray) -> float:
    return float(np.mean(np.logaddexp.reduce(logits, axis=1) - logits[np.arange(len(target)), target]))


def test_arcface_and_cosface_are_their_formulas() -> None:
    cosine, target = RNG.uniform(-0.8, 0.99, (6, 4)), np.array([0, 3, 1, 1, 2, 0])
    own = np.arange(6), target
    angular, shifted = cosine.copy(), cosine.copy()
    angular[own] = np.cos(np.arccos(cosine[own]) + 0.5)
    shifted[own] -= 0.35
    scale = RNG.uniform(1, 64, 6)
    tensors = torch.from_numpy(cosine), torch.from_numpy(target)
    assert arcface_loss(*tensors, margin=0.5, scale=64.0).item() == pytest.approx(
        cross_entropy(64 * angular, target), rel=1e-12
    )
    assert cosface_loss(*tensors, margin=0.35, scale=64.0).item() == pytest.approx(
        cross_entropy(64 * shifted, target), rel=1e-12
    )
    assert scaleface_loss(*tensors, torch.from_numpy(scale), margin=0.5).item() == pytest.approx(
        cross_entropy(scale[:, None] * angular, target), rel=1e-12
    )


def test_one_scale_for_all_makes_scaleface_arcface() -> None:
    cosine, target = float64(5, 7), torch.tensor([0, 6, 3, 3, 1])
    scale = torch.full((5,), 24.0, dtype=torch.float64)
    assert scaleface_loss(cosine, target, scale).item() == pytest.approx(
        arcface_loss(cosine, target, scale=24.0).item(), rel=1e-14
    )


def test_margin_gradients_agree_with_finite_differences() -> None:
    target = torch.tensor([2, 0, 1, 1])
    scale = torch.tensor([8.0, 16.0, 4.0, 30.0], dtype=torch.float64, requires_grad=True)
    for loss in (
        lambda cosine, scale: arcface_loss(cosine, target, scale=16.0),
        lambda cosine, scale: cosface_loss(cosine, target, scale=16.0),
        lambda cosine, scale: scaleface_loss(cosine, target, scale),
    ):
        assert torch.autograd.gradcheck(loss, (float64(4, 3), scale))


def test_the_angular_margin_never_stops_falling() -> None:
    cosine = torch.linspace(1, -1, 2001, dtype=torch.float64)
    rows = torch.stack([cosine, torch.zeros_like(cosine)], dim=1)
    losses = [arcface_loss(row[None], torch.tensor([0]), margin=0.5, scale=8.0).item() for row in rows]
    # closer to the own class is always better, also where θ + m passes π and where the sine is held constant
    assert (np.diff(losses) > 0).all()


@pytest.mark.parametrize("extreme", [1.0, -1.0])
def test_margins_have_finite_gradients_at_the_poles(extreme: float) -> None:
    cosine = torch.tensor([[extreme, 0.0]], dtype=torch.float32, requires_grad=True)
    arcface_loss(cosine, torch.tensor([0])).backward()
    assert cosine.grad is not None
    assert torch.isfinite(cosine.grad).all()
