"""Rehearsal: a recogniser as it would be deployed, made from the development part and tried on the evaluation part.

The development *subjects* are split in two. One half calibrates the recogniser (threshold, quality), the other certifies: a
guarantee must come from probes that nothing was learned from. Both halves are searched in the whole development gallery, so
that its size is the true one. The evaluation part, of other people, then shows what was achieved.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError
from holue.evaluation.columns import FloatArray
from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.evaluation.intervals.subject_rates import SubjectRate, SubjectRates
from holue.evaluation.outcomes import Outcomes
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.gallery.subjects import Subjects
from holue.recognition.calibration.doubts import CalibrationWarning
from holue.recognition.calibration.fallback import FallbackWarning
from holue.recognition.reading import Reading
from holue.recognition.recognizer import OpenSetRecognizer
from holue.recognition.risk.certificate import CannotCertifyError, RiskCertificate
from holue.recognition.risk.controller import RiskController
from holue.recognition.state.examination import Examination

Mask = npt.NDArray[np.bool_]
DEFAULT = "holue-plus"
LEVEL = 0.95
"""Of the intervals over evaluation subjects."""


@dataclass(frozen=True, eq=False)
class Rehearsal:
    """The recogniser, which development probes calibrated it, and the resamples behind every interval."""

    protocol: IdentificationProtocol
    recognizer: OpenSetRecognizer
    calibrating: Mask
    resamples: SubjectBootstrap

    @classmethod
    def of(
        cls,
        protocol: IdentificationProtocol,
        *,
        method: str | None = None,
        target_fpir: float,
        rng: np.random.Generator,
        seed: int = 0,
        threads: int | None = None,
        n_resamples: int = 1000,
    ) -> Rehearsal:
        """Enrol the evaluation gallery, calibrate on a random half of the development subjects.

        ``method`` defaults to "holue-plus", whose quality is a calibrated probability and comes with reasons; where the half has
        too few right answers for it, to "galue".
        """
        development, evaluation = protocol.development, protocol.evaluation
        recognizer = OpenSetRecognizer(method or DEFAULT, target_fpir=target_fpir, random_state=seed, threads=threads)
        gallery = evaluation.gallery
        recognizer.fit(gallery.directions, gallery.subjects, gallery.concentrations)
        calibrating = half_of_subjects(development, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FallbackWarning)  # ``fallbacks`` says it, where it is read
            warnings.simplefilter("ignore", CalibrationWarning)  # errors are measured below, with their intervals
            recognizer.calibrate(*_probes(development, calibrating), gallery=development.gallery)
        resamples = SubjectBootstrap.draw(evaluation.probe_subjects, n_resamples=n_resamples, rng=rng)
        return cls(protocol, recognizer, calibrating, resamples)

    def certify(self, controller: RiskController) -> RiskCertificate | CannotCertifyError:
        """Certify a risk on the other half; where that cannot be, the refusal, and nothing is filtered."""
        if hasattr(self.recognizer, "certificate_"):
            del self.recognizer.certificate_
        try:
            controller.fit(
                self.recognizer,
                *_probes(self.protocol.development, ~self.calibrating),
                gallery=self.protocol.development.gallery,
                subject=self.certifying_people,
            )
        except CannotCertifyError as refusal:
            return refusal
        return controller.certificate_

    def calibrate_sets(self) -> None:
        """Base candidate sets on the certifying half, which makes their coverage exact."""
        X, y, _ = _probes(self.protocol.development, ~self.calibrating)
        self.recognizer.calibrate_sets(X, y, gallery=self.protocol.development.gallery, subject=self.certifying_people)

    @property
    def certifying_people(self) -> Subjects:
        """The person behind every probe that certifies."""
        return self.protocol.development.probe_subjects[~self.calibrating]

    @cached_property
    def examination(self) -> Examination:
        """What the recogniser makes of the evaluation probes."""
        probes = self.protocol.evaluation.probes
        return self.recognizer.examine(probes.directions, probes.concentrations, top_k=2)

    @property
    def reading(self) -> Reading:
        """What the evaluation gallery says about the evaluation probes."""
        return self.examination.reading

    @cached_property
    def quality(self) -> FloatArray:
        """How reliable each answer on the evaluation part is."""
        return self.examination.score(self.reading)

    @cached_property
    def outcomes(self) -> Outcomes:
        """The answer each evaluation probe would get, filtered or not: filtering is kept apart."""
        part, top = self.protocol.evaluation, self.reading.evidence.top_index[:, 0]
        right = self.reading.search.names(top) == part.probe_subjects
        return Outcomes(part.mated, self.reading.accepted, right, subject=part.probe_subjects)

    @property
    def filtered(self) -> Mask:
        """Which evaluation probes the recogniser would leave undecided as it stands."""
        return np.asarray(self.quality < self.recognizer.filter_threshold)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why the calibration may not fit the evaluation gallery, and what it could not do, in sentences."""
        return tuple(str(doubt) for doubt in (*self.recognizer.doubts(), *self.recognizer.fallbacks_))

    @property
    def method(self) -> str:
        """The method that rates the answers: the one asked for, or what took its place."""
        used = {fallback.setting: fallback.used for fallback in self.recognizer.fallbacks_}
        return used.get("method", self.recognizer.method)

    def rate(
        self, counted: Mask, hit: Mask, smallest: int = 2, weight: npt.NDArray[np.float64] | None = None
    ) -> SubjectRate:
        """``hit / counted`` on the evaluation part, with its interval over subjects."""
        return SubjectRates.of(counted, hit, [np.ones_like(hit)], self.resamples, weight).rate(0, smallest, LEVEL)


def half_of_subjects(part: ProtocolPart, rng: np.random.Generator) -> Mask:
    """Which probes belong to a random half of the mated and of the non-mated subjects."""
    chosen = np.zeros(len(part.probes), dtype=bool)
    for kind, mask in (("mated", part.mated), ("non-mated", ~part.mated)):
        subjects = np.unique(part.probe_subjects[mask])
        if len(subjects) < 2:
            raise CalibrationDataError(
                f"the development part has {len(subjects)} {kind} subject, and needs two: one half calibrates, the other "
                "controls the risk; move subjects from the evaluation part"
            )
        half = rng.permutation(subjects)[: len(subjects) // 2]
        chosen |= mask & np.isin(part.probe_subjects, half)
    return chosen


def one_vote_each(counted: Mask, resamples: SubjectBootstrap) -> FloatArray:
    """One over the number of a subject's counted probes."""
    size = np.bincount(resamples.cluster, counted)
    return np.asarray(1 / np.maximum(size, 1)[resamples.cluster])


def _probes(part: ProtocolPart, rows: Mask) -> tuple[Any, Any, Any]:
    probes = part.probes.take(rows)
    return probes.directions, part.probe_subjects[rows], probes.concentrations
