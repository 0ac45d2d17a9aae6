"""HolisticMLPQuality: a score in [0, 1] learned from the two KL terms (HolUE-MLP)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array
from holue.recognition.calibration.truth import correct_answers
from holue.recognition.quality.heads.residual_sigmoid import ResidualSigmoidHead
from holue.recognition.quality.holistic_sum import HolisticSumQuality
from holue.recognition.quality.score import State
from holue.recognition.reading import Reading


class HolisticMLPQuality(HolisticSumQuality):
    """``q = f_θ(z(KL₁), z(KL₂)) ∈ [0, 1]``: the paper's head, trained on right and wrong validation answers.

    Training balances right and wrong, so q orders answers and its 0.5 is even odds between balanced classes; as a probability of
    being right it is too low (``holue-plus`` gives one that is calibrated). The KL terms grow with ln K: calibrate with a
    development gallery of about the size of the enrolled one.
    """

    name = "HolUE-MLP"
    is_probability = True

    def __init__(self) -> None:
        super().__init__()
        self.head = ResidualSigmoidHead()

    def fit(self, reading: Reading, truth: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
        """Standardise the terms, then train the head."""
        super().fit(reading, truth, rng)
        self.head.fit(self.standardizer(self.terms(reading)), correct_answers(reading, truth), rng)

    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,)."""
        return self.head(self.standardizer(self.terms(reading)))

    def state(self) -> State:
        """The fitted numbers."""
        return {**super().state(), **self.head.state()}

    def restore(self, state: State) -> None:
        """Take back what :meth:`state` gave."""
        super().restore(state)
        self.head.restore(state)
