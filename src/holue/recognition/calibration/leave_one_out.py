"""Leave-one-out calibration: an operating point and a quality from the gallery's own samples, with no development set.

Every sample is a probe twice: **mated**, against a gallery in which its own subject's template is pooled without it, and
**non-mated**, against a gallery in which its own subject is left out. Neither refits anything: the evidence of all *other*
subjects is taken once (see ``evidence/leave_one_out.py``), and the mated probe's own subject is merged into it at its
corrected score.

People enrolled twice (``audit/duplicates.py``) are not used as strangers: left out once, they are still enrolled under their
other name, and would be strangers with the score of a mate. ``doubts()`` names them. The rule is stricter than the audit's: it
lacks the weight of mutual pairs. Every pair of two people that is left out lowers the threshold; the audit only shows it.

What it cannot know, in the order of importance: strangers who differ from the enrolled (other cameras, no relatives in the
gallery); people enrolled twice whom nothing gives away; and that a left-out template has one sample fewer than the real one, so
that mated probes look slightly worse. Every *subject*
counts the same for the threshold, however many samples it has. The left-out subject of a non-mated probe stays as an empty
place, so that all probes share one K; that moves its log-odds by ln(K/(K−1)).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, GalleryTooSmallError, InvalidParameterError, InvalidSubjectsError
from holue.evidence.evidence import concatenate, merge
from holue.evidence.leave_one_out import evidence_of_one, evidence_of_others
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.gallery import Gallery
from holue.gallery.left_out import LeftOut, Mask, Rows
from holue.recognition.audit.duplicates import duplicate_pairs
from holue.recognition.calibration.calibration import Examined, check_concentrations
from holue.recognition.calibration.fallback import usable_hold
from holue.recognition.calibration.look_alikes import threshold_setting_pairs
from holue.recognition.calibration.validation import point_at_threshold
from holue.recognition.checks import check_share
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.model.strangers import Strangers
from holue.recognition.reading import KEPT, Reading
from holue.recognition.search.gallery_search import GallerySearch
from holue.recognition.settings import Settings

SCAN_THEMSELVES = ("holue-mc", "holue-closed")
"""Methods that read the gallery anew, where the sample's own subject would be met again."""
SAME_TEMPLATE = 1e-3
"""How far a template pooled here may be from the enrolled one, as 1 − cosine: float16 galleries and other orders of summing."""


@dataclass(frozen=True, eq=False)
class LeftOutProbes:
    """The enrolled samples, each left out in turn, as what a calibration rests on."""

    left: LeftOut
    twice: Rows  # (m, 2) rows of the gallery that are likely to be one person

    @classmethod
    def of(
        cls, method: str, X: object, y: object, concentration: object, media: object, weighting: str, enrolled: Gallery
    ) -> LeftOutProbes:
        """The samples that ``fit`` got; they must pool to the enrolled templates."""
        if method in SCAN_THEMSELVES:
            raise InvalidParameterError(
                f"method={method!r} cannot be calibrated by leaving one out: it reads the gallery anew, with the left-out "
                "subject in it; bring development probes with calibrate(X_dev, y_dev), or use method='holue-plus'"
            )
        left = LeftOut.of(X, y, concentration, media=media, weighting=weighting)
        check_concentrations(method, left.samples)  # the first thing to tell, before the samples are compared
        _check_same_gallery(left, enrolled)
        check_leave_one_out(left)
        return cls(left, duplicate_pairs(left, weigh_mutual=False)[0])

    @property
    def probes(self) -> Embeddings:
        """Every sample, once."""
        return self.left.samples

    @property
    def strangers(self) -> Mask:
        """The samples that are strangers once their subject is left out: all but those of people enrolled twice.

        Where no two subjects remain, all of them: there is nothing better.
        """
        once = ~np.isin(self.left.row, self.twice)
        return once if len(np.unique(self.left.row[once])) > 1 else np.ones(len(self.left), dtype=bool)

    def point_at_fpir(self, settings: Settings) -> OperatingPoint:
        """The operating point at which ``target_fpir`` of the left-out subjects' samples are accepted."""
        point = left_out_point(
            self.left,
            settings.target_fpir,
            unknown_prior=settings.unknown_prior,
            strangers=self.strangers,
            confidence=settings.fpir_confidence,
            threads=settings.threads,
        )
        return point.for_gallery(len(self.left.gallery), usable_hold(settings.hold, point))

    def point_at_threshold(self, settings: Settings, threshold: float) -> OperatingPoint:
        """The operating point of a threshold that was given."""
        return point_at_threshold(threshold, self.left.gallery, settings.unknown_prior)

    def examined(self, point: OperatingPoint, settings: Settings) -> Examined:
        """All mated probes, then all non-mated ones."""
        strangers = self.strangers
        reading, truth, own_score = left_out_reading(
            self.left, point, settings.temperature, strangers=strangers, threads=settings.threads
        )
        row, nobody = self.left.row, reading.take(np.flatnonzero(truth < 0))
        person = np.concatenate([row[self.left.paired], row[strangers]])
        alike = np.empty((0, 2), dtype=np.int64)
        if point.target_fpir is not None:
            others = nobody.evidence.top_index[:, 0]
            alike = threshold_setting_pairs(
                row[strangers], nobody.best_score, others, point.threshold, point.target_fpir
            )
        return Examined(reading, truth, person, own_score, self._named(self.twice), self._named(alike))

    def _named(self, pairs: Rows) -> tuple[tuple[Any, Any], ...]:
        return tuple((one, other) for one, other in self.left.gallery.subjects[pairs].tolist())


