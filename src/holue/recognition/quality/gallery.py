"""GalleryQuality: the probability of the most probable answer (GalUE)."""

from __future__ import annotations

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.recognition.quality.score import QualityScore
from holue.recognition.reading import Reading


class GalleryQuality(QualityScore):
    """``q = max_{c=0..K} p_c`` (paper, section "GalUE")."""

    name = "GalUE"
    is_probability = True

    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,)."""
        return np.exp(reading.posterior.log_p_best)

    def uncertainty(self, reading: Reading, quality: Float64Array | None = None) -> Float64Array:
        """``1 − max p``, without rounding away the tail of near-certain answers."""
        return 0.0 - np.expm1(np.minimum(reading.posterior.log_p_best, 0.0))
