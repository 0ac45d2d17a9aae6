"""The report says which answers to act on: three ways, with a guarantee or what it would take, sets, reasons and groups."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.datasets.formats.folder import save_folder
from holue.evaluation.comparison.study import evaluate
from holue.evaluation.deployment.rehearsal import Rehearsal
from holue.evaluation.deployment.three_way import ThreeWay
from holue.evaluation.deployment.trust_study import TrustStudy, trust_study
from holue.evaluation.outcomes import Outcomes
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.evaluation.report.figures import three_way_figure
from holue.evaluation.report.report import write_report
from holue.evaluation.report.trust_tables import decision_table


@pytest.fixture(scope="module")
def protocol(crowd: Callable[..., ProtocolPart]) -> IdentificationProtocol:
    def grouped(part: ProtocolPart) -> ProtocolPart:
        rare = part.probe_subjects == part.probe_subjects.min()
        return replace(part, groups=None, more_groups={"sex": part.groups, "rare": np.where(rare, "rare", "common")})

    return IdentificationProtocol("crowd", grouped(crowd(0, 1)), grouped(crowd(10_000, 2)))


@pytest.fixture(scope="module")
def study(protocol: IdentificationProtocol) -> TrustStudy:
    return trust_study(protocol, targets=(0.15, 0.1, 0.0001), n_resamples=100, threads=1)


def test_three_ways_are_counted_as_one_would_by_hand() -> None:
    mated = np.array([True, True, True, True, False, False, False])
    accepted = np.array([True, True, False, True, True, False, False])
    right = np.array([True, False, False, True, False, False, False])
    filtered = np.array([False, False, False, True, False, False, True])
    ways = ThreeWay.of(Outcomes(mated, accepted, right), filtered)
    assert ways == ThreeWay(1, 1, 1, 1, 1, 2, 0)
    assert (ways.accepted, ways.rejected, ways.filtered, ways.errors, ways.total) == (3, 2, 2, 3, 7)


def test_the_people_who_certify_did_not_calibrate_and_are_not_evaluated(protocol: IdentificationProtocol) -> None:
    rehearsal = Rehearsal.of(protocol, target_fpir=0.05, rng=np.random.default_rng(0), threads=1, n_resamples=2)
    calibrating = set(protocol.development.probe_subjects[rehearsal.calibrating].tolist())
    certifying = set(rehearsal.certifying_people.tolist())
    assert not calibrating & certifying
    assert not (calibrating | certifying) & set(protocol.evaluation.probe_subjects.tolist())
    assert rehearsal.recognizer.method == "holue-plus"


def test_a_gallery_in_another_order_gives_the_same_outcomes(protocol: IdentificationProtocol) -> None:
    part = protocol.evaluation
    changed = part.gallery.remove(part.gallery.subjects[:3])
    changed = changed.enroll(part.gallery.directions[:3], part.gallery.subjects[:3])  # with other numbers
    turned = replace(protocol, evaluation=replace(part, gallery=changed))
    how = {"target_fpir": 0.05, "threads": 1, "n_resamples": 2, "method": "galue"}
    one, other = (Rehearsal.of(each, rng=np.random.default_rng(0), **how).outcomes for each in (protocol, turned))
    np.testing.assert_array_equal(one.correct, other.correct)


def test_strict_targets_are_refused_with_what_they_would_take_and_easy_ones_kept(study: TrustStudy) -> None:
    easy, strict, absurd = study.reports
    assert easy.certificate is not None
    assert easy.achieved_risk.value is not None
    assert easy.achieved_risk.value <= 0.15
    assert absurd.certificate is None
    assert absurd.three_way == study.unfiltered
    assert study.chosen is (strict if strict.certificate else easy)
    assert study.chosen is study.grouped
    assert study.answer.startswith("If answers of quality below 0.")
    assert "% of the automatic decisions are wrong (confidence 95 %); on the evaluation part" in study.answer


def test_a_filter_that_leaves_no_name_says_so(study: TrustStudy) -> None:
    assert "names somebody" not in study.answer
    chosen = study.chosen
    assert chosen is not None
    ways = chosen.three_way
    nameless = replace(
        ways,
        accepted_right=0,
        misidentifications=0,
        false_acceptances=0,
        filtered_right=ways.filtered_right + ways.accepted,
    )
    reports = tuple(replace(one, three_way=nameless) if one is chosen else one for one in study.reports)
    assert replace(study, reports=reports).answer.endswith("; no answer that names somebody is left.")


def test_sets_cover_both_kinds_of_people_or_say_that_they_cannot(study: TrustStudy) -> None:
    for sets in study.sets[:2]:
        assert sets.mated is not None
        assert sets.strangers is not None
        # 100 people of either kind settle the threshold, 200 measure it: three deviations of both at 0.9.
        assert min(sets.mated.value or 0, sets.strangers.value or 0) > sets.confidence_level - 0.12
    assert study.sets[2].refusal is None or "too few" in study.sets[2].refusal


def test_reasons_are_counted_among_all_wrong_and_filtered_answers(study: TrustStudy) -> None:
    reasons = study.reasons
    assert reasons is not None
    assert study.unfiltered is not None
    assert study.chosen is not None
    assert sum(reasons.all.values()) == study.unfiltered.total
    assert sum(reasons.wrong.values()) == study.unfiltered.errors
    assert sum(reasons.filtered.values()) == study.chosen.three_way.filtered
    assert reasons.wrong["none"] / study.unfiltered.errors < reasons.all["none"] / study.unfiltered.total
    assert all(example.sentence for example in reasons.examples)


def test_small_groups_keep_their_row_and_are_flagged(study: TrustStudy) -> None:
    assert study.grouped is not None
    assert set(study.grouped.groups) == {"sex", "rare"}
    assert study.grouped.groups["rare"].flagged == ["rare"]
    assert study.grouped.groups["sex"].flagged == []


def test_targets_that_filter_the_same_answers_share_a_bar_and_a_row(
    protocol: IdentificationProtocol, study: TrustStudy
) -> None:
    results = evaluate(protocol, fpir=0.05, methods=["galue"], n_resamples=2)
    certified = next(report for report in study.reports if report.certificate is not None)
    twice = replace(study, reports=(certified, replace(certified, target_level=0.9)))
    drawing = three_way_figure(replace(results, trust=twice))
    assert drawing is not None
    labels = [label.get_text() for label in drawing.figure.axes[0].get_yticklabels()]
    assert f"at most {certified.target_level:g}\nat most 0.9" in "\n".join(labels)
    assert len(labels) == len({report.three_way for report in twice.reports} | {twice.unfiltered})
    assert twice.unfiltered is not None
    rows = decision_table(twice, twice.unfiltered).rows
    assert [name for name, _ in rows] == ["nothing filtered", f"at most {certified.target_level:g}, 0.9"]


def test_the_report_shows_it_and_its_document_is_strict_json(
    protocol: IdentificationProtocol, study: TrustStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holue.evaluation.report.report.all_figures", lambda results: [])  # drawn in test_report.py
    results = evaluate(protocol, fpir=0.05, methods=["galue", "acceptance"], n_resamples=20)
    folder = write_report(replace(results, trust=study), tmp_path / "out")
    page = (folder / "report.html").read_text("utf-8")
    for words in (
        "Which answers to act on",
        "cannot be certified",
        "By sex" if "By sex" in page else "by sex",
        "Strangers accepted",
    ):
        assert words in page
    document = json.loads((folder / "results.json").read_text("utf-8"))
    assert document["trust"]["targets"][0]["certified"] is True
    tables = {path.stem for path in (folder / "tables").glob("*.csv")}
    assert {"trust_decisions", "trust_sets", "trust_reasons", "trust_groups_sex", "trust_groups_rare"} <= tables
    assert "rare*" in (folder / "tables" / "trust_groups_rare.md").read_text("utf-8")


def test_too_few_probes_for_the_default_method_use_one_that_learns_nothing(
    protocol: IdentificationProtocol, crowd: Callable[..., ProtocolPart]
) -> None:
    few = crowd(50_000, 3, people=20)
    rows = np.isin(few.probe_subjects, np.r_[50_000:50_008, 50_020:50_040])
    small = ProtocolPart(few.gallery, few.probes.take(rows), few.probe_subjects[rows])
    study = trust_study(IdentificationProtocol("few", small, protocol.evaluation), n_resamples=10, threads=1)
    assert study.reports[0].method == "galue"
    assert study.reasons is None
    assert study.chosen is None
    assert "more development probes" in study.answer or "no number of probes" in study.answer
    assert "only 13 validation probes were rightly accepted" in study.reports[0].doubts[0]
    rows = np.isin(few.probe_subjects, [50_000, 50_001, 50_020])
    lonely = ProtocolPart(few.gallery, few.probes.take(rows), few.probe_subjects[rows])
    refused = trust_study(IdentificationProtocol("lonely", lonely, protocol.evaluation), threads=1)
    assert "No risk could be controlled: the development part has 1 non-mated subject" in refused.answer


def test_the_command_certifies_with_the_report_and_not_without(
    protocol: IdentificationProtocol, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "holue.evaluation.report.report.write_report", lambda *given, **named: None
    )  # drawing is tested elsewhere
    save_folder(protocol, tmp_path / "crowd")
    command = [
        "evaluate",
        str(tmp_path / "crowd"),
        "--fpir",
        "0.05",
        "--methods",
        "galue",
        "--resamples",
        "20",
        "--json",
    ]
    report = ["--report", str(tmp_path / "out")]
    for options, told in (
        ([], False),
        (report, True),
        ([*report, "--no-trust"], False),
        ([*report, "--threshold-from", "eval"], False),
    ):
        result = CliRunner().invoke(app, [*command, *options])
        assert result.exit_code == 0, result.output
        assert ("trust" in json.loads(result.stdout)) is told, options
