"""``holue evaluate`` and ``holue split`` on folders of embeddings: what is printed, written and refused."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.bench.sections.evaluation import simulated_protocol
from holue.cli.app import app
from holue.cli.several import spell_out
from holue.datasets.formats.folder import save_folder
from holue.errors import HolueError

runner = CliRunner()
QUICK = ["--methods", "galue", "acceptance", "--resamples", "20"]


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    people = {"n_subjects": 40, "n_strangers": 40}
    protocol = simulated_protocol(development=people, evaluation=people, dim=32, concentration=30.0, look_alike_pairs=6)
    folder = tmp_path_factory.mktemp("data") / "faces"
    save_folder(protocol, folder)
    return folder


def run(*arguments: object) -> Any:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def document(*arguments: object) -> dict[str, Any]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize(
    "spelling",
    [
        ["--fpir", "0.05", "0.1", "0.2"],
        ["--fpir", "0.05", "--fpir", "0.1", "--fpir", "0.2"],
        ["--fpir", "0.05,0.1,0.2"],
        ["--fpir=0.05", "--fpir", "0.1", "0.2"],
    ],
)
def test_several_targets_may_be_written_in_a_row(faces: Path, spelling: list[str]) -> None:
    for arguments in ([faces, *spelling, *QUICK], [*spelling, *QUICK, faces]):
        points = document("evaluate", *arguments)["operating_points"]
        assert [point["target_fpir"] for point in points] == [0.05, 0.1, 0.2]


def test_a_row_of_values_ends_at_an_option_or_at_a_folder(tmp_path: Path) -> None:
    row = {"--fpir", "--methods"}
    assert spell_out(["--methods", "a", "b", str(tmp_path)], row) == ["--methods", "a", "--methods", "b", str(tmp_path)]
    assert spell_out([str(tmp_path), "--seed", "3"], row) == [str(tmp_path), "--seed", "3"]
    assert spell_out(["--fpir"], row) == ["--fpir"]
    assert spell_out(["--fpir", "--seed", "3"], row) == ["--fpir", "--seed", "3"]
    assert spell_out(["--fpir", "--methods", "a"], row) == ["--fpir", "--methods", "a"]


def test_json_is_the_results_document_and_nothing_else(faces: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    printed = run("evaluate", faces, "--fpir", "0.1", *QUICK, "--report", out, "--json").stdout
    assert printed == (out / "results.json").read_text("utf-8")
    found = json.loads(printed)
    assert found["configuration"]["methods"] == ["acceptance", "galue"]
    assert found["configuration"]["seed"] == 0
    assert found["protocol"]["evaluation"]["gallery_subjects"] == 40
    page = (out / "report.html").read_text("utf-8")
    assert f"holue evaluate {faces} --fpir 0.1 --methods galue acceptance" in page


def test_people_get_a_table_and_an_answer(faces: Path) -> None:
    result = run("evaluate", faces, "--fpir", "0.1", *QUICK, "--threshold-from", "eval")
    assert result.exit_code == 0
    assert "GalUE" in result.stdout
    assert "ORACLE" in result.stdout
    assert "what a perfect filter could gain" in " ".join(result.stdout.split())


def test_the_same_seed_gives_the_same_bytes(faces: Path) -> None:
    arguments = ("evaluate", faces, "--fpir", "0.1", *QUICK, "--json")
    assert run(*arguments).stdout == run(*arguments).stdout
    assert run(*arguments, "--seed", "1").stdout != run(*arguments).stdout


def _drop(key: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        file = folder / "eval" / "probes.npz"
        arrays = dict(np.load(file))
        del arrays[key]
        np.savez(file, **arrays)

    return damage


def _share_subjects(folder: Path) -> None:
    for name in ("gallery", "probes"):
        (folder / "eval" / f"{name}.npz").write_bytes((folder / "dev" / f"{name}.npz").read_bytes())


def _relabel(select: Callable[[Any], Any]) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        file = folder / "dev" / "probes.npz"
        arrays = dict(np.load(file))
        gallery = np.load(folder / "dev" / "gallery.npz")["subject_id"]
        arrays["subject_id"] = select(gallery)[: len(arrays["subject_id"])]
        np.savez(file, **arrays)

    return damage


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (_drop("embeddings"), ("probes.npz", "embeddings")),
        (_drop("subject_id"), ("probes.npz", "subject_id")),
        (_share_subjects, ("probes.npz", "subject_id", "share")),
        (_relabel(lambda ids: np.resize(ids, 10_000)), ("probes.npz", "no non-mated probes")),
        (_relabel(lambda ids: np.resize(ids + 7_000_000, 10_000)), ("probes.npz", "no mated probes")),
        (lambda folder: (folder / "dev" / "gallery.npz").unlink(), ("gallery.npz", "no such file")),
        (lambda folder: (folder / "dev" / "gallery.npz").write_bytes(b"PK\x03\x04 cut"), ("gallery.npz",)),
    ],
)
def test_damaged_input_is_one_line_that_names_file_and_key(
    faces: Path, tmp_path: Path, damage: Callable[[Path], None], words: tuple[str, ...]
) -> None:
    folder = tmp_path / "copy"
    for file in faces.rglob("*.npz"):
        target = folder / file.relative_to(faces)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes())
    damage(folder)
    with pytest.raises(HolueError) as caught:
        run("evaluate", folder, *QUICK, "--report", tmp_path / "out")
    message = str(caught.value)
    assert "\n" not in message
    assert all(word in message for word in words), message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fpir", "1.5"], "fpir must lie strictly between 0 and 1, got 1.5"),
        (["--fpir", "often"], "--fpir takes numbers between 0 and 1, got 'often'"),
        (["--fpir", "0.001"], "finer than 160 non-mated"),
        (["--methods", "galeu"], "'galeu' is not known; choose from"),
        (["--threshold-from", "test"], "'dev' .*'eval'"),
    ],
)
def test_wrong_options_are_named(faces: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(HolueError, match=message):
        run("evaluate", faces, *arguments)


def test_a_mistake_is_one_line_and_exit_code_two(faces: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holue", "evaluate", faces, "--methods", "galeu"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: methods: 'galeu' is not known")
    assert done.stderr.count("\n") == 1


def test_a_folder_that_is_no_report_is_refused_before_the_work(faces: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(HolueError, match="no report of holue"):
        run("evaluate", faces, "--report", tmp_path)
    with pytest.raises(HolueError, match="is the input"):
        run("evaluate", faces, "--report", faces)


def test_a_flat_file_is_split_and_evaluated(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    means, who = rng.normal(size=(60, 16)), np.repeat(np.arange(60), 5)
    file = tmp_path / "flat.npz"
    np.savez(file, embeddings=means[who] + 0.7 * rng.normal(size=(300, 16)), subject_id=who)
    made = document("split", file, tmp_path / "made", "--seed", 3)
    assert made["seed"] == 3
    assert made["development"]["gallery_subjects"] == made["evaluation"]["gallery_subjects"] == 15
    assert document("evaluate", tmp_path / "made", "--fpir", "0.1", *QUICK)["format"] == "holue-evaluation"
    again = document("split", file, tmp_path / "again", "--seed", 3)
    assert again["evaluation"] == made["evaluation"]
    with pytest.raises(HolueError, match="exists already"):
        run("split", file, tmp_path / "made")
    assert "holue evaluate" in run("split", file, tmp_path / "third").stdout