def check_leave_one_out(left: LeftOut) -> None:
    """Refuse a gallery in which leaving one out leaves nothing."""
    if len(left.gallery) < 3:
        raise GalleryTooSmallError(
            f"leaving one out needs a gallery of at least 3 subjects, got {len(left.gallery)}: two must remain for a stranger"
        )
    if not left.paired.any():
        raise CalibrationDataError(
            f"each of the {len(left.gallery)} subjects has one sample (or one medium): without it nothing of the subject is "
            "left, so there are no mated probes; bring development probes with calibrate(X_dev, y_dev, gallery=...), or enrol a "
            "second sample of some subjects"
        )


def stranger_scores(left: LeftOut, threads: int | None = None) -> tuple[Float64Array, npt.NDArray[np.int64]]:
    """Best score of every sample with its own subject left out, and the number of the subject that has it."""
    others = evidence_of_others(left.samples.directions, left.row, left.gallery, [], top_k=1, threads=threads)
    return np.asarray(others.top_scores[:, 0], dtype=np.float64), others.top_index[:, 0]


def left_out_point(
    left: LeftOut,
    target_fpir: float,
    *,
    unknown_prior: float = 0.5,
    strangers: Mask,
    confidence: float | None = None,
    threads: int | None = None,
) -> OperatingPoint:
    """The operating point of a gallery of K − 1 at which ``target_fpir`` of the left-out ``strangers`` are accepted.

    Each subject counts the same, however many samples it has. With ``confidence``, at most as many of all people are.
    """
    scores, nearest = stranger_scores(left, threads)
    seen = Strangers.of(
        scores[strangers],
        left.row[strangers],
        nearest=nearest[strangers],
        same_people=True,
        people_count_alike=True,
    )
    return OperatingPoint.on_strangers(
        seen,
        target_fpir,
        dim=left.gallery.dim,
        n_subjects=len(left.gallery) - 1,
        unknown_prior=unknown_prior,
        threshold=weighted_threshold(seen.score, seen.weight, target_fpir) if confidence is None else None,
        confidence=confidence,
    )


def weighted_threshold(scores: Float64Array, weight: Float64Array, target_fpir: float) -> float:
    """The lowest τ at which accepted scores weigh at most ``target_fpir`` of all, midway to the next score below.

    >>> weighted_threshold(np.array([0.4, 0.3, 0.2, 0.1]), np.ones(4), 0.25)
    0.35
    """
    target = check_share("target_fpir", target_fpir)
    value, place = np.unique(-scores, return_inverse=True)
    share = np.cumsum(np.bincount(place, weight)) / weight.sum()
    accepted = int(np.searchsorted(share, target + 1e-9, side="right"))
    if accepted == 0 or accepted == len(value):
        raise CalibrationDataError(
            f"target_fpir={target:g} is finer than {len(scores)} left-out samples of these subjects can resolve (their highest "
            f"score alone is a share of {share[0]:.2g}); raise it or calibrate on more people"
        )
    return float(-(value[accepted - 1] + value[accepted]) / 2)


def left_out_reading(
    left: LeftOut, point: OperatingPoint, temperature: float, *, strangers: Mask, threads: int | None = None
) -> tuple[Reading, npt.NDArray[np.int64], Float64Array]:
    """A reading of all mated probes, then of ``strangers``, with the true row of each (−1 for strangers) and its own score."""
    kappa = point.concentration
    sharpness = [kappa, kappa / temperature]
    top_k = min(KEPT, len(left.gallery))
    others = evidence_of_others(
        left.samples.directions, left.row, left.gallery, sharpness, top_k=top_k, threads=threads
    )
    with_own = merge(others, evidence_of_one(left.own_score, left.row, sharpness))
    mated, nobody = np.flatnonzero(left.paired), np.flatnonzero(strangers)
    rows = np.concatenate([mated, nobody])
    with_empty_place = replace(others.take(nobody), n_subjects=len(left.gallery))
    evidence = concatenate([with_own.take(mated), with_empty_place])
    truth = np.concatenate([left.row[mated], np.full(len(nobody), -1)])
    own = np.concatenate([left.own_score[mated], np.full(len(nobody), -np.inf)])
    return Reading(left.samples.take(rows), GallerySearch.exact(left.gallery), point, temperature, evidence), truth, own


def _check_same_gallery(left: LeftOut, enrolled: Gallery) -> None:
    if not np.array_equal(np.sort(enrolled.subjects), left.gallery.subjects):
        raise InvalidSubjectsError(
            f"leaving one out needs the samples of the enrolled gallery: y names {len(left.gallery)} subjects, "
            f"{len(enrolled)} are enrolled, and they are not the same; pass the X and y that fit got"
        )
    numbers = enrolled.index_of(left.gallery.subjects)
    cosine = np.einsum("ij,ij->i", enrolled.rows(numbers), left.gallery.directions)
    off = cosine < 1 - SAME_TEMPLATE
    if off.any():
        raise CalibrationDataError(
            f"the samples of {left.gallery.subjects[int(off.argmax())].item()!r} do not pool to its enrolled template (cosine "
            f"{float(cosine[off.argmax()]):.4f}); pass the X, y, concentration and media that fit got"
        )
