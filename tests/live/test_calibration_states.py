"""A calibration is an object with a state: a candidate answers nothing, one is active, others were."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import holue
from holue.errors import ConflictError, InvalidParameterError, NotCalibratedError
from holue.live.calibration.calibrations import Calibrations
from holue.live.live_gallery import LiveGallery
from holue.recognition.answer.identifications import Identifications
from holue.recognition.calibration.drift import DriftMonitor
from holue.store.memory import MemoryStore

N = 40


@pytest.fixture(params=["memory", "directory", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        server: Any = request.getfixturevalue("postgres")
        return str(server.url(f"g{uuid.uuid4().hex[:12]}"))
    return ":memory:" if request.param == "memory" else str(tmp_path / "gallery")


@pytest.fixture
def gallery(home: str, people: Any) -> Iterator[LiveGallery]:
    with holue.open(home, create=True, dim=people.dim, model="m1") as gallery:
        gallery.enroll(*people.several(range(N), 3))
        gallery.calibrate(by="first")
        yield gallery


def another(gallery: LiveGallery, people: Any, **more: Any) -> Any:
    X, y, other = people.development()
    return gallery.calibrate(X, y, gallery=other, **more)


def same(one: Identifications, other: Identifications) -> bool:
    return bool(
        (one.decision == other.decision).all()
        and (one.subject == other.subject).all()
        and (one.uncertainty == other.uncertainty).all()
    )


def states(gallery: LiveGallery) -> list[str]:
    return [entry.state for entry in gallery.calibrations()]


def test_a_candidate_answers_nothing_until_it_is_activated(gallery: LiveGallery, people: Any) -> None:
    before = gallery.identify(people.probes())
    entry = another(gallery, people, activate=False)
    assert (entry.number, entry.state, entry.since, entry.source) == (2, "candidate", None, "probes")
    assert states(gallery) == ["active", "candidate"]
    assert same(gallery.identify(people.probes()), before)
    activated = gallery.activate(2, by="ann")
    assert activated is not None
    assert (activated.state, activated.since) == ("active", gallery.version)
    assert states(gallery) == ["superseded", "active"]
    assert gallery.current.calibration == 2
    after = gallery.identify(people.probes())
    assert not same(after, before)
    assert same(gallery.at(gallery.version, calibration=1).identify(people.probes()), before)


def test_an_older_calibration_answers_again_with_the_same_bits(gallery: LiveGallery, people: Any) -> None:
    first = gallery.identify(people.probes())
    another(gallery, people)
    assert states(gallery) == ["superseded", "active"]
    gallery.activate(1)
    assert states(gallery) == ["active", "superseded"]
    assert same(gallery.identify(people.probes()), first)


def test_no_calibration_can_answer(gallery: LiveGallery, people: Any) -> None:
    assert gallery.activate(None) is None
    assert states(gallery) == ["superseded"]
    assert gallery.current.calibration is None
    with pytest.raises(NotCalibratedError):
        gallery.identify(people.probes())
    gallery.activate(1)
    assert len(gallery.identify(people.probes())) == 30


def test_each_version_is_answered_with_the_calibration_of_its_time(gallery: LiveGallery, people: Any) -> None:
    first = gallery.identify(people.probes())
    old = gallery.version
    another(gallery, people, activate=False)
    gallery.enroll(*people.several(range(N, N + 2), 3))
    gallery.activate(2)
    second = gallery.identify(people.probes())
    gallery.enroll(*people.several(range(N + 2, N + 4), 3))
    gallery.activate(1)
    assert (gallery.at(old).calibration, gallery.at(old + 1).calibration, gallery.at(old + 2).calibration) == (1, 2, 1)
    np.testing.assert_array_equal(gallery.at(old).identify(people.probes()).decision, first.decision)
    np.testing.assert_array_equal(gallery.at(old + 1).identify(people.probes()).decision, second.decision)


def test_readers_follow_and_the_choice_survives_reopening(home: str, gallery: LiveGallery, people: Any) -> None:
    if home == ":memory:":
        pytest.skip("a gallery in memory has no other reader")
    with holue.open(home, read_only=True) as reader:
        another(gallery, people, activate=False)
        reader.refresh()
        assert (reader.current.calibration, states(reader)) == (1, ["active", "candidate"])
        for number in (2, 1, None, 2):
            gallery.activate(number)
            reader.refresh()
            assert reader.current.calibration == number
    gallery.close()
    with holue.open(home) as again:
        assert (again.current.calibration, states(again)) == (2, ["superseded", "active"])


def test_what_it_was_made_from_is_kept(gallery: LiveGallery, people: Any) -> None:
    another(gallery, people, source="reviews", activate=False)
    assert [entry.source for entry in gallery.calibrations()] == ["leave-one-out", "reviews"]
    with pytest.raises(InvalidParameterError, match="reviews"):
        gallery.calibrate(source="reviews")
    with pytest.raises(InvalidParameterError, match="leave X and y out"):
        another(gallery, people, source="leave-one-out")
    for number in (0, 3, -1):
        with pytest.raises(InvalidParameterError, match="this gallery has 1, 2"):
            gallery.activate(number)
    assert gallery.current.calibration == 1


def test_a_preview_tells_exactly_what_activation_then_does(gallery: LiveGallery, people: Any) -> None:
    X, y, _ = people.development()
    mated, names = people.several(range(N), 1, seed=7)
    probes, truth = np.concatenate([X[-60:], mated]), [*y[-60:], *names]
    entry = another(gallery, people, activate=False)
    before = gallery.identify(probes)
    told = gallery.preview(entry.number, probes, truth)
    assert gallery.current.calibration == 1
    old = gallery.status().threshold
    gallery.activate(entry.number)
    after = gallery.identify(probes)
    assert (told.threshold, told.active_threshold) == (gallery.status().threshold, old)
    differ = np.flatnonzero((before.decision != after.decision) | (before.subject != after.subject))
    assert told.differ.tolist() == differ.tolist()
    assert sum(told.changes.values()) == len(differ)
    assert (told.number, told.active, told.subjects, told.probes) == (2, 1, N, 100)
    assert told.rates is not None
    assert told.active_rates is not None
    strangers, own = after[np.arange(60)], after[np.arange(60, 100)]
    assert told.rates.fpir == np.mean(strangers.accepted)
    assert told.rates.fnir == np.mean((own.subject != np.array(names, object)) & ~own.filtered)
    assert (told.rates.strangers, told.rates.enrolled) == (60, N)
    assert told.active_rates.fpir == np.mean(before[np.arange(60)].accepted)


def test_a_preview_without_probes_asks_about_the_enrolled_samples(gallery: LiveGallery, people: Any) -> None:
    entry = another(gallery, people, activate=False)
    told = gallery.preview(entry.number)
    assert (told.probes_from, told.probes) == ("leave-one-out", 2 * 3 * N)
    assert told.active_rates is not None
    assert told.active_rates.fpir is not None
    # The active calibration was learned from just these, each subject counting the same, at a target of 0.05.
    assert told.active_rates.fpir <= 0.05 + 1 / (3 * N)
    own = gallery.preview(1)
    assert (len(own.differ), own.changes, own.rates) == (0, {}, own.active_rates)


def test_a_preview_beside_nothing_that_answers(gallery: LiveGallery, people: Any) -> None:
    gallery.activate(None)
    told = gallery.preview(1, people.probes())
    assert (told.active, told.active_threshold, told.rates, len(told.differ)) == (None, None, None, 0)


def test_a_grown_gallery_raises_a_doubt_about_a_candidate_as_a_value(gallery: LiveGallery, people: Any) -> None:
    entry = another(gallery, people, activate=False)
    fixed = holue.open(":memory:", dim=people.dim, hold="threshold")
    with fixed:
        fixed.enroll(*people.several(range(N), 3))
        another(fixed, people, activate=False)
        fixed.enroll(*people.several(range(N, 3 * N), 1))
        assert [doubt.about for doubt in fixed.preview(1, people.probes()).doubts] == ["gallery"]
    assert gallery.preview(entry.number, people.probes()).doubts == ()


def test_drift_of_the_probes_is_a_doubt_too(gallery: LiveGallery) -> None:
    monitor = DriftMonitor(np.arange(100.0))
    before = gallery.current.doubts()
    assert gallery.current.doubts(drift=monitor.update(np.arange(0, 100, 7.0))) == before
    state = monitor.update(np.full(300, 500.0))
    assert [doubt.about for doubt in gallery.current.doubts(drift=state) if doubt not in before] == ["drift"]


def test_a_list_without_states_is_read_as_one_in_which_each_calibration_answered() -> None:
    store = MemoryStore(dim=4)
    old = [
        {"number": n, "made_at": n, "since": n, "time": 10.0 * n, "model": None, "source": "leave-one-out"}
        for n in (1, 2)
    ]
    store.put_artifact("calibrations", json.dumps(old).encode())
    entries = Calibrations(store).entries()
    assert [(entry.number, entry.since, entry.state) for entry in entries] == [(1, 1, "superseded"), (2, 2, "active")]


def hurried(gallery: LiveGallery, monkeypatch: pytest.MonkeyPatch, first: Any) -> None:
    """Have something happen once, between the moment the list of calibrations is read and the moment it is written."""
    store, left = gallery._calibrations._store, [first]
    swap = store.put_artifacts

    def late(*given: Any, **fields: Any) -> None:
        while left:
            left.pop()()
        swap(*given, **fields)

    monkeypatch.setattr(store, "put_artifacts", late)


def test_of_two_who_choose_a_calibration_at_once_one_is_told(
    gallery: LiveGallery, home: str, people: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    another(gallery, people, activate=False)
    on_server = home.startswith("postgresql")
    other = holue.open(home) if on_server else gallery
    chosen = Calibrations(other.store)
    try:
        hurried(gallery, monkeypatch, lambda: chosen.activate(2, since=other.version, by="other"))
        with pytest.raises(ConflictError, match=r"at the same moment.*choose again"):
            gallery.activate(None)
        assert [one.by for one in Calibrations(gallery.store).activations()] == ["first", "other"]
        assert gallery.activate(1) is not None
        assert [one.number for one in Calibrations(gallery.store).activations()] == [1, 2, 1]
    finally:
        if on_server:
            other.close()


def test_of_two_who_make_a_candidate_at_once_neither_is_lost(
    gallery: LiveGallery, people: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    hurried(gallery, monkeypatch, lambda: made.append(keep_another(gallery)))
    made.append(another(gallery, people, activate=False))
    assert [entry.number for entry in made] == [2, 3]
    assert [entry.state for entry in gallery.calibrations()] == ["active", "candidate", "candidate"]
    for entry in made:
        assert gallery.calibrated_with(entry.number).state is not None


def keep_another(gallery: LiveGallery) -> Any:
    state = gallery.current.state
    assert state is not None
    kept = Calibrations(gallery.store).keep(
        state, gallery.settings, made_at=gallery.version, since=None, source="probes", by="other"
    )
    return kept.entry
