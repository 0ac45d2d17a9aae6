import numpy as np
import pytest

from holue.errors import CalibrationDataError, InvalidParameterError
from holue.recognition.stranger_tail import StrangerTail


def test_the_threshold_follows_the_best_of_ever_more_normals():
    rng = np.random.default_rng(0)
    tail = StrangerTail.of(0.02 + 0.07 * rng.normal(size=(3000, 100)).max(axis=1), n_subjects=100, target_fpir=0.05)
    for n_subjects in (100, 400, 1600):
        strangers = 0.02 + 0.07 * np.concatenate([rng.normal(size=(500, n_subjects)).max(axis=1) for _ in range(4)])
        accepted = (strangers >= tail.threshold(n_subjects, 0.05)).mean()
        # 2000 strangers (0.005), and two quantiles of 3000 extrapolated by a factor of 16.
        assert accepted == pytest.approx(0.05, abs=0.025)


def test_threshold_and_fpir_undo_each_other():
    tail = StrangerTail(0.0, 0.07)
    for n_subjects in (1, 1000, 10**9):
        assert tail.fpir(n_subjects, tail.threshold(n_subjects, 0.01)) == pytest.approx(0.01, rel=1e-9)


def test_people_can_count_alike():
    scores = np.array([0.9] * 30 + list(np.linspace(0, 0.5, 40)))
    weight = np.array([1 / 30] * 30 + [1.0] * 40)
    alike = StrangerTail.of(scores, n_subjects=10, target_fpir=0.1, weight=weight)
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
