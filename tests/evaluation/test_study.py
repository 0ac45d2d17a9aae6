"""An evaluation agrees with the recogniser, reads each part once, and says what it could not do."""

import json
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from holue.bench.sections.evaluation import simulated_protocol
from holue.errors import CalibrationDataError, GalleryTooSmallError, InvalidParameterError
from holue.evaluation.comparison.results import Results
from holue.evaluation.comparison.study import evaluate
from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.evaluation.intervals.estimates import bootstrap_calibration_error
from holue.evaluation.intervals.intervals import bootstrap_statistic
from holue.evaluation.metrics.calibration_error import expected_calibration_error
from holue.evaluation.metrics.rejection import prediction_rejection_ratio
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.evidence.scan import scan
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery
from holue.recognition.model.monte_carlo import sampled_terms, stratified_angles
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.quality import SCORES, holistic
from holue.recognition.quality.heads.residual_sigmoid import ResidualSigmoidHead
from holue.recognition.quality.heads.standardizer import Standardizer
from holue.recognition.recognizer import OpenSetRecognizer
from holue.recognition.search import gallery_search

FPIR = (0.05, 0.2)


@pytest.fixture(scope="module")
def protocol() -> IdentificationProtocol:
    return simulated_protocol(
        development={"n_subjects": 60, "n_strangers": 60},
        evaluation={"n_subjects": 50, "n_strangers": 50},
        dim=32,
        concentration=30.0,
        look_alike_pairs=8,
    )


@pytest.fixture(scope="module")
def results(protocol: IdentificationProtocol) -> Results:
    with pytest.MonkeyPatch.context() as patch:
        _quick_head(patch)
        return evaluate(protocol, fpir=FPIR, n_resamples=60)


def _quick_head(patch: pytest.MonkeyPatch) -> None:
    # Training is tested elsewhere; two thousand steps of it would take longer than everything here.
    patch.setattr(holistic, "ResidualSigmoidHead", partial(ResidualSigmoidHead, steps=60))


def without_concentration(part: ProtocolPart) -> ProtocolPart:
    return replace(part, probes=Embeddings(part.probes.directions), qualities={})


def faultless() -> IdentificationProtocol:
    def part(first: int) -> ProtocolPart:
        axes = np.eye(12)
        gallery = Gallery.from_samples(axes[:6], np.arange(6) + first)
        return ProtocolPart(gallery, Embeddings.from_samples(axes), np.arange(12) + first)

    return IdentificationProtocol("faultless", part(0), part(100))


def test_every_method_is_evaluated_at_every_operating_point(results: Results) -> None:
    expected = {"pfe", "scf", "sf", "own-quality", *(key for key in SCORES if key != "quality")}
    assert {method.key for method in results.methods} == expected
    assert not results.skipped
    for point in results.points:
        assert [result.method for result in point.methods] == list(results.methods)
        assert all(math.isfinite(result.prr.value) for result in point.methods if result.prr.value is not None)


