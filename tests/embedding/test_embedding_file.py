from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from holue.embedding.models.embedding_file import EmbeddingFile, joined, require_same_fingerprint
from holue.errors import InvalidEmbeddingsError, InvalidFileError, UnsafeArtifactError

FILE = EmbeddingFile(
    np.arange(1, 13, dtype=np.float32).reshape(4, 3),
    np.arange(8, dtype=np.float32).reshape(4, 2),
    np.array(["a/1", "a/2", "b/1", "é/1"]),
    np.array(["a", "a", "b", "é"]),
    "f" * 64,
    "tiny",
)


def test_what_is_saved_is_loaded(tmp_path: Path) -> None:
    FILE.save(tmp_path / "x.npz")
    loaded = EmbeddingFile.load(tmp_path / "x.npz")
    for name in ("embeddings", "features", "sample_id", "subject_id"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(FILE, name))
    assert (loaded.fingerprint, loaded.model, len(loaded)) == (FILE.fingerprint, FILE.model, 4)
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]


def test_rows_are_taken_together() -> None:
    part = FILE.take(FILE.subject_id == "a")
    assert list(part.sample_id) == ["a/1", "a/2"]
    assert part.features is not None
    assert part.features.shape == (2, 2)
    np.testing.assert_allclose(np.linalg.norm(part.directions, axis=1), 1, rtol=1e-6)  # float32


def test_files_of_one_model_may_be_mixed() -> None:
    require_same_fingerprint(FILE, FILE.take(np.array([0])))


def test_files_of_different_models_may_not() -> None:
    other = replace(FILE, fingerprint="0" * 64, model="huge")
    with pytest.raises(InvalidEmbeddingsError, match=r"different models.*tiny \(ffff.*huge \(0000"):
        require_same_fingerprint(FILE, other)


def test_an_unknown_model_must_be_allowed_and_must_have_the_dimension() -> None:
    foreign = replace(FILE, fingerprint="", model="")
    with pytest.raises(InvalidEmbeddingsError, match="no fingerprint"):
        require_same_fingerprint(FILE, foreign)
    require_same_fingerprint(FILE, foreign, allow_unknown=True)
    with pytest.raises(InvalidEmbeddingsError, match="of 3 and of 2 dimensions"):
        require_same_fingerprint(FILE, replace(foreign, embeddings=np.ones((4, 2))), allow_unknown=True)


def test_a_foreign_file_loads_without_a_fingerprint(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "x.npz",
        embeddings=FILE.embeddings.astype(np.float16),
        sample_id=FILE.sample_id,
        subject_id=np.array([1, 1, 2, 3]),
    )
    loaded = EmbeddingFile.load(tmp_path / "x.npz")
    assert (loaded.fingerprint, loaded.features, loaded.embeddings.dtype) == ("", None, np.float32)
    assert list(loaded.subject_id) == ["1", "1", "2", "3"]


def test_a_pickle_is_never_opened(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "x.npz",
        embeddings=FILE.embeddings,
        sample_id=np.array(["a", None] * 2),
        subject_id=FILE.subject_id,
    )
    with pytest.raises(UnsafeArtifactError, match=r"x.npz: key 'sample_id' holds pickled objects"):
        EmbeddingFile.load(tmp_path / "x.npz")


def test_a_broken_file_says_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with pytest.raises(InvalidFileError, match=r"x.npz: no such file"):
        EmbeddingFile.load(path)
    path.write_bytes(b"junk")
    with pytest.raises((InvalidFileError, UnsafeArtifactError), match=r"x.npz"):
        EmbeddingFile.load(path)
    np.savez(path, embeddings=FILE.embeddings, sample_id=FILE.sample_id)
    with pytest.raises(InvalidFileError, match="'subject_id' is missing; it holds embeddings, sample_id"):
        EmbeddingFile.load(path)
    np.savez(path, embeddings=FILE.embeddings, sample_id=FILE.sample_id, subject_id=["a"])
    with pytest.raises(InvalidFileError, match="subject_id has 1 rows for 4 embeddings"):
        EmbeddingFile.load(path)
    np.savez(path, embeddings=np.full((4, 3), np.nan), sample_id=FILE.sample_id, subject_id=FILE.subject_id)
    with pytest.raises(InvalidEmbeddingsError, match="NaN"):
        EmbeddingFile.load(path)


def test_joined_files_hold_all_samples_with_their_columns() -> None:
    first = replace(FILE, columns={"media_id": np.array(["m", "m", "n", "o"])}, skipped=("x",))
    other = first.take(np.array([2, 0]))
    both = joined([first, other])
    assert list(both.sample_id) == ["a/1", "a/2", "b/1", "é/1", "b/1", "a/1"]
    assert list(both.columns["media_id"]) == ["m", "m", "n", "o", "n", "m"]
    assert both.features is not None
    np.testing.assert_array_equal(both.features[4:], FILE.features[[2, 0]])
    assert joined([first, replace(other, features=None)]).features is None
