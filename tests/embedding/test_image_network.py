from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from holue.embedding.models.embedding_file import EmbeddingFile  # noqa: E402
from holue.embedding.training.arcface import Margin, nearest_centre_loss, train_arcface_head  # noqa: E402
from holue.embedding.training.class_centres import ClassCentres  # noqa: E402
from holue.embedding.training.images.augmentation import Augmentation  # noqa: E402
from holue.embedding.training.images.image_network import train_arcface_network  # noqa: E402
from holue.embedding.training.train import TrainingSettings  # noqa: E402
from holue.errors import InvalidInputError, InvalidParameterError, InvalidSubjectsError  # noqa: E402


def blobs(subjects: int, each: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Grey images 16×16: one coarse pattern per subject, each time in other noise and brightness."""
    rng = np.random.default_rng(seed)
    coarse = rng.uniform(60, 200, (subjects, 4, 4))
    pattern = np.kron(coarse, np.ones((4, 4)))
    names = np.repeat(np.arange(subjects), each)
    noisy = pattern[names] * rng.uniform(0.8, 1.2, (len(names), 1, 1)) + 20 * rng.standard_normal((len(names), 16, 16))
    return noisy.clip(0, 255).astype(np.uint8), names


def rank_1(gallery: np.ndarray, gallery_names: np.ndarray, probes: np.ndarray, names: np.ndarray) -> float:
    centres = ClassCentres.from_samples(gallery, gallery_names)
    best = (probes @ centres.directions.T).argmax(axis=1)
    return float(np.mean(centres.subjects[best] == names))


def test_a_network_recognises_subjects_it_never_saw() -> None:
    images, names = blobs(40, 8, seed=0)
    network = train_arcface_network(
        images,
        names,
        first_channels=8,
        dim=32,
        margin=Margin(0.2, 16.0),
        augmentation=Augmentation(rotation=0, zoom=0, erase=0),
        settings=TrainingSettings(epochs=10, batch_size=32, peak_learning_rate=1e-2, held_out=0.1),
    )
    others, other_names = blobs(30, 4, seed=1)
    embeddings, features = network.predict(others)
    assert (embeddings.shape, features.shape) == ((120, 32), (120, 64))
    first = np.arange(len(others)) % 4 == 0
    # 0.03 by chance
    assert rank_1(embeddings[first], other_names[first], embeddings[~first], other_names[~first]) > 0.7
    assert network.history.training_loss[-1] < network.history.training_loss[0]


def test_a_projection_head_brings_out_what_features_hide() -> None:
    rng = np.random.default_rng(2)
    subjects = np.repeat(np.arange(30), 8)
    signal = rng.standard_normal((30, 6))[subjects]
    features = np.concatenate(
        [signal + 0.3 * rng.standard_normal(signal.shape), 3 * rng.standard_normal((240, 20))], axis=1
    )
    file = EmbeddingFile(features[:, ::-1], features, np.arange(240).astype(str), subjects.astype(str), "f", "base")
    settings = TrainingSettings(epochs=40, batch_size=32, peak_learning_rate=1e-2, held_out=0.2)
    head = train_arcface_head(file, dim=8, margin=Margin(0.2, 16.0), settings=settings)
    new = head.predict(features)
    first = np.arange(240) % 8 == 0
    seen = [rank_1(x[first], subjects[first], x[~first], subjects[~first]) for x in (features, new)]
    assert seen[1] > seen[0] + 0.15


def test_telling_centres_apart_is_certain_far_from_each_other_and_a_guess_when_equal() -> None:
    subjects = np.repeat(np.arange(4), 3)
    apart = np.eye(4)[subjects] + 1e-3 * np.random.default_rng(0).standard_normal((12, 4))
    # own logit 16, three others 0
    assert nearest_centre_loss(apart.astype(np.float32), subjects) == pytest.approx(3 * np.exp(-16), rel=0.1)
    same = np.ones((12, 4), np.float32)
    assert nearest_centre_loss(same, subjects) == pytest.approx(np.log(4), rel=1e-6)
    assert np.isnan(nearest_centre_loss(np.full((12, 4), np.nan, np.float32), subjects))
    with pytest.raises(InvalidSubjectsError, match="held_out=0"):
        nearest_centre_loss(apart[:4].astype(np.float32), np.arange(4))


@pytest.mark.parametrize("wrong", [np.zeros((4, 8, 8)), np.zeros((4, 8), np.uint8), np.zeros((4, 8, 8, 2), np.uint8)])
def test_arrays_that_are_no_images_are_refused(wrong: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="must be bytes"):
        train_arcface_network(wrong, np.arange(4))


def test_one_subject_cannot_be_told_apart(tmp_path: Path) -> None:
    with pytest.raises(InvalidSubjectsError, match="1 is too few"):
        train_arcface_network(np.zeros((4, 8, 8), np.uint8), ["a"] * 4, settings=TrainingSettings(held_out=0.0))
    with pytest.raises(InvalidParameterError, match="scale"):
        Margin(scale=0.0)


def test_a_network_refuses_images_of_another_size() -> None:
    images, names = blobs(4, 2, seed=0)
    settings = TrainingSettings(epochs=1, batch_size=4, held_out=0.0)
    network = train_arcface_network(images, names, first_channels=2, dim=4, settings=settings)
    with pytest.raises(InvalidInputError, match=r"\(1, 16, 16\) as in training, got \(1, 8, 8\)"):
        network.predict(images[:, :8, :8])


def test_no_augmentation_changes_nothing() -> None:
    images = torch.from_numpy(np.random.default_rng(4).uniform(-1, 1, (3, 2, 8, 6)).astype(np.float32))
    none = Augmentation(flip=False, rotation=0, zoom=0, shift=0, brightness=0, contrast=0, erase=0)
    changed = none.apply(images, np.random.default_rng(0))
    np.testing.assert_allclose(changed, images, atol=1e-5)  # bilinear weights in float32


def test_augmentation_is_seeded_and_stays_in_range() -> None:
    images = torch.from_numpy(np.random.default_rng(4).uniform(-1, 1, (5, 3, 16, 16)).astype(np.float32))
    first, second = (Augmentation(flip=True).apply(images, np.random.default_rng(1)) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.abs().max() <= 1
    assert not torch.equal(first, Augmentation(flip=True).apply(images, np.random.default_rng(2)))


def test_a_flip_mirrors_left_and_right() -> None:
    images = torch.from_numpy(np.random.default_rng(4).uniform(-1, 1, (64, 1, 8, 8)).astype(np.float32))
    only_flip = Augmentation(flip=True, rotation=0, zoom=0, shift=0, brightness=0, contrast=0, erase=0)
    changed = only_flip.apply(images, np.random.default_rng(0))
    # atol: bilinear weights in float32
    as_is = np.isclose(changed, images, atol=1e-5).all(axis=(1, 2, 3))
    mirrored = np.isclose(changed, images.flip(3), atol=1e-5).all(axis=(1, 2, 3))
    assert (as_is ^ mirrored).all()
    assert 10 < mirrored.sum() < 54


@pytest.mark.parametrize(("field", "value"), [("zoom", 1.0), ("erase", -0.1), ("rotation", 200.0)])
def test_augmentation_outside_its_range_is_named(field: str, value: float) -> None:
    with pytest.raises(InvalidParameterError, match=field):
        Augmentation(**{field: value})
