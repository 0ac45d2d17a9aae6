"""A saved index comes back for the same gallery, and for no other."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from holue.artifact import read_artifact, write_artifact
from holue.errors import CorruptArtifactError
from holue.evidence.ivf.index import ApproximateIndex
from holue.recognition.saved.index_file import KIND, load_index, save_index


@pytest.fixture(scope="module")
def gallery() -> np.ndarray:
    x = np.random.default_rng(0).standard_normal((10_000, 16), dtype=np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def saved(gallery: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> tuple[ApproximateIndex, Path]:
    index = ApproximateIndex.build(gallery, n_lists=64, n_probe=8, n_sample=256, seed=1)
    directory = tmp_path_factory.mktemp("saved") / "index"
    save_index(index, directory)
    return index, directory


def test_a_loaded_index_gives_the_same_evidence(saved: tuple[ApproximateIndex, Path], gallery: np.ndarray):
    index, directory = saved
    loaded = load_index(directory, gallery)
    first, second = (each.scan(gallery[:20], [60.0, 3.0]) for each in (index, loaded))
    np.testing.assert_array_equal(first.top_index, second.top_index)
    np.testing.assert_array_equal(first.log_mass, second.log_mass)
    np.testing.assert_array_equal(first.precision.log_mass_error, second.precision.log_mass_error)


def test_subjects_enrolled_since_are_read_too(saved: tuple[ApproximateIndex, Path], gallery: np.ndarray):
    grown = np.concatenate([gallery, -gallery[:3]])
    loaded = load_index(saved[1], grown)
    assert len(loaded) == 10_003
    assert loaded.scan(-gallery[:1], [60.0]).top_index[0, 0] == 10_000


def test_the_index_of_another_gallery_is_refused(saved: tuple[ApproximateIndex, Path], gallery: np.ndarray):
    with pytest.raises(CorruptArtifactError, match="build the index again"):
        load_index(saved[1], gallery[::-1])
    with pytest.raises(CorruptArtifactError, match="build the index again"):
        load_index(saved[1], gallery[:9000])


def test_no_row_of_the_gallery_is_written(saved: tuple[ApproximateIndex, Path]):
    kinds = {path.name: np.load(path, allow_pickle=False).dtype.kind for path in saved[1].glob("*.npy")}
    assert all(name.startswith(("misfit", "mates")) for name, kind in kinds.items() if kind == "f")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("rows", lambda x: np.zeros_like(x)),
        ("rows", lambda x: x.astype(float)),
        ("starts", lambda x: x[::-1]),
        ("starts", lambda x: x[1:]),
        ("sample", lambda x: x + 10_000),
        ("sample", lambda x: -x),
        ("sample", lambda x: x[:1]),
        ("misfit", lambda x: x * np.nan),
        ("misfit", lambda x: x[1:]),
        ("misfit_sharpness", lambda x: -x),
        ("misfit_large_sharpness", lambda x: x * np.inf),
        ("misfit_shifts", lambda x: x[:, 1:]),
        ("n_probe", 0),
        ("n_probe", 10_000),
        ("n_probe", True),
    ],
)
def test_an_index_whose_values_break_a_rule_is_refused(
    saved: tuple[ApproximateIndex, Path], gallery: np.ndarray, tmp_path: Path, name: str, change: Callable | int
):
    content, arrays = read_artifact(saved[1], KIND)
    if callable(change):
        arrays[name] = change(arrays[name])
    else:
        content[name] = change
    write_artifact(tmp_path / "index", KIND, content, arrays)
    with pytest.raises(CorruptArtifactError):
        load_index(tmp_path / "index", gallery)
