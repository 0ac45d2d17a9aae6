import numpy as np
import pytest

from holue.errors import CalibrationDataError, InvalidParameterError
from holue.recognition.model.stranger_tail import StrangerTail
from holue.recognition.model.strangers import Strangers
from holue.recognition.recognizer import OpenSetRecognizer


def test_the_threshold_follows_the_best_of_ever_more_normals():
    rng = np.random.default_rng(0)
    tail = StrangerTail.of(0.02 + 0.07 * rng.normal(size=(3000, 100)).max(axis=1), n_subjects=100, target_fpir=0.05)
    for n_subjects in (100, 400, 1600):
        strangers = 0.02 + 0.07 * np.concatenate([rng.normal(size=(500, n_subjects)).max(axis=1) for _ in range(4)])
        accepted = (strangers >= tail.threshold(n_subjects, 0.05)).mean()
        # 2000 strangers (0.005), and the upper quarter of 3000 extrapolated by a factor of 16.
        assert accepted == pytest.approx(0.05, abs=0.025)


def test_what_lies_far_below_the_threshold_does_not_matter():
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(2000, 100)).max(axis=1) / 15
    tail = StrangerTail.of(scores, n_subjects=100, target_fpir=0.05)
    low = scores < np.median(scores)
    crowded = np.where(low, scores - 0.3 * rng.random(2000), scores)
    assert StrangerTail.of(crowded, n_subjects=100, target_fpir=0.05).deviation == pytest.approx(
        tail.deviation, rel=1e-3
    )
    assert tail.deviation == pytest.approx(
        1 / 15, rel=0.15
    )  # 500 scores: twice the standard error of a spread, and of K


def test_threshold_and_fpir_undo_each_other():
    tail = StrangerTail(0.0, 0.07)
    for n_subjects in (1, 1000, 10**9):
        assert tail.fpir(n_subjects, tail.threshold(n_subjects, 0.01)) == pytest.approx(0.01, rel=1e-9)


def test_people_can_count_alike():
    scores = np.array([0.9] * 30 + list(np.linspace(0, 0.5, 40)))
    people = Strangers.of(scores, np.array([0] * 30 + list(range(1, 41))), people_count_alike=True)
    alike = StrangerTail.of(people, n_subjects=10, target_fpir=0.1)
    assert alike.threshold(10, 0.1) == pytest.approx(0.5, abs=0.05)
    assert StrangerTail.of(scores, n_subjects=10, target_fpir=0.1).threshold(10, 0.1) == pytest.approx(0.9)


def test_too_few_or_equal_strangers_are_refused():
    with pytest.raises(CalibrationDataError, match="finer than"):
        StrangerTail.of(np.arange(5.0), n_subjects=10, target_fpir=0.01)
    with pytest.raises(CalibrationDataError, match="all alike"):
        StrangerTail.of(np.ones(100), n_subjects=10, target_fpir=0.1)
    with pytest.raises(InvalidParameterError):
        StrangerTail.of(np.arange(50.0), n_subjects=0, target_fpir=0.1)


@pytest.mark.parametrize("target", [0.3, 0.5, 0.9, 0.99])
def test_generous_targets_have_a_tail_too(target: float) -> None:
    scores = np.random.default_rng(5).normal(size=(500, 20)).max(axis=1) / 20
    tail = StrangerTail.of(scores, n_subjects=20, target_fpir=target)
    assert tail.fpir(20, tail.threshold(20, target)) == pytest.approx(target)
    assert tail.threshold(200, target) > tail.threshold(20, target)


@pytest.mark.data
def test_on_real_faces_the_recogniser_holds_its_fpir_while_the_gallery_grows(real_faces) -> None:
    X, y = real_faces
    people, first = np.unique(y, return_index=True)
    second = np.setdiff1d(np.arange(len(y)), first)
    order = np.random.default_rng(0).permutation(len(people))
    strangers, measuring, enrolled = np.split(order, [1000, 2000])
    calibrating = np.concatenate([first[strangers], second[np.isin(y[second], people[enrolled[:100]])]])
    fpir = {}
    for hold in ("model", "fpir"):
        recognizer = OpenSetRecognizer("galue", hold=hold, threads=1)  # type: ignore[arg-type]
        recognizer.fit(X[first[enrolled[:100]]], people[enrolled[:100]]).calibrate(X[calibrating], y[calibrating])
        recognizer.enroll(X[first[enrolled[100:]]], people[enrolled[100:]])
        fpir[hold] = float(np.mean(recognizer.decision_function(X[first[measuring]]) >= 0))
    assert fpir["model"] > 0.5, "37 times as many to be mistaken for"
    # 50 of 1000 strangers set the threshold, 50 of 1000 measure it; a deviation of 0.01, and the tail's error.
    assert fpir["fpir"] == pytest.approx(0.05, abs=0.045)
