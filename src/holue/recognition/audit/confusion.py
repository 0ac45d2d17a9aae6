"""Confusion: the probability that a probe of one subject is taken for a look-alike.

With c the cosine of the two subjects, s the probe's score to its own subject A and ``c s + σ ε`` its score to B, it is taken for
B when that reaches the threshold τ and beats s. Two models of the spread:

    class model   z ~ vMF(μ_A, κ): p(s) ∝ e^{κs} (1−s²)^{(d−3)/2}, and the score to B spreads over the tangent sphere at μ_A,
                  (1 + ε)/2 ~ Beta((d−2)/2, (d−2)/2) with σ = √(1−c²) √(1−s²)
    measured      s ~ g, the own scores of this gallery, and σ ε ~ N(0, σ²), the spread of scores to an arbitrary stranger

    P = ∫ p(s) P( σ ε > max(s, τ) − c s ) ds

Real embeddings do not fill their dimensions evenly, so the class model's tail is far too thin in high dimension: an audit
uses the measured spread where it has it, which is still thin for subjects whose own samples agree badly, and shows what was
observed beside it. All other subjects are left aside: P is what this pair alone does.
"""

from __future__ import annotations

import numpy as np
from scipy.special import betainc, ndtr

from holue.errors import InvalidParameterError
from holue.gallery.embeddings import Float64Array
from holue.recognition.audit.populations import OneStranger, SamePerson

NODES = 801


def probability_taken(cosine: Float64Array, dim: int, concentration: float, threshold: float) -> Float64Array:
    """P(taken) in the class model, for subjects at these cosines; the same in both directions.

    >>> probability_taken(np.array([0.2, 0.9, 1.0]), 64, 60.0, 0.4).round(3)
    array([0.   , 0.088, 0.498])
    """
    if dim < 3:
        raise InvalidParameterError(f"look-alikes need at least 3 dimensions, got {dim}")
    angle = np.linspace(0.0, np.pi, NODES)[1:-1]
    t, across = np.cos(angle), np.sin(angle)
    # dt = sin θ dθ; relative to the largest, so that no concentration overflows.
    log_weight = concentration * t + (dim - 2) * np.log(across)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    c = np.clip(np.asarray(cosine, dtype=np.float64), -1.0, 1.0 - 1e-12)[:, None]
    beats = t * np.sqrt((1 - c) / (1 + c + 1e-300))
    reaches = (threshold - c * t) / np.sqrt(1 - c**2)
    u = np.clip(np.maximum(beats, reaches) / across, -1.0, 1.0)
    half = (dim - 2) / 2
    return np.asarray((betainc(half, half, (1 - u) / 2) * weight).sum(axis=1))


def measured_probability_taken(
    cosine: Float64Array, same: SamePerson, stranger: OneStranger, threshold: float
) -> Float64Array:
    """P(taken) with the spread of scores that was measured in the gallery.

    >>> measured_probability_taken(np.array([0.2, 0.9]), SamePerson(0.7, 0.1, 4.0), OneStranger(0.0, 0.07), 0.4).round(3)
    array([0.   , 0.161])
    """
    s = np.linspace(max(same.median - 6 * same.below, -1.0), min(same.median + 6 * same.above, 1.0), NODES)
    z = (s - same.median) / np.where(s < same.median, same.below, same.above)
    weight = np.exp(-(z**2) / 2)
    weight /= weight.sum()
    need = np.maximum(s, threshold) - np.asarray(cosine, dtype=np.float64)[:, None] * s
    return np.asarray((ndtr(-need / stranger.deviation) * weight).sum(axis=1))
