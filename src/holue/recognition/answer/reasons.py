"""Reasons: why an answer is uncertain, in numbers that add up and in one sentence.

The uncertainty is what the calibrated distribution leaves to other answers (``probability_model.py``):

    accepted    u = 1 − h(score, sample) · r     r: the best candidate's share among the enrolled
    rejected    u = h(score, sample)             h: the probability that somebody enrolled is shown

Three causes share it out: the *boundary* (the score and its lead, in h), the *look-alike* (r) and the *sample* (κ_x, in h). Their
Shapley values say, exactly, what separates a probe from a typical right answer of the same decision:

    u(probe) = u(typical) + φ_boundary + φ_look-alike + φ_sample
    φ_j = Σ_{S ∌ j} |S|! (2 − |S|)! / 3! · [u(S ∪ {j}) − u(S)]

where u(S) takes the causes in S from the probe and the others from the typical answer.

Which cause is named:

1. An accepted answer whose most probable mistake is another enrolled subject: the look-alike. At the threshold only where the
   second candidate is at least half as probable as the best.
2. Else a score within ``AT_THRESHOLD`` of the threshold: the boundary.
3. Else, where boundary or sample has a share worth naming: of an accepted answer the larger share. A rejection is wrong only if
   an enrolled subject was missed: the sample where it is as poor as those of enrolled subjects who were missed, and poorer than
   is typical of those who were recognised (``Typical.poor``), else the boundary. The shares do not decide it: they compare with
   rightly rejected strangers, whose samples may be as poor. The sentence calls the sample poor only where its concentration is
   clearly under the typical one (``CLEARLY``), else no better than usual.

Where a typical answer is itself uncertain, a probe can be as uncertain and have no share worth naming. The shares are then those
in what separates it from the clearest answer there could be, all causes at their best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import combinations
from math import factorial

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array
from holue.recognition.answer.causes import CAUSES, causes
from holue.recognition.answer.probabilities import Probabilities
from holue.recognition.reading import Reading

BOUNDARY, LOOK_ALIKE, SAMPLE, NONE = 0, 1, 2, -1

CAUSE_COLUMNS = {BOUNDARY: slice(0, 2), SAMPLE: slice(2, 3)}
"""The columns of the causes (``causes.py``) that the head reads."""

WORTH_NAMING = 0.02
"""Shares below this are not worth a sentence."""

DOUBTFUL = 0.095
"""From this uncertainty on, which prints as 0.10, an answer is not called clear, however typical it is."""

AT_THRESHOLD = 0.01
"""Scores this close to the threshold are told so: another sample of the same subject would often be decided the other way."""

NEAR = 0.05
"""Scores this close to the threshold are "just" above or below it."""

ACCEPTED = 1
"""The row of :class:`Typical` for accepted answers."""

MISSED = 0.9
"""Share of the enrolled subjects who were missed whose samples count as poor."""

CLEARLY = 0.9
"""A sample is called poor only where its concentration is under this share of the typical one that stands beside it."""

POOR, ORDINARY = "poor sample", "sample no better than usual"

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
        """The cause that is named, or "none" where the answer is clear."""
        return tuple((*CAUSES, "none")[j] for j in self.main)


@dataclass(frozen=True, eq=False)
class Typical:
    """A typical right answer, for rejected (first) and accepted probes."""

    causes: Float64Array  # (2, 3 or 2)
    share: Float64Array  # (2,) of the best candidate among the enrolled
    poor: float = np.inf  # −ln κ_x from which the sample of a rejected probe is poor; ∞ without κ_x

    @classmethod
    def of(
        cls,
        reading: Reading,
        probabilities: Probabilities,
        correct: npt.NDArray[np.bool_],
        mated: npt.NDArray[np.bool_],
    ) -> Typical:
        """Medians over the right answers of validation probes.

        A sample is poor where ``MISSED`` of the mated probes that were rejected are as poor, but never a better one than that
        of the typical mated probe that was recognised.
        """
        features, share = causes(reading), best_share(probabilities)
        sides = [correct & (reading.accepted == side) for side in (False, True)]
        usual = np.array([np.median(features[rows], axis=0) for rows in sides])
        poor, missed = np.inf, mated & ~reading.accepted
        if features.shape[1] > SAMPLE:
            from_missed = np.quantile(features[missed, SAMPLE], 1 - MISSED) if missed.any() else -np.inf
            poor = max(float(from_missed), float(usual[ACCEPTED, SAMPLE]))
        return cls(usual, np.array([np.median(share[rows]) for rows in sides]), poor)


Judge = Callable[[Float64Array], Float64Array]
"""The probability that somebody enrolled is shown, of causes (n, 3 or 2)."""


def best_share(probabilities: Probabilities) -> Float64Array:
    """P(best candidate | enrolled) (n,)."""
    enrolled = np.maximum(1.0 - probabilities.nobody, np.finfo(np.float64).tiny)
    return np.minimum(probabilities.candidates[:, 0] / enrolled, 1.0)


def explain(reading: Reading, probabilities: Probabilities, judge: Judge, typical: Typical) -> Reasons:
    """Reasons for every probe of a reading, from evidence already there."""
    features, accepted, share = causes(reading), reading.accepted, best_share(probabilities)
    side = accepted.astype(int)
    reference = typical.causes[side], typical.share[side]
    usual, shares = _shapley(features, share, reference, judge, accepted, probabilities.enrolled)
    main = _largest(shares[:, [BOUNDARY, SAMPLE]], WORTH_NAMING)
    poor = features[:, SAMPLE] >= typical.poor if features.shape[1] > SAMPLE else np.zeros(len(features), dtype=bool)
    missed = np.where(poor, SAMPLE, BOUNDARY)
    main = np.where(~accepted & (main != NONE), missed, main)
    at_threshold = np.abs(reading.best_score - reading.point.threshold) < AT_THRESHOLD
    main[at_threshold] = BOUNDARY
    uncertainty = 1.0 - probabilities.of_decision(accepted)
    others = np.where(accepted, uncertainty - probabilities.nobody, 0.0)
    rival = ~at_threshold | (probabilities.candidates[:, 1] >= probabilities.candidates[:, 0] / 2)
    main[rival & (others >= WORTH_NAMING) & (others >= probabilities.nobody)] = LOOK_ALIKE
    as_usual = np.flatnonzero((main == NONE) & (uncertainty >= DOUBTFUL))
    if len(as_usual):
        rows = accepted[as_usual]
        clearest = np.where(rows[:, None], np.inf, -np.inf) * np.ones_like(features[as_usual]), np.ones(len(as_usual))
        largest = _largest(
            _shapley(features[as_usual], share[as_usual], clearest, judge, rows)[1][:, [BOUNDARY, SAMPLE]], ROUNDING
        )
        main[as_usual] = np.where(~rows & (largest != NONE), missed[as_usual], largest)
    usually = np.zeros(len(main), dtype=bool)
    usually[as_usual] = True
    write = _Writer(reading, probabilities, typical, features)
    sentences = tuple(write(int(cause), i, bool(usually[i])) for i, cause in enumerate(main))
    return Reasons(usual, shares, main, sentences)


def _largest(shares: Float64Array, least: float) -> npt.NDArray[np.int64]:
    """Boundary or sample, whichever of their shares (n, 2) is larger, if it reaches ``least``."""
    return np.where(shares.max(axis=1) >= least, np.where(shares[:, 0] >= shares[:, 1], BOUNDARY, SAMPLE), NONE)


def _shapley(
    features: Float64Array,
    share: Float64Array,
    reference: tuple[Float64Array, Float64Array],
    judge: Judge,
    accepted: npt.NDArray[np.bool_],
    judged: Float64Array | None = None,
) -> tuple[Float64Array, Float64Array]:
    """The uncertainty of the reference (n,), and what each cause adds to it (n, 3).

    ``judged`` is what ``judge`` says of the features themselves, where it was asked already.
    """
    coalitions, marginals = _coalitions(features.shape[1])
    enrolled: dict[frozenset[int], Float64Array] = {}
    if judged is not None:
        enrolled[max((in_head for _, in_head in coalitions), key=len)] = judged
    value = []
    for known, in_head in coalitions:
        if in_head not in enrolled:
            mixed = reference[0].copy()
            for player in in_head:
                own = CAUSE_COLUMNS[player]
                mixed[:, own] = features[:, own]
            enrolled[in_head] = judge(mixed)
        best = share if LOOK_ALIKE in known else reference[1]
        value.append(np.where(accepted, 1.0 - enrolled[in_head] * best, enrolled[in_head]))
    shares = np.zeros((len(features), len(CAUSES)))
    for cause, weight, joined, without in marginals:
        shares[:, cause] += weight * (value[joined] - value[without])
    return value[0], shares


@cache
def _coalitions(
    width: int,
) -> tuple[list[tuple[frozenset[int], frozenset[int]]], list[tuple[int, float, int, int]]]:
    """Shapley's sum over ``width`` causes: every set of causes, nobody first, with those of them that the head reads.

    Then its terms: a cause, the weight, and the places of two sets, with the cause and without it.
    """
    players = [BOUNDARY, LOOK_ALIKE, SAMPLE][:width]
    count = len(players)
    sets = [frozenset(known) for size in range(count + 1) for known in combinations(players, size)]
    terms = [
        (
            j,
            factorial(len(without)) * factorial(count - 1 - len(without)) / factorial(count),
            sets.index(without | {j}),
            place,
        )
        for j in players
        for place, without in enumerate(sets)
        if j not in without
    ]
    return [(known, known - {LOOK_ALIKE}) for known in sets], terms


@dataclass(frozen=True, eq=False)
class _Writer:
    """Writes one sentence: the cause, and the numbers it rests on."""

    reading: Reading
    probabilities: Probabilities
    typical: Typical
    features: Float64Array  # (n, 3 or 2), the causes

    def __call__(self, cause: int, i: int, as_usual: bool) -> str:
        if cause == NONE:
            return UNEXPLAINED if as_usual else "clear"
        what, numbers = {BOUNDARY: self.boundary, LOOK_ALIKE: self.look_alike, SAMPLE: self.sample}[cause](i, as_usual)
        return f"{what}{', as is usual here' if as_usual and what != ORDINARY else ''}: {numbers}"

    def boundary(self, i: int, as_usual: bool) -> tuple[str, str]:
        reading, accepted = self.reading, bool(self.reading.accepted[i])
        margin, usual_margin = self.features[i, 0], self.typical.causes[int(accepted), 0]
        second = float(reading.evidence.top_scores[i, 1])
        side = f"{'above' if accepted else 'below'} the threshold"
        numbers = _against(float(reading.best_score[i]), reading.point.threshold)
        if abs(margin) < NEAR:
            return f"just {side}", numbers
        if as_usual:
            return side, numbers
        if not accepted and reading.best_score[i] - second > -margin:
            return f"{self.name(i, 0)} stands out, though {side}", f"{numbers}, the next {second:.3f}"
        return ("closer to the threshold than usual" if abs(margin) < abs(usual_margin) else side), numbers

    def look_alike(self, i: int, as_usual: bool) -> tuple[str, str]:
        first, second = self.probabilities.candidates[i, :2]
        others = 1.0 - self.probabilities.nobody[i] - first
        if second >= others / 2:
            return f"between {self.name(i, 0)} and {self.name(i, 1)}", f"{first:.2f} and {second:.2f}"
        return f"between {self.name(i, 0)} and several others", f"{first:.2f} and together {others:.2f}"

    def sample(self, i: int, as_usual: bool) -> tuple[str, str]:
        accepted = bool(self.reading.accepted[i])
        usual = np.exp(-self.typical.causes[ACCEPTED, SAMPLE])
        concentration = self.reading.probe_concentrations[i]
        numbers = f"concentration {concentration:.0f}, typical {usual:.0f}"
        if accepted:
            return f"{self.name(i, 0)} would score higher in so good a sample", numbers
        return (POOR if concentration < CLEARLY * usual else ORDINARY), numbers

    def name(self, i: int, rank: int) -> object:
        return self.reading.search.names(self.reading.evidence.top_index[i, rank : rank + 1])[0]


def _against(score: float, threshold: float) -> str:
    """Both numbers, with as many digits as it takes to tell them apart, up to six.

    >>> _against(0.31, 0.2841), _against(0.29713, 0.29709)
    ('0.310 against 0.284', '0.29713 against 0.29709')
    """
    digits = next((n for n in (3, 4, 5) if f"{score:.{n}f}" != f"{threshold:.{n}f}"), 6)
    return f"{score:.{digits}f} against {threshold:.{digits}f}"
