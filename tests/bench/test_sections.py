"""Sections are measured alone or together, and an earlier file keeps those that are not measured anew."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from holue.bench.page.chart import speed_chart
from holue.bench.page.page import speed_page
from holue.bench.page.table import as_text
from holue.bench.sections import program
from holue.bench.sections.program import SECTIONS, check_sections, run
from holue.bench.worlds.sizes import FULL, QUICK, Sizes
from holue.cli.app import app
from holue.errors import InvalidFileError, InvalidParameterError

TINY = replace(
    Sizes(100, (8,), (1,), (1,), (50,), (8,), (1,), 8, 0, 2, 0.01, 0, 0, 0, 0),
    compressed_shapes=((200, 16),),
    compressed_batches=(1,),
    approximate_subjects=(10_000,),
    approximate_mapped=0,
    approximate_dim=8,
    approximate_batches=(1, 2),
    approximate_probes=40,
    changed_subjects=10_000,
    changed_dim=8,
    changes=2,
    store_batch=40,
    store_dim=8,
    live_subjects=(200,),
    live_dim=8,
    live_calls=3,
    peer_subjects=(200,),
    peer_dim=8,
    pause=0.0,
)


@pytest.fixture(scope="module")
def whole() -> dict[str, Any]:
    return run(sections=["exact", "other-costs", "compressed", "approximate", "changes"], sizes=TINY, rounds=1)


def test_sections_are_measured_in_one_order_however_they_are_named() -> None:
    assert check_sections(["approximate", "exact"]) == ["exact", "approximate"]
    assert check_sections(["all"]) == list(SECTIONS)
    for wrong in (["exakt"], []):
        with pytest.raises(InvalidParameterError, match="sections must be among evaluation, exact"):
            check_sections(wrong)


def test_a_run_holds_every_section_that_was_asked_for(whole: dict[str, Any]) -> None:
    assert list(whole["measured"]) == ["exact", "other-costs", "compressed", "approximate", "changes"]
    assert whole["finished"]
    assert whole["seconds"] == pytest.approx(sum(part["seconds"] for part in whole["measured"].values()))
    assert {"holue", "holue float16", "holue int8"} <= {row["system"] for row in whole["compressed"]}
    assert {row["subjects"] for row in whole["approximate"]["speed"]} == {10_000}
    json.dumps(whole, allow_nan=False)


def test_a_section_that_is_added_leaves_the_others_as_they_were(whole: dict[str, Any], tmp_path: Path) -> None:
    steps: list[str] = []
    added = run(
        sections=["compressed"],
        sizes=replace(TINY, compressed_batches=(1, 2)),
        rounds=2,
        out=tmp_path / "speed.json",
        known=whole,
        progress=lambda done, total, note="": steps.append(f"{done} of {total}: {note}"),
    )
    assert steps == ["0 of 2: compressed: K = 200, d = 16, 1 probes", "1 of 2: compressed: K = 200, d = 16, 2 probes"]
    assert json.loads((tmp_path / "speed.json").read_text("utf-8")) == added
    assert {row["probes"] for row in added["compressed"]} == {1, 2}
    assert (added["measured"]["compressed"]["rounds"], added["measured"]["exact"]["rounds"]) == (2, 1)
    for key in ("comparison", "growth", "latency", "approximate"):
        assert added[key] == whole[key]
    assert {row["probes"] for row in whole["compressed"]} == {1}, "what was known is not changed"


def test_numbers_of_another_machine_are_not_added_to(whole: dict[str, Any]) -> None:
    other = whole | {"machine": whole["machine"] | {"processors": 4096}}
    with pytest.raises(InvalidFileError, match=r"'processors': 4096.*write to another file"):
        run(sections=["other-costs"], sizes=TINY, rounds=1, known=other)


def test_a_file_from_before_sections_is_added_to(whole: dict[str, Any]) -> None:
    before = {
        key: whole[key] for key in ("comparison", "growth", "mapped", "latency", "other_costs", "start", "skipped")
    }
    before |= {"machine": whole["machine"] | {"load": 0.25}, "rounds": 7, "seconds": 60.0, "finished": True}
    added = run(sections=["compressed"], sizes=TINY, rounds=1, known=before)
    assert list(added["measured"]) == ["exact", "other-costs", "compressed"]
    assert "exact, other-costs: up to 7 rounds, 1.0 minutes, load before it 0.2" in speed_page(added)


def test_an_interrupted_section_is_named_and_the_others_are_whole(whole: dict[str, Any], tmp_path: Path) -> None:
    def interrupt(done: int, total: int, note: str = "") -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(
            sections=["approximate"],
            sizes=TINY,
            rounds=1,
            out=tmp_path / "a.json",
            known=whole,
            progress=interrupt,
        )
    left = json.loads((tmp_path / "a.json").read_text("utf-8"))
    assert "missing: approximate.**" in speed_page(left)
    assert "interrupted" in as_text(left)


@pytest.mark.parametrize("section", ["exact", "other-costs", "compressed", "approximate", "changes"])
def test_the_page_shows_each_section_alone_and_leaves_it_out_when_it_is_missing(
    whole: dict[str, Any], section: str
) -> None:
    keys = {
        "exact": ("comparison", "growth", "mapped", "skipped"),
        "other-costs": ("latency", "other_costs", "start"),
        "compressed": ("compressed",),
        "approximate": ("approximate",),
        "changes": ("changes",),
    }
    title = {
        "exact": "## The whole answer beside a bare search",
        "other-costs": "## Everything else",
        "compressed": "## Compressed galleries",
        "approximate": "## Sublinear: approximate evidence",
        "changes": "## Subjects who come and go",
    }
    others = {key for name in keys if name != section for key in keys[name]}
    alone = {key: value for key, value in whole.items() if key not in others}
    alone["measured"] = {section: whole["measured"][section]}
    without = {key: value for key, value in whole.items() if key not in keys[section]}
    for name in keys:
        assert (title[name] in speed_page(alone, figures="pictures")) == (name == section)
        assert (title[name] in speed_page(without)) == (name != section)
    assert as_text(alone)
    assert as_text(without)
    if section == "approximate":
        assert "](pictures/approximate.svg)" in speed_page(alone, figures="pictures")
        assert "](pictures/speed.svg)" not in speed_page(alone, figures="pictures")


def test_the_galleries_on_disk_can_be_left_out() -> None:
    assert (FULL.mapped_subjects, FULL.approximate_mapped) == (10_000_000, 10_000_000)
    assert (FULL.in_memory().mapped_subjects, FULL.in_memory().approximate_mapped) == (0, 0)
    assert QUICK.in_memory() == QUICK


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, ["bench", "--quick", "--rounds", "1", *arguments])


def test_the_command_measures_sections_one_after_the_other_into_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr("holue.bench.worlds.sizes.QUICK", TINY)
    out = str(tmp_path / "speed.json")
    first = invoke("--sections", "compressed", "--out", out, "--json")
    assert first.exit_code == 0, first.output
    assert list(json.loads(first.stdout)["measured"]) == ["compressed"]
    second = invoke("--sections", "approximate,exact", "--add", "--out", out, "--chart", str(tmp_path))
    assert second.exit_code == 0, second.output
    assert "approximate: times faster than the exact scan" in second.stdout
    assert list(json.loads(Path(out).read_text("utf-8"))["measured"]) == ["compressed", "exact", "approximate"]
    assert {path.name for path in tmp_path.glob("*.svg")} == {"speed.svg", "approximate.svg"}
    third = invoke("--sections", "compressed", "--out", out, "--json")
    assert list(json.loads(third.stdout)["measured"]) == ["compressed"], "without --add the file is written anew"


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (("--sections", "exakt"), "sections must be among"),
        (("--sections", ""), "sections must be among"),
        (("--sections", "compressed", "--add"), "give --out FILE"),
    ],
)
def test_what_cannot_be_measured_is_refused(asked: tuple[str, ...], why: str) -> None:
    shown = invoke(*asked)
    assert isinstance(shown.exception, InvalidParameterError)
    assert why in str(shown.exception)


def test_the_evaluation_comes_first_and_is_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    assert next(iter(program.SECTIONS)) == "evaluation", "its peak memory is that of the process so far"
    took = {"benchmark": "evaluation", "gallery_subjects": 5, "probes": 9, "dim": 4, "methods": ["galue"]}
    took |= {"operating_points": [0.1], "resamples": 3, "seconds": 1.5, "peak_rss_bytes": 10**9}
    monkeypatch.setattr("holue.bench.sections.evaluation.bench_evaluation", lambda seed: took)
    result = run(sections=["evaluation"], sizes=TINY, rounds=1)
    assert result["evaluation"] == took
    assert "3 resamples) took 2 s and 1.00 GB." in speed_page(result)


def test_a_chart_without_the_exact_section_is_empty_not_an_error(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    speed_chart({}).save(tmp_path)
