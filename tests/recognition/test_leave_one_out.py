import re
from dataclasses import replace

import numpy as np
import pytest

from holue.datasets.simulated import simulate
from holue.errors import (
    CalibrationDataError,
    GalleryTooSmallError,
    InvalidParameterError,
    InvalidSubjectsError,
    NotFittedYetError,
)
from holue.evidence.leave_one_out import evidence_of_others
from holue.evidence.precision import Precision
from holue.gallery.gallery import Gallery
from holue.gallery.left_out import LeftOut
from holue.recognition.audit.duplicates import duplicate_pairs
from holue.recognition.calibration import leave_one_out
from holue.recognition.calibration.leave_one_out import left_out_reading, weighted_threshold
from holue.recognition.model.operating_point import OperatingPoint, threshold_at_fpir
from holue.recognition.reading import Reading
from holue.recognition.recognizer import OpenSetRecognizer


@pytest.fixture(scope="module")
def enrolled():
    """Without look-alikes: a stranger has none in the gallery, whereas left-out people would."""
    rng = np.random.default_rng(3)
    return simulate(
        n_subjects=200, n_strangers=400, enrolled_samples=4, dim=64, concentration=60.0, look_alike_pairs=0, rng=rng
    )


def test_every_reading_is_that_of_a_recogniser_fitted_without_the_sample():
    samples = simulate(
        n_subjects=9, enrolled_samples=3, look_alike_pairs=2, dim=16, rng=np.random.default_rng(0)
    ).gallery
    X, y = samples.X, samples.y.astype(int)
    left = LeftOut.of(X, y, samples.concentration)
    point = OperatingPoint.solve(dim=16, n_subjects=9, threshold=0.7)
    reading, truth, own = left_out_reading(left, point, 20.0, strangers=np.ones(len(left), dtype=bool))
    n = len(X)
    assert (truth[:n] == y).all()
    assert (truth[n:] == -1).all()
    for i in range(n):
        rest = np.arange(n) != i
        refitted = OpenSetRecognizer(method="galue", threshold=0.7).fit(X[rest], y[rest]).gallery_
        slow = Reading.of(left.samples.take(np.array([i])), refitted, point, temperature=20.0)
        for name in ("log_p_unknown", "log_p_known", "mean_log_known", "log_total"):
            fast, reference = getattr(reading.posterior, name)[i], getattr(slow.posterior, name)[0]
            assert fast == pytest.approx(reference, abs=1e-9), name
        assert reading.evidence.top_index[i, 0] == slow.evidence.top_index[0, 0]
        strangers = OpenSetRecognizer(method="galue", threshold=0.7).fit(X[y != y[i]], y[y != y[i]]).gallery_
        slow = Reading.of(left.samples.take(np.array([i])), strangers, point.for_gallery(8), temperature=20.0)
        assert reading.best_score[n + i] == pytest.approx(slow.best_score[0], abs=1e-12)
        assert own[n + i] == -np.inf
        # The empty place of the left-out subject: K in place of K − 1 in the prior, and nothing else.
        odds, slow_odds = (
            r.posterior.log_p_known[j] - r.posterior.log_p_unknown[j] for r, j in ((reading, n + i), (slow, 0))
        )
        assert odds == pytest.approx(slow_odds - np.log(9 / 8), abs=1e-9)


def test_a_reading_knows_how_far_its_evidence_may_be_off(monkeypatch):
    samples = simulate(n_subjects=20, enrolled_samples=3, dim=16, rng=np.random.default_rng(0)).gallery
    left = LeftOut.of(samples.X, samples.y.astype(int))

    def estimated(*given, **how):
        others = evidence_of_others(*given, **how)
        bounds = replace(Precision.exact(*others.log_mass.shape), log_mass_bound=np.full_like(others.log_mass, 0.25))
        return replace(others, precision=bounds)

    monkeypatch.setattr(leave_one_out, "evidence_of_others", estimated)
    reading, truth, _ = left_out_reading(
        left, OperatingPoint.solve(dim=16, n_subjects=20, threshold=0.7), 20.0, strangers=np.ones(len(left), dtype=bool)
    )
    bound = reading.evidence.precision.log_mass_bound
    assert (bound[truth < 0] == 0.25).all()
    assert (bound[truth >= 0] < 0.25).all(), "the own subject's score is exact, and a part of the mass"
    assert (bound[truth >= 0] > 0).any()


@pytest.mark.parametrize("method", ["galue", "holue-sum", "holue-plus"])
def test_strangers_are_accepted_about_as_often_as_wanted(enrolled, method):
    gallery, probes = enrolled.gallery, enrolled.probes
    recognizer = OpenSetRecognizer(method=method, target_fpir=0.05, threads=1)
    recognizer.fit(gallery.X, gallery.y, gallery.concentration)
    recognizer.calibrate_leave_one_out(gallery.X, gallery.y, gallery.concentration)
    answers = recognizer.identify(probes.X, probes.concentration)
    strangers = probes.person >= 200
    # 800 left-out samples and 1600 strangers: the binomial spread of both is 0.009, four times that is allowed.
    assert answers.accepted[strangers].mean() == pytest.approx(0.05, abs=0.038)
    right = answers.subject == probes.y
    certain = answers.uncertainty <= np.median(answers.uncertainty)
    assert right[certain].mean() > right[~certain].mean()


