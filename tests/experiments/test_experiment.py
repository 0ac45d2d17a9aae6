"""An experiment averages over seeds, with intervals over subjects, and its page counts what was won."""

import copy
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from holue.errors import InvalidFileError, InvalidParameterError
from holue.evaluation.intervals.intervals import Bootstrapped
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.experiments.experiment import COMPARED, HELD_BY_MODEL, MAIN, NORM_ONLY, Experiment, Size, run_experiment
from holue.experiments.registry import EXPERIMENTS, find_experiment
from holue.experiments.source_commit import source_commit
from holue.experiments.split import shares
from holue.experiments.tables.experiment_report import read_experiment, report_text, write_experiment
from holue.experiments.tables.findings import findings_lines
from holue.experiments.tables.results_chart import results_charts
from holue.experiments.tables.results_page import results_page, summary
from holue.experiments.tables.seed_mean import SeedMean, joint_resamples
from holue.experiments.tables.summary_tables import variant_tables
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery


def made_part(rng: np.random.Generator, prefix: str) -> ProtocolPart:
    means = rng.normal(size=(24, 16))
    who = np.repeat(np.arange(24), 6)
    names = np.array([f"{prefix}{i:02d}" for i in range(24)])
    spread = rng.uniform(0.3, 1.2, len(who))
    probes = means[who] + spread[:, None] * rng.normal(size=(len(who), 16))
    concentration = 40 / spread**2
    return ProtocolPart(
        Gallery.from_samples(means[:12], names[:12]),
        Embeddings.from_samples(probes, concentration),
        names[who],
        qualities={"concentration": concentration, "norm": np.linalg.norm(probes, axis=1)},
        groups=np.where(spread > 0.8, "14 px, noise 35", "112 px"),
    )


def made_protocols(seed: int) -> dict[str, IdentificationProtocol]:
    rng = np.random.default_rng(seed)
    protocol = IdentificationProtocol("made", made_part(rng, "dev"), made_part(rng, "eval"))
    return {MAIN: protocol, NORM_ONLY: protocol}


MADE = Experiment("made", "Made data", lambda size: made_protocols)


@pytest.fixture(scope="module")
def document() -> dict:
    return run_experiment(MADE, seeds=2, fpir=(0.1, 0.2), n_resamples=50, size=Size())


def test_every_method_has_a_mean_over_seeds_with_an_interval_around_it(document: dict) -> None:
    main = document["variants"][0]
    assert {"scf", "galue", "holue", "holue-mc", "holue-closed", "norm"} <= set(main["methods"])
    for point in main["operating_points"]:
        for number in point["prr_f1"].values():
            assert number["value"] == pytest.approx(np.mean(number["seeds"]), abs=1e-12)
            assert number["low"] <= number["value"] + 0.1
            assert number["low"] < number["high"]
        assert "holue" not in point["difference_to_holue"]


def test_the_whole_among_the_ablations_is_the_method_itself(document: dict) -> None:
    for point in document["variants"][0]["operating_points"]:
        for measure in ("prr_f1", "prr_accuracy"):
            whole = point["ablation"]["HolUE-plus"][measure]
            assert whole == pytest.approx(point[measure]["holue-plus"]["value"], abs=1e-6)
        assert len({round(one["prr_f1"], 6) for one in point["ablation"].values()}) > 4


def test_variants_are_evaluated_at_the_middle_target(document: dict) -> None:
    main, held, variant = document["variants"]
    assert [point["target_fpir"] for point in main["operating_points"]] == [0.1, 0.2]
    assert [point["target_fpir"] for point in held["operating_points"]] == [0.1, 0.2]
    assert [point["target_fpir"] for point in variant["operating_points"]] == [0.2]


def test_the_paper_s_model_stands_beside_the_threshold_that_holds_its_fpir(document: dict) -> None:
    main, held, _ = document["variants"]
    assert (main["hold"], held["hold"], held["variant"]) == ("fpir", "model", HELD_BY_MODEL)
    assert {"galue", "holue", "holue-plus"} <= set(held["methods"]) <= set(COMPARED)
    assert held["operating_points"][0]["ablation"] == {}
    # Galleries of one size: neither way moves the threshold.
    for one, other in zip(main["operating_points"], held["operating_points"]):
        assert other["thresholds"] == pytest.approx(one["thresholds"], abs=1e-6)
        assert other["prr_f1"]["galue"]["value"] == pytest.approx(one["prr_f1"]["galue"]["value"], abs=1e-6)


def test_every_table_names_the_commit(document: dict) -> None:
    told = copy.deepcopy(document)
    for variant in told["variants"]:
        variant["commit"] = "c0ffee"
        tables = variant_tables(variant)
        assert tables
        assert all("commit c0ffee" in table.markdown().splitlines()[0] for table in tables)


