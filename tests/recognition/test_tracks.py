from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue import UNKNOWN, OpenSetRecognizer
from holue.datasets.simulated import SimulatedWorld, simulate
from holue.errors import CalibrationDataError, InvalidParameterError, InvalidSubjectsError, NotCalibratedError
from holue.evaluation.metrics.calibration_error import expected_calibration_error
from holue.gallery.pooling import pool, pool_probes
from holue.recognition.tracks.drawn_tracks import draw_tracks
from holue.recognition.tracks.track import Track

LENGTHS = (1, 3, 10)
World = tuple[SimulatedWorld, SimulatedWorld]


@pytest.fixture(scope="module")
def worlds() -> World:
    rng = np.random.default_rng(0)
    size = {"n_subjects": 100, "n_strangers": 100, "dim": 64, "concentration": 40.0, "probes_per_person": 12}
    return simulate(**size, first_subject=1000, rng=rng), simulate(**size, rng=rng)


def calibrated_on(worlds: World, lengths: tuple[int, ...]) -> OpenSetRecognizer:
    others, known = worlds
    tracks = draw_tracks(others.probes.X, others.probes.person, lengths=lengths, each=8, rng=np.random.default_rng(1))
    recognizer = OpenSetRecognizer().fit(known.gallery.X, known.gallery.y)
    return recognizer.calibrate(tracks.X, tracks.y, tracks.concentration, gallery=(others.gallery.X, others.gallery.y))


@pytest.fixture(scope="module")
def recognizer(worlds: World) -> OpenSetRecognizer:
    return calibrated_on(worlds, (1, 2, 3, 5, 10))


def right(subject: object, person: int, world: SimulatedWorld) -> bool:
    return subject == person if person in set(world.gallery.y.tolist()) else subject is UNKNOWN


def errors(recognizer: OpenSetRecognizer, world: SimulatedWorld) -> list[float]:
    found = []
    for length in LENGTHS:
        rng = np.random.default_rng(5)
        tracks = draw_tracks(world.probes.X, world.probes.person, lengths=(length,), each=8, rng=rng)
        answers = recognizer.identify(tracks.X, tracks.concentration)
        correct = [right(s, p, world) for s, p in zip(answers.subject, tracks.y.tolist(), strict=True)]
        found.append(expected_calibration_error(1 - answers.uncertainty, correct=correct))
    return found


def test_probabilities_of_probes_of_one_and_of_many_samples_come_true(
    worlds: World, recognizer: OpenSetRecognizer
) -> None:
    # 1600 tracks of 200 people: probabilities without any error would have 0.02 by chance
    assert max(errors(recognizer, worlds[1])) < 0.05
    assert max(errors(calibrated_on(worlds, (1,)), worlds[1])) > 0.15  # single samples do not teach about ten


