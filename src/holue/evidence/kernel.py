"""Kernel: probes × one gallery block → evidence. The only hot loop.

Scores of a block are made by one matrix product and read once by ``absorb``, which keeps per probe the running maximum ``p`` and,
per sharpness ``a``, ``Σ e^{a(g−p)}`` and ``Σ (g−p) e^{a(g−p)}``. Everything is relative to the running maximum, so
nothing overflows at any concentration, and both sums are in float64 whatever the gallery's precision.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit

from holue.evidence.evidence import NO_SUBJECT, Evidence
from holue.evidence.link import Link, cosine_link
from holue.gallery.embeddings import Float64Array, FloatArray


@dataclass
class Accumulator:
    """The running sums of some probes over the blocks seen so far; mutable, and private to one thread."""

    sharpness: Float64Array
    top_scores: Float64Array
    top_index: npt.NDArray[np.int64]
    peak: Float64Array
    mass: Float64Array
    moment: Float64Array
    n_subjects: int = 0

    @classmethod
    def start(cls, n_probes: int, sharpness: Float64Array, top_k: int) -> Accumulator:
        """Nothing seen yet."""
        return cls(
            sharpness,
            np.full((n_probes, top_k), -np.inf),
            np.full((n_probes, top_k), NO_SUBJECT, dtype=np.int64),
            np.full(n_probes, -np.inf),
            np.zeros((n_probes, len(sharpness))),
            np.zeros((n_probes, len(sharpness))),
        )

    def add(
        self,
        probes: FloatArray,
        block: FloatArray,
        first_subject: int,
        link: Link = cosine_link,
        first_probe: int = 0,
    ) -> None:
        """Take in one gallery block; ``first_subject`` and ``first_probe`` are the rows where block and probes begin.

        The caller counts the subjects, since several views of the probes see the same block.
        """
        scores = probes @ block.T
        linked = link(scores, first_probe)
        absorb_top(scores, first_subject, self.top_scores, self.top_index)
        absorb_mass(linked, self.sharpness, self.peak, self.mass, self.moment)

    def rows(self, rows: slice) -> Accumulator:
        """A view of some probes: what is added to it is added here."""
        return Accumulator(
            self.sharpness,
            self.top_scores[rows],
            self.top_index[rows],
            self.peak[rows],
            self.mass[rows],
            self.moment[rows],
        )

    def evidence(self) -> Evidence:
        """What was seen, as evidence."""
        seen = self.mass > 0
        mass = np.where(seen, self.mass, 1.0)
        peak = np.where(seen, self.peak[:, None], 0.0)
        return Evidence(
            self.top_scores,
            self.top_index,
            np.where(seen, self.sharpness * peak + np.log(mass), -np.inf),
            np.where(seen, peak + self.moment / mass, 0.0),
            self.n_subjects,
            self.sharpness,
        )


@njit(cache=True, nogil=True)
def absorb_top(scores, first_subject, top_scores, top_index):  # type: ignore[no-untyped-def]
    """Insert a block's scores into the running top; an equal score never displaces a smaller index."""
    n, b = scores.shape
    k = top_scores.shape[1]
    if k == 0:
        return
    for i in range(n):
        worst = top_scores[i, k - 1]
        for j in range(b):
            score = scores[i, j]
            # Blocks may come in any order, so an equal score has to compare indices.
            if score < worst or (score == worst and top_index[i, k - 1] <= first_subject + j):
                continue
            place = k - 1
            subject = first_subject + j
            while place > 0 and (
                top_scores[i, place - 1] < score
                or (top_scores[i, place - 1] == score and top_index[i, place - 1] > subject)
            ):
                top_scores[i, place] = top_scores[i, place - 1]
                top_index[i, place] = top_index[i, place - 1]
                place -= 1
            top_scores[i, place] = score
            top_index[i, place] = subject
            worst = top_scores[i, k - 1]


@njit(cache=True, nogil=True)
def absorb_mass(linked, sharpness, peak, mass, moment):  # type: ignore[no-untyped-def]
    """Add a block's linked scores to the running sums, relative to the running maximum."""
    n, b = linked.shape
    m = sharpness.shape[0]
    if m == 0:
        return
    for i in range(n):
        highest = peak[i]
        for j in range(b):
            if linked[i, j] > highest:
                highest = float(linked[i, j])
        if highest == -np.inf:
            continue
        if peak[i] > -np.inf:
            rise = highest - peak[i]
            for t in range(m):
                shrink = np.exp(-sharpness[t] * rise)
                moment[i, t] = shrink * (moment[i, t] - rise * mass[i, t])
                mass[i, t] *= shrink
        peak[i] = highest
        for t in range(m):
            a = sharpness[t]
            total = 0.0
            weighted = 0.0
            for j in range(b):
                below = float(linked[i, j]) - highest
                weight = np.exp(a * below) if below > -np.inf else 0.0
                if weight > 0.0:
                    total += weight
                    weighted += below * weight
            mass[i, t] += total
            moment[i, t] += weighted
