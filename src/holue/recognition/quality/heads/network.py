"""ResidualNetwork: the paper's small network, its weights in one vector, and the gradient of its loss by hand.

Three residual blocks of widths 48, 72 and 96, then a linear layer:

    h = σ(W₁ x + b₁),   u = σ(W₂ h + b₂),   block(x) = W₃ u + b₃ + h,   logit = w · block₃(block₂(block₁(x))) + b

Between the last block and the logit there is no sigmoid, so that block's W₃ is never multiplied with a matrix: the logit takes
``(W₃ᵀw) · u``, and its gradients are outer products with w. The rest of a step is matrix products into ready buffers, and
sigmoids in vector instructions.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import FloatArray
from holue.sphere.compiled import njit

WIDTHS = (48, 72, 96)

_ANY_ORDER = {"reassoc", "contract", "nsz", "nnan", "ninf"}  # sums may be split over vector lanes
_MINUS_LOG2_E, _LOWEST, _HIGHEST = np.float32(-1.4426950408889634), np.float32(-126.0), np.float32(126.0)
_C1, _C2, _C3, _C4, _C5, _C6 = (
    np.float32(c)
    for c in (
        0.6931471824645996,
        0.24022647738456726,
        0.055503323674201965,
        0.00961843691766262,
        0.001339893089607358,
        0.00015353530761785805,
    )
)
_ONE, _BIAS, _FRACTION_BITS = np.float32(1.0), np.int32(127), np.int32(23)


class ResidualNetwork:
    """Weights as one ``vector``; ``layers`` are views into it: (W₁ b₁ W₂ b₂ W₃ b₃) per block, then (w, b)."""

    def __init__(self, n_features: int, dtype: npt.DTypeLike = np.float32) -> None:
        self.shapes = layer_shapes(n_features)
        self.vector: FloatArray = np.zeros(sum(int(np.prod(shape)) for shape in self.shapes), dtype=dtype)
        self.layers = self.split(self.vector)

    def split(self, vector: FloatArray) -> list[FloatArray]:
        """Views of a vector as the layers' weights."""
        ends = np.cumsum([int(np.prod(shape)) for shape in self.shapes])
        return [part.reshape(shape) for part, shape in zip(np.split(vector, ends[:-1]), self.shapes)]

    def draw(self, rng: np.random.Generator) -> None:
        """Weights and biases uniform in ±1/√fan-in, as ``torch.nn.Linear`` has them."""
        for weights, biases in zip(self.layers[::2], self.layers[1::2]):
            bound = 1 / np.sqrt(weights.shape[1])
            weights[:] = rng.uniform(-bound, bound, weights.shape)
            biases[:] = rng.uniform(-bound, bound, biases.shape)

    def logits(self, x: FloatArray) -> FloatArray:
        """``logit`` (n,) of P(correct)."""
        out = x
        for first in range(0, 6 * len(WIDTHS), 6):
            w1, b1, w2, b2, w3, b3 = self.layers[first : first + 6]
            h = sigmoid(out @ w1.T + b1)
            out = sigmoid(h @ w2.T + b2) @ w3.T + b3 + h
        return np.asarray(out @ self.layers[-2][0] + self.layers[-1][0])


def layer_shapes(n_features: int) -> list[tuple[int, ...]]:
    """Shapes of weights and biases, in order."""
    shapes: list[tuple[int, ...]] = []
    fan_in = n_features
    for width in WIDTHS:
        shapes += [(width, fan_in), (width,), (width, width), (width,), (width, width), (width,)]
        fan_in = width
    return [*shapes, (1, fan_in), (1,)]


