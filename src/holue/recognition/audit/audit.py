"""GalleryAudit: every finding about a gallery, at one operating point.

The order matters, since faults hide each other. Mislabelled samples come first and are then left out of every template;
duplicates next; the operating point is set by left-out samples that neither fault touches; look-alikes, hubs and costs are read
there. Duplicates are judged by their agreement (see ``agreement.py``), without the direction that all subjects share. Memory
stays at a block of scores: no K × K matrix is made. Whether the model tells the subjects apart at all comes before every finding.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import GalleryTooSmallError, InvalidSubjectsError
from holue.gallery.embeddings import Float64Array
from holue.gallery.left_out import LeftOut, Mask, Rows
from holue.gallery.subjects import as_subjects
from holue.recognition.audit.comparison import Comparison
from holue.recognition.audit.confusion import Straying, pair_of
from holue.recognition.audit.discrimination import Discrimination
from holue.recognition.audit.duplicates import LIKELY, duplicate_pairs, neighbours
from holue.recognition.audit.findings import Duplicate, Hub, LookAlike, Mislabelled, PoorReference
from holue.recognition.audit.populations import Faults, OneStranger, SamePerson
from holue.recognition.audit.report import Report
from holue.recognition.calibration.leave_one_out import weighted_threshold
from holue.recognition.checks import check_share, check_threshold
from holue.recognition.model.operating_point import OperatingPoint

TWINS = 0.01
"""Share of subjects that may be enrolled twice, when a sample's label is judged."""

KINDS = ("mislabelled", "duplicates", "look_alikes", "poor_references", "hubs")


@dataclass(frozen=True, eq=False)
class GalleryAudit:
    """What is wrong with a gallery, the likeliest first in every list."""

    discrimination: Discrimination  # read this first: without it the findings mean nothing
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
            "discrimination": self.discrimination.to_dict(),
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
    n_single = int((np.bincount(first_left.row) == 1).sum())
    if not first_left.paired.any():
        notes.append(
            "every subject has one sample: mislabelled samples cannot be told, FNIR is unknown, and duplicates are judged by how "
            "far their score exceeds those of strangers"
        )
    elif n_single:
        notes.append(
            f"{n_single} of {n_subjects} subjects have one sample: whether it carries the right name cannot be known, and "
            "they have no part in rank-1 and FNIR"
        )
    near, near_score = neighbours(left, threads)
    pairs, pair_probability = duplicate_pairs(left, (near, near_score), threads)
    pair_score = np.einsum("ij,ij->i", *(left.gallery.directions[column] for column in pairs.T)).astype(np.float64)
    point = _point(after, wrong, pairs, target_fpir, threshold, notes)
    twins = {pair_of(a, b) for a, b in pairs.tolist()}
    straying = Straying.of(left, aside=twins, without=wrong, threads=threads)
    report = Report(before, after, names, point.threshold, straying)
    return GalleryAudit(
        discrimination=Discrimination.of(before),
        n_subjects=n_subjects,
        n_samples=n,
        n_single=n_single,
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
    faults = Faults.fitted(other, log_ratio, comparison.other_score, same, len(left.gallery) - 1, TWINS)
    probability[paired] = faults.probability(other, log_ratio)
    wrong = (probability >= LIKELY) & paired
    wrong[paired] &= own < other
    return wrong, probability


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
            [pair_of(a, b) in twins for a, b in zip(left.row.tolist(), comparison.other.tolist())], dtype=bool
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


def _check_distinct(names: npt.NDArray[np.str_]) -> None:
    ids, count = np.unique(names, return_counts=True)
    if (count > 1).any():
        raise InvalidSubjectsError(
            f"sample_id {str(ids[count.argmax()])!r} names {int(count.max())} samples; findings name samples, so give each one"
        )
