"""Answers while the gallery changes: each call answers from one version, and no change is lost."""

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from functools import cached_property
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from holue import OpenSetRecognizer
from holue.datasets.simulated import SimulatedWorld
from holue.errors import InvalidSubjectsError, NotCalibratedError, NotFittedYetError
from holue.recognition.risk.controller import RiskController
from holue.recognition.risk.expected_risk import ExpectedRiskController
from holue.recognition.state.state import State
from holue.recognition.state.state_cell import StateCell


class InterruptedCell(StateCell):
    """A cell on which another thread acts right after the n-th time that the state is looked at."""

    interruption: tuple[int, Callable[[], object]] | None = None

    @property
    def state(self) -> State:
        now = super().state
        planned = self.interruption
        if planned is not None:
            left, act = planned
            self.interruption = None if left == 1 else (left - 1, act)
            if left == 1:
                act()
        return now


class Interrupted(OpenSetRecognizer):
    """A recogniser that can be interrupted."""

    _cell = cached_property(lambda self: InterruptedCell())  # type: ignore[assignment]

    def interrupt(self, at: int, act: Callable[[OpenSetRecognizer], object]) -> None:
        self._cell.interruption = (at, lambda: act(self))

    @property
    def was_interrupted(self) -> bool:
        return self._cell.interruption is None


class Acting:
    """Probes or samples that act when they are read, as another thread could."""

    def __init__(self, X: object, act: Callable[[], object]) -> None:
        self.X, self.act, self.acted = np.asarray(X), act, False

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if not self.acted:
            self.acted = True
            self.act()
        return self.X.astype(dtype) if dtype is not None else self.X


@pytest.fixture
def recognizer(world: SimulatedWorld) -> Interrupted:
    made = Interrupted("galue", target_fpir=0.1, hold="model").fit(world.gallery.X, world.gallery.y)
    return made.calibrate(world.probes.X, world.probes.y)


def shrink(recognizer: OpenSetRecognizer) -> object:
    return recognizer.remove(recognizer.classes_[[0, 7, 20, 21, 22]])


ANSWERS: dict[str, Callable[[OpenSetRecognizer, SimulatedWorld], Any]] = {
    "predict": lambda r, world: r.predict(world.probes.X).astype(str),
    "decision_function": lambda r, world: r.decision_function(world.probes.X),
    "predict_proba": lambda r, world: r.predict_proba(world.probes.X),
    "predict_uncertainty": lambda r, world: r.predict_uncertainty(world.probes.X),
    "predict_set": lambda r, world: r.predict_set(world.probes.X, 0.9).p_unknown,
    "identify": lambda r, world: r.identify(world.probes.X).p_unknown,
    "score": lambda r, world: r.score(world.probes.X, world.probes.y),
    "doubts": lambda r, world: str(r.doubts()),
}


@pytest.mark.parametrize("act", ["remove", "calibrate"])
@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_of_one_version_whenever_another_thread_changes_it(
    name: str, act: str, recognizer: Interrupted, world: SimulatedWorld
) -> None:
    def change(other: OpenSetRecognizer) -> object:
        if act == "remove":
            return shrink(other)
        return other.calibrate(world.probes.X[::-3], world.probes.y[::-3])

    answer = ANSWERS[name]
    changed = deepcopy(recognizer)
    change(changed)
    possible = [answer(deepcopy(recognizer), world), answer(changed, world)]
    for at in range(1, 12):
        fresh = deepcopy(recognizer)
        fresh.interrupt(at, change)
        given = answer(fresh, world)
        assert any(np.array_equal(given, one) for one in possible), f"a mixture, when interrupted at look {at}"


def test_what_is_saved_is_of_one_version(recognizer: Interrupted, tmp_path: Path) -> None:
    for at in range(1, 8):
        fresh = deepcopy(recognizer)
        fresh.interrupt(at, shrink)
        fresh.save(tmp_path / str(at))
        saved = OpenSetRecognizer.load(tmp_path / str(at))
        assert len(saved.gallery_) == saved.operating_point_.n_subjects


def test_two_enrolments_at_once_are_both_kept(recognizer: Interrupted, world: SimulatedWorld) -> None:
    one, other = world.probes.X[-1:], world.probes.X[-2:-1]
    recognizer.enroll(Acting(one, lambda: recognizer.enroll(other, [802])), [801])
    assert {801, 802} <= set(recognizer.gallery_.subjects.tolist())
    assert len(recognizer.gallery_) == recognizer.operating_point_.n_subjects


def test_an_enrolment_during_calibration_is_counted(recognizer: Interrupted, world: SimulatedWorld) -> None:
    probes = Acting(world.probes.X, lambda: recognizer.enroll(world.probes.X[-1:], [801]))
    recognizer.calibrate(probes, world.probes.y)
    assert 801 in recognizer.gallery_.subjects
    assert len(recognizer.gallery_) == recognizer.operating_point_.n_subjects


