"""Training on rows that stay on disk gives the head that training in memory gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from holue.embedding.heads.pfe import train_pfe
from holue.embedding.heads.scaleface import train_scaleface
from holue.embedding.heads.scf import train_scf
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.models.embedding_folder import load_embedding_folder
from holue.embedding.training import class_centres, row_blocks, training_samples
from holue.embedding.training.class_centres import leave_one_out_cosines
from holue.embedding.training.row_blocks import mean_over
from holue.embedding.training.train import TrainingSettings
from holue.embedding.training.training_samples import FeatureScale, TrainingSamples
from holue.errors import InvalidEmbeddingsError, InvalidFileError

RNG = np.random.default_rng(0)
WHO = np.repeat(np.arange(30), 8)
EMBEDDINGS = (RNG.normal(size=(30, 12))[WHO] + 0.6 * RNG.normal(size=(240, 12))).astype(np.float16)
FEATURES = (5 + 3 * RNG.normal(size=(240, 20))).astype(np.float16)


def written(folder: Path, **changes: np.ndarray) -> Path:
    folder.mkdir(exist_ok=True)
    for name, array in ({"embeddings": EMBEDDINGS, "features": FEATURES, "subject_id": WHO} | changes).items():
        np.save(folder / f"{name}.npy", array)
    return folder


def in_memory() -> EmbeddingFile:
    rows = np.arange(240).astype(str)
    return EmbeddingFile(EMBEDDINGS.astype(np.float32), FEATURES.astype(np.float32), rows, WHO, "", "x")  # type: ignore[arg-type]


def small_blocks(monkeypatch: pytest.MonkeyPatch, size: int = 7) -> None:
    blocks = row_blocks.row_blocks
    for module in (training_samples, class_centres):
        monkeypatch.setattr(module, "row_blocks", lambda rows: blocks(rows, size))
    monkeypatch.setattr(training_samples, "BLOCK", size)


def test_heads_trained_from_disk_are_those_trained_in_memory(tmp_path: Path) -> None:
    settings = TrainingSettings(epochs=2, batch_size=16, held_out=0.1)
    mapped = load_embedding_folder(written(tmp_path / "samples"))
    assert isinstance(mapped.features.base, np.memmap) or isinstance(mapped.features, np.memmap)
    for trainer in (train_scf, train_pfe, train_scaleface):
        here, there = (trainer(file, settings=settings) for file in (in_memory(), mapped))
        assert here.history == there.history
        np.testing.assert_array_equal(here.predict(FEATURES), there.predict(FEATURES))


def test_blocks_change_no_cosine_and_no_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = TrainingSettings(held_out=0.1)
    whole = TrainingSamples.from_file(in_memory(), settings)
    cosines, identity, scale = whole.cosines(None), whole.identity(), whole.scale
    centres = whole.centres()
    to_centres = whole.cosines(centres)
    small_blocks(monkeypatch)
    np.testing.assert_array_equal(whole.cosines(None), cosines)
    np.testing.assert_array_equal(whole.cosines(centres), to_centres)
    np.testing.assert_array_equal(whole.centres().directions, centres.directions)
    np.testing.assert_array_equal(cosines, leave_one_out_cosines(whole.directions_at(np.arange(240)), WHO))
    assert whole.identity() == identity
    # Sums of blocks are rounded at other places than one sum: float32 holds 7 digits.
    np.testing.assert_allclose(whole.scale.mean, scale.mean, rtol=1e-6)
    np.testing.assert_allclose(whole.scale.deviation, scale.deviation, rtol=1e-5)


def test_the_deviation_of_features_far_from_zero_keeps_its_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    small_blocks(monkeypatch)
    features = (1e4 + RNG.normal(size=(500, 3))).astype(np.float32)
    exact = features.astype(np.float64).std(axis=0)
    np.testing.assert_allclose(FeatureScale.of(features, np.arange(500)).deviation, exact, rtol=1e-5)


def test_a_mean_over_blocks_weighs_every_row_alike() -> None:
    values = RNG.normal(size=23)
    found = mean_over(np.arange(23), lambda rows: float(values[rows].mean()), 5)
    assert found == pytest.approx(values.mean(), abs=1e-12)
    assert mean_over(np.arange(0), lambda rows: 1.0) is None


def test_a_folder_that_cannot_be_trained_on_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidFileError, match="no such folder"):
        load_embedding_folder(tmp_path / "nowhere")
    broken = EMBEDDINGS.copy()
    broken[17, 3] = np.nan
    for changes, error, complaint in (
        ({"embeddings": broken}, InvalidEmbeddingsError, "row 17"),
        ({"features": FEATURES[:100]}, InvalidFileError, "100 rows for 240"),
        ({"subject_id": np.zeros((240, 2), np.int64)}, InvalidFileError, "one whole number or name"),
        ({"features": FEATURES[:, 0]}, InvalidFileError, "must hold a matrix"),
    ):
        with pytest.raises(error, match=complaint):
            load_embedding_folder(written(tmp_path / "bad", **changes))
    folder = written(tmp_path / "bad")
    (folder / "features.npy").write_bytes((folder / "features.npy").read_bytes()[:-10])
    with pytest.raises(InvalidFileError, match="cannot be read"):
        load_embedding_folder(folder)
    (folder / "features.npy").unlink()
    with pytest.raises(InvalidFileError, match=r"embeddings.npy, features.npy and subject_id.npy"):
        load_embedding_folder(folder)


def test_a_training_that_is_cut_off_goes_on_from_disk_to_the_same_head(tmp_path: Path) -> None:
    mapped = load_embedding_folder(written(tmp_path / "samples"))
    settings = TrainingSettings(epochs=4, batch_size=16, held_out=0.1)
    whole = train_scf(mapped, settings=settings)

    class CutError(Exception):
        pass

    def cut(done: int, total: int, note: str = "") -> None:
        if done == 2:
            raise CutError

    with pytest.raises(CutError):
        train_scf(mapped, settings=settings, checkpoint_dir=tmp_path, progress=cut)
    resumed = train_scf(replace(mapped), settings=settings, checkpoint_dir=tmp_path)
    np.testing.assert_array_equal(resumed.predict(FEATURES), whole.predict(FEATURES))
