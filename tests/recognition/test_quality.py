"""Each score against its formula, on a reading written out densely."""

from itertools import product

import numpy as np
import pytest

from holue import UNKNOWN, OpenSetRecognizer
from holue.datasets.simulated import SimulatedWorld
from holue.errors import InvalidConcentrationError, InvalidInputError, NotCalibratedError
from holue.functional import holistic_terms, posterior
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.quality import SCORES
from holue.recognition.quality.f1_gain import f1_gain
from holue.recognition.quality.sample import pfe_quality, scaleface_quality
from holue.recognition.reading import Reading


@pytest.fixture(scope="module")
def reading(world: SimulatedWorld) -> Reading:
    gallery = Gallery.from_samples(world.gallery.X, world.gallery.y)
    point = OperatingPoint.solve(dim=64, n_subjects=40, threshold=0.45)
    probes = Embeddings.from_samples(world.probes.X, world.probes.concentration)
    return Reading.of(probes, gallery, point, temperature=20.0)


def dense(reading: Reading) -> tuple[np.ndarray, np.ndarray]:
    point = reading.point
    return posterior(
        reading.probes.directions, reading.search.gallery.directions, point.concentration, point.unknown_prior
    )


def as_decided(reading: Reading) -> np.ndarray:
    """The truth with which every decision is right."""
    return np.where(reading.accepted, reading.evidence.top_index[:, 0], -1)


def test_acceptance_is_the_distance_to_the_threshold(reading: Reading) -> None:
    scores = reading.probes.directions @ reading.search.gallery.directions.T
    np.testing.assert_allclose(SCORES["acceptance"]()(reading), np.abs(scores.max(1) - 0.45))


def test_galue_is_the_greatest_probability_and_its_entropy_the_entropy(reading: Reading) -> None:
    log_p, log_p0 = dense(reading)
    every = np.column_stack([log_p, log_p0])
    np.testing.assert_allclose(SCORES["galue"]()(reading), np.exp(every.max(1)), rtol=1e-10)
    np.testing.assert_allclose(SCORES["galue-entropy"]()(reading), (np.exp(every) * every).sum(1), atol=1e-10)


def test_sample_quality_is_the_concentration(reading: Reading, world: SimulatedWorld) -> None:
    np.testing.assert_array_equal(SCORES["quality"]()(reading), world.probes.concentration)


def test_holue_sum_adds_the_z_scores_of_both_terms(reading: Reading) -> None:
    score = SCORES["holue-sum"]()
    with pytest.raises(NotCalibratedError):
        score(reading)
    score.fit(reading, as_decided(reading), np.random.default_rng(0))
    point = reading.point
    terms = holistic_terms(
        reading.probes.directions,
        reading.probes.concentrations,
        reading.search.gallery.directions,
        point.concentration,
        point.unknown_prior,
        20.0,
    )
    expected = sum((kl - kl.mean()) / kl.std() for kl in terms)
    np.testing.assert_allclose(score(reading), expected, atol=1e-9)


def test_the_closed_form_forgets_the_gallery_as_the_probe_blurs(reading: Reading) -> None:
    score = SCORES["holue-closed"]()
    blurred = Reading(
        Embeddings(reading.probes.directions, np.full(len(reading), 1e-3)),
        reading.search,
        reading.point,
        reading.temperature,
        reading.evidence,
    )
    np.testing.assert_allclose(score(blurred), 0.5, atol=1e-3)  # the prior of unknown


def test_a_term_that_does_not_vary_adds_nothing(reading: Reading) -> None:
    from holue.recognition.quality.heads.standardizer import Standardizer

    standardizer = Standardizer()
    standardizer.fit(np.column_stack([np.arange(5.0), np.full(5, 0.1)]))
    assert (standardizer(np.column_stack([np.arange(5.0), np.full(5, 0.1)]))[:, 1] == 0).all()


