import os
import subprocess
import sys

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import expit

from holue.errors import CalibrationDataError, NotCalibratedError
from holue.recognition.quality.heads.cells import merge_points
from holue.recognition.quality.heads.network import BalancedLoss, ResidualNetwork, activate
from holue.recognition.quality.heads.one_cycle import OneCycleAdam
from holue.recognition.quality.heads.residual_sigmoid import ResidualSigmoidHead

Array = npt.NDArray[np.float64]


def labelled(n: int, n_features: int = 2, seed: int = 0) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    x, target = rng.normal(size=(n, n_features)), (rng.random(n) > 0.3).astype(float)
    return x, target, np.where(target == 1, 0.5 / target.sum(), 0.5 / (1 - target).sum())


def torch_head(parameters):  # type: ignore[no-untyped-def]
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
    tensors = [torch.tensor(p.copy(), requires_grad=True) for p in parameters]

    def forward(x):  # type: ignore[no-untyped-def]
        for i in range(3):
            w1, b1, w2, b2, w3, b3 = tensors[6 * i : 6 * i + 6]
            h = torch.sigmoid(x @ w1.T + b1)
            x = torch.sigmoid(h @ w2.T + b2) @ w3.T + b3 + h
        return (x @ tensors[-2].T + tensors[-1])[:, 0]

    return torch, tensors, forward


def test_training_follows_torch_step_by_step() -> None:
    x, target, weight = labelled(31)
    network = ResidualNetwork(2, np.float64)
    network.draw(np.random.default_rng(0))
    torch, tensors, forward = torch_head(network.layers)
    steps = 60
    loss = BalancedLoss(network, x, target, weight)
    ours = OneCycleAdam(network.vector, steps, 1e-2)
    theirs = torch.optim.Adam(tensors, lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(theirs, max_lr=1e-2, total_steps=steps)
    for step in range(steps):
        ours.step(loss.gradient())
        theirs.zero_grad()
        cross_entropy = torch.nn.functional.binary_cross_entropy_with_logits(
            forward(torch.tensor(x)), torch.tensor(target), weight=torch.tensor(weight), reduction="sum"
        )
        cross_entropy.backward()
        theirs.step()
        if step < steps - 1:
            schedule.step()
    # Sixty float64 steps of the same arithmetic in another order.
    for mine, tensor in zip(network.layers, tensors):
        np.testing.assert_allclose(mine, tensor.detach().numpy(), atol=1e-9)
    np.testing.assert_allclose(network.logits(x), forward(torch.tensor(x)).detach().numpy(), atol=1e-9)


def test_the_gradient_is_the_slope_of_the_loss() -> None:
    x, target, weight = labelled(40, 3)
    network = ResidualNetwork(3, np.float64)
    network.draw(np.random.default_rng(5))
    gradient = BalancedLoss(network, x, target, weight).gradient().copy()

    def loss(number: int, move: float) -> float:
        network.vector[number] += move
        logit = network.logits(x)
        network.vector[number] -= move
        return float(weight @ (np.logaddexp(0, logit) - target * logit))

    # Some weights of every layer. Central differences lose the third derivative times 1e-10 / 6, and 1e-16 / 1e-5 by rounding.
    ends = np.cumsum([layer.size for layer in network.layers])
    some = np.unique(np.concatenate([ends - 1, np.random.default_rng(6).integers(ends[-1], size=100)]))
    slopes = [(loss(number, 1e-5) - loss(number, -1e-5)) / 2e-5 for number in some]
    np.testing.assert_allclose(gradient[some], slopes, atol=1e-9)


@pytest.mark.parametrize(("n", "n_features"), [(1, 2), (2, 1), (300, 3)])
def test_the_single_precision_gradient_is_the_double_one_rounded(n: int, n_features: int) -> None:
    x, target, weight = labelled(max(n, 20), n_features)
    points = x[:n], target[:n], weight[:n]
    double, single = ResidualNetwork(n_features, np.float64), ResidualNetwork(n_features)
    single.draw(np.random.default_rng(1))
    double.vector[:] = single.vector
    exact = BalancedLoss(double, *points).gradient()
    rounded = BalancedLoss(single, *points).gradient()
    # Sums of up to 300 terms of 6e-8 relative error each, of both signs.
    np.testing.assert_allclose(rounded, exact, rtol=1e-4, atol=2e-6 * np.abs(exact).max())


def test_the_polynomial_sigmoid_is_good_to_float32_and_never_overflows() -> None:
    x = np.concatenate([np.linspace(-80, 80, 4001), [-1e30, -200.0, 200.0, 1e30, 0.0]]).astype(np.float32)
    half = x / 2
    out = np.tile(half, (3, 1))
    activate(out, half)
    exact = expit(np.tile((half + half).astype(np.float64), (3, 1)))
    # 2^y has the relative error of y's rounding, |y| ≤ 126 units of 6e-8, beside 2e-7 of the polynomial and the division.
    np.testing.assert_allclose(out, exact, rtol=8e-6, atol=1e-37)
    np.testing.assert_allclose(out[:, np.abs(x) < 8], exact[:, np.abs(x) < 8], rtol=1.2e-6)


def test_the_same_seed_gives_the_same_head_and_restoring_keeps_it() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(80, 2))
    correct = x[:, 0] + 0.5 * rng.normal(size=80) > -0.5
    heads = [ResidualSigmoidHead(steps=50), ResidualSigmoidHead(steps=50)]
    for head in heads:
        head.fit(x, correct, np.random.default_rng(3))
    np.testing.assert_array_equal(heads[0](x), heads[1](x))
    other = ResidualSigmoidHead()
    other.restore(heads[0].state())
    np.testing.assert_array_equal(other(x), heads[0](x))
    assert ((heads[0](x) > 0) & (heads[0](x) < 1)).all()


