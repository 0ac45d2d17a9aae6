"""MonteCarloQuality: the KL terms with the integral over the probe's own distribution sampled (HolUE-MC)."""

from __future__ import annotations

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.recognition.model.monte_carlo import monte_carlo_terms
from holue.recognition.model.shared_samples import sampled_terms
from holue.recognition.quality.holistic_sum import HolisticSumQuality
from holue.recognition.reading import Reading

LARGE_GALLERY = 100_000
"""Subjects beyond which samples are drawn per probe and streamed: shared samples need arrays as long as the gallery."""


class MonteCarloQuality(HolisticSumQuality):
    """``q = z(KL₁) + z(KL₂)`` of the averaged posterior ``E_{z ~ vMF(μ_x, κ_x)} P_T(c|z)`` instead of ``P_T(c|μ_x)``."""

    name = "HolUE-MC"

    def terms(self, reading: Reading) -> Float64Array:
        """KL₁ and KL₂ as (n, 2)."""
        point, temperature = reading.point, reading.temperature
        reading.probe_concentrations  # noqa: B018  raises where there are none
        if len(reading.gallery) <= LARGE_GALLERY:
            return sampled_terms(reading.probes, reading.gallery, [point], temperature=temperature)[0]
        return np.column_stack(
            monte_carlo_terms(reading.probes, reading.gallery, point.model, point.prior, temperature=temperature)
        )
