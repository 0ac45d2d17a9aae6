"""Reasons, in worlds where the cause is known."""

import re
from dataclasses import replace

import numpy as np
import pytest

from holue.datasets.simulated import SimulatedWorld, simulate
from holue.gallery.embeddings import Embeddings, Float64Array
from holue.gallery.gallery import Gallery
from holue.recognition.answer.causes import causes
from holue.recognition.answer.probabilities import Probabilities
from holue.recognition.answer.reasons import Reasons, Typical, explain
from holue.recognition.calibration.truth import truth_numbers
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.quality.calibrated import CalibratedQuality
from holue.recognition.reading import Reading

Fitted = tuple[CalibratedQuality, OperatingPoint, Reading]


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


@pytest.fixture(scope="module", params=[True, False], ids=["with κ", "without κ"])
def fitted(big: SimulatedWorld, request) -> Fitted:  # type: ignore[no-untyped-def]
    point = OperatingPoint.solve(dim=64, n_subjects=150, threshold=0.5)
    kappa = big.probes.concentration if request.param else None
    reading = read(big, Embeddings.from_samples(big.probes.X, kappa), point)
    score = CalibratedQuality()
    truth = truth_numbers(reading.search, big.probes.y, len(reading))
    score.fit(reading, truth, np.random.default_rng(0))
    return score, point, reading


def asked(fitted: Fitted, world: SimulatedWorld, X: Float64Array, kappa: float) -> tuple[Reading, Reasons]:
    score, point, reading = fitted
    probes = Embeddings.from_samples(X, None if reading.probes.concentrations is None else kappa)
    new = read(world, probes, point)
    return new, score.explain(new)


def named(reasons: Reasons, cause: str) -> float:
    return float(np.mean([one == cause for one in reasons.main_cause]))


def test_shares_add_up_to_the_uncertainty(fitted: Fitted) -> None:
    score, _, reading = fitted
    reasons = score.explain(reading)
    np.testing.assert_allclose(reasons.uncertainty, 1 - score(reading), atol=1e-12)
    if reading.probes.concentrations is None:
        assert (reasons.shares[:, 2] == 0).all()


def test_what_was_judged_already_is_not_judged_again_and_the_reasons_are_the_same_bits(fitted: Fitted) -> None:
    score, _, reading = fitted
    answers = score.probabilities(reading)
    assert answers.enrolled is not None
    known, anew = score.explain(reading, answers), score.explain(reading, replace(answers, enrolled=None))
    np.testing.assert_array_equal(known.shares, anew.shares)
    assert known.sentences == anew.sentences


def test_a_probe_half_way_between_two_templates_is_uncertain_and_told_so(big: SimulatedWorld, fitted: Fitted) -> None:
    _, _, reading = fitted
    templates = reading.search.gallery.directions.astype(np.float64)
    pairs = np.random.default_rng(2).integers(len(templates), size=(300, 2))
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    new, reasons = asked(fitted, big, templates[pairs[:, 0]] + templates[pairs[:, 1]], 80.0)
    assert new.accepted.all()
    assert (reasons.uncertainty >= 0.5 - 1e-4).all(), "scores are float32: the gap is not exactly 0"
    assert named(reasons, "look-alike") >= 0.9
    assert sum(sentence.startswith("between ") for sentence in reasons.sentences) >= 0.9 * len(new)


@pytest.mark.parametrize("off", [-0.009, -0.003, 0.003, 0.009])
def test_a_probe_at_the_threshold_is_told_so(big: SimulatedWorld, fitted: Fitted, off: float) -> None:
    _, point, reading = fitted
    rng = np.random.default_rng(1)
    anchor = reading.search.gallery.directions[100:140].astype(np.float64)  # subjects without a look-alike
    across = rng.normal(size=anchor.shape)
    across -= np.sum(across * anchor, axis=1, keepdims=True) * anchor
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    s = point.threshold + off
    _, reasons = asked(fitted, big, s * anchor + np.sqrt(1 - s**2) * across, 300.0)
    assert named(reasons, "boundary") >= 0.9
    side = "above" if off > 0 else "below"
    assert f"just {side} the threshold: {s:.3f} against 0.500" in reasons.sentences


def test_a_poor_sample_is_told_so(big: SimulatedWorld, fitted: Fitted) -> None:
    _, _, reading = fitted
    if reading.probes.concentrations is None:
        pytest.skip("without concentrations nothing is known about the sample")
    # Rejected probes of poor quality: whether they show somebody enrolled cannot be seen from the scores.
    far = ~reading.accepted & (reading.point.threshold - reading.best_score > 0.1)
    _, reasons = asked(fitted, big, reading.probes.directions[far], 5.0)
    assert named(reasons, "sample") > 0.7
    assert any(s.startswith("poor sample: concentration 5, typical") for s in reasons.sentences)


