"""PartlySeen: what subjects who could not be read could change about an answer.

Let a probe be at the angle θ from its best candidate, and the nearest missing subject at the angle φ or more from that candidate.
Then every missing subject is at least φ − θ from the probe. Where that is more than θ, none of them can take the candidate's
place, and the decision stands: it depends on the best cosine alone. The other way around nothing is sure: a missing
subject may be the one that is shown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array
from holue.recognition.reading import Reading

ROUNDING = 1e-5
"""Cosines of float32 rows, and of rows read in another order, differ by less."""


@dataclass(frozen=True, eq=False)
class PartlySeen:
    """Of n probes: the cosine that no missing subject exceeds, whether the answer stands, and why."""

    bound: Float64Array
    decided: npt.NDArray[np.bool_]
    reasons: npt.NDArray[np.str_]

    @classmethod
    def of(cls, reading: Reading, n_gallery: int, *, filters: bool) -> PartlySeen:
        """From a reading whose search missed some; a quality that filters is not bounded, so then nothing is decided."""
        search, score = reading.search, reading.best_score
        bound = np.ones(len(reading))
        rows = np.flatnonzero(reading.accepted & (not filters))
        if len(rows):
            near = search.missing_cosines(reading.evidence.top_index[rows, 0])
            bound[rows] = highest_cosine(score[rows], near)
        decided = bound < score - ROUNDING
        told = f"{search.missing} of {n_gallery} enrolled subjects could not be read"
        share = search.missing * np.exp(np.minimum(reading.point.concentration * (bound - score), 700.0))
        at_least = 1.0 / (1.0 + share)
        reasons = [
            f"{told}; none of them can have a cosine over {high:.2f}, nor leave less than {left:.2g} of its probability"
            if sure
            else f"incomplete: {told}"
            for sure, high, left in zip(decided.tolist(), bound.tolist(), at_least.tolist())
        ]
        return cls(bound, decided, np.array(reasons))


def highest_cosine(score: Float64Array, near: Float64Array) -> Float64Array:
    """The highest cosine with a probe of those whose cosine with its candidate is at most ``near``; the candidate has ``score``.

    >>> highest_cosine(np.cos(np.radians([20.0, 50.0])), np.cos(np.radians([70.0, 40.0]))).round(6).tolist() == [
    ...     round(float(np.cos(np.radians(50.0))), 6), 1.0]
    True
    """
    own, other = (np.arccos(np.clip(cosine, -1.0, 1.0)) for cosine in (score, near))
    return np.asarray(np.cos(np.maximum(other - own, 0.0)))
