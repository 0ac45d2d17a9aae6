"""The trust report: halves by subject, a certificate or a refusal, and what came of it on other people."""

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from holue.errors import CalibrationDataError, InvalidInputError, InvalidParameterError
from holue.evaluation.deployment.rehearsal import half_of_subjects
from holue.evaluation.deployment.trust import trust_report
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart


@pytest.fixture(scope="module")
def protocol(crowd: Callable[..., ProtocolPart]) -> IdentificationProtocol:
    parts = (crowd(0, 1), crowd(10_000, 2))
    return IdentificationProtocol(
        "crowd", *(replace(part, more_groups={"parity": part.probe_subjects % 2}) for part in parts)
    )


def test_the_halves_share_no_subject_and_have_both_kinds(protocol: IdentificationProtocol) -> None:
    development = protocol.development
    half = half_of_subjects(development, np.random.default_rng(0))
    subjects = development.probe_subjects
    assert not set(subjects[half]) & set(subjects[~half])
    for rows in (half, ~half):
        assert len(np.unique(subjects[rows & development.mated])) == 100
        assert len(np.unique(subjects[rows & ~development.mated])) == 100


def test_the_certified_risk_is_kept_on_other_people_and_told_by_group(protocol: IdentificationProtocol) -> None:
    report = trust_report(protocol, method="galue", target_level=0.1, by_group=True, threads=1)
    assert report.certificate is not None
    assert report.achieved_risk.value is not None
    assert report.unfiltered_risk.value is not None
    assert report.achieved_risk.value <= 0.1 < report.unfiltered_risk.value
    assert [row.group for row in report.groups["group"].rows] == ["f", "m"]
    assert list(report.groups) == ["group", "parity"]
    ways = report.three_way
    assert ways.total == len(protocol.evaluation.probes)
    assert ways.errors / (ways.accepted + ways.rejected) == pytest.approx(report.achieved_risk_by_probe.value)
    assert ways.filtered / ways.total == pytest.approx(report.filtered_share.value)
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert plain["certified"] is True
    assert plain["certificate"]["unit"] == "subject"
    assert "on the evaluation part" in str(report)


def test_a_target_out_of_reach_is_a_refusal_and_not_a_number(protocol: IdentificationProtocol) -> None:
    report = trust_report(protocol, method="galue", target_level=0.0001, threads=1)
    assert report.certificate is None
    assert report.to_dict()["certified"] is False
    assert "cannot certify" in str(report)
    assert report.filtered_share.value == 0


def test_bad_settings_and_protocols_are_named(
    protocol: IdentificationProtocol, crowd: Callable[..., ProtocolPart]
) -> None:
    for option in ({"target_level": 1.0}, {"confidence_level": 0.0}, {"risk": "regret"}, {"unit": "family"}):
        with pytest.raises(InvalidParameterError, match=next(iter(option))):
            trust_report(protocol, **option)  # type: ignore[arg-type]
    evaluation = protocol.evaluation
    bare = ProtocolPart(evaluation.gallery, evaluation.probes, evaluation.probe_subjects)
    with pytest.raises(InvalidInputError, match="no 'group' column"):
        trust_report(IdentificationProtocol("bare", protocol.development, bare), by_group=True)
    few = crowd(50_000, 3, people=12)
    rows = np.isin(few.probe_subjects, [50_000, 50_001, 50_012])
    lonely = ProtocolPart(few.gallery, few.probes.take(rows), few.probe_subjects[rows])
    with pytest.raises(CalibrationDataError, match="1 non-mated subject, and needs two"):
        trust_report(IdentificationProtocol("lonely", lonely, evaluation), method="galue")