class BalancedLoss:
    """``Σ_i weight_i · BCE(σ(logit(x_i)), target_i)`` of fixed points, whose gradient is asked for again and again.

    It keeps room for everything one pass forward and back computes.
    """

    def __init__(self, network: ResidualNetwork, x: FloatArray, target: FloatArray, weight: FloatArray) -> None:
        dtype = network.vector.dtype
        x, self.target, self.weight = (np.ascontiguousarray(values, dtype=dtype) for values in (x, target, weight))
        self.network = network
        self.total = np.zeros_like(network.vector)
        self.gradients = network.split(self.total)
        self.h, self.u, self.d_h, self.d_u = (
            [np.empty((len(x), width), dtype=dtype) for width in WIDTHS] for _ in range(4)
        )
        # What goes into each block, and the gradient that comes back out of it; the last block's goes straight to the logit.
        self.into = [x, *(np.empty((len(x), width), dtype=dtype) for width in WIDTHS[:-1])]
        self.d_into = [np.empty_like(values) for values in self.into]
        self.nothing = np.zeros_like(self.target)

    def gradient(self) -> FloatArray:
        """The gradient as one vector, valid until the next call."""
        probability = self._forward()
        activate(probability[None], self.nothing)
        self._back(self.weight * (probability - self.target))
        return self.total

    def _forward(self) -> FloatArray:
        last = len(WIDTHS) - 1
        for i, (h, u) in enumerate(zip(self.h, self.u)):
            w1, b1, w2, b2, w3, b3 = self.network.layers[6 * i : 6 * i + 6]
            np.matmul(self.into[i], w1.T, out=h)
            activate(h, b1)
            np.matmul(h, w2.T, out=u)
            activate(u, b2)
            if i < last:
                np.matmul(u, w3.T, out=self.into[i + 1])
                _add_residual(self.into[i + 1], b3, h)
        w, b = self.network.layers[-2][0], self.network.layers[-1]
        return np.asarray(u @ (w @ w3) + h @ w + (b3 @ w + b[0]))

    def _back(self, d_logit: FloatArray) -> None:
        for i in reversed(range(len(WIDTHS))):
            w1, _, w2, _, w3, b3 = self.network.layers[6 * i : 6 * i + 6]
            g1, g_b1, g2, g_b2, g3, g_b3 = self.gradients[6 * i : 6 * i + 6]
            h, u, d_h, d_u = self.h[i], self.u[i], self.d_h[i], self.d_u[i]
            if i == len(WIDTHS) - 1:
                w = self.network.layers[-2][0]
                total, along_u = d_logit.sum(), d_logit @ u
                self.gradients[-2][0] = w3 @ along_u + d_logit @ h + total * b3
                self.gradients[-1][0] = total
                np.multiply.outer(w, along_u, out=g3)
                np.multiply(w, total, out=g_b3)
                d_u[:] = 0
                _through_last(d_u, d_logit, w @ w3, u, g_b2)
                np.matmul(d_u, w2, out=d_h)
                _through_last(d_h, d_logit, w, h, g_b1)
            else:
                d_out = self.d_into[i + 1]
                np.matmul(d_out.T, u, out=g3)
                # The block after this one has summed its own gradient over the points already.
                np.matmul(self.gradients[6 * i + 7], self.network.layers[6 * i + 6], out=g_b3)
                np.matmul(d_out, w3, out=d_u)
                _through_sigmoid(d_u, u, g_b2)
                np.matmul(d_u, w2, out=d_h)
                _add_through_sigmoid(d_h, d_out, h, g_b1)
            np.matmul(d_u.T, h, out=g2)
            np.matmul(d_h.T, self.into[i], out=g1)
            if i > 0:
                np.matmul(d_h, w1, out=self.d_into[i])


def sigmoid(x: FloatArray) -> FloatArray:
    """``1 / (1 + e^{−x})``; as a tanh it cannot overflow."""
    return np.asarray(0.5 + 0.5 * np.tanh(0.5 * x))


def activate(z: FloatArray, bias: FloatArray) -> None:
    """``z ← σ(z + bias)`` in place: in float32 by a polynomial (relative error 1e-6), else by numpy."""
    if z.dtype == np.float32:
        _activate_single(z, bias)
    else:
        z[:] = sigmoid(z + bias)


def _compiled(function):  # type: ignore[no-untyped-def]
    return njit(cache=True, nogil=True, error_model="numpy", fastmath=_ANY_ORDER)(function)


@_compiled
def _activate_single(z, bias):  # type: ignore[no-untyped-def]
    for i in range(z.shape[0]):
        for j in range(z.shape[1]):
            exponent = (z[i, j] + bias[j]) * _MINUS_LOG2_E
            # Written as conditions: min and max are honest about NaN, and for that reason are not vectorised.
            exponent = exponent if exponent > _LOWEST else _LOWEST
            exponent = exponent if exponent < _HIGHEST else _HIGHEST
            whole = np.rint(exponent)
            f = exponent - whole
            fraction = _ONE + f * (_C1 + f * (_C2 + f * (_C3 + f * (_C4 + f * (_C5 + f * _C6)))))
            power = fraction * np.int32((np.int32(whole) + _BIAS) << _FRACTION_BITS).view(np.float32)
            z[i, j] = _ONE / (_ONE + power)


@_compiled
def _add_residual(out, bias, h):  # type: ignore[no-untyped-def]
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] += bias[j] + h[i, j]


@_compiled
def _through_sigmoid(d, value, total):  # type: ignore[no-untyped-def]
    """``d ← d · σ(1−σ)`` in place, and its column sums."""
    total[:] = 0
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            d[i, j] *= value[i, j] - value[i, j] * value[i, j]
            total[j] += d[i, j]


@_compiled
def _add_through_sigmoid(d, more, value, total):  # type: ignore[no-untyped-def]
    """``d ← (d + more) · σ(1−σ)`` in place, and its column sums."""
    total[:] = 0
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            d[i, j] = (d[i, j] + more[i, j]) * (value[i, j] - value[i, j] * value[i, j])
            total[j] += d[i, j]


@_compiled
def _through_last(d, row, column, value, total):  # type: ignore[no-untyped-def]
    """``d ← (d + row ⊗ column) · σ(1−σ)`` in place, and its column sums."""
    total[:] = 0
    for i in range(d.shape[0]):
        for j in range(d.shape[1]):
            d[i, j] = (d[i, j] + row[i] * column[j]) * (value[i, j] - value[i, j] * value[i, j])
            total[j] += d[i, j]
