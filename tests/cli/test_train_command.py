import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.errors import InvalidParameterError

runner = CliRunner()


@pytest.mark.parametrize("head", ["scf", "pfe", "scaleface", "arcface"])
def test_every_head_is_trained_and_exported(head: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    subject = np.repeat([f"s{i}" for i in range(24)], 4)
    centres = np.repeat(rng.normal(size=(24, 16)), 4, axis=0)
    embeddings = (centres + 0.3 * rng.normal(size=centres.shape)).astype(np.float32)
    features = np.column_stack([embeddings, rng.normal(size=(96, 8))]).astype(np.float32)
    names = np.array([f"{i}.jpg" for i in range(96)])
    EmbeddingFile(embeddings, features, names, subject, "made", "made").save(tmp_path / "faces.npz")
    out = tmp_path / "head"
    words = ["train", head, str(tmp_path / "faces.npz"), "--out", str(out), "--epochs", "1", "--json"]
    result = runner.invoke(app, words)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["kind"] == head
    assert out.with_suffix(".onnx").exists()
    assert out.with_suffix(".json").exists()


@pytest.fixture
def faces(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    subject = np.repeat([f"s{i}" for i in range(20)], 3)
    embeddings = rng.normal(size=(60, 8)).astype(np.float32)
    names = np.array([f"{i}.jpg" for i in range(60)])
    EmbeddingFile(embeddings, embeddings, names, subject, "made", "made").save(tmp_path / "faces.npz")
    return tmp_path / "faces.npz"


@pytest.mark.parametrize("name", ["scf-1.2", "scf-1.2.onnx"])
def test_a_dot_in_the_name_of_a_head_is_kept(name: str, faces: Path) -> None:
    pytest.importorskip("torch")
    out = faces.parent / name
    result = runner.invoke(app, ["train", "scf", str(faces), "--out", str(out), "--epochs", "1", "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["onnx"] == str(faces.parent / "scf-1.2.onnx")
    assert {path.name for path in faces.parent.iterdir()} == {"faces.npz", "scf-1.2.onnx", "scf-1.2.json"}
    applied = runner.invoke(app, ["apply", str(out), str(faces), "--out", str(faces.parent / "out.npz")])
    assert applied.exit_code == 0, applied.output


def test_a_head_without_a_name_is_refused_before_anything_is_read() -> None:
    for out in (".", ".."):
        result = runner.invoke(app, ["train", "scf", "no-such-file.npz", "--out", out])
        assert isinstance(result.exception, InvalidParameterError)
        assert "names a folder; give the name of a file in it" in str(result.exception)


def test_subjects_with_one_sample_are_left_out_with_a_line_that_says_so(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    subject = np.r_[np.repeat([f"s{i}" for i in range(20)], 3), [f"single{i}" for i in range(7)]]
    embeddings = rng.normal(size=(67, 8)).astype(np.float32) + 2 * (np.arange(67) < 60)[:, None]
    names = np.array([f"{i}.jpg" for i in range(67)])
    EmbeddingFile(embeddings, embeddings, names, subject, "made", "made").save(tmp_path / "faces.npz")
    words = ["train", "scf", str(tmp_path / "faces.npz"), "--out", str(tmp_path / "scf"), "--epochs", "1"]
    result = runner.invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "scf head trained on 60 samples of 20 subjects, written to" in result.stdout
    assert "Left out: 7 subjects with one sample" in result.stdout


def test_an_unknown_head_is_named(tmp_path: Path) -> None:
    result = runner.invoke(app, ["train", "magic", "faces.npz", "--out", "head"])
    assert result.exit_code == 2
    assert "magic" in result.output
