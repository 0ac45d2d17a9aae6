"""The FPIR of an operating point has an interval over people, and a promised FPIR is kept."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom, norm

import holue
from holue import OpenSetRecognizer
from holue.datasets.simulated import simulate
from holue.errors import CalibrationDataError, InvalidParameterError
from holue.gallery.embeddings import Float64Array
from holue.recognition.calibration.doubts import CalibrationWarning
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.model.stranger_tail import StrangerTail, comparison_quantile
from holue.recognition.model.strangers import Strangers
from holue.recognition.risk.binomial import clopper_pearson

SIZE, SPREAD = 100, 0.07


def best_of(n: int, size: int, rng: np.random.Generator) -> Float64Array:
    """Best scores of strangers whose single comparisons are normal."""
    return SPREAD * norm.ppf(rng.random(n) ** (1 / size))


def true_fpir(threshold: float, size: int) -> float:
    return float(-np.expm1(size * norm.logcdf(threshold / SPREAD)))


def at_most(broken: int, trials: int, share: float) -> bool:
    """Whether so many broken promises are possible where each is broken with at most this probability."""
    return bool(binom.sf(broken - 1, trials, share) > 0.001)


def test_with_one_probe_each_the_interval_is_clopper_and_pearsons():
    scores = np.random.default_rng(0).random(250)
    threshold = float(np.sort(scores)[-8])
    assert Strangers.of(scores).bounds(threshold, 0.95) == pytest.approx(clopper_pearson(8, 250, 0.9))


def test_the_same_probes_again_make_nothing_surer():
    scores = np.random.default_rng(0).random(100)
    once = Strangers.of(scores).bounds(0.9, 0.95)
    tenfold = Strangers.of(np.repeat(scores, 10), np.repeat(np.arange(100), 10)).bounds(0.9, 0.95)
    assert tenfold == pytest.approx(once)
    naive = Strangers.of(np.repeat(scores, 10)).bounds(0.9, 0.95)
    assert naive[1] - naive[0] < 0.5 * (once[1] - once[0])


@pytest.mark.parametrize("same_people", [False, True])
def test_variance_over_people_on_either_side_agrees_with_a_sum_over_pairs(same_people: bool):
    rng = np.random.default_rng(3)
    person, nearest = rng.integers(12, size=60), rng.integers(12, size=60)
    nearest = np.where(person == nearest, (nearest + 1) % 12, nearest)
    strangers = Strangers.of(rng.random(60), person, nearest=nearest, same_people=same_people)
    influence = rng.normal(size=60) + (person % 3) + 2 * (nearest % 2)
    members = [{("p", int(a)), ("p" if same_people else "e", int(b))} for a, b in zip(person, nearest)]
    slow = sum(
        influence[i] * influence[j] for i in range(60) for j in range(60) if members[i] & members[j]
    )  # every two probes that share anybody
    by_person: dict[int, float] = defaultdict(float)
    for who, value in zip(person, influence):
        by_person[int(who)] += value
    assert strangers.variance(influence) == pytest.approx(max(slow, sum(v**2 for v in by_person.values())))


@pytest.mark.parametrize(("people", "target"), [(300, 0.05), (300, 0.01), (60, 0.01)])
@pytest.mark.parametrize("grown", [SIZE, 20 * SIZE])
def test_a_promised_fpir_is_kept_whatever_the_size(people: int, target: float, grown: int):
    rng, broken, aimed = np.random.default_rng([people, grown]), 0, 0
    for _ in range(120):
        scores = best_of(people, SIZE, rng)
        point = OperatingPoint.at_fpir(scores, target, dim=128, n_subjects=SIZE, confidence=0.95)
        broken += true_fpir(point.for_gallery(grown, "fpir").threshold, grown) > target
        if people * target >= 1:
            plain = OperatingPoint.at_fpir(scores, target, dim=128, n_subjects=SIZE)
            aimed += true_fpir(plain.for_gallery(grown, "fpir").threshold, grown) > target
    assert at_most(broken, 120, 0.05)
    assert people * target < 1 or aimed > 30  # aiming at the target breaks it often


def test_a_promise_is_kept_after_growth_where_the_tail_is_heavier_than_normal():
    # One comparison scores exponentially: the heaviest tail whose hazard does not fall.
    rng = np.random.default_rng(5)
    grown, target, broken, normal = 2000, 0.05, 0, 0
    for _ in range(200):
        scores = -SPREAD * np.log1p(-(rng.random(300) ** (1 / SIZE)))
        point = OperatingPoint.at_fpir(scores, target, dim=128, n_subjects=SIZE, confidence=0.95)

        def fpir(threshold: float) -> float:
            return float(-np.expm1(grown * np.log1p(-np.exp(-threshold / SPREAD))))

        there = point.for_gallery(grown, "fpir")
        broken += fpir(there.threshold) > target
        assert point.tail is not None
        assert there.fpir_interval is not None
        assert there.fpir_interval.high <= target * (1 + 1e-6)
        step = point.tail.deviation_bound(0.95) * (
            comparison_quantile(grown, target) - comparison_quantile(SIZE, target)
        )
        normal += fpir(point.threshold + step) > target
    assert at_most(broken, 200, 0.05)
    assert not at_most(normal, 200, 0.05), "a normal tail would not keep it"


def test_a_promise_is_kept_with_several_probes_of_each_person():
    """Half of the variance of a score is its person's."""
    rng, broken, n = np.random.default_rng(5), 0, 120
    for _ in range(n):
        person = np.repeat(np.arange(150), 6)
        scores = (rng.normal(size=150)[person] + rng.normal(size=len(person))) / np.sqrt(2) * 0.1
        threshold, _ = Strangers.of(scores, person).threshold(0.05, 0.95)
        broken += norm.sf(threshold / 0.1) > 0.05
    assert at_most(broken, n, 0.05)


