"""Trust report: a risk controlled on the development part of a protocol, and what came of it on the evaluation part.

The development *subjects* are split in two. One half calibrates the recogniser (threshold, quality), the other controls the
risk: a guarantee must come from probes that nothing was learned from. Both halves are searched in the whole development
gallery, so that its size is the true one. The evaluation part, of other people, then shows the risk that was achieved.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from holue.errors import CalibrationDataError, InvalidInputError
from holue.evaluation.bootstrap import SubjectBootstrap
from holue.evaluation.columns import FloatArray
from holue.evaluation.groups import GroupTable, Guarantee, group_rates
from holue.evaluation.outcomes import Outcomes
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.evaluation.subject_rates import SubjectRate, SubjectRates
from holue.recognition.certificate import CannotCertifyError, RiskCertificate
from holue.recognition.checks import check_share
from holue.recognition.decisions import RISKS, RiskName, Unit, check_risk, check_unit, risk_columns
from holue.recognition.recognizer import OpenSetRecognizer
from holue.recognition.risk import RiskController

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TrustReport:
    """The certificate, or why there is none, and the rates of the evaluation part at its threshold."""

    name: str
    method: str
    risk: str
    target_level: float
    confidence_level: float
    certificate: RiskCertificate | None
    refusal: str | None  # why the target could not be certified
    more_probes: int | None  # how many more development probes would do, where it could not
    filtered_share: SubjectRate
    achieved_risk: (
        SubjectRate  # weighted as the guarantee is: each subject's probes together count as one, or each probe
    )
    achieved_risk_by_probe: SubjectRate
    unfiltered_risk: SubjectRate
    groups: GroupTable | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return {
            "name": self.name,
            "method": self.method,
            "risk": self.risk,
            "definition": RISKS[self.risk],
            "target_level": self.target_level,
            "confidence_level": self.confidence_level,
            "certified": self.certificate is not None,
            "certificate": None if self.certificate is None else self.certificate.to_dict(),
            "refusal": self.refusal,
            "more_probes": self.more_probes,
            "evaluation": {
                "filtered_share": asdict(self.filtered_share),
                "achieved_risk": asdict(self.achieved_risk),
                "achieved_risk_by_probe": asdict(self.achieved_risk_by_probe),
                "unfiltered_risk": asdict(self.unfiltered_risk),
            },
            "groups": None if self.groups is None else self.groups.to_dict(),
        }

    def __str__(self) -> str:
        head = str(self.certificate) if self.certificate is not None else f"{self.refusal}"
        lines = [f"{self.name}, method {self.method}", head, "on the evaluation part:"]
        if self.certificate is not None:
            lines += [
                f"  filtered {_percent(self.filtered_share)}",
                f"  {self.risk} among automatic decisions {_percent(self.achieved_risk)}, by {self.certificate.unit}",
            ]
            if self.certificate.unit == "subject":
                lines.append(f"  the same by probe {_percent(self.achieved_risk_by_probe)}")
        lines.append(f"  {self.risk} if nothing were filtered {_percent(self.unfiltered_risk)}")
        return "\n".join(lines if self.groups is None else [*lines, "", str(self.groups)])


def trust_report(
    protocol: IdentificationProtocol,
    *,
    method: str | None = None,
    risk: RiskName = "error",
    target_level: float = 0.01,
    confidence_level: float = 0.95,
    unit: Unit = "subject",
    target_fpir: float = 0.05,
    by_group: bool = False,
    smallest: int = 20,
    seed: int = 0,
    threads: int | None = None,
) -> TrustReport:
    """Calibrate on half of the development subjects, control the risk on the others, report on the evaluation part.

    ``method`` defaults to "holue" where both parts have concentrations, and to "galue" where not. Where the target cannot be
    certified the report says so, and shows the evaluation part without a filter.
    """
    # Before anything is learned: a slip of the pen should not cost a calibration.
    check_risk(risk)
    check_unit(unit)
    check_share("target_level", target_level)
    check_share("confidence_level", confidence_level)
    development, evaluation = protocol.development, protocol.evaluation
    if by_group and evaluation.groups is None:
        raise InvalidInputError(
            "the evaluation probes have no 'group' column; add it to the file, or leave --groups out"
        )
    rng = np.random.default_rng(seed)
    recognizer = OpenSetRecognizer(
        method or _default_method(protocol), target_fpir=target_fpir, random_state=seed, threads=threads
    )
    gallery = evaluation.gallery
    recognizer.fit(gallery.directions, gallery.subjects, gallery.concentrations)
    calibrating = half_of_subjects(development, rng)
    recognizer.calibrate(*_probes(development, calibrating), gallery=development.gallery)
    certificate = refusal = more_probes = None
    controller = RiskController(risk, target_level=target_level, confidence_level=confidence_level, unit=unit)
    try:
        controller.fit(
            recognizer,
            *_probes(development, ~calibrating),
            gallery=development.gallery,
            subject=development.probe_subjects[~calibrating],
        )
        certificate = controller.certificate_
    except CannotCertifyError as error:
        refusal, more_probes = str(error), error.more_probes
    outcomes, filtered = _answers(recognizer, evaluation)
    resamples = SubjectBootstrap.draw(evaluation.probe_subjects, rng=rng)
    counted, wrong = risk_columns(risk, outcomes.mated, outcomes.accepted, outcomes.correct_subject)
    weight = _weights(counted, resamples) if unit == "subject" else np.ones(len(counted))
    return TrustReport(
        name=protocol.name,
        method=recognizer.method,
        risk=risk,
        target_level=target_level,
        confidence_level=confidence_level,
        certificate=certificate,
        refusal=refusal,
        more_probes=more_probes,
        filtered_share=_rate(np.ones_like(filtered), filtered, resamples, smallest),
        achieved_risk=_rate(counted & ~filtered, wrong, resamples, smallest, weight),
        achieved_risk_by_probe=_rate(counted & ~filtered, wrong, resamples, smallest),
        unfiltered_risk=_rate(counted, wrong, resamples, smallest, weight),
        groups=None
        if not by_group or evaluation.groups is None
        else group_rates(
            evaluation.groups,
            outcomes,
            filtered=filtered,
            rng=rng,
            smallest=smallest,
            guarantee=Guarantee(risk, target_level, confidence_level, unit),
        ),
    )


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


def _default_method(protocol: IdentificationProtocol) -> str:
    known = all(part.probes.concentrations is not None for part in protocol.parts.values())
    return "holue" if known else "galue"


def _probes(part: ProtocolPart, rows: Mask) -> tuple[Any, Any, Any]:
    probes = part.probes.take(rows)
    return probes.directions, part.probe_subjects[rows], probes.concentrations


def _answers(recognizer: OpenSetRecognizer, part: ProtocolPart) -> tuple[Outcomes, Mask]:
    probes = part.probes
    answers = recognizer.identify(probes.directions, probes.concentrations, top_k=1)
    # The answer each probe would get, filtered or not: filtering is kept apart.
    accepted = answers.score >= recognizer.operating_point_.threshold
    right = answers.candidate_subjects[:, 0] == part.probe_subjects
    return Outcomes(part.mated, accepted, right, subject=part.probe_subjects), answers.filtered


def _weights(counted: Mask, resamples: SubjectBootstrap) -> FloatArray:
    """One over the number of a subject's counted probes."""
    size = np.bincount(resamples.cluster, counted)
    return np.asarray(1 / np.maximum(size, 1)[resamples.cluster])


def _rate(
    counted: Mask, hit: Mask, resamples: SubjectBootstrap, smallest: int, weight: FloatArray | None = None
) -> SubjectRate:
    return SubjectRates.of(counted, hit, [np.ones_like(hit)], resamples, weight).rate(0, smallest, 0.95)


def _percent(rate: SubjectRate) -> str:
    if rate.value is None:
        return f"undefined: {rate.note}"
    interval = "" if rate.low is None or rate.high is None else f" ({rate.low:.2%} to {rate.high:.2%})"
    return f"{rate.value:.2%}{interval} of {rate.n_probes} probes, {rate.n_subjects} subjects"
