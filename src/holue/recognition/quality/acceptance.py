"""AcceptanceQuality: distance of the best cosine from the threshold (AccScr)."""

from __future__ import annotations

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.recognition.quality.score import QualityScore
from holue.recognition.reading import Reading


class AcceptanceQuality(QualityScore):
    """``q = |s(p) − τ|`` (paper, "Baseline OSR method")."""

    name = "AccScr"

    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,)."""
        return np.abs(reading.best_score - reading.point.threshold)
