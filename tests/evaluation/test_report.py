"""A report is whole or absent, says the same in every format, and asks nothing of the network."""

import csv
import io
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from holue.bench.sections.evaluation import simulated_protocol
from holue.errors import InvalidFileError
from holue.evaluation.comparison.outcome_table import write_outcomes
from holue.evaluation.comparison.results import Results
from holue.evaluation.comparison.study import evaluate
from holue.evaluation.intervals.estimates import Estimate
from holue.evaluation.metrics.rates import fnir, fpir
from holue.evaluation.metrics.rejection import prediction_rejection_ratio
from holue.evaluation.report import report as module
from holue.evaluation.report.figures import score_histograms
from holue.evaluation.report.report import check_destination, most_uncertain, report_page, write_report
from holue.evaluation.report.tables import all_tables, prr_table, recognition_table

METHODS = ["scf", "acceptance", "galue", "holue-sum", "holue-closed"]


@pytest.fixture(scope="module")
def results() -> Results:
    people = {"n_subjects": 40, "n_strangers": 40}
    protocol = simulated_protocol(development=people, evaluation=people, dim=32, concentration=30.0, look_alike_pairs=6)
    return evaluate(protocol, fpir=(0.05, 0.2), methods=METHODS, n_resamples=40)


@pytest.fixture(scope="module")
def folder(results: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(results, tmp_path_factory.mktemp("report") / "out", command="holue evaluate faces")


def oracle(results: Results) -> Results:
    return replace(results, settings=replace(results.settings, threshold_from="eval"))


def test_every_file_is_there(folder: Path) -> None:
    files = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert {"results.json", "outcomes.parquet", "report.html"} <= files
    for table in ("table1_prr", "table2_normalisation", "recognition", "calibration", "differences"):
        assert {f"tables/{table}.{suffix}" for suffix in ("md", "csv", "tex")} <= files
    for figure in ("rejection_curves_fpir_0.05", "rejection_curves_fpir_0.2", "score_histograms", "det_curve"):
        assert {f"figures/{figure}.{suffix}" for suffix in ("png", "svg")} <= files
    assert "figures/reliability_fpir_0.05.png" in files
    assert [path.name for path in folder.parent.iterdir()] == ["out"], "nothing is left beside the report"


def named(results: Results, samples: np.ndarray) -> Results:
    part = replace(results.protocol.evaluation, probe_samples=samples)
    return replace(results, protocol=replace(results.protocol, evaluation=part))


def test_the_outcomes_and_the_page_name_the_samples(results: Results, tmp_path: Path) -> None:
    samples = np.array([f"face-{i}.jpg" for i in range(len(results.protocol.evaluation.probes))])
    samples[0] = ""
    told = named(results, samples)
    write_outcomes(told, tmp_path / "outcomes.parquet")
    column = pq.read_table(tmp_path / "outcomes.parquet")["sample_id"].to_pylist()
    assert column == [None, *samples[1:]] * len(results.points), "a template of several samples has no name of a sample"
    point = told.points[0]
    judged = point.ranked[0]
    least = [f"face-{row}.jpg" if row else "0" for row in np.argsort(judged.quality, kind="stable")[:20]]
    assert [probe.probe for probe in most_uncertain(told, point, judged)] == least


def test_metrics_recomputed_from_the_outcomes_are_those_of_the_document(results: Results, folder: Path) -> None:
    document = json.loads((folder / "results.json").read_text("utf-8"))
    rows = pq.read_table(folder / "outcomes.parquet").to_pydict()
    at = np.array(rows["target_fpir"])
    for point in document["operating_points"]:
        here = at == point["target_fpir"]
        mated, score = np.array(rows["mated"])[here], np.array(rows["score"])[here]
        accepted = score >= point["evaluation"]["threshold"]
        right = np.array(rows["candidate_1"])[here] == np.array(rows["subject_id"])[here]
        assert point["recognition"]["fpir"]["value"] == pytest.approx(fpir(mated, accepted))
        assert point["recognition"]["fnir"]["value"] == pytest.approx(fnir(mated, accepted, right))
        named = [answer is not None for answer in np.array(rows["answer"], dtype=object)[here]]
        np.testing.assert_array_equal(named, accepted)
        for key, method in point["methods"].items():
            quality = np.array(rows[f"quality_{key}"])[here]
            ratio = prediction_rejection_ratio(quality, mated=mated, accepted=accepted, correct_subject=right)
            assert method["prr_f1"]["value"] == pytest.approx(ratio, abs=1e-9)


def test_the_same_results_give_the_same_bytes(results: Results, folder: Path, tmp_path: Path) -> None:
    again = write_report(results, tmp_path / "again", command="holue evaluate faces")
    for path in folder.rglob("*"):
        if path.is_file():
            assert path.read_bytes() == (again / path.relative_to(folder)).read_bytes(), path.name


def test_the_page_is_whole_and_asks_nothing_of_the_network(folder: Path, results: Results) -> None:
    page = (folder / "report.html").read_text("utf-8")
    assert page.startswith("<!doctype html>")
    links = re.findall(r"""(?:src|href|url)\s*[=(]\s*["']?(https?:|//)""", page)
    assert not links
    assert "<script" not in page
    panels = 4 * len(results.points)
    assert page.count("<svg") == panels + 4, "reliability twice, histograms, trade-off"
    assert results.answer in page.replace("&#39;", "'")
    assert "holue evaluate faces" in page
    assert _unclosed(page) == []


@pytest.mark.parametrize("share", [0.1, 0.5, 0.98])
def test_no_name_of_a_threshold_is_covered_or_cut(results: Results, share: float) -> None:
    lowest, highest = results.best_score.min(), results.best_score.max()
    moved = tuple(
        replace(point, point=replace(point.point, threshold=float(lowest + (share + 0.02 * i) * (highest - lowest))))
        for i, point in enumerate(results.points)
    )
    figure = score_histograms(replace(results, points=moved)).figure
    figure.draw_without_rendering()
    (legend,), (axes,) = figure.legends, figure.axes
    names = [name.get_window_extent() for name in axes.texts]
    assert len(names) == 2
    for name in names:
        assert not name.overlaps(legend.get_window_extent())
        assert figure.bbox.x0 <= name.x0 < name.x1 <= figure.bbox.x1


def test_long_names_may_break_after_an_underscore(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    probe = replace(most_uncertain(results, results.points[0], results.points[0].of("galue"))[0], truth="ann_<i>_lee")
    monkeypatch.setattr(module, "most_uncertain", lambda *_: [probe])
    assert ">ann_<wbr>&lt;i&gt;_<wbr>lee</td>" in report_page(results, [], [])


def test_the_most_uncertain_probes_are_listed_with_their_candidates(results: Results) -> None:
    point = results.points[0]
    galue = point.of("galue")
    probes = most_uncertain(results, point, galue)
    assert galue.quality is not None
    assert [probe.quality for probe in probes] == sorted(galue.quality)[:20]
    assert all(len(probe.candidates) == 3 for probe in probes)
    assert {probe.answer for probe in probes if probe.outcome == "false rejection"} <= {"nobody enrolled"}


def test_an_oracle_threshold_is_named_in_every_output(results: Results, tmp_path: Path) -> None:
    folder = write_report(replace(oracle(results), points=results.points[:1]), tmp_path / "oracle")
    for path in [folder / "results.json", folder / "report.html", *folder.glob("tables/*")]:
        assert "ORACLE" in path.read_text("utf-8"), path.name
    assert set(pq.read_table(folder / "outcomes.parquet")["threshold_from"].to_pylist()) == {"eval"}


def test_the_best_is_bold_and_the_second_underlined(results: Results) -> None:
    table = prr_table(results)
    for column, point in enumerate(results.points):
        best, second = point.ranked[:2]
        marked = {cells[column].place: name for name, cells in table.rows}
        assert marked[1] == best.method.name
        assert marked[2] == second.method.name
    assert f"| {point.ranked[0].method.name} |" in table.markdown()
    assert "**" in table.markdown().split("\n", 2)[2]
    assert "<u>" in table.markdown()
    assert r"\textbf{" in table.tex()
    assert r"\underline{" in table.tex()


def test_csv_holds_the_full_numbers(results: Results) -> None:
    rows = list(csv.DictReader(io.StringIO(prr_table(results).csv())))
    for row, method in zip(rows, results.methods):
        number = results.points[0].of(method.key).prr
        assert row["Method"] == method.name
        assert float(row["FPIR 0.05"]) == number.value
        assert float(row["FPIR 0.05 low"]) == number.low
    assert "±" not in recognition_table(results).tex()


def test_numbers_that_print_alike_share_their_place(results: Results) -> None:
    point = results.points[0]
    tied = tuple(replace(result, prr=Estimate(0.5, 0.4, 0.6)) for result in point.methods)
    table = prr_table(replace(results, points=(replace(point, methods=tied),)))
    assert {cells[0].place for _, cells in table.rows} == {1}


def test_a_number_without_a_value_is_a_dash_with_its_reason(results: Results) -> None:
    point = results.points[0]
    broken = tuple(replace(result, prr=Estimate.undefined("there are no errors")) for result in point.methods)
    without = replace(results, points=(replace(point, methods=broken, best=None),))
    text = prr_table(without).markdown()
    assert "–" in text
    notes = prr_table(without).notes
    assert notes == ("No value at FPIR 0.05 for every method: there are no errors.",), "one note, however many methods"
    assert all("nan" not in table.csv().lower() for table in all_tables(without))


def test_an_earlier_report_is_replaced_and_anything_else_refused(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "all_figures", lambda results: [])
    target = tmp_path / "out"
    write_report(results, target)
    (target / "left-over.txt").write_text("of the earlier report")
    write_report(results, target)
    assert not (target / "left-over.txt").exists()
    precious = tmp_path / "photos"
    precious.mkdir()
    (precious / "ann.jpg").write_text("dear")
    with pytest.raises(InvalidFileError, match="photos: exists and is no report"):
        check_destination(precious)
    check_destination(tmp_path / "a" / "b")  # folders around it are made when it is written
    with pytest.raises(InvalidFileError, match="is a file"):
        check_destination(precious / "ann.jpg")
    assert (precious / "ann.jpg").read_text() == "dear"


def test_a_failure_leaves_the_earlier_report_untouched(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "all_figures", lambda results: [])
    target = write_report(results, tmp_path / "out")
    before = (target / "report.html").read_bytes()

    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(module, "write_outcomes", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(results, target)
    assert (target / "report.html").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def _unclosed(page: str) -> list[str]:
    void = {"meta", "br", "path", "use", "rect"}
    open_tags: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            if tag not in void:
                open_tags.append(tag)

        def handle_startendtag(self, tag: str, attrs: object) -> None:
            pass

        def handle_endtag(self, tag: str) -> None:
            if tag not in void:
                assert open_tags.pop() == tag

    Reader().feed(page)
    return open_tags
