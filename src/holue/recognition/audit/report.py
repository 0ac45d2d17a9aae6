"""Report: the rows that an audit suspects, turned into findings with names and costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import poisson

from holue.errors import InvalidParameterError
from holue.gallery.embeddings import Float64Array
from holue.gallery.left_out import Mask, Rows
from holue.recognition.audit.comparison import Comparison
from holue.recognition.audit.confusion import Straying, pair_of, probability_taken
from holue.recognition.audit.findings import Duplicate, Hub, LookAlike, Mislabelled, PoorReference
from holue.recognition.audit.populations import QUARTILE
from holue.recognition.model.operating_point import OperatingPoint

POOR = 3.0
"""Robust standard deviations below typical from which a reference is poor: 1 in 740 where qualities are normal."""
HUB = 1e-3
"""A hub attracts more than chance (Poisson) gives even one subject of the gallery, with this probability."""


@dataclass(frozen=True)
class Report:
    """Rows turned into findings, with their costs."""

    before: Comparison  # all samples in the templates
    after: Comparison  # mislabelled ones left out
    names: npt.NDArray[np.str_]
    threshold: float
    straying: Straying | None = None

    def _subject(self, row: int) -> Any:
        return self.before.left.gallery.subjects[row].item()

    def _example(self, row: int) -> str:
        return str(self.names[self._first_sample[row]])

    @cached_property
    def _first_sample(self) -> Rows:
        return np.unique(self.before.left.row, return_index=True)[1]

    def mislabelled(self, wrong: Mask, probability: Float64Array) -> tuple[Mislabelled, ...]:
        """Samples under the wrong name, the clearest first."""
        row, other = self.before.left.row, self.after.other
        spoilt = self.before.failed(self.threshold) & ~self.after.failed(self.threshold) & ~wrong
        spoilt_share = np.bincount(row, self.before.weight * spoilt, minlength=int(row.max()) + 1)
        cost = spoilt_share / np.maximum(np.bincount(row, wrong, minlength=len(spoilt_share)), 1)
        found = np.flatnonzero(wrong)
        found = found[np.argsort(-(self.after.other_score - self.before.left.own_score)[found], kind="stable")]
        return tuple(
            Mislabelled(
                sample=str(self.names[i]),
                subject=self._subject(row[i]),
                looks_like=self._subject(other[i]),
                own_score=float(self.before.left.own_score[i]),
                other_score=float(self.after.other_score[i]),
                probability=float(probability[i]),
                cost_fnir=float(cost[row[i]]),
                samples=(str(self.names[i]), self._example(row[i]), self._example(other[i])),
            )
            for i in found.tolist()
        )

    def duplicates(self, pairs: Rows, score: Float64Array, probability: Float64Array) -> tuple[Duplicate, ...]:
        """People enrolled twice, the likeliest first."""
        return tuple(
            Duplicate(
                first=self._subject(a),
                second=self._subject(b),
                score=float(score[i]),
                probability=float(probability[i]),
                cost_fnir=self._taken_between.get((a, b), (0.0, 0))[0],
                samples=(self._example(a), self._example(b)),
            )
            for i, (a, b) in enumerate(pairs.tolist())
        )

    def look_alikes(
        self, near: Rows, near_score: Float64Array, duplicates: Rows, point: OperatingPoint
    ) -> tuple[LookAlike, ...]:
        """Pairs that the threshold cannot tell apart, the closest first."""
        known = {tuple(pair) for pair in duplicates.tolist()}
        found: dict[tuple[int, int], float] = {}
        for a, rank in np.argwhere(near_score >= self.threshold).tolist():
            b = int(near[a, rank])
            pair = pair_of(a, b)
            if pair not in known:
                found[pair] = float(near_score[a, rank])
        ordered = sorted(found, key=lambda pair: (-found[pair], pair))
        scores = np.array([found[pair] for pair in ordered])
        p = self._probability_taken(scores, point)
        return tuple(
            LookAlike(
                first=self._subject(a),
                second=self._subject(b),
                score=float(scores[i]),
                probability_taken=float(p[i]),
                observed_taken=self._observed(a, b),
                cost_fnir=float(2 * p[i] / len(near)),
                samples=(self._example(a), self._example(b)),
            )
            for i, (a, b) in enumerate(ordered)
        )

    def poor_references(self, quality: object, notes: list[str]) -> tuple[PoorReference, ...]:
        """Subjects of unusually low quality, the worst first."""
        left = self.before.left
        if quality is not None:
            scale = np.asarray(quality, dtype=np.float64)
            if scale.shape != left.row.shape or not np.isfinite(scale).all():
                raise InvalidParameterError(f"quality must be one finite number per sample, got shape {scale.shape}")
        elif left.samples.concentrations is not None:
            scale = np.log(left.samples.concentrations)
        else:
            notes.append("references were not judged by quality: the samples have neither concentration nor quality")
            return ()
        count = np.bincount(left.row)
        mean = np.bincount(left.row, scale) / count
        typical = float(np.median(mean))
        spread = float(np.median(np.abs(mean - typical))) / QUARTILE
        deviations = (typical - mean) / max(spread, 1e-12)
        failed = np.bincount(left.row, self.before.weight * self.before.failed(self.threshold))
        back = np.exp if quality is None else np.asarray
        poor = np.flatnonzero(deviations > POOR)
        return tuple(
            PoorReference(
                subject=self._subject(c),
                quality=float(back(mean[c])),
                typical=float(back(typical)),
                deviations=float(deviations[c]),
                cost_fnir=float(failed[c]),
                samples=(self._example(c),),
            )
            for c in poor[np.argsort(-deviations[poor], kind="stable")].tolist()
        )

    def hubs(self) -> tuple[Hub, ...]:
        """Subjects whose pull is beyond chance: more others than a Poisson count gives the largest of K."""
        comparison = self.after
        n_subjects = len(comparison.left.gallery)
        # One vote per subject, shared among its samples.
        votes = np.bincount(comparison.other, comparison.weight, minlength=n_subjects) * n_subjects
        limit = float(poisson.isf(HUB / n_subjects, n_subjects / (n_subjects - 1)))
        cost = np.bincount(
            comparison.other,
            comparison.weight * (comparison.other_score >= self.threshold),
            minlength=n_subjects,
        )
        hubs = np.flatnonzero(votes > limit)
        return tuple(
            Hub(
                subject=self._subject(c),
                attracted=float(votes[c] / (n_subjects - 1)),
                times_expected=float(votes[c]),
                cost_fpir=float(cost[c]),
                samples=(self._example(c),),
            )
            for c in hubs[np.argsort(-votes[hubs], kind="stable")].tolist()
        )

    @cached_property
    def _taken_between(self) -> dict[tuple[int, int], tuple[float, int]]:
        """Pair of subjects → the weight of left-out samples of one that are taken for the other, and how many are mated."""
        left = self.after.left
        found: dict[tuple[int, int], tuple[float, int]] = {}
        for i in np.flatnonzero(self.after.taken(self.threshold)).tolist():
            pair = pair_of(int(left.row[i]), int(self.after.other[i]))
            weight, count = found.get(pair, (0.0, 0))
            found[pair] = (weight + float(self.after.weight[i]), count + int(left.paired[i]))
        return found

    def _probability_taken(self, cosine: Float64Array, point: OperatingPoint) -> Float64Array:
        if self.straying is None:
            return probability_taken(cosine, point.dim, point.concentration, point.threshold)
        return self.straying.probability_taken(cosine, point.threshold)

    def _observed(self, a: int, b: int) -> float:
        mated = int(self._n_mated[a] + self._n_mated[b])
        return self._taken_between.get((a, b), (0.0, 0))[1] / max(mated, 1)

    @cached_property
    def _n_mated(self) -> Rows:
        left = self.after.left
        return np.bincount(left.row[left.paired], minlength=len(left.gallery))
