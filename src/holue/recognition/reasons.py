"""Reasons: why an answer is uncertain, in numbers that add up and in one sentence.

The uncertainty ``u = 1 − P(correct)`` of HolUE-plus is a function of three causes. Its Shapley values share out, exactly, what
separates a probe from a typical right answer of the same decision:

    u(probe) = u(typical) + φ_boundary + φ_look-alike + φ_sample
    φ_j = Σ_{S ∌ j} |S|! (2 − |S|)! / 3! · [u(S ∪ {j}) − u(S)]

where u(S) takes the causes in S from the probe and the others from the typical answer. Since P(correct) is monotone, a cause
that is worse than typical never gets a negative share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import factorial

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array
from holue.recognition.causes import CAUSES, causes
from holue.recognition.reading import Reading

WORTH_NAMING = 0.02
"""Shares below this are not worth a sentence."""

VISIBLE = 0.005
"""Probabilities below this print as 0.00, and cosines say more."""


@dataclass(frozen=True, eq=False)
class Reasons:
    """For n probes: the uncertainty of a typical answer, and what each cause adds to it."""

    typical: Float64Array  # (n,) u of a typical right answer with the same decision
    shares: Float64Array  # (n, 3): boundary, look-alike, sample; they and ``typical`` sum to the uncertainty
    sentences: tuple[str, ...]

    @property
    def uncertainty(self) -> Float64Array:
        """``u = 1 − P(correct)``."""
        return np.asarray(self.typical + self.shares.sum(axis=1))

    @property
    def main_cause(self) -> tuple[str, ...]:
        """The cause with the largest share, or "none" where none is worth naming."""
        worst = self.shares.argmax(axis=1)
        return tuple(CAUSES[j] if share >= WORTH_NAMING else "none" for j, share in zip(worst, self.shares.max(axis=1)))


Judge = Callable[[Float64Array, npt.NDArray[np.bool_]], Float64Array]
"""P(correct) of causes (n, 3 or 2) and decisions (n,)."""


def explain(reading: Reading, judge: Judge, typical: Float64Array) -> Reasons:
    """Reasons for every probe of a reading, from evidence already there.

    ``typical`` (2, 3 or 2) holds the causes of a typical right answer, for rejected and for accepted probes.
    """
    features, accepted = causes(reading), reading.accepted
    usual = typical[accepted.astype(int)]
    n, m = features.shape
    value = {}
    for size in range(m + 1):
        for known in combinations(range(m), size):
            mixed = usual.copy()
            mixed[:, list(known)] = features[:, list(known)]
            value[frozenset(known)] = 1.0 - judge(mixed, accepted)
    shares = np.zeros((n, len(CAUSES)))
    for j in range(m):
        for without in (s for s in value if j not in s):
            weight = factorial(len(without)) * factorial(m - 1 - len(without)) / factorial(m)
            shares[:, j] += weight * (value[without | {j}] - value[without])
    return Reasons(value[frozenset()], shares, tuple(_sentence(reading, typical, shares, i) for i in range(n)))


def _sentence(reading: Reading, typical: Float64Array, shares: Float64Array, i: int) -> str:
    cause = int(shares[i].argmax())
    if shares[i, cause] < WORTH_NAMING:
        return "clear"
    if CAUSES[cause] == "boundary":
        side = "above" if reading.accepted[i] else "below"
        return f"just {side} the threshold: {reading.best_score[i]:.3f} against {reading.point.threshold:.3f}"
    if CAUSES[cause] == "look-alike":
        first, second = (reading.gallery.subjects[row] for row in reading.evidence.top_index[i, :2])
        value, what = np.exp(reading.posterior.log_p_top[i, :2]), ""
        if value[1 if reading.accepted[i] else 0] < VISIBLE:
            value, what = reading.evidence.top_scores[i, :2], "cosine "  # at a high κ probabilities are 1 and 0
        if reading.accepted[i]:
            return f"between {first} and {second}: {what}{value[0]:.2f} and {value[1]:.2f}"
        return (
            f"{first} stands out although below the threshold: {what}{value[0]:.2f} against {value[1]:.2f} for {second}"
        )
    kappa_x = reading.probe_concentrations[i]
    if reading.accepted[i]:
        first, usual = reading.gallery.subjects[reading.evidence.top_index[i, 0]], np.exp(-typical[1, cause])
        return f"{first} would score higher in so good a sample: concentration {kappa_x:.0f}, typical {usual:.0f}"
    return f"poor sample: concentration {kappa_x:.0f}, typical {np.exp(typical[0, cause]):.0f}"