def test_merging_keeps_weights_means_and_labels() -> None:
    rng = np.random.default_rng(2)
    x, correct = rng.normal(size=(5000, 2)), rng.random(5000) > 0.1
    points, target, weight = merge_points(x, correct, 500)
    assert len(points) <= 500
    assert set(np.unique(target)) == {0.0, 1.0}
    assert weight[target == 1].sum() == pytest.approx(0.5)
    assert weight[target == 0].sum() == pytest.approx(0.5)
    np.testing.assert_allclose(weight[target == 1] @ points[target == 1], 0.5 * x[correct].mean(0), atol=1e-12)
    few = merge_points(x[:100], correct[:100], 500)
    np.testing.assert_array_equal(few[0], x[:100])


@pytest.mark.parametrize(
    "column", [np.repeat([1.0, 1 + 2e-16, 3.0], 50), np.zeros(150), 10.0 ** np.linspace(-300, 150, 150)]
)
def test_merging_stops_where_nothing_is_left_to_cut(column: Array) -> None:
    correct = np.arange(len(column)) % 2 == 0
    points, target, weight = merge_points(column[:, None], correct, 100)
    assert 2 <= len(points) <= 100
    assert weight.sum() == pytest.approx(1.0)
    assert target @ weight == pytest.approx(0.5)


def test_merged_training_answers_like_full_training() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=(800, 2))
    correct = rng.random(800) < 1 / (1 + np.exp(-3 * x[:, 0] - x[:, 1] - 2))
    full, merged = ResidualSigmoidHead(steps=200, max_points=800), ResidualSigmoidHead(steps=200, max_points=300)
    for head in (full, merged):
        head.fit(x, correct, np.random.default_rng(0))
    # 800 probes leave a standard error of about 0.05 on a probability; merging must stay well inside it.
    np.testing.assert_allclose(merged(x), full(x), atol=0.02)


def test_it_needs_right_and_wrong_answers() -> None:
    x = np.zeros((5, 2))
    with pytest.raises(CalibrationDataError, match="none of the 5 validation answers is wrong"):
        ResidualSigmoidHead().fit(x, np.ones(5, dtype=bool), np.random.default_rng(0))
    with pytest.raises(CalibrationDataError, match="none of the 5 validation answers is right"):
        ResidualSigmoidHead().fit(x, np.zeros(5, dtype=bool), np.random.default_rng(0))
    with pytest.raises(NotCalibratedError, match="calibrate first"):
        ResidualSigmoidHead()(x)


TRAINED_IN_A_PROCESS_OF_ITS_OWN = """
import hashlib, sys
import numpy as np
from holue import OpenSetRecognizer
from holue.datasets.simulated import simulate

world = simulate(n_subjects=150, n_strangers=60, dim=64, concentration=70.0, rng=np.random.default_rng(0))
X, probes = world.gallery.X.astype(np.float32), world.probes.X.astype(np.float32)
recognizer = OpenSetRecognizer("holue", threads=int(sys.argv[1]), random_state=0)
recognizer.fit(X, world.gallery.y, world.gallery.concentration)
if sys.argv[2] == "probes":
    recognizer.calibrate(probes, world.probes.y, world.probes.concentration)
else:
    recognizer.calibrate_leave_one_out(X, world.gallery.y, world.gallery.concentration)
print(hashlib.sha256(b"".join(part.tobytes() for part in recognizer.quality_.state().values())).hexdigest())
"""


@pytest.mark.parametrize("way", ["probes", "leave one out"])
def test_one_seed_gives_one_network_whatever_the_threads(way: str) -> None:
    found = set()
    for threads, blas in (("1", "1"), ("2", "2"), ("3", "1")):
        environment = {**os.environ, "OMP_NUM_THREADS": blas, "OPENBLAS_NUM_THREADS": blas}
        command = [sys.executable, "-c", TRAINED_IN_A_PROCESS_OF_ITS_OWN, threads, way]
        found.add(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
    assert len(found) == 1
