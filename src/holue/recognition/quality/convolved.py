"""ConvolvedQuality: the most probable answer once the probe's own blur is convolved in (HolUE-closed)."""

from __future__ import annotations

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.recognition.quality.score import QualityScore
from holue.recognition.reading import Reading


class ConvolvedQuality(QualityScore):
    """``q = max_{c=0..K} p_c`` with ``p(x|c) ∝ C(κ) C(κ_x) / C(√(κ² + κ_x² + 2κκ_x s_c))``: no network, no fit."""

    name = "HolUE-closed"
    needs_concentration = True
    is_probability = True

    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,)."""
        return np.exp(reading.convolved.log_p_best)
