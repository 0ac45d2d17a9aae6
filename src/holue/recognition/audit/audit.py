"""GalleryAudit: every finding about a gallery, at one operating point.

The order matters, since faults hide each other. Mislabelled samples come first and are then left out of every template;
duplicates next; the operating point is set by left-out samples that neither fault touches; look-alikes, hubs and costs are read
there. Memory stays at a block of scores: no K × K matrix is made.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import poisson

from holue.errors import GalleryTooSmallError, InvalidSubjectsError
from holue.gallery.embeddings import Float64Array
from holue.gallery.left_out import LeftOut
from holue.gallery.subjects import as_subjects
from holue.recognition.audit.comparison import Comparison, Mask, Rows, neighbours
from holue.recognition.audit.confusion import measured_probability_taken, probability_taken
from holue.recognition.audit.findings import Duplicate, Hub, LookAlike, Mislabelled, PoorReference
from holue.recognition.audit.populations import QUARTILE, OneStranger, SamePerson, fault_probabilities
from holue.recognition.leave_one_out import weighted_threshold
from holue.recognition.operating import OperatingPoint, check_share, check_threshold

LIKELY = 0.5
"""Probability from which a fault is reported."""
POOR = 3.0
"""Robust standard deviations below typical from which a reference is poor: 1 in 740 where qualities are normal."""
TWINS = 0.01
"""Share of subjects that may be enrolled twice, when a sample's label is judged."""
HUB = 1e-3
"""A hub attracts more than chance (Poisson) gives even one subject of the gallery, with this probability."""

KINDS = ("mislabelled", "duplicates", "look_alikes", "poor_references", "hubs")


@dataclass(frozen=True, eq=False)
class GalleryAudit:
    """What is wrong with a gallery, the likeliest first in every list."""

    n_subjects: int
    n_samples: int
    n_single: int  # subjects with one sample
    point: OperatingPoint
    fpir: float  # of left-out samples, at the operating point, faults included
    fnir: float | None  # None where no subject has two samples
    mislabelled: tuple[Mislabelled, ...]
    duplicates: tuple[Duplicate, ...]
    look_alikes: tuple[LookAlike, ...]
    poor_references: tuple[PoorReference, ...]
    hubs: tuple[Hub, ...]
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        point = self.point
        return {
            "n_subjects": self.n_subjects,
            "n_samples": self.n_samples,
            "n_single": self.n_single,
            "operating_point": {
                "threshold": point.threshold,
                "concentration": point.concentration,
                "unknown_prior": point.unknown_prior,
                "target_fpir": point.target_fpir,
            },
            "fpir": self.fpir,
            "fnir": self.fnir,
            **{kind: [asdict(finding) for finding in getattr(self, kind)] for kind in KINDS},
            "notes": list(self.notes),
        }