@pytest.mark.parametrize(
    ("concentration", "told"), [(335.0, "sample no better than usual"), (300.0, "poor sample"), (40.0, "poor sample")]
)
@pytest.mark.parametrize("is_usual", [False, True])
def test_a_sample_is_called_poor_only_where_it_is_clearly_poorer_than_the_typical_one(
    big: SimulatedWorld, concentration: float, told: str, is_usual: bool
) -> None:
    point = OperatingPoint.solve(dim=64, n_subjects=150, threshold=0.5)
    kappa = np.full(len(big.probes.X), concentration)
    reading = read(big, Embeddings.from_samples(big.probes.X, kappa), point)
    rejected = np.flatnonzero(~reading.accepted & (point.threshold - reading.best_score > 0.05))
    one = reading.take(rejected[:1])
    own = causes(one)
    typical = own.repeat(2, axis=0)
    typical[1, 2] = -np.log(337.0)
    typical[0, 2] = own[0, 2] if is_usual else own[0, 2] - 1.0

    def judge(features: Float64Array) -> Float64Array:
        return 0.6 - 0.3 * (features[:, 2] < own[0, 2] - 0.5)

    answer = Probabilities(np.array([[0.6, 0.0]]), np.array([0.4]), True)
    reasons = explain(one, answer, judge, Typical(typical, np.ones(2), own[0, 2]))
    assert reasons.main_cause == ("sample",)
    suffix = ", as is usual here" if is_usual and told == "poor sample" else ""
    assert reasons.sentences == (f"{told}{suffix}: concentration {concentration:.0f}, typical 337",)


def test_no_sentence_contradicts_the_numbers_beside_it(fitted: Fitted) -> None:
    score, _, reading = fitted
    probabilities, reasons = score.probabilities(reading), score.explain(reading)
    for i, sentence in enumerate(reasons.sentences):
        numbers = [float(number) for number in re.findall(r"\d+\.\d+", sentence.rpartition(": ")[2])]
        if sentence.startswith("between "):
            p = probabilities.candidates[i]
            assert reading.accepted[i]
            assert p[1:].sum() + 1e-9 >= numbers[1] - 0.005 or "several" in sentence
            assert numbers[0] == pytest.approx(p[0], abs=0.005)
            assert 1 - probabilities.nobody[i] - p[0] >= probabilities.nobody[i], "another subject, not nobody"
        elif "the threshold" in sentence and numbers:
            assert numbers[0] == pytest.approx(reading.best_score[i], abs=0.0005)
            assert ("above" in sentence) <= (numbers[0] >= numbers[1])
            assert ("below" in sentence) <= (numbers[0] <= numbers[1])
        elif sentence == "clear":
            assert reasons.uncertainty[i] < 0.1


@pytest.mark.parametrize("cause", ["boundary", "sample"])
def test_an_uncertain_rejection_is_told_a_poor_sample_or_else_the_boundary_however_typical_it_is(
    big: SimulatedWorld, cause: str
) -> None:
    point = OperatingPoint.solve(dim=64, n_subjects=150, threshold=0.5)
    reading = read(big, Embeddings.from_samples(big.probes.X, big.probes.concentration), point)
    rejected = np.flatnonzero(~reading.accepted & (np.abs(reading.best_score - reading.point.threshold) > 0.01))
    one = reading.take(rejected[:1])
    own = causes(one)
    gain = np.array([0.3, 0.0, 0.3])

    def judge(features: Float64Array) -> Float64Array:
        return 0.6 - (features < own - 1) @ gain  # lower in either, such an answer would be wrong far less often

    answer = Probabilities(np.array([[0.6, 0.0]]), np.array([0.4]), True)
    poor = own[0, 2] + (-0.1 if cause == "sample" else 0.1)  # from here on samples are poor
    reasons = explain(one, answer, judge, Typical(own.repeat(2, axis=0), np.ones(2), poor))
    assert reasons.uncertainty == pytest.approx(0.6)
    assert (reasons.shares == 0).all(), "it is typical"
    assert reasons.main_cause == (cause,)
    sentence = reasons.sentences[0]
    assert ", as is usual here: " in sentence or sentence.startswith(("just ", "sample no better than usual: "))


def test_where_nothing_matters_an_uncertain_answer_is_still_not_clear(fitted: Fitted) -> None:
    _, _, reading = fitted
    reading = reading.take(np.flatnonzero(np.abs(reading.best_score - reading.point.threshold) > 0.01))
    typical = Typical(np.median(causes(reading), axis=0)[None].repeat(2, axis=0), np.ones(2))
    n, accepted = len(reading), reading.accepted
    for p, told in ((0.5, "uncertain as all such answers are"), (0.99, "clear")):
        enrolled = np.where(accepted, p, 1 - p)
        answers = Probabilities(np.column_stack([enrolled, np.zeros(n)]), 1 - enrolled, True)

        def judge(features: Float64Array, p: float = p) -> Float64Array:
            return np.where(accepted[: len(features)] if len(features) == n else p == 0.5, p, 1 - p)

        reasons = explain(reading, answers, judge, typical)
        assert set(reasons.main_cause) == {"none"}
        assert all(sentence.startswith(told) for sentence in reasons.sentences)


def test_poor_samples_are_like_those_of_missed_subjects_and_poorer_than_those_of_recognised_ones(
    big: SimulatedWorld, fitted: Fitted
) -> None:
    score, _, reading = fitted
    if reading.probes.concentrations is None:
        pytest.skip("without concentrations nothing is known about the sample")
    typical, mated = score.typical, truth_numbers(reading.search, big.probes.y, len(reading)) >= 0
    assert typical is not None
    poor = causes(reading)[:, 2] >= typical.poor
    assert poor[mated & ~reading.accepted].mean() > 0.5
    assert poor[mated & reading.accepted].mean() <= 0.5
