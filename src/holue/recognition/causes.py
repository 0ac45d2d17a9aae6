"""Causes: the three reasons for doubt as numbers that mean the same in every gallery.

    boundary    m = ln p_best − ln p_unknown = κ(s₁ − τ)   how clearly the best subject beats, or loses to, "nobody enrolled"
    look-alike  g = ln p_best − ln p_second  = κ(s₁ − s₂)  how clearly the best subject beats the second
    sample      k = ln κ_x                                 how good the sample is

m and g are log-odds of the posterior, so the size of the gallery is in them already; HolUE's KL terms, in contrast, shift
with K, and a head trained on them in one gallery misjudges another.
"""

from __future__ import annotations

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.recognition.reading import Reading

CAUSES = ("boundary", "look-alike", "sample")


def causes(reading: Reading) -> Float64Array:
    """m, g and k as (n, 3), each oriented so that more speaks for the decision that was made; without κ_x only m and g.

    An acceptance is the safer the higher m and g, a rejection the lower they are. Quality works the other way: a rejection is
    safe when the sample was good, since a good sample of somebody enrolled would have been accepted. For the same reason an
    acceptance with a given score is *less* safe when the sample was good: the right subject would have scored higher.
    """
    log_p, log_p_unknown = reading.posterior.log_p_top, reading.posterior.log_p_unknown
    margin, gap = log_p[:, 0] - log_p_unknown, log_p[:, 0] - log_p[:, 1]
    kappa = reading.probes.concentrations
    side = np.where(reading.accepted, 1.0, -1.0)
    return np.column_stack([side * margin, side * gap, *([] if kappa is None else [-side * np.log(kappa)])])
