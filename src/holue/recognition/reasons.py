"""Reasons: why an answer is uncertain, in numbers that add up and in one sentence.

The uncertainty ``u = 1 − P(correct)`` of HolUE-plus is a function of three causes. Its Shapley values share out, exactly, what
separates a probe from a typical right answer of the same decision:

    u(probe) = u(typical) + φ_boundary + φ_look-alike + φ_sample
    φ_j = Σ_{S ∌ j} |S|! (2 − |S|)! / 3! · [u(S ∪ {j}) − u(S)]

where u(S) takes the causes in S from the probe and the others from the typical answer. Since P(correct) is monotone, a cause
that is worse than typical never gets a negative share.

Where a typical answer is itself uncertain, a probe can be as uncertain and have no share worth naming. Its main cause is then the
one with the largest share in what separates it from the clearest answer there could be, all causes at their best.
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

DOUBTFUL = 0.1
"""From this uncertainty on an answer is not called clear, however typical it is."""

VISIBLE = 0.005
"""Probabilities below this print as 0.00, and cosines say more."""

ROUNDING = 1e-9
UNEXPLAINED = "uncertain as all such answers are, whatever their score and sample"


@dataclass(frozen=True, eq=False)
class Reasons:
    """For n probes: the uncertainty of a typical answer, and what each cause adds to it."""

    typical: Float64Array  # (n,) u of a typical right answer with the same decision
    shares: Float64Array  # (n, 3): boundary, look-alike, sample; they and ``typical`` sum to the uncertainty
    main: npt.NDArray[np.int64]  # (n,) the cause to name, −1 where none is worth it
    sentences: tuple[str, ...]

    @property
    def uncertainty(self) -> Float64Array:
        """``u = 1 − P(correct)``."""
        return np.asarray(self.typical + self.shares.sum(axis=1))

    @property
    def main_cause(self) -> tuple[str, ...]:
        """The cause with the largest share, or "none" where the answer is clear."""
        return tuple((*CAUSES, "none")[j] for j in self.main)


Judge = Callable[[Float64Array, npt.NDArray[np.bool_]], Float64Array]
"""P(correct) of causes (n, 3 or 2) and decisions (n,)."""


def explain(reading: Reading, judge: Judge, typical: Float64Array) -> Reasons:
    """Reasons for every probe of a reading, from evidence already there.

    ``typical`` (2, 3 or 2) holds the causes of a typical right answer, for rejected and for accepted probes.
    """
    features, accepted = causes(reading), reading.accepted
    usual, shares = _shapley(features, typical[accepted.astype(int)], judge, accepted)
    main = _largest(shares, WORTH_NAMING)
    as_usual = np.flatnonzero((main < 0) & (usual + shares.sum(axis=1) >= DOUBTFUL))
    if len(as_usual):
        best = np.full_like(features[as_usual], np.inf)
        main[as_usual] = _largest(_shapley(features[as_usual], best, judge, accepted[as_usual])[1], ROUNDING)
    told = [_sentence(reading, typical, int(cause), i) for i, cause in enumerate(main)]
    for i in as_usual:
        what, _, numbers = told[i].rpartition(": ")
        told[i] = f"{what}, as is usual here: {numbers}" if main[i] >= 0 else UNEXPLAINED
    return Reasons(usual, shares, main, tuple(told))


def _largest(shares: Float64Array, least: float) -> npt.NDArray[np.int64]:
    return np.where(shares.max(axis=1) >= least, shares.argmax(axis=1), -1)


def _shapley(
    features: Float64Array, reference: Float64Array, judge: Judge, accepted: npt.NDArray[np.bool_]
) -> tuple[Float64Array, Float64Array]:
    """The uncertainty of the reference (n,), and what each cause adds to it (n, 3)."""
    n, m = features.shape
    value = {}
    for size in range(m + 1):
        for known in combinations(range(m), size):
            mixed = reference.copy()
            mixed[:, list(known)] = features[:, list(known)]
            value[frozenset(known)] = 1.0 - judge(mixed, accepted)
    shares = np.zeros((n, len(CAUSES)))
    for j in range(m):
        for without in (s for s in value if j not in s):
            weight = factorial(len(without)) * factorial(m - 1 - len(without)) / factorial(m)
            shares[:, j] += weight * (value[without | {j}] - value[without])
    return value[frozenset()], shares


def _sentence(reading: Reading, typical: Float64Array, cause: int, i: int) -> str:
    if cause < 0:
        return "clear"
    if CAUSES[cause] == "boundary":
        side = "above" if reading.accepted[i] else "below"
        return f"just {side} the threshold: {reading.best_score[i]:.3f} against {reading.point.threshold:.3f}"
    if CAUSES[cause] == "look-alike":
        first, second = reading.search.names(reading.evidence.top_index[i, :2])
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
        (first,), usual = reading.search.names(reading.evidence.top_index[i, :1]), np.exp(-typical[1, cause])
        return f"{first} would score higher in so good a sample: concentration {kappa_x:.0f}, typical {usual:.0f}"
    return f"poor sample: concentration {kappa_x:.0f}, typical {np.exp(typical[0, cause]):.0f}"
