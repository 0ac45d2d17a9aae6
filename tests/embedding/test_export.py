from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from holue.embedding.heads.onnx_head import OnnxHead  # noqa: E402
from holue.embedding.heads.scf import train_scf  # noqa: E402
from holue.embedding.models.embedder import OnnxEmbedder  # noqa: E402
from holue.embedding.models.embedding_file import EmbeddingFile, require_same_fingerprint  # noqa: E402
from holue.embedding.training.arcface import train_arcface_head  # noqa: E402
from holue.embedding.training.export import export_head, export_network  # noqa: E402
from holue.embedding.training.images.augmentation import Augmentation  # noqa: E402
from holue.embedding.training.images.image_network import train_arcface_network  # noqa: E402
from holue.embedding.training.train import TrainingSettings  # noqa: E402
from holue.errors import (  # noqa: E402
    CorruptArtifactError,
    InvalidEmbeddingsError,
    InvalidParameterError,
    NewerArtifactError,
)

SETTINGS = TrainingSettings(epochs=1, held_out=0.25)
AGREEMENT = 1e-4  # float32 sums in another order, relative to the largest output


@pytest.fixture(scope="module")
def file() -> EmbeddingFile:
    rng = np.random.default_rng(0)
    subjects = np.repeat(np.arange(10), 6)
    embeddings = rng.standard_normal((10, 8))[subjects] + 0.3 * rng.standard_normal((60, 8))
    features = 5 + 3 * rng.standard_normal((60, 12))
    return EmbeddingFile(embeddings, features, np.arange(60).astype(str), subjects.astype(str), "f00d", "base")


def relative_error(ours: np.ndarray, theirs: np.ndarray) -> float:
    return float(np.abs(ours - theirs).max() / np.abs(ours).max())


def test_an_exported_head_gives_what_was_trained(file: EmbeddingFile, tmp_path: Path) -> None:
    for trainer in (train_scf, train_arcface_head):
        trained = trainer(file, settings=SETTINGS)
        path = export_head(trained, tmp_path / trained.kind)
        assert b"site-packages" not in path.read_bytes()  # no paths of the machine it was trained on
        loaded = OnnxHead.load(path)
        assert loaded.kind == trained.kind
        assert relative_error(trained.predict(file.features), loaded.predict_file(file)) < AGREEMENT
        assert relative_error(trained.predict(file.features), loaded.predict(file.features, batch_size=7)) < AGREEMENT
        record = json.loads(path.with_suffix(".json").read_text())
        assert record["settings"]["epochs"] == 1
        assert record["recogniser"] == "f00d"
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json"] * 2 + [".onnx"] * 2
    _refuses_what_it_was_not_trained_for(OnnxHead.load(tmp_path / "scf"), file)
    _new_embeddings_are_not_the_old_ones(OnnxHead.load(tmp_path / "arcface"), file)
    _a_changed_file_is_noticed(tmp_path)


def _refuses_what_it_was_not_trained_for(head: OnnxHead, file: EmbeddingFile) -> None:
    with pytest.raises(InvalidEmbeddingsError, match=r"scf.onnx was trained on the recogniser f00d, .* beef"):
        head.predict_file(EmbeddingFile(file.embeddings, file.features, file.sample_id, file.subject_id, "beef", "x"))
    with pytest.raises(InvalidEmbeddingsError, match="carry no features"):
        head.predict_file(EmbeddingFile(file.embeddings, None, file.sample_id, file.subject_id, "f00d", "x"))
    with pytest.raises(InvalidEmbeddingsError, match=r"features have 3 numbers, scf.onnx was trained on 12"):
        head.predict(np.ones((2, 3)))
    with pytest.raises(InvalidParameterError, match="gives a concentration, no embedding"):
        head.reembed(file)


def _new_embeddings_are_not_the_old_ones(head: OnnxHead, file: EmbeddingFile) -> None:
    projected = head.reembed(file)
    assert projected.embeddings.shape == (60, 128)
    assert projected.model == "base+arcface"
    with pytest.raises(InvalidEmbeddingsError, match="dimensions"):
        require_same_fingerprint(file, projected)
    assert projected.fingerprint != file.fingerprint


def _a_changed_file_is_noticed(folder: Path) -> None:
    with pytest.raises(CorruptArtifactError, match=r"gone.json: no such file; a head is gone.onnx and gone.json"):
        OnnxHead.load(folder / "gone")
    record = folder / "scf.json"
    known = json.loads(record.read_text())
    for change, error in (
        ({"format": 2}, NewerArtifactError),
        ({"onnx_sha256": "0"}, CorruptArtifactError),
        ({"format": "x"}, CorruptArtifactError),
    ):
        record.write_text(json.dumps(known | change))
        with pytest.raises(error, match="scf"):
            OnnxHead.load(folder / "scf")
    del known["output"]
    record.write_text(json.dumps(known))
    with pytest.raises(CorruptArtifactError, match="lacks output"):
        OnnxHead.load(folder / "scf")


def test_an_exported_network_is_embedded_with_at_once(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (24, 20, 17, 3), dtype=np.uint8)
    network = train_arcface_network(
        images,
        np.repeat(np.arange(6), 4),
        dim=16,
        first_channels=4,
        augmentation=Augmentation(flip=True),
        settings=TrainingSettings(epochs=1, batch_size=8, held_out=0.0),
    )
    path = export_network(network, tmp_path / "small")
    embeddings, features = network.predict(images)
    file = OnnxEmbedder.open(path).embed_arrays(list(images))
    assert file.features is not None
    assert relative_error(embeddings, file.embeddings) < AGREEMENT
    assert relative_error(features, file.features) < AGREEMENT
    assert file.features.shape == (24, network.module.feature_dim)
    assert json.loads(path.with_suffix(".json").read_text())["details"]["augmentation"]["flip"] is True
