"""Evidence: what part of a gallery says about a batch of probes.

For every probe and every *sharpness* ``a`` it holds

    log_mass   = ln Σ_c e^{a g_c}                    how much of the part is near the probe
    mean_score = Σ_c g_c e^{a g_c} / Σ_c e^{a g_c}   how near that mass is

beside the best scores with their subjects. ``g_c`` is the cosine ``s_c``, or a link of it (see ``link.py``).
Everything above (posterior, decision, quality) follows from these few numbers, and they merge: blocks, threads and
machines produce the same type, and the number of subjects K and the prior β enter only when the posterior is closed. Evidence of
an exact scan carries the sums themselves (``reproducible_sums.py``): merged, it is that of the whole, bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from holue.errors import InvalidInputError
from holue.evidence.precision import Precision, concatenate_precision, merge_precision
from holue.evidence.reproducible_sums import ReproducibleSums, concatenate_sums

Float64Array = npt.NDArray[np.float64]

NO_SUBJECT = -1
"""Index of an unfilled place among the top, where a part holds fewer than k subjects; its score is −inf."""


@dataclass(frozen=True, eq=False)
class Evidence:
    """Evidence of ``n_subjects`` subjects about n probes at m sharpnesses, with the top k of each probe."""

    top_scores: npt.NDArray[np.floating[Any]]  # (n, k) cosines, best first; −inf where unfilled
    top_index: npt.NDArray[np.int64]  # (n, k) the subjects' numbers; NO_SUBJECT where unfilled
    log_mass: Float64Array  # (n, m); −inf where no subject was seen
    mean_score: Float64Array  # (n, m); 0 where no subject was seen
    n_subjects: int
    sharpness: Float64Array  # (m,)
    precision: Precision | None = None  # how far it may be off; None: exact, up to the rounding of the product
    sums: ReproducibleSums | None = None  # what log_mass and mean_score were computed from; None: not of an exact scan

    @classmethod
    def of_sums(
        cls,
        top_scores: Float64Array,
        top_index: npt.NDArray[np.int64],
        sums: ReproducibleSums,
        n_subjects: int,
        sharpness: Float64Array,
        precision: Precision | None = None,
    ) -> Evidence:
        """Evidence with the log-mass and mean score of some sums."""
        log_mass, mean_score = sums.close(sharpness, top_scores, n_subjects)
        return cls(top_scores, top_index, log_mass, mean_score, n_subjects, sharpness, precision, sums)

    @classmethod
    def empty(cls, n_probes: int, sharpness: npt.ArrayLike, top_k: int) -> Evidence:
        """The identity of :func:`merge`: no subject seen."""
        a = np.atleast_1d(np.asarray(sharpness, dtype=np.float64))
        return cls(
            np.full((n_probes, top_k), -np.inf),
            np.full((n_probes, top_k), NO_SUBJECT, dtype=np.int64),
            np.full((n_probes, len(a)), -np.inf),
            np.zeros((n_probes, len(a))),
            0,
            a,
        )

    def __len__(self) -> int:
        return len(self.top_index)

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Evidence:
        """The evidence about some of the probes."""
        return Evidence(
            self.top_scores[rows],
            self.top_index[rows],
            self.log_mass[rows],
            self.mean_score[rows],
            self.n_subjects,
            self.sharpness,
            None if self.precision is None else self.precision.take(rows),
            None if self.sums is None else self.sums.take(rows),
        )

    def columns(self, columns: slice) -> Evidence:
        """The evidence at some of the sharpnesses."""
        return replace(
            self,
            log_mass=self.log_mass[:, columns],
            mean_score=self.mean_score[:, columns],
            sharpness=self.sharpness[columns],
            precision=None if self.precision is None else self.precision.columns(columns),
            sums=None if self.sums is None else self.sums.columns(columns),
        )

    def shifted(self, rows: int) -> Evidence:
        """The same evidence, of a part that begins ``rows`` later in the gallery."""
        return replace(self, top_index=np.where(self.top_index == NO_SUBJECT, NO_SUBJECT, self.top_index + rows))

    def missing_log_mass(self, n_gallery: int) -> Float64Array:
        """Upper bound (m,) on the log-mass of the subjects not seen: ``ln(K − n) + a``, −inf when all were.

        It holds for the cosine itself, whose greatest value is 1.
        """
        missing = n_gallery - self.n_subjects
        if missing < 0:
            raise InvalidInputError(f"evidence covers {self.n_subjects} subjects, the gallery holds only {n_gallery}")
        return np.log(missing) + self.sharpness if missing else np.full_like(self.sharpness, -np.inf)


def concatenate(parts: Sequence[Evidence]) -> Evidence:
    """Evidence of the same subjects about several batches of probes, one after another."""
    first = parts[0]
    for part in parts:
        if part.n_subjects != first.n_subjects or not np.array_equal(part.sharpness, first.sharpness):
            raise InvalidInputError(
                f"only evidence of the same subjects at the same sharpness is put in a row: got {first.n_subjects} subjects at "
                f"{first.sharpness} and {part.n_subjects} at {part.sharpness}"
            )
    return Evidence(
        np.concatenate([part.top_scores for part in parts]),
        np.concatenate([part.top_index for part in parts]),
        np.concatenate([part.log_mass for part in parts]),
        np.concatenate([part.mean_score for part in parts]),
        first.n_subjects,
        first.sharpness,
        concatenate_precision([part.precision for part in parts], [len(part) for part in parts], len(first.sharpness)),
        concatenate_sums([part.sums for part in parts]),
    )


def merge(left: Evidence, right: Evidence) -> Evidence:
    """Evidence of two disjoint parts of a gallery, taken together.

    Associative and commutative: exactly for parts of exact scans of one precision, else up to rounding. Equal scores are ordered
    by the smaller number, so that how a gallery is split cannot decide a tie.
    """
    if len(left) != len(right) or not np.array_equal(left.sharpness, right.sharpness):
        raise InvalidInputError(
            f"only evidence about the same probes at the same sharpness merges: got {len(left)} probes at "
            f"{left.sharpness} and {len(right)} at {right.sharpness}"
        )
    index = np.concatenate([left.top_index, right.top_index], axis=1)
    ascending = np.sort(index, axis=1)
    if ((ascending[:, 1:] == ascending[:, :-1]) & (ascending[:, 1:] != NO_SUBJECT)).any():
        raise InvalidInputError(
            "the same subject is in both parts, and would count twice; a subject lives in one part only "
            "(number the subjects of a later part from where it begins: Gallery.of(..., numbers=), or first_subject= of a matrix)"
        )
    top_k = max(left.top_index.shape[1], right.top_index.shape[1])
    scores = np.concatenate([left.top_scores, right.top_scores], axis=1)
    # Unfilled places (−1) have score −inf and so come last whatever their index.
    order = np.lexsort((index, -scores), axis=1)[:, :top_k]
    log_odds = _log_odds(left.log_mass, right.log_mass)
    top_scores, top_index = (np.take_along_axis(values, order, axis=1) for values in (scores, index))
    n_subjects = left.n_subjects + right.n_subjects
    precision = merge_precision(left.precision, right.precision, log_odds, left.mean_score - right.mean_score)
    sums = _merged_sums(left, right, order)
    if sums is not None:
        return Evidence.of_sums(top_scores, top_index, sums, n_subjects, left.sharpness, precision)
    share = expit(log_odds)
    return Evidence(
        top_scores,
        top_index,
        np.logaddexp(left.log_mass, right.log_mass),
        share * left.mean_score + (1.0 - share) * right.mean_score,
        n_subjects,
        left.sharpness,
        precision,
    )


def _merged_sums(left: Evidence, right: Evidence, order: npt.NDArray[np.int64]) -> ReproducibleSums | None:
    """The sums of both with the top in a new order, where both have any of one kind; nobody has every kind."""
    known = left.sums or right.sums
    if known is None:
        return None
    first, second = (
        ReproducibleSums.empty(len(part), len(part.sharpness), known.n_bins, part.top_index.shape[1])
        if part.sums is None and part.n_subjects == 0
        else part.sums
        for part in (left, right)
    )
    if first is None or second is None or first.n_bins != second.n_bins:
        return None
    summed = np.concatenate([first.summed, second.summed], axis=1)
    return first.plus(second, np.take_along_axis(summed, order, axis=1))


def _log_odds(log_mass: Float64Array, log_other: Float64Array) -> Float64Array:
    """The first mass to the second, from which its share is exact even where the sum of logarithms would round it away."""
    seen, other_seen = np.isfinite(log_mass), np.isfinite(log_other)
    difference = np.where(seen, log_mass, 0.0) - np.where(other_seen, log_other, 0.0)
    return np.where(seen & other_seen, difference, np.where(seen, np.inf, -np.inf))
