"""A trained head is applied to a file: its key is added, all others are kept, and what does not fit is named."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.artifact.archive import read_archive
from holue.cli.app import app
from holue.datasets.formats.samples import read_samples
from holue.datasets.glyphs.model import FOLDER
from holue.embedding.heads.apply import apply_to_file
from holue.embedding.heads.onnx_head import OnnxHead
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.errors import InvalidEmbeddingsError, InvalidParameterError

pytest.importorskip("onnxruntime")
runner = CliRunner()
SCF = OnnxHead.load(FOLDER / "scf")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Eight samples with features of the recogniser of characters, and a key of the user's own."""
    rng = np.random.default_rng(0)
    path = tmp_path / "mine.npz"
    np.savez(
        path,
        embeddings=rng.standard_normal((8, 128)).astype(np.float32),
        features=rng.standard_normal((8, SCF.record["feature_dim"])).astype(np.float32),
        sample_id=np.arange(8).astype(str),
        subject_id=np.repeat(["ann", "bob"], 4),
        fingerprint=SCF.record["recogniser"],
        camera=np.arange(8),
    )
    return path


@pytest.mark.parametrize(("kind", "key"), [("scf", "concentration"), ("pfe", "variance"), ("scaleface", "scale")])
def test_the_output_is_added_under_its_key_and_all_else_is_kept(
    kind: str, key: str, file: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new.npz"
    result = runner.invoke(app, ["apply", str(FOLDER / kind), str(file), "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    told, before, after = json.loads(result.stdout), read_archive(file), read_archive(out)
    assert (told["kind"], told["output"], told["shape"][0]) == (kind, key, 8)
    assert set(after) == {*before, key}
    for name, array in before.items():
        np.testing.assert_array_equal(after[name], array)
    expected = OnnxHead.load(FOLDER / kind).predict_file(EmbeddingFile.load(file))
    np.testing.assert_array_equal(after[key], expected)
    assert getattr(read_samples(out), key) is not None, "the other commands read it"


def test_a_line_says_what_was_done_and_the_input_is_not_written_over(file: Path, tmp_path: Path) -> None:
    out, before = tmp_path / "out.npz", file.read_bytes()
    for _ in range(2):
        result = runner.invoke(app, ["apply", str(FOLDER / "scf.onnx"), str(file), "--out", str(out)])
        assert result.exit_code == 0, result.output
    assert result.stdout.startswith("concentration of 8 samples, median ")
    assert result.stdout.endswith(f"written to {out}\n")
    assert len(read_archive(out)["concentration"]) == 8
    refused = runner.invoke(app, ["apply", str(FOLDER / "scf.onnx"), str(file), "--out", str(file)])
    assert "is the input" in str(refused.exception)
    assert file.read_bytes() == before


def test_new_embeddings_take_the_place_of_the_old_ones_but_not_beside_their_concentration(
    file: Path, tmp_path: Path
) -> None:
    torch = pytest.importorskip("torch")
    from holue.embedding.training.arcface import train_arcface_head
    from holue.embedding.training.export import export_head
    from holue.embedding.training.train import TrainingSettings

    torch.set_num_threads(1)
    samples = EmbeddingFile.load(file)
    trained = train_arcface_head(samples, dim=5, settings=TrainingSettings(epochs=1, held_out=0.0))
    head = OnnxHead.load(export_head(trained, tmp_path / "animals"))
    output = apply_to_file(head, file, tmp_path / "new.npz")
    projected = EmbeddingFile.load(tmp_path / "new.npz")
    assert output.shape == projected.embeddings.shape == (8, 5)
    assert projected.fingerprint == head.reembed(samples).fingerprint != samples.fingerprint
    apply_to_file(SCF, file, file)
    with pytest.raises(InvalidEmbeddingsError, match=r"mine.npz: the key 'concentration' is about the embedding"):
        apply_to_file(head, file, tmp_path / "other.npz")


def test_what_the_head_cannot_read_is_named(file: Path, tmp_path: Path) -> None:
    with pytest.raises(InvalidParameterError, match=r"out must end in .npz, got faces"):
        apply_to_file(SCF, file, "faces")
    arrays = read_archive(file)
    np.savez(tmp_path / "other.npz", **(arrays | {"fingerprint": np.asarray("beef")}))
    with pytest.raises(InvalidEmbeddingsError, match=r"scf.onnx was trained on the recogniser .* beef"):
        apply_to_file(SCF, tmp_path / "other.npz", tmp_path / "new.npz")
    del arrays["features"]
    np.savez(tmp_path / "bare.npz", **arrays)
    with pytest.raises(InvalidEmbeddingsError, match="carry no features"):
        apply_to_file(SCF, tmp_path / "bare.npz", tmp_path / "new.npz")
    assert not (tmp_path / "new.npz").exists()