@pytest.mark.parametrize("method", ["galue", "acceptance", "holue-sum", "holue", "holue-plus", "holue-closed"])
def test_qualities_and_decisions_are_those_of_the_recogniser(
    protocol: IdentificationProtocol, results: Results, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _quick_head(monkeypatch)
    dev, part = protocol.development, protocol.evaluation
    recognizer = OpenSetRecognizer(method, target_fpir=0.05).fit(part.gallery.directions, part.gallery.subjects)
    recognizer.calibrate(dev.probes.directions, dev.probe_subjects, dev.probes.concentrations, gallery=dev.gallery)
    answers = recognizer.identify(part.probes.directions, part.probes.concentrations)
    point = results.points[0]
    assert point.point.threshold == pytest.approx(recognizer.operating_point_.threshold, rel=1e-12)
    np.testing.assert_array_equal(answers.accepted, point.outcomes.accepted)
    quality = point.of(method).quality
    assert quality is not None
    # Embeddings are normalised once more on their way through fit, in float32; HolUE-plus's optimiser stops a little elsewhere.
    np.testing.assert_allclose(quality, answers.quality, rtol=2e-3, atol=0.03 if method == "holue-plus" else 2e-4)


def test_each_part_is_scanned_once_for_all_operating_points(
    protocol: IdentificationProtocol, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def counted(directions, gallery, sharpness, **settings):  # type: ignore[no-untyped-def]
        seen.append((len(directions), len(sharpness)))
        return scan(directions, gallery, sharpness, **settings)

    monkeypatch.setattr(gallery_search, "scan", counted)
    evaluate(protocol, fpir=(0.05, 0.1, 0.2), methods=["galue", "holue-sum"], n_resamples=5)
    strangers = int((~protocol.development.mated).sum())
    assert seen == [(strangers, 0), (len(protocol.evaluation.probes), 6), (len(protocol.development.probes), 6)]


def test_the_ratio_is_the_public_one_and_lies_in_its_interval(results: Results) -> None:
    for point in results.points:
        for result in point.methods:
            assert result.quality is not None
            assert result.prr.value is not None
            assert result.prr.low is not None
            assert result.prr.high is not None
            ratio = prediction_rejection_ratio(
                result.quality,
                mated=point.outcomes.mated,
                accepted=point.outcomes.accepted,
                correct_subject=point.outcomes.correct_subject,
            )
            assert result.prr.value == pytest.approx(ratio, abs=1e-9), "ten digits are kept"
            assert result.prr.low <= result.prr.high


def test_the_threshold_comes_from_development_unless_asked(protocol: IdentificationProtocol) -> None:
    quick = {"fpir": 0.1, "methods": "galue", "n_resamples": 5}
    fair, oracle = evaluate(protocol, **quick), evaluate(protocol, **quick, threshold_from="eval")  # type: ignore[arg-type]
    part = protocol.evaluation
    strangers = scan(part.probes.directions[~part.mated], part.gallery, [], top_k=1).top_scores[:, 0]
    assert np.mean(strangers >= oracle.points[0].point.threshold) == pytest.approx(0.1, abs=1 / len(strangers))
    dev = fair.points[0].development
    assert dev.n_subjects == len(protocol.development.gallery)
    assert fair.points[0].point == dev.for_gallery(len(part.gallery), "fpir")
    assert fair.points[0].point.prior == dev.prior
    assert "ORACLE" in oracle.document()["threshold"]["label"]
    assert "ORACLE" in oracle.answer
    assert "ORACLE" not in json.dumps(fair.document())


def test_methods_without_their_data_are_skipped_with_a_reason(protocol: IdentificationProtocol) -> None:
    bare = IdentificationProtocol(
        "bare", without_concentration(protocol.development), without_concentration(protocol.evaluation)
    )
    results = evaluate(bare, fpir=0.1, n_resamples=5)
    assert {method.key for method in results.methods} == {
        "acceptance",
        "galue",
        "galue-entropy",
        "holue-plus",
        "holue-f1",
    }
    reasons = {method.key: method.reason for method in results.skipped}
    assert "concentration" in reasons["holue"]
    assert "variance" in reasons["pfe"]
    with pytest.raises(InvalidParameterError, match=r"none of them can be evaluated.*concentration"):
        evaluate(bare, methods="holue")


def test_a_column_of_another_name_is_a_method(protocol: IdentificationProtocol) -> None:
    def with_norm(part: ProtocolPart) -> ProtocolPart:
        return replace(part, qualities={"norm": np.arange(len(part.probes), dtype=float)})

    named = IdentificationProtocol("norms", with_norm(protocol.development), with_norm(protocol.evaluation))
    assert evaluate(named, fpir=0.1, methods="norm", n_resamples=5).points[0].of("norm").prr.value is not None


def test_without_errors_numbers_are_null_with_a_reason() -> None:
    results = evaluate(faultless(), fpir=0.2, n_resamples=10)
    document = results.document()
    text = json.dumps(document, allow_nan=False)
    point = document["operating_points"][0]
    assert point["methods"]["galue"]["prr_f1"]["value"] is None
    assert "every decision is correct" in point["methods"]["galue"]["prr_f1"]["reason"], text
    assert "cannot be fitted" in point["methods"]["holue-plus"]["prr_f1"]["reason"]
    assert "no method can be ranked" in results.answer


def test_the_same_seed_gives_the_same_document_and_another_does_not(protocol: IdentificationProtocol) -> None:
    def run(seed: int) -> str:
        results = evaluate(protocol, fpir=0.1, methods=["galue", "holue-mc"], n_resamples=20, seed=seed)
        return json.dumps(results.document())

    assert run(1) == run(1)
    assert run(1) != run(2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"fpir": 0.0}, "fpir must lie strictly between 0 and 1, got 0"),
        ({"fpir": (0.1, 1.5)}, "strictly between 0 and 1, got 1.5"),
        ({"fpir": (0.1, 0.1)}, "each target once"),
        ({"fpir": ()}, "at least one target"),
        ({"fpir": "many"}, "numbers between 0 and 1"),
        ({"methods": "galeu"}, "'galeu' is not known; choose from pfe, scf, .*galue.*holue"),
        ({"methods": []}, "at least one method"),
        ({"threshold_from": "test"}, "'dev'.*'eval'.*got 'test'"),
        ({"n_resamples": 0}, "n_resamples must be a whole number of at least 1"),
        ({"seed": -1}, "seed"),
        ({"temperature": 0}, "temperature must be positive"),
        ({"max_rejection": 0}, "max_rejection"),
    ],
)
def test_wrong_settings_are_named(protocol: IdentificationProtocol, settings: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        evaluate(protocol, **settings)  # type: ignore[arg-type]


def test_a_target_finer_than_the_strangers_is_refused(protocol: IdentificationProtocol) -> None:
    with pytest.raises(CalibrationDataError, match=r"target_fpir=0.0001 is finer than 240 non-mated"):
        evaluate(protocol, fpir=0.0001)


def test_a_gallery_of_one_is_refused(protocol: IdentificationProtocol) -> None:
    part = protocol.development
    alone = replace(part, gallery=Gallery.of(part.gallery.subjects[:1], part.gallery.directions[:1]))
    with pytest.raises(GalleryTooSmallError, match="the development gallery holds 1 subject"):
        evaluate(IdentificationProtocol("alone", alone, protocol.evaluation))


def test_test_normalisation_uses_the_evaluation_terms_and_the_development_head(results: Results) -> None:
    from holue.evaluation.comparison.point_study import normalised_on
    from holue.recognition.quality.holistic_sum import HolisticSumQuality
    from holue.recognition.reading import Reading

    part, point = results.protocol.evaluation, results.points[0].point
    reading = Reading.of(part.probes, part.gallery, point, temperature=20.0)
    score, own = HolisticSumQuality(), Standardizer()
    own.fit(score.terms(reading))
    np.testing.assert_allclose(normalised_on(score, reading), own(score.terms(reading)).sum(axis=1))
    assert set(results.points[0].normalisation) == {"holue-sum", "holue"}


def test_the_samples_of_several_operating_points_are_those_of_each_alone(protocol: IdentificationProtocol) -> None:
    part = protocol.evaluation
    probes = part.probes.take(slice(0, 40))
    points = [OperatingPoint.solve(dim=32, n_subjects=len(part.gallery), threshold=t) for t in (0.5, 0.7)]
    for point, terms in zip(points, sampled_terms(probes, part.gallery, points, temperature=5.0)):
        np.testing.assert_array_equal(terms, sampled_terms(probes, part.gallery, [point], temperature=5.0)[0])


def test_shared_samples_do_not_depend_on_the_neighbours(protocol: IdentificationProtocol) -> None:
    part = protocol.evaluation
    point = OperatingPoint.solve(dim=32, n_subjects=len(part.gallery), threshold=0.6)
    whole = sampled_terms(part.probes, part.gallery, [point], temperature=20.0)[0]
    alone = sampled_terms(part.probes.take(slice(300, 301)), part.gallery, [point], temperature=20.0)[0]
    # One row at a time BLAS sums in another order, in float32.
    np.testing.assert_allclose(whole[300:301], alone, rtol=1e-4)


@pytest.mark.parametrize("dim", [2, 3, 512])
@pytest.mark.parametrize("kappa", [0.5, 50.0, 1e5])
def test_stratified_angles_have_the_mean_cosine_of_the_distribution(dim: int, kappa: float) -> None:
    from holue.sphere.bessel import mean_resultant_length

    angles = stratified_angles(dim, np.array([kappa]), 400)
    assert (np.diff(angles) > 0).all()
    # Midpoint quantiles: the error is of the order of the spread over the number of strata.
    assert np.cos(angles).mean() == pytest.approx(float(mean_resultant_length(dim, kappa)), abs=2e-3)


def test_the_resampled_calibration_error_is_the_slow_one() -> None:
    rng = np.random.default_rng(0)
    subject, p = rng.integers(20, size=200), rng.random(200)
    correct = rng.random(200) < p**2
    resamples = SubjectBootstrap.draw(subject, n_resamples=12, rng=0)
    fast = bootstrap_calibration_error(p, correct=correct, resamples=resamples)
    slow = bootstrap_statistic(
        "ece", lambda rows: expected_calibration_error(p[rows], correct=correct[rows]), resamples
    )
    np.testing.assert_allclose(fast.replicates, slow.replicates, atol=1e-12)
    assert fast.estimate == pytest.approx(slow.estimate)
