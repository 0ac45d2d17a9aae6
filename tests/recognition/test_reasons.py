"""Reasons, in worlds where the cause is known."""

import numpy as np
import pytest

from holue.datasets.simulated import SimulatedWorld, simulate
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery
from holue.recognition.calibration.truth import correct_answers, truth_numbers
from holue.recognition.causes import CAUSES, causes
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.quality.calibrated import CalibratedQuality
from holue.recognition.reading import Reading
from holue.recognition.reasons import explain


def read(world: SimulatedWorld, probes: Embeddings, point: OperatingPoint) -> Reading:
    gallery = Gallery.from_samples(world.gallery.X, world.gallery.y)
    return Reading.of(probes, gallery, point.for_gallery(len(gallery)), temperature=20.0)


@pytest.fixture(scope="module")
def big() -> SimulatedWorld:
    return simulate(
        n_subjects=150,
        n_strangers=150,
        dim=64,
        concentration=80.0,
        quality_spread=0.8,
        look_alike_pairs=40,
        look_alike_cosine=0.85,
        rng=np.random.default_rng(0),
    )


@pytest.fixture(scope="module")
def quality(big: SimulatedWorld) -> tuple[CalibratedQuality, OperatingPoint, Reading]:
    point = OperatingPoint.solve(dim=64, n_subjects=150, threshold=0.5)
    reading = read(big, Embeddings.from_samples(big.probes.X, big.probes.concentration), point)
    score = CalibratedQuality()
    truth = truth_numbers(reading.search, big.probes.y, len(reading))
    score.fit(reading, correct_answers(reading, truth), np.random.default_rng(0))
    return score, point, reading


def test_shares_add_up_to_the_uncertainty(quality) -> None:  # type: ignore[no-untyped-def]
    score, _, reading = quality
    reasons = explain(reading, score.judge, score.typical)
    np.testing.assert_allclose(reasons.uncertainty, 1 - score(reading), atol=1e-12)


def test_a_probe_between_two_subjects_is_told_so(big: SimulatedWorld, quality) -> None:  # type: ignore[no-untyped-def]
    score, point, _ = quality
    middle = big.means[big.look_alikes[:, 0]] + big.means[big.look_alikes[:, 1]]
    reasons = explain(read(big, Embeddings.from_samples(middle, 80.0), point), score.judge, score.typical)
    named = [cause == "look-alike" for cause in reasons.main_cause]
    assert np.mean(named) > 0.7
    sentence = next(s for s, yes in zip(reasons.sentences, named) if yes)
    assert sentence.startswith("between ")


def test_a_probe_at_the_threshold_is_told_so(big: SimulatedWorld, quality) -> None:  # type: ignore[no-untyped-def]
    score, point, reading = quality
    # A probe exactly at the threshold from a subject without a look-alike, of good quality.
    rng = np.random.default_rng(1)
    anchor = reading.search.gallery.directions[100:140]
    across = rng.normal(size=anchor.shape)
    across -= np.sum(across * anchor, axis=1, keepdims=True) * anchor
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    s = point.threshold + 0.005
    at = s * anchor + np.sqrt(1 - s**2) * across
    reasons = explain(read(big, Embeddings.from_samples(at, 300.0), point), score.judge, score.typical)
    assert np.mean([cause == "boundary" for cause in reasons.main_cause]) > 0.6  # by chance: a third
    assert any("just above the threshold: 0.50" in sentence for sentence in reasons.sentences)


def test_a_poor_sample_is_told_so(big: SimulatedWorld, quality) -> None:  # type: ignore[no-untyped-def]
    score, point, reading = quality
    # Rejected probes of poor quality: whether they show somebody enrolled cannot be seen from the scores.
    far = ~reading.accepted & (reading.point.threshold - reading.best_score > 0.1)
    poor = Embeddings(reading.probes.directions[far], np.full(int(far.sum()), 5.0))
    reasons = explain(read(big, poor, point), score.judge, score.typical)
    assert np.mean([cause == "sample" for cause in reasons.main_cause]) > 0.8
    assert any(s.startswith("poor sample: concentration 5, typical") for s in reasons.sentences)


@pytest.mark.parametrize("accepted", [False, True])
@pytest.mark.parametrize("cause", CAUSES)
def test_an_uncertain_answer_names_its_largest_cause_however_typical_it_is(quality, cause: str, accepted: bool) -> None:  # type: ignore[no-untyped-def]
    _, _, reading = quality
    one = reading.take(np.flatnonzero(reading.accepted == accepted)[:1])
    own = causes(one)
    gain = np.where(np.array(CAUSES) == cause, 0.3, 0.1)

    def judge(features, _):  # type: ignore[no-untyped-def]
        return 0.4 + (features > own + 1) @ gain  # better in this cause, such an answer would be right far more often

    reasons = explain(one, judge, own.repeat(2, axis=0))
    assert reasons.uncertainty == pytest.approx(0.6)
    assert (reasons.shares == 0).all(), "it is typical"
    assert reasons.main_cause == (cause,)
    assert ", as is usual here: " in reasons.sentences[0]


def test_where_nothing_matters_an_uncertain_answer_is_still_not_clear(quality) -> None:  # type: ignore[no-untyped-def]
    _, _, reading = quality
    typical = np.median(causes(reading), axis=0)[None].repeat(2, axis=0)
    coin = explain(reading, lambda features, accepted: np.full(len(features), 0.5), typical)
    assert set(coin.main_cause) == {"none"}
    assert all(sentence.startswith("uncertain as all such answers are") for sentence in coin.sentences)
    sure = explain(reading, lambda features, accepted: np.full(len(features), 0.99), typical)
    assert set(sure.sentences) == {"clear"}


def test_without_concentrations_two_causes_remain(big: SimulatedWorld, quality) -> None:  # type: ignore[no-untyped-def]
    _, point, _ = quality
    reading = read(big, Embeddings.from_samples(big.probes.X), point)
    score = CalibratedQuality()
    truth = truth_numbers(reading.search, big.probes.y, len(reading))
    score.fit(reading, correct_answers(reading, truth), np.random.default_rng(0))
    reasons = explain(reading, score.judge, score.typical)
    np.testing.assert_allclose(reasons.uncertainty, 1 - score(reading), atol=1e-12)
    assert (reasons.shares[:, 2] == 0).all()