LESSONS: dict[str, Callable[[OpenSetRecognizer, Any, SimulatedWorld], object]] = {
    "calibrate": lambda r, X, world: r.calibrate(X, world.probes.y[1::2]),
    "calibrate, other people": lambda r, X, world: r.calibrate(
        X, world.probes.y[1::2], gallery=(world.gallery.X, world.gallery.y)
    ),
    "calibrate_sets": lambda r, X, world: r.calibrate_sets(X, world.probes.y[1::2]),
    "RiskController": lambda r, X, world: RiskController(target_level=0.5).fit(r, X, world.probes.y[1::2]),
    "ExpectedRiskController": lambda r, X, world: ExpectedRiskController(target_level=0.5).fit(
        r, X, world.probes.y[1::2]
    ),
}


@pytest.mark.parametrize("name", LESSONS)
def test_a_gallery_fitted_during_a_calibration_is_not_given_what_the_old_one_taught(
    name: str, recognizer: Interrupted, world: SimulatedWorld
) -> None:
    recognizer.calibrate(world.probes.X[::2], world.probes.y[::2])  # a certificate needs probes of its own
    smaller = world.gallery.X[:30], world.gallery.y[:30]  # ten people
    with pytest.raises(NotCalibratedError, match=r"the gallery was replaced by fit .* calibrate again"):
        LESSONS[name](recognizer, Acting(world.probes.X[1::2], lambda: recognizer.fit(*smaller)), world)
    assert len(recognizer.gallery_) == 10
    for learned in ("operating_point_", "quality_", "conformal_scores_", "certificate_"):
        assert not hasattr(recognizer, learned)
    assert recognizer.calibrate(world.probes.X, world.probes.y).operating_point_.n_subjects == 10


@pytest.mark.parametrize("name", LESSONS)
def test_what_an_older_calibration_taught_does_not_land_on_a_newer_one(
    name: str, recognizer: Interrupted, world: SimulatedWorld
) -> None:
    recognizer.calibrate(world.probes.X[::2], world.probes.y[::2])
    newer = deepcopy(recognizer).set_params(target_fpir=0.2).calibrate(world.probes.X[::2], world.probes.y[::2])

    def calibrate_anew() -> None:
        recognizer.set_params(target_fpir=0.2).calibrate(world.probes.X[::2], world.probes.y[::2])

    with pytest.raises(NotCalibratedError, match=r"calibrated again while .* nothing was changed"):
        LESSONS[name](recognizer, Acting(world.probes.X[1::2], calibrate_anew), world)
    assert recognizer.operating_point_ == newer.operating_point_
    assert not hasattr(recognizer, "certificate_")
    np.testing.assert_array_equal(recognizer.conformal_scores_.mated, newer.conformal_scores_.mated)
    LESSONS[name](recognizer, world.probes.X[1::2], world)  # asked again, it is of the newer one


class FitBeside:
    """An interruption by a thread of its own, which may have to wait for the change under way."""

    def __init__(self, X: object, y: object) -> None:
        self.samples, self.thread = (X, y), Thread()

    def __call__(self, recognizer: OpenSetRecognizer) -> None:
        self.thread = Thread(target=recognizer.fit, args=self.samples)
        self.thread.start()
        self.thread.join(0.2)


def test_a_gallery_fitted_while_leaving_one_out_is_not_given_what_the_old_one_taught(world: SimulatedWorld) -> None:
    X, y = world.gallery.X, world.gallery.y
    recognizer = Interrupted("galue", target_fpir=0.1).fit(X, y)
    for at in range(1, 10):
        fresh, act = deepcopy(recognizer), FitBeside(X[:30], y[:30])
        fresh.interrupt(at, act)
        with suppress(
            NotCalibratedError, InvalidSubjectsError
        ):  # or these are not the samples of the gallery there now
            fresh.calibrate_leave_one_out(X, y)
        fitted = fresh.was_interrupted
        if fitted:
            act.thread.join()
        assert hasattr(fresh, "operating_point_") != fitted, f"a point of the old gallery, interrupted at look {at}"


def test_a_gallery_fitted_while_another_thread_enrols_is_not_lost(
    recognizer: Interrupted, world: SimulatedWorld
) -> None:
    act = FitBeside(world.gallery.X[:30], world.gallery.y[:30])
    recognizer.interrupt(1, act)
    recognizer.enroll(world.probes.X[-1:], [801])
    assert recognizer.was_interrupted
    act.thread.join()
    assert len(recognizer.gallery_) in (10, 11), "the enrolment undid the fit"


def test_what_was_learned_is_absent_until_then_and_can_be_set_and_deleted(world: SimulatedWorld) -> None:
    recognizer = OpenSetRecognizer("galue")
    for name in ("gallery_", "operating_point_", "n_features_in_", "certificate_"):
        assert not hasattr(recognizer, name)
    with pytest.raises(NotFittedYetError, match="call fit"):
        recognizer.certificate_ = object()  # type: ignore[assignment]
    recognizer.fit(world.gallery.X, world.gallery.y)
    assert recognizer.n_features_in_ == world.gallery.X.shape[1]
    recognizer.calibrate(world.probes.X, world.probes.y)
    point = recognizer.operating_point_
    del recognizer.operating_point_
    assert not hasattr(recognizer, "operating_point_")
    recognizer.operating_point_ = point
    assert recognizer.operating_point_ is point