def test_the_interval_covers_the_true_fpir_at_other_sizes():
    rng, missed = np.random.default_rng(7), 0
    for _ in range(100):
        point = OperatingPoint.at_fpir(best_of(300, SIZE, rng), 0.05, dim=128, n_subjects=SIZE).for_gallery(
            1000, "fpir"
        )
        interval = point.fpir_interval
        assert interval is not None
        missed += not interval.low <= true_fpir(point.threshold, 1000) <= interval.high
    assert at_most(missed, 100, 0.1)


def test_the_error_of_the_tail_is_that_of_repeated_samples():
    rng = np.random.default_rng(11)
    tails = [StrangerTail.of(best_of(400, SIZE, rng), n_subjects=SIZE, target_fpir=0.05) for _ in range(80)]
    spread = np.std(np.log([tail.deviation for tail in tails]))
    assert np.median([tail.error for tail in tails if tail.error is not None]) == pytest.approx(spread, rel=0.35)


def test_calibration_says_what_its_people_cannot_show_and_how_many_could(tmp_path: Path):
    world = simulate(n_subjects=40, n_strangers=40, probes_per_person=5, rng=np.random.default_rng(0))
    recognizer = OpenSetRecognizer("galue", target_fpir=0.02).fit(world.gallery.X, world.gallery.y)
    with pytest.warns(CalibrationWarning, match=r"strangers of 40 people.*bring about 51 people"):
        recognizer.calibrate(world.probes.X, world.probes.person)
    printed = str(recognizer.operating_point_)
    assert "FPIR with 40 subjects: " in printed
    assert "over 40 people" in printed


def test_a_promise_is_saved_shown_and_stricter(tmp_path: Path):
    world = simulate(n_subjects=60, n_strangers=200, probes_per_person=3, rng=np.random.default_rng(1))

    def calibrated(confidence: float | None) -> OpenSetRecognizer:
        recognizer = OpenSetRecognizer("galue", target_fpir=0.05, fpir_confidence=confidence)
        return recognizer.fit(world.gallery.X, world.gallery.y).calibrate(world.probes.X, world.probes.person)

    aimed, promised = calibrated(None), calibrated(0.95)
    assert promised.operating_point_.threshold > aimed.operating_point_.threshold
    assert promised.operating_point_.interval is not None
    assert promised.operating_point_.interval.high <= 0.05 < aimed.operating_point_.interval.high  # type: ignore[union-attr]
    promised.save(tmp_path / "kept")
    loaded = OpenSetRecognizer.load(tmp_path / "kept")
    assert loaded.operating_point_ == promised.operating_point_
    assert loaded.fpir_confidence == 0.95
    grown = simulate(n_subjects=600, look_alike_pairs=0, first_subject=1000, rng=np.random.default_rng(2)).gallery
    for recognizer in (aimed, promised, loaded):
        recognizer.enroll(grown.X, grown.y)
    assert promised.operating_point_ == loaded.operating_point_
    assert promised.operating_point_.fpir_interval.high == pytest.approx(  # type: ignore[union-attr]
        0.05, abs=0.01
    )


def test_leave_one_out_counts_look_alikes_on_both_sides():
    """In a pair of look-alikes each is accepted as the other: one chance event, seen twice."""
    scores = np.concatenate([np.full(10, 0.9), np.linspace(0, 0.5, 190)])
    pairs = np.concatenate([np.arange(10) ^ 1, np.arange(10, 200) ^ 1])
    alone = Strangers.of(scores, np.arange(200)).bounds(0.8, 0.95)
    paired = Strangers.of(scores, np.arange(200), nearest=pairs, same_people=True).bounds(0.8, 0.95)
    assert paired[1] > alone[1] + 0.01


def test_strangers_who_are_all_alike_can_promise_nothing_beyond_their_number():
    with pytest.raises(CalibrationDataError, match="bring about 299 people"):
        OperatingPoint.at_fpir(np.full(50, 0.2), 0.01, dim=64, n_subjects=10, confidence=0.95)
    assert OperatingPoint.at_fpir(np.full(400, 0.2), 0.01, dim=64, n_subjects=10, confidence=0.95).threshold > 0.2


def test_an_open_gallery_keeps_the_promise_and_shows_it(tmp_path: Path):
    samples = simulate(n_subjects=80, look_alike_pairs=0, enrolled_samples=4, rng=np.random.default_rng(3)).gallery
    with holue.open(tmp_path / "g", dim=128, create=True, method="galue", target_fpir=0.05, fpir_confidence=0.95) as g:
        g.enroll(samples.X, samples.person.tolist())
        g.calibrate()
        status = g.status()
    assert status.expected_fpir is not None
    assert status.expected_fpir.n_people == 80
    assert status.expected_fpir.high <= 0.06
    assert status.settings["fpir_confidence"] == 0.95
    with holue.open(tmp_path / "g", read_only=True) as again:
        assert again.status().expected_fpir == status.expected_fpir
        assert again.status().to_dict()["expected_fpir"]["n_people"] == 80


def test_a_confidence_out_of_range_is_refused():
    with pytest.raises(InvalidParameterError, match="fpir_confidence must lie strictly between 0 and 1, got 95"):
        OpenSetRecognizer(fpir_confidence=95).fit(np.eye(3), [1, 2, 3])
