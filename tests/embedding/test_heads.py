from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

torch = pytest.importorskip("torch")

from holue.embedding.heads.networks import LogVarianceHead, PositiveHead  # noqa: E402
from holue.embedding.heads.pfe import partners, train_pfe  # noqa: E402
from holue.embedding.heads.scaleface import train_scaleface  # noqa: E402
from holue.embedding.heads.scf import train_scf  # noqa: E402
from holue.embedding.models.embedding_file import EmbeddingFile  # noqa: E402
from holue.embedding.training.class_centres import ClassCentres  # noqa: E402
from holue.embedding.training.train import TrainingSettings  # noqa: E402
from holue.embedding.training.training_samples import FeatureScale  # noqa: E402
from holue.errors import (  # noqa: E402
    CalibrationDataError,
    InvalidEmbeddingsError,
    InvalidParameterError,
    InvalidSubjectsError,
)
from holue.sphere.vmf import sample  # noqa: E402

DIM, SUBJECTS, EACH = 32, 60, 10
SETTINGS = TrainingSettings(epochs=12, batch_size=64, peak_learning_rate=3e-3, patience=12)


def world(concentration: bool = True) -> tuple[EmbeddingFile, np.ndarray]:
    """Samples around their subject's centre; the first feature is the logarithm of their concentration."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((SUBJECTS, DIM))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    subjects = np.repeat(np.arange(SUBJECTS), EACH)
    log_kappa = rng.uniform(np.log(15), np.log(300), len(subjects))
    embeddings = sample(centres[subjects], np.exp(log_kappa), rng)
    features = rng.standard_normal((len(subjects), 6))
    features[:, 0] = log_kappa
    names = np.array([f"subject {subject:02}" for subject in subjects])
    ids = np.arange(len(subjects)).astype(str)
    return EmbeddingFile(embeddings, features, ids, names, "f00d", "simulated"), np.exp(log_kappa)


FILE, KAPPA = world()


def test_scf_learns_the_concentration_from_the_features() -> None:
    head = train_scf(FILE, settings=SETTINGS)
    predicted = head.predict(FILE.features)
    assert spearmanr(predicted, KAPPA).statistic > 0.9
    # leave-one-out centres of nine samples are turned a little, so κ comes out lower, never higher by much
    assert 0.5 < np.median(predicted / KAPPA) < 1.1
    assert head.history.held_out_loss[head.history.best_epoch] < head.history.held_out_loss[0]


def test_scf_takes_given_centres() -> None:
    centres = ClassCentres.from_samples(FILE.embeddings, FILE.subject_id)
    alone = FILE.take(np.arange(0, len(FILE), EACH))
    head = train_scf(alone, centres=centres, settings=TrainingSettings(epochs=1))
    assert head.predict(alone.features).shape == (SUBJECTS,)


def test_pfe_learns_the_variance_from_the_features() -> None:
    variance = train_pfe(FILE, settings=SETTINGS).predict(FILE.features)
    assert variance.shape == (len(FILE), DIM)
    assert (variance > 0).all()
    harmonic = 1 / np.mean(1 / variance, axis=1)
    assert spearmanr(-harmonic, KAPPA).statistic > 0.9


def test_scaleface_learns_a_quality_from_the_features() -> None:
    scale = train_scaleface(FILE, settings=SETTINGS).predict(FILE.features)
    assert scale.shape == (len(FILE),)
    assert spearmanr(scale, KAPPA).statistic > 0.8


def test_training_a_head_twice_gives_the_same_head() -> None:
    settings = TrainingSettings(epochs=1, seed=5)
    for trainer in (train_scf, train_pfe, train_scaleface):
        first, second = (trainer(FILE, settings=settings).predict(FILE.features) for _ in range(2))
        np.testing.assert_array_equal(first, second)


def scale_of(features: np.ndarray) -> FeatureScale:
    return FeatureScale.of(features, np.arange(len(features)))


def test_a_positive_head_starts_where_it_is_told_and_stays_in_its_range() -> None:
    features = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float32)
    head = PositiveHead(scale_of(features), lower=1.0, upper=100.0, initial=30.0).eval()
    np.testing.assert_allclose(head(torch.from_numpy(features)).detach(), 30.0, rtol=1e-5)  # float32
    torch.nn.init.normal_(head.trunk.last.weight, std=100.0)
    values = head(torch.from_numpy(features)).detach()
    assert values.min() >= 1.0 - 1e-5
    assert values.max() <= 100.0 * (1 + 1e-5)


def test_a_feature_that_never_varies_does_no_harm() -> None:
    features = np.ones((20, 3), np.float32)
    head = LogVarianceHead(scale_of(features), initial=np.zeros(5)).eval()
    assert torch.isfinite(head(torch.from_numpy(features))).all()


def test_partners_are_other_samples_of_the_same_subject() -> None:
    subjects = np.array(["b", "a", "c", "a", "b", "a", "c"])
    for seed in range(20):
        partner = partners(subjects, np.random.default_rng(seed))
        assert (subjects[partner] == subjects).all()
        assert (partner != np.arange(7)).all()
        assert sorted(partner) == list(range(7))


def test_subjects_with_one_sample_are_left_out_and_counted() -> None:
    settings = TrainingSettings(epochs=1, held_out=0.4)
    paired = FILE.take(np.arange(5 * EACH))
    with_singles = FILE.take(np.r_[np.arange(5 * EACH), 6 * EACH, 8 * EACH])
    for trainer in (train_scf, train_pfe, train_scaleface):
        head = trainer(with_singles, settings=settings)
        assert {name: head.details[name] for name in ("samples", "subjects", "subjects_left_out")} == {
            "samples": 5 * EACH,
            "subjects": 5,
            "subjects_left_out": 2,
        }
        without = trainer(paired, settings=settings).predict(paired.features)
        np.testing.assert_array_equal(head.predict(paired.features), without)


def test_too_few_subjects_with_several_samples_are_refused() -> None:
    few = FILE.take(np.r_[np.arange(2 * EACH), np.arange(3, 9) * EACH])
    alone = FILE.take(np.arange(0, len(FILE), EACH))
    for trainer in (train_scf, train_pfe, train_scaleface):
        with pytest.raises(InvalidSubjectsError, match=r"of 2 subjects \(6 more have one sample and are left out\)"):
            trainer(few, settings=TrainingSettings(held_out=0.4))
        with pytest.raises(InvalidSubjectsError, match=r"each of the 60 subjects in subject_id has one sample"):
            trainer(alone, settings=TrainingSettings(held_out=0.0))


def test_what_cannot_be_trained_on_is_refused() -> None:
    bare = EmbeddingFile(FILE.embeddings, None, FILE.sample_id, FILE.subject_id, "", "bare")
    with pytest.raises(InvalidEmbeddingsError, match="bare carry no bottleneck features"):
        train_scf(bare)
    nameless = EmbeddingFile(FILE.embeddings, FILE.features, FILE.sample_id, np.full(len(FILE), ""), "", "x")
    with pytest.raises(InvalidSubjectsError, match="empty id"):
        train_pfe(nameless)
    with pytest.raises(InvalidParameterError, match="margin"):
        train_scaleface(FILE, margin=2.0)
    opposite = ClassCentres(
        np.unique(FILE.subject_id), -ClassCentres.from_samples(FILE.embeddings, FILE.subject_id).directions
    )
    with pytest.raises(CalibrationDataError, match="mean cosine"):
        train_scf(FILE, centres=opposite)
    with pytest.raises(InvalidEmbeddingsError, match="features"):
        train_scf(FILE, settings=TrainingSettings(epochs=1)).predict(np.ones((2, 3)))
