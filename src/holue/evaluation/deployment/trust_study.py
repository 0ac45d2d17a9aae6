"""Trust study: what an evaluation says about acting on answers automatically, for its report.

One rehearsal serves everything: the risk at several targets, three ways of answering each, candidate sets, reasons and groups.
Every certificate has its confidence by itself; that several of them hold together has less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holue.errors import CalibrationDataError
from holue.evaluation.deployment.main_reasons import MainReasons, main_reasons
from holue.evaluation.deployment.rehearsal import Rehearsal
from holue.evaluation.deployment.set_coverage import SetCoverage, set_coverage
from holue.evaluation.deployment.three_way import ThreeWay
from holue.evaluation.deployment.trust import TrustReport, controlled
from holue.evaluation.protocol import IdentificationProtocol
from holue.recognition.checks import check_share
from holue.recognition.risk.controller import RiskController
from holue.recognition.risk.decisions import RiskName, Unit

TARGETS = (0.2, 0.1, 0.05, 0.02, 0.01)
SET_LEVELS = (0.9, 0.95, 0.99)


@dataclass(frozen=True)
class TrustStudy:
    """Reports at several targets, the strictest last; ``chosen`` is the strictest that was certified, if any.

    ``refusal`` says why there is nothing at all, such as one development subject of a kind.
    """

    target_fpir: float
    reports: tuple[TrustReport, ...] = ()
    unfiltered: ThreeWay | None = None
    n_calibrating: int = 0  # development subjects who calibrate
    n_certifying: int = 0
    sets: tuple[SetCoverage, ...] = ()
    reasons: MainReasons | None = None
    refusal: str | None = None

    @property
    def chosen(self) -> TrustReport | None:
        """The certified report that groups and reasons are told at."""
        return next((report for report in reversed(self.reports) if report.certificate is not None), None)

    @property
    def grouped(self) -> TrustReport | None:
        """The report with the group tables: the chosen one, or an unfiltered one."""
        return next((report for report in self.reports if report.groups), None)

    @property
    def answer(self) -> str:
        """The outcome in a sentence or two."""
        if self.refusal is not None or not self.reports:
            return f"No risk could be controlled: {self.refusal}."
        chosen = self.chosen
        if chosen is None or chosen.certificate is None:
            easiest = self.reports[0]
            return (
                f"No error rate up to {easiest.target_level:g} can be certified with {self.n_certifying} subjects: "
                f"{what_would_do(easiest)}. Nothing is filtered below."
            )
        ways, achieved = chosen.three_way, chosen.achieved_risk
        certificate = chosen.certificate
        if certificate.filter_below == -float("inf"):
            condition = "Even if nothing is filtered"
        else:
            condition = f"If answers of quality below {certificate.filter_below:.4g} are filtered"
        held = "" if achieved.value is None else f"{100 * achieved.value:.2g} % were, counted by {certificate.unit}, "
        nobody = "; no answer that names somebody is left" if ways.filtered and not ways.accepted else ""
        return (
            f"{condition}, at most {100 * chosen.target_level:.3g} % of the automatic decisions are wrong (confidence "
            f"{100 * chosen.confidence_level:g} %); on the evaluation part {held}with "
            f"{100 * ways.filtered / ways.total:.0f} % of the answers filtered{nobody}."
        )

    def document(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "answer": self.answer,
            "target_fpir": self.target_fpir,
            "refusal": self.refusal,
            "development_subjects": {"calibrating": self.n_calibrating, "certifying": self.n_certifying},
            "unfiltered": None if self.unfiltered is None else self.unfiltered.to_dict(),
            "targets": [report.to_dict() for report in self.reports],
            "candidate_sets": [sets.to_dict() for sets in self.sets],
            "reasons": None if self.reasons is None else self.reasons.to_dict(),
        }


def what_would_do(report: TrustReport) -> str:
    """How many more probes a target that was refused would take, in words."""
    if report.more_probes is None:
        return "at the error rates seen here no number of probes is enough"
    low, high = report.needed_range or (None, None)
    reach = "" if low is None else f" ({low} or more in all)" if high is None else f" ({low} to {high} in all)"
    return f"you need about {report.more_probes} more development probes like these{reach}"


def trust_study(
    protocol: IdentificationProtocol,
    *,
    target_fpir: float = 0.05,
    targets: Sequence[float] = TARGETS,
    confidence_level: float = 0.95,
    risk: RiskName = "error",
    unit: Unit = "subject",
    method: str | None = None,
    n_resamples: int = 1000,
    seed: int = 0,
    threads: int | None = None,
) -> TrustStudy:
    """Certify the risk at every target, from easy to strict, and tell groups and reasons at the strictest that was certified."""
    for target in targets:
        check_share("targets", target)
    rng = np.random.default_rng(seed)
    try:
        rehearsal = Rehearsal.of(
            protocol,
            method=method,
            target_fpir=target_fpir,
            rng=rng,
            seed=seed,
            threads=threads,
            n_resamples=n_resamples,
        )
    except CalibrationDataError as error:
        return TrustStudy(target_fpir, refusal=str(error))

    def report(target: float, by_group: bool = False) -> TrustReport:
        controller = RiskController(risk, target_level=target, confidence_level=confidence_level, unit=unit)
        return controlled(rehearsal, controller, rng=rng, by_group=by_group)

    reports = [report(target) for target in sorted(targets, reverse=True)]
    certified = [i for i, one in enumerate(reports) if one.certificate is not None]
    told = certified[-1] if certified else 0
    reports[told] = report(reports[told].target_level, by_group=True)
    reasons = main_reasons(rehearsal, rehearsal.filtered)
    rehearsal.calibrate_sets()
    people = protocol.development.probe_subjects
    return TrustStudy(
        target_fpir,
        tuple(reports),
        ThreeWay.of(rehearsal.outcomes, np.zeros(len(rehearsal.outcomes), dtype=bool)),
        len(np.unique(people[rehearsal.calibrating])),
        len(np.unique(people[~rehearsal.calibrating])),
        tuple(set_coverage(rehearsal, level) for level in SET_LEVELS),
        reasons,
    )
