"""Causes: what speaks for somebody enrolled, as three numbers; more of each speaks for it.

    margin  m = s₁ − τ      how far the best cosine lies above the threshold
    lead    g = s₁ − s₃     how far the best subject is ahead of the crowd
    sample  k = −ln κ_x     how poor the sample is

The lead is over the third score, not the second: a probe between two look-alikes leaves the crowd behind with both of them, and
is no more likely to show nobody. Which of the two it shows is another question (``candidate_shares.py``).

m moves with the threshold, which follows the gallery's size. They are cosines, not multiples of the class model's κ: κ is solved
again for a gallery of another size, and probabilities learned in one gallery would misjudge another.

In a gallery of another size strangers score higher or lower by a shift Δ, and so does the threshold that keeps FPIR. The score of
a probe at its own subject stays (:func:`shifted_causes`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
    return _causes(reading, np.asarray(reading.evidence.top_scores[:, :3], dtype=np.float64))


def shifted_causes(reading: Reading, truth: npt.NDArray[np.int64], shift: float) -> Float64Array:
    """The causes of validation probes as they would be in a gallery where strangers, and the threshold, are ``shift`` higher.

    ``truth`` is the gallery row of every probe, −1 for strangers. Measured from the threshold only the score at the own subject
    moves. Where the own subject is not among the candidates that were kept, it stays below them.
    """
    scores = np.asarray(reading.evidence.top_scores, dtype=np.float64)
    is_own = (reading.evidence.top_index == truth[:, None]) & (truth >= 0)[:, None]
    return _causes(reading, -np.sort(-(scores - shift * is_own), axis=1)[:, :3])


def _causes(reading: Reading, scores: Float64Array) -> Float64Array:
    """The causes of the best three scores (n, 3), or two where there are no more."""
    crowd = np.where(np.isfinite(scores[:, -1]), scores[:, -1], scores[:, 1])
    margin, lead = scores[:, 0] - reading.point.threshold, scores[:, 0] - crowd
    kappa = reading.probes.concentrations
    return np.column_stack([margin, lead, *([] if kappa is None else [-np.log(kappa)])])
