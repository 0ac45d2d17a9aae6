"""SharedSampleQuality: HolUE-MC where the terms of all operating points were sampled together."""

from __future__ import annotations

from collections.abc import Mapping

from holue.evaluation.columns import FloatArray
from holue.recognition.quality.monte_carlo import MonteCarloQuality
from holue.recognition.reading import Reading


class SharedSampleQuality(MonteCarloQuality):
    """HolUE-MC for readings whose terms were sampled beforehand, all operating points together."""

    def __init__(self, sampled: Mapping[Reading, FloatArray]) -> None:
        super().__init__()
        self.sampled = sampled

    def terms(self, reading: Reading) -> FloatArray:
        """KL₁ and KL₂ as (n, 2)."""
        return self.sampled[reading]