def test_a_commit_is_that_of_a_checkout_with_what_was_changed_since(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        settings = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
        done = subprocess.run(["git", *settings, *arguments], cwd=tmp_path, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    assert source_commit(package) == "unknown"
    git("init")
    assert source_commit(package) == "unknown", "installed inside a checkout of something else"
    git("add", ".")
    git("commit", "-m", "first")
    first = git("rev-parse", "--short=10", "HEAD")
    assert source_commit(package) == first
    (package / "__init__.py").write_text("changed = True")
    assert source_commit(package) == f"{first} with changes"


def test_a_probe_with_two_degradations_counts_at_both_levels(document: dict) -> None:
    levels = {one["level"]: one for one in document["variants"][0]["operating_points"][0]["levels"]}
    assert set(levels) == {"14 px", "112 px", "noise 35"}
    assert levels["14 px"] | {"level": ""} == levels["noise 35"] | {"level": ""}
    assert levels["14 px"]["probes"] + levels["112 px"]["probes"] == 144
    assert levels["14 px"]["error_rate"] > levels["112 px"]["error_rate"]


def test_the_document_is_strict_json_and_comes_back_from_its_report(document: dict, tmp_path: Path) -> None:
    folder = write_experiment(document, tmp_path / "run")
    assert read_experiment(folder) == json.loads(json.dumps(document, allow_nan=False))
    assert (folder / "figures" / "rejection_curves_fpir_0.1.svg").stat().st_size > 1000
    assert "HolUE-MLP" in (folder / "report.md").read_text()
    assert "1" in (folder / "tables" / "table1_prr.csv").read_text()
    write_experiment(document, folder)


def test_a_folder_of_something_else_is_not_written_over(document: dict, tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("hello")
    with pytest.raises(InvalidFileError, match="exists and is no experiment"):
        write_experiment(document, tmp_path / "letters")
    assert (tmp_path / "letters" / "dear.txt").exists()
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(InvalidFileError, match="not the results of an experiment"):
        read_experiment(tmp_path / "other.json")


def test_a_quick_run_says_that_its_numbers_mean_nothing(document: dict) -> None:
    quick = {**document, "quick": True}
    assert "mean nothing" in report_text(quick)
    assert "do not use their numbers" in results_page([quick])


def test_the_summary_counts_cells_as_one_would_by_hand(document: dict) -> None:
    told = copy.deepcopy(document)
    for point, (holue, galue, low) in zip(
        told["variants"][0]["operating_points"], [(0.9, 0.1, 0.01), (0.2, 0.5, -0.01)]
    ):
        point["prr_f1"] = {key: {"value": 0.0, "low": 0.0, "high": 0.0} for key in point["prr_f1"]}
        point["prr_f1"] |= {
            "holue": {"value": holue, "low": 0, "high": 1},
            "galue": {"value": galue, "low": 0, "high": 1},
        }
        point["difference_to_holue"]["holue-plus"] = {"value": 0.1, "low": low, "high": 0.2}
        point["difference_of_accuracy_to_holue"]["holue-plus"] = {"value": low, "low": low, "high": 0.2}
    found = summary([told])
    assert (found["cells"], found["holue_first_of_paper"]) == (2, 1)
    assert found["ours"]["holue-plus"] == {"f1": {"above": 2, "clearly": 1}, "accuracy": {"above": 1, "clearly": 1}}
    page = results_page([told], "Why it came out so.", {"images/chart.svg": "All at a glance"})
    assert page.startswith("# Results\n\n![All at a glance](images/chart.svg)\n"), "charts come first"
    assert "**1 of 2** cells" in page
    assert "Why it came out so." in page
    assert "| HolUE-MLP | 0.82 | 0.79 | 0.87 |" in page


def test_the_findings_say_what_the_numbers_say(document: dict) -> None:
    told = copy.deepcopy(document)
    first, second = told["variants"][0]["operating_points"]
    for point, best in ((first, "holue"), (second, "galue")):
        point["prr_f1"] = {
            key: {"value": 0.9 if key == best else 0.2, "low": 0.0, "high": 1.0} for key in point["prr_f1"]
        }
        point["difference_to_holue"]["holue-plus"] = {
            "value": 0.1 if best == "holue" else -0.2,
            "low": -0.3,
            "high": 0.3,
        }
        point["difference_of_accuracy_to_holue"]["holue-plus"] = {"value": 0.3, "low": 0.2, "high": 0.4}
        point["calibration_error"] = {
            key: {"value": value, "low": 0.0, "high": 1.0}
            for key, value in (("holue-plus", 0.02), ("galue", 0.25), ("holue", 0.15))
        }
        point["prr_f1"]["holue"]["seeds"] = [0.9, 0.8, -0.5 if best == "holue" else 0.6]
        point["prr_f1"]["holue-plus"]["seeds"] = [0.2, 0.2, 0.3]
        point["ablation"] = {
            "HolUE-plus": {"prr_f1": 0.7, "prr_accuracy": 0.5, "calibration_error": 0.02},
            "without sample": {"prr_f1": 0.5, "prr_accuracy": 0.5, "calibration_error": 0.02},
            "without margin": {"prr_f1": 0.6, "prr_accuracy": 0.5, "calibration_error": 0.02},
            "boosted trees instead of monotone": {"prr_f1": 0.65, "prr_accuracy": 0.5, "calibration_error": 0.05},
        }
    text = "\n".join(findings_lines([told]))
    assert "Another is first on made at 0.2 (GalUE 0.900, HolUE-MLP 0.200)." in text
    assert "far below the others**: HolUE-MLP on made at 0.1 (-0.50, the others 0.80 to 0.90). It" in text
    assert "below HolUE-MLP on made at 0.2 (-0.200)" in text
    assert "the differences there are +0.300." in text
    assert (
        "of HolUE-plus is 0.020 to 0.020, that of the other methods that give a number between 0 and 1 0.150 to 0.250"
        in text
    )
    assert "(PRR of F1 at FPIR 0.2, with all 0.700): without sample 0.500, without margin 0.600." in text
    assert (
        "Learning with boosted trees changes PRR of F1 by -0.050 to -0.050 and the calibration error by +0.030 to +0.030"
        in text
    )
    assert text.count("| made | 12 to 12 |") == 2
    assert text in results_page([told])


def test_the_charts_draw_at_most_six_methods_for_every_data_set_and_target(document: dict) -> None:
    charts = results_charts([document])
    assert [chart.name for chart in charts] == [
        "results-prr_f1",
        "results-prr_accuracy",
        "results-curves",
        "results-fpir",
    ]
    for chart in charts[:2]:
        (ax,) = chart.figure.axes
        assert len(ax.get_yticks()) == len(document["variants"][0]["operating_points"])
        assert 2 <= len(ax.get_legend_handles_labels()[1]) <= 6


def test_the_curves_and_the_reached_fpir_are_drawn_for_every_data_set(document: dict) -> None:
    *_, curves, reached = results_charts([document, {**document, "name": "again"}, {**document, "name": "once more"}])
    drawn = [ax for ax in curves.figure.axes if ax.axison]
    assert [ax.get_title(loc="left") for ax in drawn] == ["made, FPIR 0.2", "again, FPIR 0.2", "once more, FPIR 0.2"]
    assert {"HolUE-MLP", "random", "oracle"} <= set(drawn[0].get_legend_handles_labels()[1])
    (ax,) = reached.figure.axes
    assert [label.get_text() for label in ax.get_yticklabels()] == ["made", "again", "once more"]
    assert len(reached.svg) > 1000


def test_joint_resamples_draw_a_person_equally_often_in_every_seed() -> None:
    rng = np.random.default_rng(0)
    people = np.array([f"p{i}" for i in range(30)])
    some = [rng.choice(people, 50), rng.choice(people, 70)]
    resamples = joint_resamples(some, n_resamples=20, rng=rng)
    for b in range(20):
        times = [
            dict(zip(subjects.tolist(), one.times_drawn[b][one.cluster].tolist()))
            for subjects, one in zip(some, resamples)
        ]
        shared = times[0].keys() & times[1].keys()
        assert shared
        assert all(times[0][person] == times[1][person] for person in shared)


def test_a_seed_without_a_value_is_left_out_and_announced() -> None:
    resample = joint_resamples([np.array(["a", "b"])], n_resamples=3, rng=np.random.default_rng(0))[0]
    defined = Bootstrapped("x", 0.5, np.array([0.4, 0.5, 0.6]), resample)
    missing = Bootstrapped("x", np.nan, np.full(3, np.nan), resample)
    estimate = SeedMean.of([defined, missing]).estimate()
    assert estimate.value == 0.5
    assert estimate.reason == "undefined in 1 of 2 seeds"
    assert SeedMean.of([missing]).estimate().value is None


def test_parts_of_a_split_share_nobody_and_leave_nobody_out() -> None:
    people = np.arange(101)
    parts = shares(people, (0.4, 0.25, 0.35), np.random.default_rng(0))
    assert np.concatenate(parts).size == 101
    assert set(np.concatenate(parts).tolist()) == set(people.tolist())
    with pytest.raises(InvalidParameterError, match="sum 1"):
        shares(people, (0.5, 0.6), np.random.default_rng(0))


def test_wrong_settings_and_names_are_refused() -> None:
    with pytest.raises(InvalidParameterError, match="seeds"):
        run_experiment(MADE, seeds=0)
    with pytest.raises(InvalidParameterError, match="choose from lfw"):
        find_experiment("lwf")
    assert set(EXPERIMENTS) >= {"lfw", "speakers", "chimpanzees"}
