import numpy as np
import pytest

from holue.errors import CalibrationDataError, NotCalibratedError
from holue.recognition.head import (
    OneCycleAdam,
    ResidualSigmoidHead,
    gradients,
    initial_parameters,
    merge_points,
)


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
    rng = np.random.default_rng(0)
    x, target = rng.normal(size=(30, 2)), (rng.random(30) > 0.3).astype(float)
    weight = np.where(target == 1, 0.5 / target.sum(), 0.5 / (1 - target).sum())
    parameters = initial_parameters(2, rng)
    torch, tensors, forward = torch_head(parameters)
    steps = 60
    ours = OneCycleAdam(parameters, steps, 1e-2)
    theirs = torch.optim.Adam(tensors, lr=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(theirs, max_lr=1e-2, total_steps=steps)
    for step in range(steps):
        ours.step(gradients(parameters, x, target, weight))
        theirs.zero_grad()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(
            forward(torch.tensor(x)), torch.tensor(target), weight=torch.tensor(weight), reduction="sum"
        )
        loss.backward()
        theirs.step()
        if step < steps - 1:
            schedule.step()
    # Sixty float64 steps of the same arithmetic in another order.
    for mine, tensor in zip(parameters, tensors):
        np.testing.assert_allclose(mine, tensor.detach().numpy(), atol=1e-9)


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
