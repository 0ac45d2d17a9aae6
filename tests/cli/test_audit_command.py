"""``holue audit`` as a user meets it."""

import json
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.cli.commands.evaluation import audit as audit_command
from holue.datasets.simulated import simulate

runner = CliRunner()


@pytest.fixture
def gallery(tmp_path):
    world = simulate(n_subjects=80, look_alike_pairs=0, enrolled_samples=4, rng=np.random.default_rng(0)).gallery
    y = world.person.astype(str)
    y[[0, 40]] = y[[40, 0]]
    names = np.array([f"{i:03}.png" for i in range(len(y))])
    names[7] = "<b>&.png"
    np.savez(
        tmp_path / "gallery.npz", embeddings=world.X, subject_id=y, sample_id=names, concentration=world.concentration
    )
    with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
        archive.writestr("000.png", b"\x89PNG picture of the first")
    return tmp_path / "gallery.npz"


def test_the_audit_prints_tables_json_and_a_page_with_pictures(gallery, tmp_path):
    page = tmp_path / "audit.html"
    command = ["audit", str(gallery), "--fpir", "0.05", "--html", str(page), "--images", str(tmp_path / "images.zip")]
    result = runner.invoke(app, [*command, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [(f["sample"], f["subject"], f["looks_like"]) for f in found["mislabelled"]] == [
        ("000.png", "10", "0"),
        ("040.png", "0", "10"),
    ]
    html = page.read_text("utf-8")
    assert "data:image/png;base64," in html
    assert "http" not in html, "the page asks nothing of the network"
    printed = runner.invoke(app, command)
    assert "Samples under the wrong name (2)" in printed.stdout
    assert "Hubs: none found" in printed.stdout


@pytest.mark.parametrize("name", ["{i:03}.png", "Somebody_Of_A_Long_Name/Somebody_Of_A_Long_Name_{i:04}.jpeg"])
def test_no_name_and_no_word_is_cut_in_eighty_columns(gallery, name, monkeypatch):
    monkeypatch.setattr(audit_command.console, "width", 80)
    with np.load(gallery) as arrays:
        columns = dict(arrays)
    columns["sample_id"] = np.array([name.format(i=i) for i in range(len(columns["subject_id"]))])
    np.savez(gallery, **columns)
    lines = runner.invoke(app, ["audit", str(gallery), "--fpir", "0.05"]).stdout.splitlines()
    assert max(len(line) for line in lines if "─" in line or ";" in line) <= 80
    words = " ".join(lines).replace(",", " ").replace(";", " ").split()
    assert {name.format(i=0), name.format(i=40), "probability", "score", "FNIR"} <= set(words)


def test_a_model_that_tells_nobody_apart_comes_first_on_the_screen_the_page_and_in_json(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "noise.npz", embeddings=rng.normal(size=(200, 32)), subject_id=np.arange(200) // 4)
    page = tmp_path / "audit.html"
    command = ["audit", str(tmp_path / "noise.npz"), "--fpir", "0.05", "--html", str(page)]
    printed = runner.invoke(app, command).stdout
    assert printed.startswith("This model does not tell your subjects apart: ")
    assert printed.index("best other") < printed.index("50 subjects, ")
    html = page.read_text("utf-8")
    assert html.index("This model does not tell your subjects apart") < html.index("<polygon") < html.index("<h2")
    found = json.loads(runner.invoke(app, [*command, "--json"]).stdout)
    assert next(iter(found)) == "discrimination"
    assert found["discrimination"]["grade"] == "does not tell apart"
    assert sum(found["discrimination"]["own"]) == pytest.approx(1)


def test_what_cannot_be_audited_is_said_in_one_line(gallery, tmp_path):
    np.savez(tmp_path / "empty.npz", embeddings=np.empty((0, 4)), subject_id=np.empty(0, dtype=int))
    np.savez(tmp_path / "slip.npz", embeddings=np.eye(4), subject_id=np.arange(4), concentrations=np.ones(4))
    np.savez(tmp_path / "nobody.npz", embeddings=np.eye(4))
    for name, message in (
        ("empty.npz", "no rows"),
        ("slip.npz", "did you mean 'concentration'"),
        ("nobody.npz", "missing key"),
        ("absent.npz", "no such file"),
    ):
        result = runner.invoke(app, ["audit", str(tmp_path / name)])
        assert result.exit_code != 0
        assert message in str(result.exception)
    refused = runner.invoke(app, ["audit", str(gallery), "--images", str(gallery.with_name("none"))])
    assert "no folder and no .zip" in str(refused.exception)
