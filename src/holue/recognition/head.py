"""ResidualSigmoidHead: the paper's network from the two KL terms to P(correct), in plain numpy.

Three residual blocks of widths 48, 72 and 96, then a linear layer and a sigmoid:

    h = σ(W₁ x + b₁),   block(x) = W₃ σ(W₂ h + b₂) + b₃ + h,   q = σ(w · block₃(block₂(block₁(x))) + b)

trained full-batch for 2000 steps of Adam under a one-cycle learning rate with peak 1e-3, on balanced binary
cross-entropy (right answers and wrong ones weigh the same in total). Initialisation and schedule are those of
``torch.nn.Linear`` and ``torch.optim.lr_scheduler.OneCycleLR`` at their defaults, and the tests check every step against torch.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from holue.errors import CalibrationDataError, NotCalibratedError
from holue.gallery.embeddings import Float64Array, FloatArray

WIDTHS = (48, 72, 96)
Parameters = list[FloatArray]


class ResidualSigmoidHead:
    """P(correct) from m features; fit once, then call.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 2))
    >>> head = ResidualSigmoidHead(steps=300)
    >>> head.fit(x, x[:, 0] > 0, rng)
    >>> bool(head(np.array([[2.0, 0.0]]))[0] > 0.5 > head(np.array([[-2.0, 0.0]]))[0])
    True
    """

    parameters: Parameters | None = None

    def __init__(self, *, steps: int = 2000, peak_rate: float = 1e-3, max_points: int = 1024) -> None:
        self.steps = steps
        self.peak_rate = peak_rate
        self.max_points = max_points

    def fit(self, features: Float64Array, correct: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:
        """Train on features (n, m) and whether each answer was right.

        More than ``max_points`` probes are first merged into weighted cells (see :func:`merge_points`), so that the time
        does not grow with the validation set.
        """
        if correct.all() or not correct.any():
            kind = "wrong" if correct.all() else "right"
            raise CalibrationDataError(
                f"none of the {len(correct)} validation answers is {kind}: there is nothing to tell apart; bring harder "
                "validation probes (blurred, look-alikes, strangers), or use method='galue', which needs no training"
            )
        points, target, weight = merge_points(features, correct, self.max_points)
        parameters = [p.astype(np.float32) for p in initial_parameters(features.shape[1], rng)]
        optimizer = OneCycleAdam(parameters, self.steps, self.peak_rate)
        points32, target32, weight32 = (v.astype(np.float32) for v in (points, target, weight))
        # The products are small: a second BLAS thread costs more than it gives.
        with threadpool_limits(limits=1, user_api="blas"):
            for _ in range(self.steps):
                optimizer.step(gradients(parameters, points32, target32, weight32))
        self.parameters = parameters

    def __call__(self, features: Float64Array) -> Float64Array:
        """P(correct) (n,)."""
        if self.parameters is None:
            raise NotCalibratedError("this quality is learned from validation probes: call calibrate first")
        parameters: Parameters = [p.astype(np.float64) for p in self.parameters]
        out: FloatArray = features
        for i in range(len(WIDTHS)):
            out = _block(out, parameters[6 * i : 6 * i + 6])[-1]
        w, b = parameters[-2:]
        return np.asarray(_sigmoid(out @ w[0] + b[0]))

    def state(self) -> dict[str, Float64Array]:
        """The weights, by number."""
        return {f"head_{i:02d}": np.asarray(p, dtype=np.float64) for i, p in enumerate(self.parameters or [])}

    def restore(self, state: Mapping[str, Float64Array]) -> None:
        """Take back what :meth:`state` gave."""
        names = sorted(name for name in state if name.startswith("head_"))
        self.parameters = [np.asarray(state[name], dtype=np.float32) for name in names] or None


def initial_parameters(n_features: int, rng: np.random.Generator) -> Parameters:
    """Weights and biases uniform in ±1/√fan-in: (W₁ b₁ W₂ b₂ W₃ b₃) per block, then (w, b)."""
    parameters: Parameters = []

    def linear(fan_in: int, fan_out: int) -> None:
        bound = 1 / np.sqrt(fan_in)
        parameters.append(rng.uniform(-bound, bound, (fan_out, fan_in)))
        parameters.append(rng.uniform(-bound, bound, fan_out))

    fan_in = n_features
    for width in WIDTHS:
        linear(fan_in, width)
        linear(width, width)
        linear(width, width)
        fan_in = width
    linear(fan_in, 1)
    return parameters


def gradients(parameters: Parameters, x: FloatArray, target: FloatArray, weight: FloatArray) -> Parameters:
    """Gradient of ``Σ_i weight_i · BCE(q(x_i), target_i)``, by hand from the last layer back."""
    caches: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    out = x
    for i in range(len(WIDTHS)):
        h, inner, result = _block(out, parameters[6 * i : 6 * i + 6])
        caches.append((out, h, inner))
        out = result
    w, b = parameters[-2:]
    d_logit = weight * (_sigmoid(out @ w[0] + b[0]) - target)
    grads: Parameters = [(d_logit @ out)[None, :], np.array([d_logit.sum()], dtype=x.dtype)]
    d_out = d_logit[:, None] * w
    for i in reversed(range(len(WIDTHS))):
        w1, _, w2, _, w3, _ = parameters[6 * i : 6 * i + 6]
        into, h, inner = caches[i]
        d_inner = (d_out @ w3) * inner * (1 - inner)
        d_h = (d_out + d_inner @ w2) * h * (1 - h)
        block = [d_h.T @ into, d_h.sum(0), d_inner.T @ h, d_inner.sum(0), d_out.T @ inner, d_out.sum(0)]
        grads = block + grads
        d_out = d_h @ w1
    return grads


def _block(x: FloatArray, parameters: Parameters) -> tuple[FloatArray, FloatArray, FloatArray]:
    w1, b1, w2, b2, w3, b3 = parameters
    h = _sigmoid(x @ w1.T + b1)
    inner = _sigmoid(h @ w2.T + b2)
    return h, inner, inner @ w3.T + b3 + h


class OneCycleAdam:
    """Adam whose learning rate rises for 30 % of the steps and falls by cosine, while β₁ falls and rises."""

    def __init__(self, parameters: Parameters, steps: int, peak_rate: float) -> None:
        self.parameters = parameters
        self.steps = steps
        self.peak_rate = peak_rate
        self.taken = 0
        self.first = [np.zeros_like(p) for p in parameters]
        self.second = [np.zeros_like(p) for p in parameters]

    def schedule(self, step: int) -> tuple[float, float]:
        """Learning rate and β₁ at a step, as OneCycleLR's defaults have them."""
        start, end = self.peak_rate / 25, self.peak_rate / 25 / 1e4
        turn, last = 0.3 * self.steps - 1, self.steps - 1
        if step <= turn:
            return _cosine(start, self.peak_rate, step / turn), _cosine(0.95, 0.85, step / turn)
        done = (step - turn) / (last - turn)
        return _cosine(self.peak_rate, end, done), _cosine(0.85, 0.95, done)

    def step(self, grads: Parameters) -> None:
        """One update, in place."""
        rate, beta1 = self.schedule(self.taken)
        beta2, eps = 0.999, 1e-8
        self.taken += 1
        correct1, correct2 = 1 - beta1**self.taken, 1 - beta2**self.taken
        for p, g, m, v in zip(self.parameters, grads, self.first, self.second):
            m += (1 - beta1) * (g - m)
            v += (1 - beta2) * (g * g - v)
            p -= rate / correct1 * m / (np.sqrt(v) / np.sqrt(correct2) + eps)