def test_a_leave_one_out_calibration_is_saved_and_gives_candidate_sets(enrolled, tmp_path):
    gallery, probes = enrolled.gallery, enrolled.probes
    recognizer = OpenSetRecognizer(method="galue", threads=1).fit(gallery.X, gallery.y)
    recognizer.calibrate_leave_one_out(gallery.X, gallery.y)
    recognizer.save(tmp_path / "saved")
    again = OpenSetRecognizer.load(tmp_path / "saved")
    assert (again.predict(probes.X[:50]) == recognizer.predict(probes.X[:50])).all()
    sets = again.predict_set(probes.X, 0.9)
    held = [truth in subjects for truth, subjects in zip(probes.y, sets)]
    # Left-out templates are a little worse than the real ones, so coverage may only err upwards, up to chance (0.01).
    assert np.mean(held) > 0.87


def test_a_fixed_threshold_stays_and_the_quality_is_learned(enrolled):
    gallery, probes = enrolled.gallery, enrolled.probes
    recognizer = OpenSetRecognizer("holue-plus", threshold=0.5, threads=1)
    recognizer.fit(gallery.X, gallery.y, gallery.concentration)
    recognizer.calibrate_leave_one_out(gallery.X, gallery.y, gallery.concentration)
    assert recognizer.operating_point_.threshold == 0.5
    assert np.isfinite(recognizer.predict_uncertainty(probes.X[:5], probes.concentration[:5])).all()


def test_people_count_the_same_however_many_samples_they_have():
    scores = np.array([0.9] * 50 + [0.5, 0.4, 0.3])
    weight = np.array([1 / 50] * 50 + [1.0, 1.0, 1.0])
    assert weighted_threshold(scores, weight, 0.25) == pytest.approx(0.7)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=300)
    assert weighted_threshold(scores, np.ones(300), 0.1) == pytest.approx(threshold_at_fpir(scores, 0.1))
    with pytest.raises(CalibrationDataError, match="finer than"):
        weighted_threshold(scores, np.ones(300), 0.001)


def test_it_refuses_what_cannot_be_left_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 8))
    one_each = OpenSetRecognizer(method="galue").fit(X, np.arange(40))
    with pytest.raises(CalibrationDataError, match="each of the 40 subjects has one sample"):
        one_each.calibrate_leave_one_out(X, np.arange(40))
    same_medium = np.repeat(np.arange(20), 2)
    recognizer = OpenSetRecognizer(method="galue").fit(X, same_medium, media=same_medium)
    with pytest.raises(CalibrationDataError, match="one medium"):
        recognizer.calibrate_leave_one_out(X, same_medium, media=same_medium)
    with pytest.raises(CalibrationDataError, match="do not pool"):
        recognizer.calibrate_leave_one_out(X[::-1], same_medium)
    with pytest.raises(InvalidSubjectsError, match="not the same"):
        recognizer.calibrate_leave_one_out(X, same_medium + 1)
    with pytest.raises(GalleryTooSmallError, match="at least 3"):
        OpenSetRecognizer(method="galue").fit(X[:4], [0, 0, 1, 1]).calibrate_leave_one_out(X[:4], [0, 0, 1, 1])
    with pytest.raises(InvalidParameterError, match="reads the gallery anew"):
        OpenSetRecognizer(method="holue-closed").fit(X, same_medium).calibrate_leave_one_out(X, same_medium)
    with pytest.raises(CalibrationDataError, match="no concentration"):
        OpenSetRecognizer(method="holue").fit(X, same_medium).calibrate_leave_one_out(X, same_medium)
    with pytest.raises(NotFittedYetError):
        OpenSetRecognizer(method="galue").calibrate_leave_one_out(X, same_medium)


def test_left_out_strangers_tell_how_the_threshold_follows_the_gallery(enrolled):
    samples, first = enrolled.gallery, enrolled.gallery.person < 100
    recognizer = OpenSetRecognizer(method="galue", hold="fpir", target_fpir=0.1, threads=1)
    recognizer.fit(samples.X[first], samples.person[first]).calibrate_leave_one_out(
        samples.X[first], samples.person[first]
    )
    recognizer.enroll(samples.X[~first], samples.person[~first])
    strangers = enrolled.probes.X[enrolled.probes.person >= 200]
    # The threshold rests on 100 people, and FPIR is measured on 400: three deviations of both.
    assert np.mean(recognizer.decision_function(strangers) >= 0) == pytest.approx(0.1, abs=0.1)


