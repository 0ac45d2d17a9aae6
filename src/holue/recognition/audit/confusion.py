"""Confusion: the probability that a probe of one subject is taken for a look-alike.

With c the cosine of the two subjects, s the probe's score to its own subject A and ``c s + r`` its score to B, it is taken for
B when that reaches the threshold τ and beats s:

    P = P( c s + r ≥ max(s, τ) )

    measured      (s, r) as the left-out samples of the gallery have them, together: a sample that agrees badly with its own
                  subject strays differently from one that agrees well. r is read at the neighbours of the subject's template
                  *without* the sample, which would otherwise have pulled them near. Smoothed by a fifth of the spread of r.
    class model   z ~ vMF(μ_A, κ): p(s) ∝ e^{κs} (1−s²)^{(d−3)/2}, and r spreads over the tangent sphere at μ_A,
                  r = √(1−c²) √(1−s²) ε with (1 + ε)/2 ~ Beta((d−2)/2, (d−2)/2)

Real embeddings do not fill their dimensions evenly, and the κ of an operating point is not the spread of a person's samples: the
class model is far off in high dimension, and only stands in where every subject has one sample. All other subjects are left
aside: P is what this pair alone does. How well it holds is written in docs/audit.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import betainc, ndtr

from holue.errors import InvalidParameterError
from holue.evidence.leave_one_out import evidence_of_others
from holue.gallery.embeddings import Float64Array
from holue.gallery.left_out import LeftOut

Mask = npt.NDArray[np.bool_]
NODES = 801
NEIGHBOURS = 5
MOST = 4000
"""Samples that straying is read from."""
SMOOTHING = 0.2


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


@dataclass(frozen=True, eq=False)
class Straying:
    """How left-out samples stray from their subject towards its neighbours: m samples, k neighbours each."""

    own: Float64Array  # (m,) score to the own subject without the sample
    residual: Float64Array  # (m, k) score to a neighbour, less what the neighbour's cosine to that subject accounts for
    weight: Float64Array  # (m, k) sums to 1: every subject counts the same, pairs to be left aside are 0

    @classmethod
    def of(
        cls,
        left: LeftOut,
        *,
        aside: set[tuple[int, int]] | None = None,
        without: Mask | None = None,
        threads: int | None = None,
    ) -> Straying | None:
        """From up to ``MOST`` paired samples, evenly over the subjects; None where no subject has two.

        Pairs of gallery rows in ``aside`` (people enrolled twice) and samples in ``without`` (mislabelled) are faults of the
        gallery, and no measure of how samples stray.
        """
        usable = left.paired if without is None else left.paired & ~without
        rows = np.flatnonzero(usable)
        if len(rows) == 0 or len(left.gallery) < 3:
            return None
        order = np.argsort(left.row[rows], kind="stable")
        rows = rows[order][np.unique(np.linspace(0, len(rows) - 1, min(MOST, len(rows))).astype(np.int64))]
        templates = left.templates_without(rows)
        own_row = left.row[rows]
        k = min(NEIGHBOURS, len(left.gallery) - 1)
        near = evidence_of_others(templates, own_row, left.gallery, [], top_k=k, threads=threads)
        scores = np.einsum("ij,ikj->ik", left.samples.directions[rows], left.gallery.directions[near.top_index])
        residual = scores - near.top_scores * left.own_score[rows, None]
        weight = np.repeat(1.0 / np.bincount(own_row)[own_row, None], k, axis=1)
        if aside:
            pairs = zip(np.repeat(own_row, k).tolist(), near.top_index.ravel().tolist())
            weight[np.array([pair_of(a, b) in aside for a, b in pairs]).reshape(weight.shape)] = 0.0
        total = float(weight.sum())
        if total == 0:
            return None
        return cls(left.own_score[rows], np.asarray(residual, dtype=np.float64), weight / total)

    def probability_taken(self, cosine: Float64Array, threshold: float) -> Float64Array:
        """P(taken) for subjects at these cosines; the same in both directions.

        >>> rng = np.random.default_rng(0)
        >>> straying = Straying(rng.normal(0.7, 0.1, 500), rng.normal(0, 0.07, (500, 5)), np.full((500, 5), 1 / 2500))
        >>> straying.probability_taken(np.array([0.2, 0.9]), 0.4).round(2)
        array([0.  , 0.16])
        """
        s, r, weight = np.repeat(self.own, self.residual.shape[1]), self.residual.ravel(), self.weight.ravel()
        spread = float(np.sqrt(weight @ (r - weight @ r) ** 2))
        width = max(SMOOTHING * spread, 1e-6)
        wanted = np.maximum(s, threshold)
        return np.array([weight @ ndtr((c * s + r - wanted) / width) for c in np.asarray(cosine, dtype=np.float64)])


def pair_of(a: int, b: int) -> tuple[int, int]:
    """Two gallery rows, the smaller first."""
    return (a, b) if a < b else (b, a)
