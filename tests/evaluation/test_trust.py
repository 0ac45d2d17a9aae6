"""The trust report: halves by subject, a certificate or a refusal, and what came of it on other people."""

import json

import numpy as np
import pytest

from holue.datasets.simulated import simulate
from holue.errors import CalibrationDataError, InvalidInputError, InvalidParameterError
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.evaluation.rehearsal import half_of_subjects
from holue.evaluation.trust import trust_report
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery


def part(first_subject: int, seed: int, people: int = 200) -> ProtocolPart:
    world = simulate(
        n_subjects=people,
        n_strangers=people,
        dim=32,
        concentration=60.0,
        look_alike_pairs=5,
        first_subject=first_subject,
        rng=np.random.default_rng(seed),
    )
    probes = world.probes
    return ProtocolPart(
        Gallery.from_samples(world.gallery.X, world.gallery.person),
        Embeddings.from_samples(probes.X, probes.concentration),
        probes.person,
        groups=np.where(probes.person % 3 == 0, "f", "m"),
        more_groups={"parity": probes.person % 2},
    )


@pytest.fixture(scope="module")
def protocol() -> IdentificationProtocol:
    return IdentificationProtocol("crowd", part(0, 1), part(10_000, 2))


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


def test_bad_settings_and_protocols_are_named(protocol: IdentificationProtocol) -> None:
    for option in ({"target_level": 1.0}, {"confidence_level": 0.0}, {"risk": "regret"}, {"unit": "family"}):
        with pytest.raises(InvalidParameterError, match=next(iter(option))):
            trust_report(protocol, **option)  # type: ignore[arg-type]
    evaluation = protocol.evaluation
    bare = ProtocolPart(evaluation.gallery, evaluation.probes, evaluation.probe_subjects)
    with pytest.raises(InvalidInputError, match="no 'group' column"):
        trust_report(IdentificationProtocol("bare", protocol.development, bare), by_group=True)
    few = part(50_000, 3, people=12)
    rows = np.isin(few.probe_subjects, [50_000, 50_001, 50_012])
    lonely = ProtocolPart(few.gallery, few.probes.take(rows), few.probe_subjects[rows])
    with pytest.raises(CalibrationDataError, match="1 non-mated subject, and needs two"):
        trust_report(IdentificationProtocol("lonely", lonely, evaluation), method="galue")