def merge_points(
    features: Float64Array, correct: npt.NDArray[np.bool_], max_points: int
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Points, targets and weights of at most ``max_points`` merged probes; weights balance right and wrong.

    Probes of one label that share a cell become their mean. The cell starts at 1/256 of a standard deviation and grows only
    until few enough are left, far below what a function this smooth resolves.
    """
    balance = np.where(correct, 0.5 / max(correct.sum(), 1), 0.5 / max((~correct).sum(), 1))
    if len(features) <= max_points:
        return features, correct.astype(np.float64), balance
    cell = 1 / 256
    while True:
        # asinh keeps cells fine near the bulk and coarse in far tails, where there is little to resolve.
        codes = np.column_stack([np.floor(np.arcsinh(features) / cell), correct])
        _, member, count = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
        if len(count) <= max_points:
            break
        cell *= 1.5
    member = member.reshape(-1)
    means = np.column_stack([np.bincount(member, column) / count for column in features.T])
    target = np.bincount(member, correct) / count
    return means, target, np.bincount(member, balance).astype(np.float64)


def _sigmoid(x: FloatArray) -> FloatArray:
    # As a tanh it cannot overflow, and numpy has it in vector instructions.
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


def _cosine(start: float, end: float, done: float) -> float:
    return float(end + (start - end) / 2 * (1 + np.cos(np.pi * done)))