@pytest.mark.parametrize("method", [name for name, score in SCORES.items() if score.needs_concentration])
def test_scores_that_read_the_sample_refuse_probes_without_concentration(method: str, reading: Reading) -> None:
    bare = Reading(
        Embeddings(reading.probes.directions), reading.search, reading.point, reading.temperature, reading.evidence
    )
    with pytest.raises(InvalidConcentrationError, match="concentration"):
        SCORES[method]()(bare)


def test_names_are_unique_and_every_class_is_documented() -> None:
    assert len({score.name for score in SCORES.values()}) == len(SCORES)
    assert all(score.__doc__ for score in SCORES.values())


def test_pfe_quality_is_minus_the_harmonic_mean_and_bad_input_is_named() -> None:
    np.testing.assert_allclose(pfe_quality([[1.0, 2.0, 4.0]]), [-3 / (1 + 0.5 + 0.25)])
    with pytest.raises(InvalidInputError, match="variance must be positive"):
        pfe_quality([[1.0, 0.0]])
    with pytest.raises(InvalidInputError, match="scale must be finite; entry 1"):
        scaleface_quality([1.0, np.nan])


def test_the_answers_with_a_gain_are_the_set_with_the_highest_f1() -> None:
    rng = np.random.default_rng(3)
    p, accepted = rng.random(9), np.array([True] * 5 + [False] * 4)

    def expected_f1(kept: np.ndarray) -> float:
        hits, errors = p[kept & accepted].sum(), (1 - p)[kept].sum()
        return float(2 * hits / (2 * hits + errors)) if hits else 0.0

    # Among the sets that keep the least certain acceptance; without such a condition one sure answer alone would be best.
    must = np.zeros(9, dtype=bool)
    must[p[:5].argmin()] = True
    sets = [np.array(one) | must for one in product([False, True], repeat=9)]
    best = max(sets, key=expected_f1)
    np.testing.assert_array_equal(best, must | (f1_gain(p, accepted, expected_f1(best)) > 0))


def test_holue_f1_keeps_p_correct_within_a_decision_and_survives_saving(reading: Reading) -> None:
    rng = np.random.default_rng(0)
    correct = rng.random(len(reading)) < np.clip(np.abs(reading.best_score - 0.45) * 8, 0.1, 0.95)
    best = reading.evidence.top_index[:, 0]
    truth = np.where(reading.accepted == correct, best, -1)
    plus, gain = SCORES["holue-plus"](), SCORES["holue-f1"]()
    for score in (plus, gain):
        score.fit(reading, truth, rng)
    for rows in (reading.accepted, ~reading.accepted):
        order = np.argsort(plus(reading)[rows], kind="stable")
        assert (np.diff(gain(reading)[rows][order]) >= 0).all()
    again = SCORES["holue-f1"]()
    again.restore(gain.state())
    np.testing.assert_array_equal(again(reading), gain(reading))


def test_names_keep_their_worth_where_hardly_an_answer_was_wrong(reading: Reading) -> None:
    score = SCORES["holue-f1"]()
    score.fit(reading, as_decided(reading), np.random.default_rng(0))
    assert 0.9 < score.level < 1
    p = np.full(2, 0.9)
    name, rejection = f1_gain(p, np.array([True, False]), score.level)
    assert name > rejection


def test_the_level_of_f1_never_falls_below_what_unfiltered_answers_reach() -> None:
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(20, 32))
    mated = np.repeat(gallery, 15, axis=0) + 0.01 * rng.normal(size=(300, 32))
    X = np.concatenate([mated, rng.normal(size=(1000, 32))])
    y = np.array([*np.repeat(np.arange(20), 15).tolist(), *[UNKNOWN] * 1000], dtype=object)
    recognizer = OpenSetRecognizer("holue-f1", target_fpir=0.02).fit(gallery, np.arange(20))
    recognizer.calibrate(X, y, np.full(1300, 100.0))
    assert 0.96 < recognizer.quality_.level < 1
