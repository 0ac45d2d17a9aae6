"""Sets hold the truth as often as they say, for the enrolled and for strangers, and are no larger than needed."""

import json
from pathlib import Path

import numpy as np
import pytest

from holue import UNKNOWN, OpenSetRecognizer
from holue.datasets.simulated import SimulatedWorld, simulate
from holue.errors import CalibrationDataError, InvalidParameterError, NotCalibratedError
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.reading import Reading
from holue.recognition.risk.candidate_sets import candidate_sets
from holue.recognition.risk.conformal import conformal_threshold, log_p_of_truth
from holue.recognition.search.gallery_search import GallerySearch


def drawn(seed: int, **options: object) -> SimulatedWorld:
    settings = {"n_subjects": 60, "n_strangers": 60, "dim": 32, "concentration": 60.0, "look_alike_pairs": 5, **options}
    return simulate(**settings, rng=np.random.default_rng(seed))  # type: ignore[arg-type]


def fitted(world: SimulatedWorld) -> OpenSetRecognizer:
    return OpenSetRecognizer("galue", threads=1).fit(world.gallery.X, world.gallery.y)


@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_the_truth_is_covered_for_the_enrolled_and_for_strangers(confidence: float) -> None:
    covered, sizes = {"mated": [], "stranger": []}, []  # type: ignore[var-annotated]
    worlds = 30
    for seed in range(worlds):
        world = drawn(seed, probes_per_person=6)
        turn = np.tile(np.arange(6), 120)
        X, y, person = world.probes.X, world.probes.y, world.probes.person
        recognizer = fitted(world).calibrate(X[turn < 2], person[turn < 2])
        recognizer.calibrate_sets(X[(turn >= 2) & (turn < 4)], person[(turn >= 2) & (turn < 4)])
        sets = recognizer.predict_set(X[turn >= 4], confidence)
        held, mated = sets.contain(y[turn >= 4]), y[turn >= 4] != UNKNOWN
        covered["mated"].append(held[mated].mean())
        covered["stranger"].append(held[~mated].mean())
        sizes.append(sets.size.mean())
    for kind, shares in covered.items():
        error = np.std(shares) / np.sqrt(worlds)
        # With 60 people to calibrate on, coverage may exceed its level by 1/61, and by the weight of one person's probes.
        assert confidence - 3 * error <= np.mean(shares) <= confidence + 2 / 61 + 3 * error, kind
    assert np.mean(sizes) < 6  # of 61 answers


def test_a_set_holds_exactly_the_answers_that_are_probable_enough(world: SimulatedWorld) -> None:
    recognizer = fitted(world).calibrate(world.probes.X, world.probes.y)
    X = world.probes.X[:80]
    log_p = np.log(recognizer.predict_proba(X))
    for lowest in (-2.0, -12.0, -60.0):  # the last needs more candidates than are read at first
        sets = candidate_sets(
            Embeddings.from_samples(X),
            GallerySearch.exact(recognizer.gallery_),
            recognizer.operating_point_,
            lowest,
            -1.0,
            0.9,
        )
        for row in range(len(X)):
            expected = set(recognizer.classes_[:-1][log_p[row, :-1] >= lowest].tolist())
            assert set(sets.subjects[row].tolist()) == expected
            assert sets.unknown[row] == (log_p[row, -1] >= -1.0)
            assert list(sets.probabilities[row]) == sorted(sets.probabilities[row], reverse=True)
    assert sets.size.max() > 16


def test_an_empty_set_says_that_it_is_and_why(world: SimulatedWorld) -> None:
    recognizer = fitted(world).calibrate(world.probes.X, world.probes.y)
    X = world.probes.X
    log_p = np.log(recognizer.predict_proba(X))
    probes = recognizer.examine(X).reading.probes
    sets = candidate_sets(
        probes, GallerySearch.exact(recognizer.gallery_), recognizer.operating_point_, -0.05, -0.05, 0.9
    )
    empty = (log_p < -0.05).all(axis=1)
    assert empty.any()
    assert not empty.all()
    np.testing.assert_array_equal(sets.empty, empty)
    assert [bool(reason) for reason in sets.reasons] == empty.tolist()
    plain = sets.to_dict()["sets"]
    assert [one["empty"] for one in plain] == empty.tolist()
    assert "take another sample" in plain[int(empty.argmax())]["reason"]
    assert f"{empty.mean():.1%} empty" in repr(sets)


