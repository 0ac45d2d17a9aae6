"""MonteCarloQuality: the KL terms with the integral over the probe's own distribution sampled (HolUE-MC)."""

from __future__ import annotations

from holue.gallery.embeddings import Float64Array
from holue.recognition.model.monte_carlo import sampled_terms
from holue.recognition.quality.holistic_sum import HolisticSumQuality
from holue.recognition.reading import Reading


class MonteCarloQuality(HolisticSumQuality):
    """``q = z(KL₁) + z(KL₂)`` of the averaged posterior ``E_{z ~ vMF(μ_x, κ_x)} P_T(c|z)`` instead of ``P_T(c|μ_x)``."""

    name = "HolUE-MC"

    def terms(self, reading: Reading) -> Float64Array:
        """KL₁ and KL₂ as (n, 2)."""
        reading.probe_concentrations  # noqa: B018  raises where there are none
        return sampled_terms(reading.probes, reading.search, [reading.point], temperature=reading.temperature)[0]