def audit_gallery(
    X: object,
    y: object,
    *,
    concentration: object = None,
    quality: object = None,
    media: object = None,
    sample_id: object = None,
    target_fpir: float = 0.01,
    threshold: float | None = None,
    threads: int | None = None,
) -> GalleryAudit:
    """Audit the samples ``X`` (n, d) of subjects ``y``.

    ``threshold`` is the cosine the system accepts at; without it one is found for ``target_fpir`` on left-out samples.

    >>> from holue.datasets.simulated import simulate
    >>> world = simulate(n_subjects=80, look_alike_pairs=0, enrolled_samples=4, rng=np.random.default_rng(0))
    >>> y = world.gallery.person.copy()
    >>> y[[0, 40]] = y[[40, 0]]
    >>> audit = audit_gallery(world.gallery.X, y, target_fpir=0.05)
    >>> [(fault.sample, fault.subject, fault.looks_like) for fault in audit.mislabelled]
    [('0', 10, 0), ('40', 0, 10)]
    """
    check_share("target_fpir", target_fpir)
    notes: list[str] = []
    first_left = LeftOut.of(X, y, concentration, media=media)
    n, n_subjects = len(first_left), len(first_left.gallery)
    if n_subjects < 3:
        raise GalleryTooSmallError(f"an audit compares subjects with each other and needs at least 3, got {n_subjects}")
    names = np.arange(n).astype(str) if sample_id is None else as_subjects(sample_id, n, field="sample_id").astype(str)
    _check_distinct(names)
    before = Comparison.of(first_left, threads)
    same = SamePerson.of(before.left.own_score[before.left.paired])
    wrong, probability = _mislabelled(before, same)
    left = LeftOut.of(X, y, concentration, media=media, kept=~wrong) if wrong.any() else first_left
    after = Comparison.of(left, threads) if wrong.any() else before
    if not first_left.paired.any():
        notes.append(
            "every subject has one sample: mislabelled samples cannot be told, FNIR is unknown, and duplicates are judged by how "
            "far their score exceeds those of strangers"
        )
    near, near_score = neighbours(left, threads)
    pairs, pair_score, pair_probability = _duplicates(near, near_score, same)
    point = _point(after, wrong, pairs, target_fpir, threshold, notes)
    report = _Report(before, after, names, point.threshold)
    return GalleryAudit(
        n_subjects=n_subjects,
        n_samples=n,
        n_single=int((np.bincount(left.row) == 1).sum()),
        point=point,
        fpir=before.share(before.other_score >= point.threshold),
        fnir=_fnir(before, point.threshold),
        mislabelled=report.mislabelled(wrong, probability),
        duplicates=report.duplicates(pairs, pair_score, pair_probability),
        look_alikes=report.look_alikes(near, near_score, pairs, point),
        poor_references=report.poor_references(quality, notes),
        hubs=report.hubs(),
        notes=tuple(notes),
    )


def _mislabelled(comparison: Comparison, same: SamePerson) -> tuple[Mask, Float64Array]:
    """Samples likelier to be another's, and that probability.

    Label right: own ~ g, and other ~ h or, where the person is enrolled twice, g. Label wrong: own ~ f (a stranger), other ~ g.
    """
    left = comparison.left
    paired = left.paired
    own, other = left.own_score[paired], comparison.other_score[paired]
    stranger = OneStranger.of(comparison.arbitrary_other())
    log_ratio = stranger.log_density(own) - same.log_density(own)
    probability = np.zeros(len(left))
    probability[paired] = fault_probabilities(
        other, log_ratio, comparison.other_score, same, len(left.gallery) - 1, TWINS
    )
    wrong = (probability >= LIKELY) & paired
    wrong[paired] &= own < other
    return wrong, probability


def _duplicates(near: Rows, score: Float64Array, same: SamePerson) -> tuple[Rows, Float64Array, Float64Array]:
    """Pairs of gallery rows (m, 2) likely to be one person, with cosine and probability, the likeliest first."""
    flat = score.ravel()
    # A person enrolled three times has two partners: every neighbour is judged, by the strangers that the nearest ones are.
    probability = fault_probabilities(flat, np.zeros(len(flat)), score[:, 0], same, len(near) - 1)
    pairs = np.sort(np.column_stack([np.repeat(np.arange(len(near)), near.shape[1]), near.ravel()]), axis=1)
    likely = np.flatnonzero(probability >= LIKELY)
    likely = likely[np.argsort(-flat[likely], kind="stable")]
    _, first = np.unique(pairs[likely], axis=0, return_index=True)
    chosen = likely[np.sort(first)]
    return pairs[chosen], flat[chosen], probability[chosen]


def _point(
    comparison: Comparison,
    wrong: Mask,
    pairs: Rows,
    target_fpir: float,
    threshold: float | None,
    notes: list[str],
) -> OperatingPoint:
    left = comparison.left
    n_subjects = len(left.gallery)
    target: float | None = None
    if threshold is None:
        twins = {tuple(pair) for pair in pairs.tolist()}
        met_twin = np.array(
            [(min(a, b), max(a, b)) in twins for a, b in zip(left.row.tolist(), comparison.other.tolist())], dtype=bool
        )
        clean = ~wrong & ~met_twin
        if clean.sum() < 2:
            clean = np.ones(len(left), dtype=bool)
        least = float(2 * comparison.weight[clean].max() / comparison.weight[clean].sum())
        target = target_fpir if least <= target_fpir else least
        if least > target_fpir:
            notes.append(
                f"the gallery is too small for an FPIR of {target_fpir:g}: its operating point is at {least:.3g}"
            )
        threshold = weighted_threshold(comparison.other_score[clean], comparison.weight[clean], min(target, 0.999))
    point = OperatingPoint.solve(
        dim=left.gallery.dim, n_subjects=n_subjects, threshold=check_threshold(threshold), unknown_prior=0.5
    )
    return point if target is None else replace(point, target_fpir=target)


