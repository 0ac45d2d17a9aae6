from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holue.embedding.heads.norm_concentration import NormConcentration
from holue.embedding.models.embedding_file import EmbeddingFile
from holue.embedding.training.class_centres import ClassCentres
from holue.errors import CalibrationDataError, InvalidEmbeddingsError, InvalidFileError, InvalidSubjectsError
from holue.sphere.vmf import sample

DIM, SUBJECTS, EACH = 64, 100, 40


def simulated(intercept: float, slope: float) -> tuple[np.ndarray, np.ndarray, ClassCentres]:
    rng = np.random.default_rng(3)
    centres = rng.standard_normal((SUBJECTS, DIM))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    subjects = np.repeat(np.arange(SUBJECTS), EACH)
    norms = np.exp(rng.normal(3.0, 0.3, len(subjects)))
    directions = sample(centres[subjects], np.exp(intercept + slope * np.log(norms)), rng)
    return norms[:, None] * directions, subjects, ClassCentres(np.arange(SUBJECTS), centres)


@pytest.mark.parametrize(("intercept", "slope"), [(-1.0, 2.0), (10.0, -2.0), (4.5, 0.0)])
def test_the_law_behind_simulated_samples_is_recovered_with_its_sign(intercept: float, slope: float) -> None:
    embeddings, subjects, centres = simulated(intercept, slope)
    law = NormConcentration.fit(embeddings, subjects, centres=centres)
    # 4000 samples: ln κ of one sample has a deviation of about √(2/(d−1)) = 0.18, the slope's is 0.18/(0.3 √4000)
    error = 0.18 / (0.3 * np.sqrt(len(subjects)))
    assert law.slope == pytest.approx(slope, abs=4 * error)
    assert law.intercept + 3 * law.slope == pytest.approx(intercept + 3 * slope, abs=4 * 0.3 * error)


def test_leave_one_out_centres_recover_the_slope() -> None:
    embeddings, subjects, _ = simulated(-1.0, 2.0)
    law = NormConcentration.fit(embeddings, subjects)
    # A centre of 39 samples with expected cosine 0.6 is itself turned: κ comes out lower, by up to 15 % here.
    assert law.slope == pytest.approx(2.0, abs=0.15)
    assert law.intercept + 3 * law.slope == pytest.approx(5.0, abs=0.15)
    assert law.intercept + 3 * law.slope < 5.0


def test_equal_norms_leave_one_concentration_for_all() -> None:
    embeddings, subjects, _ = simulated(4.0, 0.0)
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    law = NormConcentration.fit(unit, subjects)
    assert np.ptp(law.transform(unit)) < 1e-6 * law.transform(unit).mean()  # norms equal to rounding


def test_concentrations_stay_positive_and_finite_at_any_norm() -> None:
    law = NormConcentration(0.0, 20.0, 4)
    kappa = law.transform([[1e-30] * 4, [1e30] * 4])
    assert np.isfinite(kappa).all()
    assert (kappa > 0).all()


def test_json_brings_it_back() -> None:
    law = NormConcentration(-1.25, 2.5, 512)
    assert NormConcentration.from_json(law.to_json()) == law
    for broken in ("", "{}", '{"intercept": 1, "slope": "x", "dim": 2}', '{"intercept": NaN, "slope": 1, "dim": 2}'):
        with pytest.raises(InvalidFileError, match="intercept"):
            NormConcentration.from_json(broken)


def test_data_that_cannot_settle_it_is_refused() -> None:
    rng = np.random.default_rng(0)
    directions = rng.standard_normal((6, 8))
    with pytest.raises(CalibrationDataError, match="mean cosine of samples"):
        NormConcentration.fit(np.concatenate([directions, -directions]), np.tile(np.arange(6), 2))
    with pytest.raises(CalibrationDataError, match="not copies"):
        NormConcentration.fit(np.concatenate([directions, directions]), np.tile(np.arange(6), 2))
    with pytest.raises(InvalidSubjectsError, match="one sample"):
        NormConcentration.fit(directions, np.arange(6))
    with pytest.raises(InvalidEmbeddingsError, match="3 dimensions"):
        NormConcentration(0.0, 1.0, 4).transform([[1.0, 2.0, 3.0]])
    with pytest.raises(InvalidEmbeddingsError, match="zero vector in row 1"):
        NormConcentration(0.0, 1.0, 2).transform([[1.0, 2.0], [0.0, 0.0]])


@pytest.mark.data
def test_longer_embeddings_of_real_faces_are_surer(real_data: Path) -> None:
    file = EmbeddingFile.load(real_data / "lfw" / "arcface_mbf.npz")
    _, code, counts = np.unique(file.subject_id, return_inverse=True, return_counts=True)
    several = file.take((counts[code] >= 4) & (counts[code] <= 10))
    law = NormConcentration.fit(several.embeddings, several.subject_id)
    assert 2 < law.slope < 3.5
