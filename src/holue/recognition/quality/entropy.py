"""EntropyQuality: negative entropy of GalUE's posterior."""

from __future__ import annotations

from holue.gallery.embeddings import Float64Array
from holue.recognition.quality.score import QualityScore
from holue.recognition.reading import Reading


class EntropyQuality(QualityScore):
    """``q = Σ_{c=0..K} p_c ln p_c``: the paper's alternative to the maximum probability."""

    name = "GalUE-entropy"

    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,)."""
        return -reading.posterior.entropy