def test_a_higher_level_gives_sets_that_contain_the_lower_ones(world: SimulatedWorld) -> None:
    recognizer = fitted(world).calibrate(world.probes.X, world.probes.person)
    small, large = (recognizer.predict_set(world.probes.X, level) for level in (0.6, 0.9))
    assert all(set(a.tolist()) <= set(b.tolist()) for a, b in zip(small, large))
    assert small.size.sum() < large.size.sum()


def test_the_threshold_is_the_finite_sample_quantile() -> None:
    scores = np.random.default_rng(0).normal(size=99)
    # ⌈100 · 0.9⌉ = 90 of the 99 scores must reach it: it is the 10th smallest.
    assert conformal_threshold(scores, np.arange(99), 0.9) == np.sort(scores)[9]
    # A subject's probes share one vote, however many they are.
    many = np.concatenate([scores, np.full(50, -9.0)])
    people = np.concatenate([np.arange(99), np.full(50, 99)])
    assert conformal_threshold(many, people, 0.9) >= np.sort(scores)[8]


def test_sets_can_be_indexed_written_saved_and_read(world: SimulatedWorld, tmp_path: Path) -> None:
    recognizer = fitted(world).calibrate(world.probes.X, world.probes.person)
    sets = recognizer.predict_set(world.probes.X, 0.9)
    both = int(np.flatnonzero(sets.unknown & (sets.size > 1))[0])
    assert sets[both][-1] is UNKNOWN
    assert len(sets[both]) == sets.size[both]
    assert f"{len(sets)} probes at 0.9" in repr(sets)
    plain = json.loads(json.dumps(sets.to_dict()))
    assert plain["sets"][both]["unknown"] is True
    recognizer.save(tmp_path / "saved")
    again = OpenSetRecognizer.load(tmp_path / "saved").predict_set(world.probes.X, 0.9)
    assert [s.tolist() for s in again] == [s.tolist() for s in sets]


def test_single_precision_gives_the_same_coverage(world: SimulatedWorld) -> None:
    single = OpenSetRecognizer("galue").fit(world.gallery.X.astype(np.float32), world.gallery.y)
    single.calibrate(world.probes.X.astype(np.float32), world.probes.y)
    double = fitted(world).calibrate(world.probes.X, world.probes.y)
    held = [
        r.predict_set(world.probes.X.astype(np.float32), 0.9).contain(world.probes.y).mean() for r in (single, double)
    ]
    assert held[0] == pytest.approx(held[1], abs=0.01)


def test_a_calibration_in_single_precision_can_be_saved_and_read(tmp_path: Path) -> None:
    # The probability of the truth is nearly 1 here; rounding must not take its logarithm above 0, which loading refuses.
    easy = simulate(n_subjects=40, n_strangers=40, dim=256, concentration=500, rng=np.random.default_rng(0))
    single = OpenSetRecognizer("galue").fit(easy.gallery.X.astype(np.float32), easy.gallery.y)
    single.calibrate(easy.probes.X.astype(np.float32), easy.probes.y)
    single.save(tmp_path / "saved")
    again = OpenSetRecognizer.load(tmp_path / "saved")
    assert np.array_equal(again.predict(easy.probes.X), single.predict(easy.probes.X))


def test_the_probability_of_the_truth_is_at_most_one_in_single_precision() -> None:
    # Scores of float32 are off by 1e-7, and a concentration of hundreds multiplies that: 1 + 6e-5 was saved and never read again.
    rng = np.random.default_rng(0)
    enrolled = rng.standard_normal((50, 128)).astype(np.float32)
    probes = Embeddings.from_samples(enrolled + 0.001 * rng.standard_normal(enrolled.shape).astype(np.float32))
    point = OperatingPoint.solve(dim=128, n_subjects=50, threshold=0.7)
    reading = Reading.of(probes, Gallery.from_samples(enrolled, np.arange(50)), point, temperature=1.0)
    assert log_p_of_truth(reading, np.arange(50)).max() <= 0


def test_what_cannot_be_covered_is_refused(world: SimulatedWorld) -> None:
    recognizer = fitted(world)
    with pytest.raises(NotCalibratedError):
        recognizer.predict_set(world.probes.X)
    recognizer.calibrate(world.probes.X, world.probes.person)
    with pytest.raises(CalibrationDataError, match=r"40 enrolled subjects .* too few .* bring at least 99"):
        recognizer.predict_set(world.probes.X, 0.99)
    for level in (0.0, 1.0, 2):
        with pytest.raises(InvalidParameterError, match="confidence_level must lie strictly"):
            recognizer.predict_set(world.probes.X, level)
