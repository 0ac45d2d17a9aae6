"""Discrimination: whether the embedding model tells the enrolled subjects apart at all.

Every sample whose subject has another one is searched for in the gallery without itself. Rank-1 is the share of them whose
own subject scores highest, every subject counting the same; its interval is Wilson's for as many independent answers as give
the variance seen between subjects. Chance is 1/K. The grade follows from it:

    does not tell apart   the interval reaches down to chance, or lies under 0.5 as a whole
    weak                  rank-1 under 0.9
    fine                  rank-1 of 0.9 or more
    unknown               no subject has two samples

Labels that are wrong and people enrolled twice count as failures too: they lower rank-1 by about their share.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from holue.gallery.embeddings import Float64Array
from holue.recognition.audit.comparison import Comparison
from holue.recognition.calibration.rate_by_subject import LEVEL, rate_by_subject

Grade = Literal["fine", "weak", "does not tell apart", "unknown"]

FINE, HALF = 0.9, 0.5
BINS = 40

SENTENCES: dict[Grade, str] = {
    "fine": "this model tells your subjects apart",
    "weak": "this model tells your subjects apart only in part",
    "does not tell apart": "this model does not tell your subjects apart",
    "unknown": "whether this model tells your subjects apart cannot be known: every subject has one sample",
}
CONSEQUENCES: dict[Grade, str] = {
    "fine": "",
    "weak": (
        "wrong names and people enrolled twice are found less reliably; the model suits these samples badly, or many labels "
        "are wrong"
    ),
    "does not tell apart": (
        "do not trust the findings below: where the model cannot tell subjects apart, a wrong name looks like a right one, and a "
        "list without findings means nothing; use a model made for such samples, and check how they were cut out"
    ),
    "unknown": (
        "enrol a second sample of some subjects and audit again; until then only people enrolled twice and hubs can be found"
    ),
}


@dataclass(frozen=True)
class Discrimination:
    """The grade, the rank-1 it rests on, and the scores it comes from."""

    grade: Grade
    rank_1: float | None  # None where no subject has two samples
    interval: tuple[float, float] | None  # of rank-1, at a level of 0.95
    chance: float
    n_subjects: int  # subjects with two samples or more
    edges: tuple[float, ...]  # of the bins of the two histograms
    own: tuple[float, ...]  # share of scores to the own subject, without the sample
    best_other: tuple[float, ...]  # share of scores to the best other subject

    @classmethod
    def of(cls, comparison: Comparison) -> Discrimination:
        """From the samples of a gallery and their scores."""
        left = comparison.left
        chance = 1 / len(left.gallery)
        paired = left.paired
        own, other = left.own_score[paired], comparison.other_score
        everything = np.concatenate([own, other])
        edges = np.histogram_bin_edges(everything, BINS)
        weight = comparison.weight
        histograms = (_shares(own, weight[paired], edges), _shares(other, weight, edges))
        if not paired.any():
            return cls("unknown", None, None, chance, 0, _plain(edges), *histograms)
        count = np.bincount(left.row[paired], minlength=len(left.gallery))
        hits = np.bincount(left.row[paired], own > other[paired], minlength=len(left.gallery))
        rank_1, low, high = rate_by_subject(hits[count > 0] / count[count > 0])
        return cls(
            _grade(rank_1, low, high, chance),
            rank_1,
            (low, high),
            chance,
            int((count > 0).sum()),
            _plain(edges),
            *histograms,
        )

    @property
    def sentence(self) -> str:
        """The grade in words, with its numbers."""
        said = SENTENCES[self.grade]
        if self.rank_1 is None or self.interval is None:
            return f"{said}."
        return (
            f"{said}: {self.rank_1:.1%} of left-out samples are closest to their own subject (rank-1; {LEVEL:.0%} interval "
            f"{self.interval[0]:.1%} to {self.interval[1]:.1%}, {self.n_subjects} subjects; chance {self.chance:.2%})."
        )

    @property
    def consequence(self) -> str:
        """What that means for the findings; empty where they can be read as they are."""
        return CONSEQUENCES[self.grade]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "sentence": self.sentence, "consequence": self.consequence}


def _grade(rank_1: float, low: float, high: float, chance: float) -> Grade:
    if high < HALF or low <= chance:
        return "does not tell apart"
    return "fine" if rank_1 >= FINE else "weak"


def _shares(scores: Float64Array, weight: Float64Array, edges: Float64Array) -> tuple[float, ...]:
    counts = np.histogram(scores, edges, weights=weight)[0]
    return _plain(counts / counts.sum() if len(scores) else counts)


def _plain(values: Float64Array) -> tuple[float, ...]:
    return tuple(float(value) for value in values)