def test_a_track_of_several_samples_shows_several_media() -> None:
    # Two samples of one medium have the concentration of one sample and are surer than it.
    X = np.random.default_rng(0).normal(size=(14, 8))
    person, media = np.repeat(["ann", "bob"], [12, 2]), [*np.repeat(["a", "b"], [11, 1]), "c", "c"]
    tracks = draw_tracks(X, person, media=media, lengths=(1, 2, 3), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(tracks.concentration, np.minimum(tracks.length, 2))
    assert set(tracks.length[tracks.y == "bob"].tolist()) == {1}, "bob has one medium"


def test_the_answer_of_a_track_is_that_of_its_pooled_samples_in_any_order(
    worlds: World, recognizer: OpenSetRecognizer
) -> None:
    samples = worlds[1].probes.X[worlds[1].probes.person == 3][:6]
    media = ["a", "a", "b", "c", "b", "a"]
    _, probe = pool_probes(samples, np.zeros(6, int), media=media)
    expected = recognizer.identify(probe.directions, probe.concentrations)[0]
    for order in (range(6), (5, 2, 0, 4, 1, 3)):
        track = Track(recognizer)
        for row in order:
            track.add(samples[row], medium=media[row])
        assert len(track) == 6
        answer = track.identification
        assert (answer.subject, answer.decision) == (expected.subject, expected.decision)
        assert answer.uncertainty == pytest.approx(expected.uncertainty, abs=1e-6)  # order of float sums


def test_the_answer_is_what_is_more_probable_whatever_the_threshold_says(
    worlds: World, recognizer: OpenSetRecognizer
) -> None:
    threshold_differs = 0
    for person in range(0, 200, 4):
        track = Track(recognizer)
        for sample in worlds[1].probes.X[worlds[1].probes.person == person]:
            track.add(sample)
            answer = track.identification
            assert track.p_wrong == pytest.approx(1 - max(answer.p_subject, answer.p_unknown))
            assert track.p_wrong <= answer.uncertainty + 1e-12
            assert (track.subject is UNKNOWN) == (answer.p_unknown > answer.p_subject)
            threshold_differs += track.subject != answer.subject
    assert threshold_differs > 0


def test_certainty_grows_with_samples_and_not_with_copies(worlds: World, recognizer: OpenSetRecognizer) -> None:
    known = worlds[1]
    grown, copied = [], []
    for person in range(0, 100, 5):
        samples = known.probes.X[known.probes.person == person][:8]
        track, same = Track(recognizer), Track(recognizer)
        for sample in samples:
            track.add(sample)
            same.add(samples[0], medium="one shot")
        grown.append(track.p_wrong)
        copied.append(same.p_wrong)
        alone = Track(recognizer)
        alone.add(samples[0])
        assert same.p_wrong == pytest.approx(alone.p_wrong, abs=1e-6)
    assert np.mean(grown) < 0.5 * np.mean(copied)


def test_an_answer_is_taken_as_early_as_the_risk_allows_and_is_then_right(
    worlds: World, recognizer: OpenSetRecognizer
) -> None:
    world, rng = worlds[1], np.random.default_rng(2)
    lengths: dict[float, list[int]] = {0.02: [], 0.1: []}
    wrong: dict[float, list[bool]] = {0.02: [], 0.1: []}
    for person in range(200):
        samples = rng.permutation(world.probes.X[world.probes.person == person])
        for risk in lengths:
            track = Track(recognizer, risk=risk)
            for sample in samples:
                track.add(sample)
                if track.sure:
                    lengths[risk].append(len(track))
                    wrong[risk].append(not right(track.subject, person, world))
                    break
    assert len(lengths[0.1]) >= len(lengths[0.02]) > 100
    assert np.mean(lengths[0.1]) < np.mean(lengths[0.02])
    for risk in lengths:
        # a risk of 0.1 with 190 answers has a standard error of 0.02; three of them
        assert np.mean(wrong[risk]) < risk + 3 * np.sqrt(risk / len(wrong[risk]))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.floats(0.1, 100))
def test_media_are_added_up_and_samples_of_a_medium_averaged(media: list[int], kappa: float) -> None:
    samples = np.random.default_rng(len(media)).normal(size=(len(media), 5)) + 3
    group = np.zeros(len(media), int)
    _, counted = pool_probes(samples, group, media=media)
    _, weighed = pool_probes(samples, group, media=media, concentration=np.full(len(media), kappa))
    _, template = pool(samples, group, media=media)
    np.testing.assert_array_equal(counted.directions, template.directions)
    assert counted.concentrations == pytest.approx(len(set(media)))
    assert weighed.concentrations == pytest.approx(kappa * len(set(media)))


