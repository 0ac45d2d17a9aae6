"""Trust report: a risk controlled on the development part of a protocol, and what came of it on the evaluation part.

Who calibrates, who certifies and who is answered is said in ``rehearsal.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from holue.errors import InvalidInputError
from holue.evaluation.deployment.groups import GroupTable, Guarantee, group_rates
from holue.evaluation.deployment.rehearsal import Rehearsal, one_vote_each
from holue.evaluation.deployment.three_way import ThreeWay
from holue.evaluation.intervals.subject_rates import SubjectRate
from holue.evaluation.protocol import IdentificationProtocol
from holue.recognition.checks import check_share
from holue.recognition.risk.certificate import CannotCertifyError, RiskCertificate
from holue.recognition.risk.controller import RiskController
from holue.recognition.risk.decisions import RISKS, RiskName, Unit, check_risk, check_unit, risk_columns


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
    needed_range: (
        tuple[int | None, int | None] | None
    )  # how many would do in all, at the ends of what the errors leave open
    three_way: ThreeWay
    filtered_share: SubjectRate
    achieved_risk: (
        SubjectRate  # weighted as the guarantee is: each subject's probes together count as one, or each probe
    )
    achieved_risk_by_probe: SubjectRate
    unfiltered_risk: SubjectRate
    groups: Mapping[str, GroupTable] = field(default_factory=dict)  # by the name of the column
    doubts: tuple[str, ...] = ()  # why the calibration may not fit the evaluation gallery

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
            "needed_range": None if self.needed_range is None else list(self.needed_range),
            "doubts": list(self.doubts),
            "evaluation": {
                "three_way": self.three_way.to_dict(),
                "filtered_share": asdict(self.filtered_share),
                "achieved_risk": asdict(self.achieved_risk),
                "achieved_risk_by_probe": asdict(self.achieved_risk_by_probe),
                "unfiltered_risk": asdict(self.unfiltered_risk),
            },
            "groups": {name: table.to_dict() for name, table in self.groups.items()},
        }

    def __str__(self) -> str:
        head = str(self.certificate) if self.certificate is not None else f"{self.refusal}"
        lines = [f"{self.name}, method {self.method}", head, "on the evaluation part:"]
        lines.append(f"  {self.three_way}")
        if self.certificate is not None:
            lines += [
                f"  filtered {_percent(self.filtered_share)}",
                f"  {self.risk} among automatic decisions {_percent(self.achieved_risk)}, by {self.certificate.unit}",
            ]
            if self.certificate.unit == "subject":
                lines.append(f"  the same by probe {_percent(self.achieved_risk_by_probe)}")
        lines.append(f"  {self.risk} if nothing were filtered {_percent(self.unfiltered_risk)}")
        lines += [f"doubt: {doubt}" for doubt in self.doubts]
        for name, table in self.groups.items():
            lines += ["", f"by {name}:", str(table)]
        return "\n".join(lines)


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

    ``method`` defaults to "holue-plus", and to "galue" where there are too few probes for it. Where the target cannot be
    certified the report says so, and shows the evaluation part without a filter. ``by_group`` adds a table for each grouping
    of the probes (``group``, ``group_sex``, ...).
    """
    # Before anything is learned: a slip of the pen should not cost a calibration.
    check_risk(risk)
    check_unit(unit)
    check_share("target_level", target_level)
    check_share("confidence_level", confidence_level)
    if by_group and not protocol.evaluation.group_columns:
        raise InvalidInputError(
            "the evaluation probes have no 'group' column (nor 'group_sex' or the like); add it to the file, or leave "
            "by_group out"
        )
    rng = np.random.default_rng(seed)
    rehearsal = Rehearsal.of(protocol, method=method, target_fpir=target_fpir, rng=rng, seed=seed, threads=threads)
    controller = RiskController(risk, target_level=target_level, confidence_level=confidence_level, unit=unit)
    return controlled(rehearsal, controller, smallest=smallest, rng=rng, by_group=by_group)


def controlled(
    rehearsal: Rehearsal,
    controller: RiskController,
    *,
    smallest: int = 20,
    rng: np.random.Generator,
    by_group: bool = False,
) -> TrustReport:
    """Control a risk in a rehearsal that is there already, and report."""
    risk, unit = controller.risk, controller.unit
    answer = rehearsal.certify(controller)
    refused = isinstance(answer, CannotCertifyError)
    outcomes, filtered, evaluation = rehearsal.outcomes, rehearsal.filtered, rehearsal.protocol.evaluation
    counted, wrong = risk_columns(risk, outcomes.mated, outcomes.accepted, outcomes.correct_subject)
    weight = one_vote_each(counted, rehearsal.resamples) if unit == "subject" else None
    guarantee = Guarantee(risk, controller.target_level, controller.confidence_level, unit)
    columns = evaluation.group_columns if by_group else {}
    return TrustReport(
        name=rehearsal.protocol.name,
        method=rehearsal.method,
        risk=risk,
        target_level=controller.target_level,
        confidence_level=controller.confidence_level,
        certificate=None if isinstance(answer, CannotCertifyError) else answer,
        refusal=str(answer) if refused else None,
        more_probes=answer.more_probes if isinstance(answer, CannotCertifyError) else None,
        needed_range=answer.needed_range if isinstance(answer, CannotCertifyError) else None,
        three_way=ThreeWay.of(outcomes, filtered),
        filtered_share=rehearsal.rate(np.ones_like(filtered), filtered, smallest),
        achieved_risk=rehearsal.rate(counted & ~filtered, wrong, smallest, weight),
        achieved_risk_by_probe=rehearsal.rate(counted & ~filtered, wrong, smallest),
        unfiltered_risk=rehearsal.rate(counted, wrong, smallest, weight),
        groups={
            name: group_rates(column, outcomes, filtered=filtered, rng=rng, smallest=smallest, guarantee=guarantee)
            for name, column in columns.items()
        },
        doubts=rehearsal.doubts,
    )


def _percent(rate: SubjectRate) -> str:
    if rate.value is None:
        return f"undefined: {rate.note}"
    interval = "" if rate.low is None or rate.high is None else f" ({rate.low:.2%} to {rate.high:.2%})"
    return f"{rate.value:.2%}{interval} of {rate.n_probes} probes, {rate.n_subjects} subjects"
