"""F1GainQuality: what keeping an answer is expected to add to F1 (HolUE-F1)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array
from holue.recognition.calibration.truth import correct_answers
from holue.recognition.quality.calibrated import CalibratedQuality
from holue.recognition.quality.score import Rating, State
from holue.recognition.reading import Reading

MIDDLE = 0.25
"""Filtered share at which F is read: the middle of the 0 to 0.5 over which prediction rejection ratios are taken."""
ROUNDS = 20


class F1GainQuality(CalibratedQuality):
    """``q = E[2(1 − F)·TP − F·error]``, with P(correct) = p of HolUE-plus: the order of filtering for F1.

        accepted    q = 2(1 − F) p − F (1 − p)
        rejected    q = −F (1 − p)

    F1 = 2 TP / (2 TP + errors) gives no credit for a right rejection, so the order by P(correct) is not the one that raises it
    fastest. Of all sets of answers, the one with the highest F1 keeps those with ``q > 0`` where F is that highest F1 (a ratio
    is maximal where ``2 TP − F (2 TP + errors)`` is, Dinkelbach 1967). F is the F1 of the development answers with a quarter of
    them filtered in this very order and one more error imagined, raised round by round as long as it rises. To act on answers
    one by one, HolUE-plus is the better scale: this one is made for F1.
    """

    name = "HolUE-F1"
    is_probability = False

    def __init__(self) -> None:
        super().__init__()
        self.level = np.nan

    def fit(self, reading: Reading, truth: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
        """Fit P(correct), then find F on the same validation probes."""
        super().fit(reading, truth, rng)
        correct = correct_answers(reading, truth)
        p, accepted = super().__call__(reading), reading.accepted
        self.level = _f1(accepted, correct)
        for _ in range(ROUNDS):
            kept = np.argsort(f1_gain(p, accepted, self.level), kind="stable")[int(MIDDLE * len(p)) :]
            reached = _f1(accepted[kept], correct[kept])
            if reached <= self.level:
                break
            self.level = reached

    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,)."""
        return f1_gain(super().__call__(reading), reading.accepted, self.level)

    def rate(self, reading: Reading) -> Rating:
        """As :meth:`CalibratedQuality.rate`, with the expected gain for quality."""
        rating = super().rate(reading)
        quality = f1_gain(rating.quality, reading.accepted, self.level)
        return replace(rating, quality=quality, uncertainty=self.uncertainty(reading, quality))

    def state(self) -> State:
        """The fitted numbers."""
        return {**super().state(), "level": np.array([self.level])}

    def restore(self, state: State) -> None:
        """Take back what :meth:`state` gave."""
        super().restore(state)
        (level,) = state["level"].tolist()
        if not 0 <= level <= 1:
            raise ValueError(f"level must be between 0 and 1, got {level}")
        self.level = level


def f1_gain(p_correct: Float64Array, accepted: npt.NDArray[np.bool_], level: float) -> Float64Array:
    """Expected gain of keeping each answer where F1 stands at ``level``.

    >>> f1_gain(np.array([0.9, 0.9]), np.array([True, False]), 0.5).round(3).tolist()
    [0.85, -0.05]
    """
    return np.asarray(np.where(accepted, 2 * (1 - level) * p_correct, 0.0) - level * (1 - p_correct))


def _f1(accepted: npt.NDArray[np.bool_], correct: npt.NDArray[np.bool_]) -> float:
    """F1 of answers, with one error imagined: at F = 1 names would count no more than rejections."""
    hits = int((accepted & correct).sum())
    return 2 * hits / (2 * hits + int((~correct).sum()) + 1)
