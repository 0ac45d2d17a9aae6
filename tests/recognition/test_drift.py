import numpy as np
import pytest

from holue.datasets.simulated import simulate
from holue.errors import CalibrationDataError, InvalidInputError, InvalidParameterError, NotCalibratedError
from holue.recognition.calibration.drift import DriftMonitor, stranger_monitor
from holue.recognition.recognizer import OpenSetRecognizer


def run(rng, stream, alpha, n_reference=300):
    return DriftMonitor(rng.normal(size=n_reference), alpha, rng).update(stream).alarm_at


def test_without_drift_the_alarm_rate_over_the_whole_run_is_at_most_the_stated_one():
    rng = np.random.default_rng(0)
    alpha, runs = 0.1, 200
    alarms = sum(run(rng, rng.normal(size=400), alpha) is not None for _ in range(runs))
    # Three binomial standard deviations over 20 of 200.
    assert alarms <= alpha * runs + 3 * np.sqrt(runs * alpha * (1 - alpha))


def people(rng, n_people, probes=8, within=0.2):
    """Values of people who differ far more than their own probes do, person after person."""
    person = np.repeat(np.arange(n_people), probes)
    return rng.normal(size=n_people)[person] + within * rng.normal(size=len(person)), person


@pytest.mark.parametrize("together", [True, False])
def test_people_with_many_probes_each_raise_no_more_alarms_than_stated(together):
    rng = np.random.default_rng(4)
    alpha, runs, alarms = 0.1, 150, 0
    for _ in range(runs):
        values, person = people(rng, 160)
        reference = person < 80
        later = np.flatnonzero(~reference)
        later = later if together else rng.permutation(later)
        monitor = DriftMonitor(values[reference], alpha, rng, person[reference])
        alarms += monitor.update(values[later], person[later]).alarm
    # Three binomial standard deviations over 15 of 150; judged probe by probe, most of these runs raise an alarm.
    assert alarms <= alpha * runs + 3 * np.sqrt(runs * alpha * (1 - alpha))


def test_people_who_come_back_are_counted_and_not_judged_again():
    monitor = DriftMonitor(np.arange(100.0), 0.01, np.random.default_rng(0), np.arange(100))
    state = monitor.update(np.full(500, 200.0), np.repeat([7, 500], 250))
    assert (state.n, state.n_judged, state.alarm) == (500, 1, False)
    assert "500 probes of 1 new people" in str(state)


def test_a_drift_is_found_person_by_person():
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        values, person = people(rng, 300)
        reference, late = person < 200, person >= 240
        monitor = DriftMonitor(values[reference], 0.01, rng, person[reference])
        values[late] -= 1.5
        alarm = monitor.update(values[~reference], person[~reference]).alarm_at
        found.append(alarm is not None and alarm > 40 * 8)
    assert np.mean(found) >= 0.9


def test_rounded_values_cost_nothing():
    rng = np.random.default_rng(1)
    alarms = 0
    for _ in range(100):
        monitor = DriftMonitor(rng.integers(3, size=200), 0.1, rng)
        alarms += monitor.update(rng.integers(3, size=300)).alarm
    assert alarms <= 10 + 9


@pytest.mark.parametrize(
    ("shift", "scale", "within"),
    [(-1.0, 1.0, 100), (1.0, 1.0, 100), (-0.5, 1.0, 300), (0.0, 2.5, 150), (0.0, 0.3, 100)],
)
def test_a_drift_that_starts_late_is_found(shift, scale, within):
    found = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        monitor = DriftMonitor(rng.normal(size=1000), 0.001, rng)
        monitor.update(rng.normal(size=300))
        alarm = monitor.update(shift + scale * rng.normal(size=within)).alarm_at
        found.append(alarm is not None and alarm > 300)
    assert np.mean(found) >= 0.9


def test_values_in_portions_are_values_in_a_row():
    values = np.random.default_rng(0).normal(size=60)
    whole = DriftMonitor(np.arange(50.0), 0.01, np.random.default_rng(3)).update(values)
    parts = DriftMonitor(np.arange(50.0), 0.01, np.random.default_rng(3))
    for part in np.split(values, 6):
        state = parts.update(part)
    assert state == whole


def test_a_long_drift_does_not_overflow():
    monitor = DriftMonitor(np.arange(100.0), 0.01, np.random.default_rng(0))
    state = monitor.update(np.linspace(1000, 9000, 3000))
    assert np.isfinite(state.capital)
    assert "calibrate anew" in str(state)


def test_a_recogniser_notices_other_strangers():
    rng = np.random.default_rng(2)
    development = simulate(n_subjects=80, n_strangers=150, dim=64, concentration=60.0, look_alike_pairs=0, rng=rng)
    recognizer = OpenSetRecognizer(method="galue", threads=1).fit(development.gallery.X, development.gallery.y)
    with pytest.raises(NotCalibratedError):
        stranger_monitor(recognizer)
    strangers = rng.permutation(np.flatnonzero(development.probes.person >= 80))
    calibrating = np.ones(len(development.probes), dtype=bool)
    calibrating[strangers[300:]] = False
    recognizer.calibrate(development.probes.X[calibrating], development.probes.y[calibrating])
    later = development.probes.X[strangers[300:]]
    monitor = stranger_monitor(recognizer, false_alarm_rate=0.01, rng=rng)
    assert not monitor.update(np.log(recognizer.identify(later).model_p_unknown)).alarm
    # A new camera that pulls every embedding towards one direction.
    moved = later + 1.5 * recognizer.gallery_.directions[0]
    state = monitor.update(np.log(recognizer.identify(moved).model_p_unknown))
    assert state.alarm
    assert [doubt.about for doubt in recognizer.doubts(drift=state)] == ["drift"]


def test_bad_input_is_named():
    with pytest.raises(CalibrationDataError, match="at least 50"):
        DriftMonitor(np.arange(10.0))
    with pytest.raises(InvalidParameterError, match="false_alarm_rate"):
        DriftMonitor(np.arange(100.0), 0.0)
    with pytest.raises(InvalidInputError, match="finite"):
        DriftMonitor(np.arange(100.0)).update([np.nan])
