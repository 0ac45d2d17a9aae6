"""HolisticSumQuality: the two KL terms, standardised and summed (HolUE-sum)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array
from holue.recognition.quality.heads.standardizer import Standardizer
from holue.recognition.quality.score import QualityScore, State
from holue.recognition.reading import Reading


class HolisticSumQuality(QualityScore):
    """``q = z(KL₁) + z(KL₂)``, z-scores by the mean and population std of the validation probes."""

    name = "HolUE-sum"
    needs_fit = True
    needs_concentration = True

    def __init__(self) -> None:
        self.standardizer = Standardizer()

    def terms(self, reading: Reading) -> Float64Array:
        """KL₁ and KL₂ as (n, 2)."""
        return np.column_stack(reading.holistic_terms)

    def fit(self, reading: Reading, truth: npt.NDArray[np.int64], rng: np.random.Generator) -> None:
        """Learn the mean and spread of the terms."""
        self.standardizer.fit(self.terms(reading))

    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,)."""
        return np.asarray(self.standardizer(self.terms(reading)).sum(axis=1))

    def state(self) -> State:
        """The fitted numbers."""
        return self.standardizer.state()

    def restore(self, state: State) -> None:
        """Take back what :meth:`state` gave."""
        self.standardizer.restore(state)