def test_a_drawn_track_shows_one_person_and_no_sample_twice() -> None:
    # the person is the first coordinate's sign, and every sample has a coordinate of its own
    X = np.column_stack([np.repeat([50.0, -50.0], 6), np.eye(12)])
    tracks = draw_tracks(X, np.repeat(["ann", "bob"], 6), lengths=(1, 4, 6, 7), each=5, rng=np.random.default_rng(0))
    assert np.array_equal(tracks.X[:, 0] > 0, tracks.y == "ann")
    np.testing.assert_array_equal((tracks.X[:, 1:] > 1e-9).sum(axis=1), tracks.length)
    assert tracks.length.tolist() == [1] * 5 + [4] * 5 + [6] + [1] * 5 + [4] * 5 + [6]
    np.testing.assert_array_equal(tracks.concentration, tracks.length)


def test_what_cannot_be_a_track_is_refused(recognizer: OpenSetRecognizer) -> None:
    X, y, rng = np.eye(4), ["ann"] * 4, np.random.default_rng(0)
    with pytest.raises(InvalidSubjectsError, match="UNKNOWN"):
        draw_tracks(X, ["ann", "ann", UNKNOWN, UNKNOWN], rng=rng)
    with pytest.raises(InvalidParameterError, match="at least 1"):
        draw_tracks(X, y, lengths=(0, 1), rng=rng)
    with pytest.raises(CalibrationDataError, match="nobody has the 5 samples of the shortest track"):
        draw_tracks(X, y, lengths=(5, 6), rng=rng)
    with pytest.raises(InvalidParameterError, match="risk must lie between 0 and 1, got 1"):
        Track(recognizer, risk=1)
    track = Track(recognizer)
    with pytest.raises(InvalidParameterError, match="no sample yet"):
        track.subject  # noqa: B018
    track.add(np.ones(64))
    with pytest.raises(InvalidParameterError, match="for all samples of a track or for none"):
        track.add(np.ones(64), 20.0)
    uncalibrated = Track(OpenSetRecognizer("galue", threshold=0.5).fit(np.eye(4), list("abcd")))
    uncalibrated.add(np.ones(4))
    with pytest.raises(NotCalibratedError, match="calibrate on tracks"):
        uncalibrated.sure  # noqa: B018


@pytest.mark.data
def test_on_real_faces_probabilities_hold_at_every_length(
    real_faces: tuple[np.ndarray, np.ndarray],
) -> None:
    X, y = real_faces
    rng = np.random.default_rng(0)
    directions = X / np.linalg.norm(X, axis=1, keepdims=True)
    # clean faces are hardly ever mistaken: noise makes poor frames of them
    frames = directions + 0.06 * rng.standard_normal(X.shape).astype(np.float32)
    people, count = np.unique(y, return_counts=True)
    people = rng.permutation(people[count >= 3])
    half = len(people) // 2

    def part(some: np.ndarray) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray, np.ndarray]:
        first = np.array([np.flatnonzero(y == person)[0] for person in some])
        probes = np.isin(y, some)
        probes[first] = False
        return (directions[first[::2]], y[first[::2]]), frames[probes], y[probes]

    development, probes, truth = part(people[:half])
    gallery, asked, shown = part(people[half:])
    known = set(gallery[1].tolist())
    off = {}
    for lengths in ((1,), (1, 2, 3, 5, 10)):
        tracks = draw_tracks(probes, truth, lengths=lengths, each=5, rng=rng)
        recognizer = OpenSetRecognizer().fit(*gallery)
        recognizer.calibrate(tracks.X, tracks.y, tracks.concentration, gallery=development)
        off[lengths] = []
        for length in LENGTHS:
            drawn = draw_tracks(asked, shown, lengths=(length,), each=5, rng=np.random.default_rng(1))
            answers = recognizer.identify(drawn.X, drawn.concentration)
            named = answers.p_subject >= answers.p_unknown
            best = answers.candidate_subjects[:, 0] == drawn.y
            stranger = np.array([person not in known for person in drawn.y.tolist()])
            correct = np.where(named, best, stranger)
            probability = np.maximum(answers.p_subject, answers.p_unknown)
            off[lengths].append(expected_calibration_error(probability, correct=correct))
    assert max(off[(1, 2, 3, 5, 10)]) < 0.03
    assert max(off[(1,)]) > 0.03