@pytest.mark.data
def test_on_real_faces_the_threshold_is_that_of_a_development_set(real_faces):
    X, y = real_faces
    _, row, count = np.unique(y, return_inverse=True, return_counts=True)
    several = np.random.default_rng(1).permutation(np.flatnonzero(count >= 3))
    order = np.argsort(row, kind="stable")
    rank = np.empty(len(y), dtype=int)
    rank[order] = np.arange(len(y)) - np.searchsorted(row[order], row[order])
    gallery, strangers = (np.isin(row, part) & (rank < 3) for part in (several[:450], several[450:]))
    recognizer = OpenSetRecognizer(method="galue", target_fpir=0.05, threads=1).fit(X[gallery], y[gallery])
    recognizer.calibrate_leave_one_out(X[gallery], y[gallery])
    accepted = recognizer.decision_function(X[strangers]) >= 0
    # About 450 people on either side: standard deviations of 0.01 in FPIR each, and people differ.
    assert accepted.mean() == pytest.approx(0.05, abs=0.035)


def enrolled_twice(pairs: int, concentration: float = 60.0):
    """100 subjects, of whom some are people enrolled under two names with half of their samples each, and probes."""
    rng = np.random.default_rng(0)
    world = simulate(
        n_subjects=100 - pairs,
        n_strangers=400,
        enrolled_samples=6,
        dim=64,
        concentration=concentration,
        look_alike_pairs=0,
        rng=rng,
    )
    y = world.gallery.person.copy()
    people = np.unique(y)[:pairs]
    for person in people:
        y[np.flatnonzero(y == person)[::2]] = 5000 + person
    return world, y, [(int(person), 5000 + int(person)) for person in people]


@pytest.mark.filterwarnings("ignore::holue.recognition.calibration.doubts.CalibrationWarning")
def test_people_enrolled_twice_do_not_raise_the_threshold_and_are_named():
    world, y, pairs = enrolled_twice(10)
    recognizer = OpenSetRecognizer().fit(world.gallery.X, y).calibrate_leave_one_out(world.gallery.X, y)
    answers = recognizer.identify(world.probes.X)
    stranger = ~np.isin(world.probes.person, y)
    # As strangers with the score of a mate they took FPIR to 0 and FNIR to 0.54.
    assert 0.02 < answers.accepted[stranger].mean() < 0.09
    assert answers.rejected[~stranger].mean() < 0.3
    assert answers.p_unknown[~stranger].mean() < 0.35
    (doubt,) = recognizer.doubts()
    assert doubt.about == "duplicates"
    assert "look like one person enrolled twice" in str(doubt)
    assert any(f"{one} and {other}" in str(doubt) for one, other in pairs)


def test_the_doubt_about_people_enrolled_twice_is_saved_and_goes_with_them(tmp_path):
    world, y, pairs = enrolled_twice(1, concentration=120.0)
    recognizer = OpenSetRecognizer().fit(world.gallery.X, y).calibrate_leave_one_out(world.gallery.X, y)
    recognizer.save(tmp_path / "saved")
    read = OpenSetRecognizer.load(tmp_path / "saved")
    assert [str(doubt) for doubt in read.doubts()] == [str(doubt) for doubt in recognizer.doubts()]
    assert len(read.doubts()) == 1
    assert read.remove(pairs[0][1]).doubts() == ()


def test_where_nobody_is_enrolled_twice_every_sample_is_a_stranger(enrolled):
    left = LeftOut.of(enrolled.gallery.X, enrolled.gallery.person)
    gallery = Gallery.from_samples(enrolled.gallery.X, enrolled.gallery.person)
    probes = leave_one_out.LeftOutProbes.of(
        "galue", enrolled.gallery.X, enrolled.gallery.person, None, None, "uniform", gallery
    )
    assert probes.strangers.all()
    assert len(probes.strangers) == len(left)


def test_a_pair_that_only_the_sensitive_rule_of_the_audit_reports_stays_among_the_strangers():
    reported = 0
    for seed in range(6):
        rng = np.random.default_rng(seed)
        world = simulate(
            n_subjects=60, n_strangers=2, enrolled_samples=4, dim=32, concentration=20.0, look_alike_pairs=0, rng=rng
        ).gallery
        left = LeftOut.of(world.X, world.person)
        probes = leave_one_out.LeftOutProbes.of("galue", world.X, world.person, None, None, "uniform", left.gallery)
        assert probes.strangers.all(), "nobody is enrolled twice"
        reported += len(duplicate_pairs(left)[0])
    assert reported > 0, "the audit would have reported some"


@pytest.mark.parametrize("pairs", [0, 10])
def test_look_alikes_who_set_the_threshold_are_named(pairs, tmp_path):
    rng = np.random.default_rng(0)
    world = simulate(n_subjects=100, concentration=120.0, look_alike_pairs=pairs, rng=rng)
    recognizer = OpenSetRecognizer().fit(world.gallery.X, world.gallery.y)
    recognizer.calibrate_leave_one_out(world.gallery.X, world.gallery.y)
    recognizer.save(tmp_path / "saved")
    doubts = OpenSetRecognizer.load(tmp_path / "saved").doubts()
    assert doubts == recognizer.doubts()
    assert [doubt.about for doubt in doubts] == ["look-alikes"] * (pairs > 0)
    if pairs:
        named = re.findall(r"(\d+) and (\d+)", str(doubts[0]))
        planted = {tuple(pair) for pair in np.sort(world.look_alikes, axis=1).tolist()}
        assert named
        assert {(int(one), int(other)) for one, other in named} <= planted
