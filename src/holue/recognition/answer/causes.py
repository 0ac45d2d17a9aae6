"""Causes: what speaks for somebody enrolled, as three numbers; more of each speaks for it.

    margin  m = s₁ − τ      how far the best cosine lies above the threshold
    lead    g = s₁ − s₃     how far the best subject is ahead of the crowd
    sample  k = −ln κ_x     how poor the sample is

The lead is over the third score, not the second: a probe between two look-alikes leaves the crowd behind with both of them, and
is no more likely to show nobody. Which of the two it shows is another question (``candidate_shares.py``).

m moves with the threshold, which follows the gallery's size. They are cosines, not multiples of the class model's κ: κ is solved
again for a gallery of another size, and probabilities learned in one gallery would misjudge another.
"""

from __future__ import annotations

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.recognition.reading import Reading

CAUSES = ("boundary", "look-alike", "sample")
"""Names of the reasons for doubt (``reasons.py``): margin and lead are the boundary."""

FEATURES = ("margin", "lead", "sample")


def causes(reading: Reading) -> Float64Array:
    """m, g and k as (n, 3); without κ_x only m and g.

    The sample works the other way round than one may expect: with a given score, a poor sample speaks *for* somebody enrolled.
    A good sample of the right subject would have scored higher; so would a good sample of somebody who was rejected.
    """
    scores = np.asarray(reading.evidence.top_scores[:, :3], dtype=np.float64)
    crowd = np.where(np.isfinite(scores[:, -1]), scores[:, -1], scores[:, 1])
    margin, lead = scores[:, 0] - reading.point.threshold, scores[:, 0] - crowd
    kappa = reading.probes.concentrations
    return np.column_stack([margin, lead, *([] if kappa is None else [-np.log(kappa)])])
