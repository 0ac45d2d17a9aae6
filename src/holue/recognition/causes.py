"""Causes: the three reasons for doubt as numbers, each oriented so that more speaks for somebody enrolled.

    boundary    m = s₁ − τ      how far the best cosine lies above the threshold
    look-alike  g = s₁ − s₂     how far the best subject is ahead of the second
    sample      k = −ln κ_x     how poor the sample is

m moves with the threshold, which follows the gallery's size. They are cosines, not multiples of the class model's κ: κ is solved
again for a gallery of another size, and probabilities learned in one gallery would misjudge another.
"""

from __future__ import annotations

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.recognition.reading import Reading

CAUSES = ("boundary", "look-alike", "sample")


def causes(reading: Reading) -> Float64Array:
    """m, g and k as (n, 3); without κ_x only m and g.

    The sample works the other way round than one may expect: with a given score, a poor sample speaks *for* somebody enrolled.
    A good sample of the right subject would have scored higher; so would a good sample of somebody who was rejected.
    """
    scores = np.asarray(reading.evidence.top_scores[:, :2], dtype=np.float64)
    margin, gap = scores[:, 0] - reading.point.threshold, scores[:, 0] - scores[:, 1]
    kappa = reading.probes.concentrations
    return np.column_stack([margin, gap, *([] if kappa is None else [-np.log(kappa)])])
