"""A binary gallery on disk is the same one, without those who left; changed files are refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from holue.errors import ArtifactError, CorruptArtifactError
from holue.evidence.binary.binary_file import load_binary, save_binary
from holue.evidence.binary.part import BinaryPart
from holue.evidence.binary.scan import BinaryGallery, scan_binary


def rows_of(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, 40))
    return (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def gallery() -> BinaryGallery:
    rows = rows_of(0, 3000)
    gone = np.zeros(2000, dtype=bool)
    gone[[0, 5, 1999]] = True
    first = replace(BinaryPart.of_rows(rows[:2000], np.arange(2000)), gone=gone, shared=0.01, mean_factor=1.2)
    second = replace(BinaryPart.of_rows(rows[2000:], np.arange(2000, 3000), planes=2), one_bit_share=0.25)
    return BinaryGallery((first, second))


def test_saved_and_loaded_it_answers_the_same_and_those_who_left_are_not_on_disk(
    gallery: BinaryGallery, tmp_path: Path
) -> None:
    loaded = load_binary(save_binary(gallery, tmp_path / "g"))
    assert len(loaded) == len(gallery) == 2997
    assert all(isinstance(part.exact, np.memmap) for part in loaded.parts)
    assert (loaded.parts[0].shared, loaded.parts[0].mean_factor, loaded.parts[0].gone) == (0.01, 1.2, None)
    assert [(part.planes, part.one_bit_share) for part in loaded.parts] == [(1, None), (2, 0.25)]
    assert not (np.isin(loaded.parts[0].numbers, [0, 5, 1999])).any()
    left = gallery.parts[0].exact[5].tobytes()
    assert not any(left in path.read_bytes() for path in (tmp_path / "g").iterdir())
    probes = rows_of(1, 8)
    seen, same = (scan_binary(probes, each, [20.0, 2.0], top_k=3) for each in (gallery, loaded))
    np.testing.assert_array_equal(seen.top_index, same.top_index)
    np.testing.assert_allclose(seen.log_mass, same.log_mass, atol=1e-5)
    with pytest.raises(ArtifactError, match="exists already"):
        save_binary(gallery, tmp_path / "g")


def test_changed_files_are_not_loaded(gallery: BinaryGallery, tmp_path: Path) -> None:
    saved = save_binary(gallery, tmp_path / "g")
    codes, exact = saved / "codes-0.npy", saved / "exact-0.npy"
    kept = codes.read_bytes()
    codes.write_bytes(kept[:-1] + b"\x07")
    with pytest.raises(CorruptArtifactError, match=r"codes-0\.npy has changed"):
        load_binary(saved)
    codes.write_bytes(kept)
    np.save(exact, np.load(exact)[::-1].copy())
    with pytest.raises(CorruptArtifactError, match="other than those the codes are of"):
        load_binary(saved)
    np.save(exact, np.load(exact)[1:].copy())
    with pytest.raises(CorruptArtifactError, match="exact rows are"):
        load_binary(saved)
