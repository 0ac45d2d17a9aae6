"""OneCycleAdam: Adam whose learning rate rises for 30 % of the steps and falls by cosine, while β₁ falls and rises.

The schedule is that of ``torch.optim.lr_scheduler.OneCycleLR`` at its defaults, the update that of ``torch.optim.Adam``:

    m ← m + (1−β₁)(g − m),   v ← v + (1−β₂)(g² − v),   p ← p − rate · (m / (1−β₁ᵗ)) / (√(v / (1−β₂ᵗ)) + ε)
"""

from __future__ import annotations

import numpy as np

from holue.gallery.embeddings import FloatArray
from holue.sphere.compiled import njit

BETA2, EPSILON = 0.999, 1e-8


class OneCycleAdam:
    """Moves one vector of parameters, in place."""

    def __init__(self, parameters: FloatArray, steps: int, peak_rate: float) -> None:
        self.parameters = parameters
        self.steps = steps
        self.peak_rate = peak_rate
        self.taken = 0
        self.first, self.second = np.zeros_like(parameters), np.zeros_like(parameters)

    def schedule(self, step: int) -> tuple[float, float]:
        """Learning rate and β₁ at a step."""
        start, end = self.peak_rate / 25, self.peak_rate / 25 / 1e4
        turn, last = 0.3 * self.steps - 1, self.steps - 1
        if step <= turn:
            return _cosine(start, self.peak_rate, step / turn), _cosine(0.95, 0.85, step / turn)
        done = (step - turn) / (last - turn)
        return _cosine(self.peak_rate, end, done), _cosine(0.85, 0.95, done)

    def step(self, gradient: FloatArray) -> None:
        """One update, in place."""
        rate, beta1 = self.schedule(self.taken)
        self.taken += 1
        correct1, correct2 = 1 - beta1**self.taken, 1 - BETA2**self.taken
        # Numbers in the precision of the parameters: one wider number would make the whole loop wide, and slow.
        numbers = 1 - beta1, 1 - BETA2, rate / correct1, 1 / np.sqrt(correct2), EPSILON
        _move(self.parameters, gradient, self.first, self.second, *(gradient.dtype.type(number) for number in numbers))


@njit(cache=True, nogil=True, error_model="numpy")
def _move(parameters, gradient, first, second, new1, new2, rate, scale, epsilon):  # type: ignore[no-untyped-def]
    for i in range(parameters.shape[0]):
        g = gradient[i]
        first[i] += new1 * (g - first[i])
        second[i] += new2 * (g * g - second[i])
        parameters[i] -= rate * first[i] / (np.sqrt(second[i]) * scale + epsilon)


def _cosine(start: float, end: float, done: float) -> float:
    return float(end + (start - end) / 2 * (1 + np.cos(np.pi * done)))