def _fnir(comparison: Comparison, threshold: float) -> float | None:
    mated = comparison.share(comparison.left.paired)
    return comparison.share(comparison.failed(threshold)) / mated if mated else None


@dataclass(frozen=True)
class _Report:
    """Rows turned into findings, with their costs."""

    before: Comparison  # all samples in the templates
    after: Comparison  # mislabelled ones left out
    names: npt.NDArray[np.str_]
    threshold: float

    def _subject(self, row: int) -> Any:
        return self.before.left.gallery.subjects[row].item()

    def _example(self, row: int) -> str:
        return str(self.names[self._first_sample[row]])

    @cached_property
    def _first_sample(self) -> Rows:
        return np.unique(self.before.left.row, return_index=True)[1]

    def mislabelled(self, wrong: Mask, probability: Float64Array) -> tuple[Mislabelled, ...]:
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
        return tuple(
            Duplicate(
                first=self._subject(a),
                second=self._subject(b),
                score=float(score[i]),
                probability=float(probability[i]),
                cost_fnir=self.after.share(self._taken_between(a, b)),
                samples=(self._example(a), self._example(b)),
            )
            for i, (a, b) in enumerate(pairs.tolist())
        )

    def look_alikes(
        self, near: Rows, near_score: Float64Array, duplicates: Rows, point: OperatingPoint
    ) -> tuple[LookAlike, ...]:
        known = {tuple(pair) for pair in duplicates.tolist()}
        found: dict[tuple[int, int], float] = {}
        for a, rank in np.argwhere(near_score >= self.threshold).tolist():
            b = int(near[a, rank])
            pair = (min(a, b), max(a, b))
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
        left = self.before.left
        if quality is not None:
            value = np.asarray(quality, dtype=np.float64)
            scale = value
        elif left.samples.concentrations is not None:
            value = left.samples.concentrations
            scale = np.log(value)
        else:
            notes.append("references were not judged by quality: the samples have neither concentration nor quality")
            return ()
        count = np.bincount(left.row)
        mean = np.bincount(left.row, scale) / count
        typical = float(np.median(mean))
        spread = float(np.median(np.abs(mean - typical))) / QUARTILE
        deviations = (typical - mean) / max(spread, 1e-12)
        failed = self.before.failed(self.threshold)
        back = np.exp if quality is None else np.asarray
        poor = np.flatnonzero(deviations > POOR)
        return tuple(
            PoorReference(
                subject=self._subject(c),
                quality=float(back(mean[c])),
                typical=float(back(typical)),
                deviations=float(deviations[c]),
                cost_fnir=self.before.share(failed & (left.row == c)),
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

    def _taken_between(self, a: int, b: int) -> Mask:
        row, other = self.after.left.row, self.after.other
        between = ((row == a) & (other == b)) | ((row == b) & (other == a))
        return np.asarray(between & self.after.taken(self.threshold))

    def _probability_taken(self, cosine: Float64Array, point: OperatingPoint) -> Float64Array:
        own = self.after.left.own_score[self.after.left.paired]
        if len(own) == 0:
            return probability_taken(cosine, point.dim, point.concentration, point.threshold)
        stranger = OneStranger.of(self.after.arbitrary_other())
        return measured_probability_taken(cosine, SamePerson.of(own), stranger, point.threshold)

    def _observed(self, a: int, b: int) -> float:
        left = self.after.left
        mated = left.paired & ((left.row == a) | (left.row == b))
        return float((self._taken_between(a, b) & mated).sum() / max(int(mated.sum()), 1))


def _check_distinct(names: npt.NDArray[np.str_]) -> None:
    ids, count = np.unique(names, return_counts=True)
    if (count > 1).any():
        raise InvalidSubjectsError(
            f"sample_id {str(ids[count.argmax()])!r} names {int(count.max())} samples; findings name samples, so give each one"
        )
