from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from holue.embedding.training.images.training_images import TrainingImages
from holue.errors import InvalidSubjectsError

PIXELS = np.random.default_rng(0).integers(0, 256, (3, 8, 8, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path: Path, png: Callable[[np.ndarray], bytes]) -> Path:
    for name, pixels in zip(("ann/1.png", "ann/2.png", "bob/1.png"), PIXELS, strict=True):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(png(pixels))
    return tmp_path


def test_folders_name_the_subjects_and_pixels_stay_as_they_are(folder: Path) -> None:
    data = TrainingImages.read([folder], size=8)
    np.testing.assert_array_equal(data.images, PIXELS)
    assert list(data.subject_id) == ["ann", "ann", "bob"]


def test_images_are_made_one_size_and_grey_where_wanted(folder: Path) -> None:
    assert TrainingImages.read([folder], size=5, colour="grey").images.shape == (3, 5, 5)


def test_labels_name_the_subjects_and_choose_the_images(folder: Path) -> None:
    data = TrainingImages.read([folder], size=8, labels={"ann/2.png": "x", "bob/1.png": "y", "gone.png": "z"})
    assert list(data.sample_id) == ["ann/2.png", "bob/1.png"]
    assert list(data.subject_id) == ["x", "y"]


def test_an_image_without_a_subject_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidSubjectsError, match="a folder of its own"):
        TrainingImages.read([folder / "ann"], size=8)
    with pytest.raises(InvalidSubjectsError, match="labels"):
        TrainingImages.read([folder], size=8, labels={})
