"""``holue trust`` certifies, refuses with an exit code, and names what is wrong with the input."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.datasets.simulated import simulate

runner = CliRunner()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("crowd")
    for seed, part in enumerate(("dev", "eval")):
        world = simulate(
            n_subjects=150,
            n_strangers=150,
            dim=32,
            concentration=80.0,
            first_subject=1000 * seed,
            rng=np.random.default_rng(seed),
        )
        (root / part).mkdir()
        for noun, samples in (("gallery", world.gallery), ("probes", world.probes)):
            columns = {"embeddings": samples.X, "subject_id": samples.person}
            if noun == "probes":
                columns["group"] = np.where(samples.person % 2, "old", "young")
            np.savez(root / part / f"{noun}.npz", **columns)
    return root


def test_it_certifies_and_reports_by_group(folder: Path) -> None:
    result = runner.invoke(app, ["trust", str(folder), "--target", "0.15", "--groups", "--json"])
    assert result.exit_code == 0, result.output
    answer = json.loads(result.stdout)
    assert answer["certified"]
    assert answer["method"] == "holue-plus"
    assert answer["evaluation"]["achieved_risk"]["value"] <= 0.15
    assert [row["group"] for row in answer["groups"]["group"]["groups"]] == ["old", "young"]
    text = runner.invoke(app, ["trust", str(folder), "--target", "0.15"])
    assert "with confidence 0.95, at most 0.15" in text.stdout


def test_a_refusal_is_an_answer_with_exit_code_one(folder: Path) -> None:
    result = runner.invoke(app, ["trust", str(folder), "--target", "0.001", "--json"])
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert not answer["certified"]
    assert "cannot certify" in answer["refusal"]
    for told in (answer["refusal"], runner.invoke(app, ["trust", str(folder), "--target", "0.001"]).stdout):
        assert "raise --target" in told
        assert "target_level" not in told


def test_shared_subjects_are_one_line_and_exit_code_two(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "eval").symlink_to(folder / "dev")
    (tmp_path / "dev").symlink_to(folder / "dev")
    done = subprocess.run(
        [sys.executable, "-m", "holue", "trust", str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "development and evaluation share 300 subjects" in done.stderr
    assert "Traceback" not in done.stderr
