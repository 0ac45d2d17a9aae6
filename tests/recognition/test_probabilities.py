"""One distribution per answer: it sums to 1, agrees with the uncertainty, is monotone and calibrated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue import UNKNOWN, OpenSetRecognizer
from holue.datasets.simulated import SimulatedWorld, simulate
from holue.evaluation.metrics.calibration_error import expected_calibration_error
from holue.gallery.embeddings import Embeddings
from holue.gallery.gallery import Gallery
from holue.recognition.answer.identifications import Identifications
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.quality import SCORES
from holue.recognition.quality.calibrated import CalibratedQuality
from holue.recognition.quality.candidate_shares import CandidateShares
from holue.recognition.reading import Reading


def world(first: int, seed: int) -> SimulatedWorld:
    return simulate(
        n_subjects=120,
        n_strangers=120,
        dim=64,
        concentration=60.0,
        first_subject=first,
        rng=np.random.default_rng(seed),
    )


@pytest.fixture(scope="module")
def worlds() -> tuple[SimulatedWorld, SimulatedWorld]:
    return world(0, 0), world(1000, 1)


def calibrated(method: str, worlds: tuple[SimulatedWorld, SimulatedWorld], kappa: bool = True) -> OpenSetRecognizer:
    known, others = worlds
    recognizer = OpenSetRecognizer(method).fit(known.gallery.X, known.gallery.y)
    given_kappa = others.probes.concentration if kappa else None
    return recognizer.calibrate(
        others.probes.X, others.probes.y, given_kappa, gallery=(others.gallery.X, others.gallery.y)
    )


@pytest.mark.parametrize("method", ["holue-plus", "galue", "holue-sum", "acceptance"])
def test_all_candidates_and_nobody_sum_to_one(method: str, worlds) -> None:  # type: ignore[no-untyped-def]
    recognizer, probes = calibrated(method, worlds), worlds[0].probes
    answers = recognizer.identify(probes.X, probes.concentration, top_k=120)
    assert answers.calibrated.all()
    np.testing.assert_allclose(answers.candidate_probabilities.sum(axis=1) + answers.p_unknown, 1, atol=1e-9)
    assert (np.diff(answers.candidate_probabilities, axis=1) <= 1e-12).all(), "the order of the scores"
    for top_k in (1, 5, 30):
        some = recognizer.identify(probes.X, probes.concentration, top_k=top_k)
        np.testing.assert_array_equal(some.p_unknown, answers.p_unknown)
        kept = min(top_k, 10)
        np.testing.assert_allclose(
            some.candidate_probabilities[:, :kept], answers.candidate_probabilities[:, :kept], atol=1e-12
        )
        assert (some.candidate_probabilities.sum(axis=1) + some.p_unknown <= 1 + 1e-9).all()


@pytest.mark.parametrize("kappa", [True, False])
def test_the_uncertainty_is_what_the_decision_leaves(worlds, kappa: bool) -> None:  # type: ignore[no-untyped-def]
    probes = worlds[0].probes
    answers = calibrated("holue-plus", worlds, kappa).identify(probes.X, probes.concentration if kappa else None)
    decided = np.where(answers.accepted, answers.p_subject, answers.p_unknown)
    np.testing.assert_array_equal(answers.uncertainty, 1 - decided)


@pytest.mark.parametrize("kappa", [True, False])
def test_probabilities_come_true_on_other_people(kappa: bool) -> None:
    errors = []
    for seed in range(4):
        pair = world(0, 2 * seed), world(1000, 2 * seed + 1)
        probes = pair[0].probes
        answers = calibrated("holue-plus", pair, kappa).identify(probes.X, probes.concentration if kappa else None)
        best = answers.candidate_subjects[:, 0] == probes.y
        nobody = np.array([not isinstance(subject, int) for subject in probes.y])
        errors.append(
            [
                expected_calibration_error(answers.p_subject, correct=best),
                expected_calibration_error(answers.p_unknown, correct=nobody),
            ]
        )
    # 960 answers in 15 bins: calibrated probabilities themselves have an error of 0.02 by chance.
    assert np.mean(errors, axis=0).max() < 0.045


def test_probes_without_concentrations_are_answered_where_the_method_needs_none(worlds) -> None:  # type: ignore[no-untyped-def]
    probes = worlds[0].probes
    answers = calibrated("galue", worlds).identify(probes.X)
    without = calibrated("galue", worlds, kappa=False)
    np.testing.assert_array_equal(answers.p_unknown, without.identify(probes.X).p_unknown)
    np.testing.assert_array_equal(answers.p_unknown, without.identify(probes.X, probes.concentration).p_unknown)


def test_without_calibration_the_answer_says_that_the_probabilities_are_the_models(worlds) -> None:  # type: ignore[no-untyped-def]
    known = worlds[0]
    recognizer = OpenSetRecognizer("galue", threshold=0.4).fit(known.gallery.X, known.gallery.y)
    answers = recognizer.identify(known.probes.X)
    assert not answers.calibrated.any()
    assert answers[0].calibrated is False
    np.testing.assert_array_equal(answers.p_unknown, answers.model_p_unknown)


def test_they_survive_the_disk(worlds, tmp_path) -> None:  # type: ignore[no-untyped-def]
    probes = worlds[0].probes
    for method in ("holue-plus", "galue"):
        recognizer = calibrated(method, worlds)
        recognizer.save(tmp_path / method)
        saved = OpenSetRecognizer.load(tmp_path / method)
        one, other = (r.identify(probes.X, probes.concentration) for r in (recognizer, saved))
        np.testing.assert_array_equal(one.candidate_probabilities, other.candidate_probabilities)
        np.testing.assert_array_equal(one.reason, other.reason)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.floats(2, 200), st.integers(2, 60))
def test_shares_are_exact_up_to_ten_subjects_and_bounded_beyond(seed: int, sharpness: float, n_subjects: int) -> None:
    rng = np.random.default_rng(seed)
    gallery = Gallery.from_samples(rng.normal(size=(n_subjects, 8)), np.arange(n_subjects))
    probes = Embeddings.from_samples(rng.normal(size=(20, 8)))
    point = OperatingPoint.solve(dim=8, n_subjects=n_subjects, threshold=0.7)
    reading = Reading.of(probes, gallery, point, temperature=20.0, top_k=3)
    weight = np.exp(sharpness * (probes.directions.astype(float) @ gallery.directions.astype(float).T))
    top = np.sort(weight, axis=1)[:, ::-1][:, :10]
    # Beyond ten, the others' sum is an estimate: between nothing and all of them as high as the tenth.
    most = top[:, :2] / top.sum(axis=1, keepdims=True)
    least = top[:, :2] / (top.sum(axis=1) + max(n_subjects - 10, 0) * top[:, -1])[:, None]
    shares = CandidateShares(sharpness)(reading)[:, :2]
    assert (shares <= most + 1e-4).all(), "scores are float32"
    assert (shares >= least - 1e-4).all()


def test_the_same_gap_says_less_in_a_poor_sample() -> None:
    # Poor samples confuse look-alikes, good ones do not: one sharpness would be wrong for both.
    trouble = {"n_subjects": 150, "n_strangers": 30, "dim": 64, "look_alike_pairs": 70, "look_alike_cosine": 0.8}
    kinds = [
        simulate(**trouble, concentration=kappa, quality_spread=0.1, rng=np.random.default_rng(3))
        for kappa in (20.0, 100.0)
    ]
    X, y, kappa = (np.concatenate([getattr(one.probes, name) for one in kinds]) for name in ("X", "y", "concentration"))
    gallery = Gallery.from_samples(kinds[1].gallery.X, kinds[1].gallery.y)
    point = OperatingPoint.solve(dim=64, n_subjects=150, threshold=0.5)
    reading = Reading.of(Embeddings.from_samples(X, kappa), gallery, point, temperature=20.0)
    truth = np.array([-1 if one is UNKNOWN else int(one) for one in y])
    learned, mated = CandidateShares.fit(reading, truth), truth >= 0
    share, right = learned(reading)[:, 0], reading.evidence.top_index[:, 0] == truth
    plain = CandidateShares(learned.sharpness)(reading)[:, 0]
    half = np.arange(len(truth)) < len(truth) // 2
    for kind in (half & mated, ~half & mated):
        # 600 probes: the share that is right has a standard error of 0.01 to 0.02.
        assert abs(share[kind].mean() - right[kind].mean()) < 0.03
        assert abs(plain[kind].mean() - right[kind].mean()) > 0.03
    assert CandidateShares.restored(learned.state()) == learned
    without = CandidateShares.fit(Reading.of(Embeddings.from_samples(X), gallery, point, temperature=20.0), truth)
    assert without.of_sample is None
    assert without.sharpness == pytest.approx(learned.sharpness, rel=1e-3)


@pytest.mark.parametrize(
    "value", [[[1.0, 1.0], [2.0, 3.0]], [[1.0, 2.0], [3.0, 2.0]], [[1.0, 2.0], [0.0, 2.0]], [[1.0, 2.0]]]
)
def test_a_sharpness_of_samples_that_falls_is_refused(value: list[list[float]]) -> None:
    with pytest.raises(ValueError, match="sharpness_of_sample"):
        CandidateShares.restored({"sharpness": np.ones(1), "sharpness_of_sample": np.array(value)})


def test_equal_scores_get_equal_probabilities_whatever_was_learned(worlds) -> None:  # type: ignore[no-untyped-def]
    recognizer = calibrated("holue-plus", worlds, kappa=False)
    first, second = recognizer.gallery_.directions[[20, 21]].astype(np.float64)
    answer = recognizer.identify((first + second)[None])[0]
    one, other = answer.candidates[:2]
    assert one.probability == pytest.approx(other.probability, rel=1e-4)
    assert answer.uncertainty >= 0.5 - 1e-4


def test_p_nobody_falls_as_the_best_score_rises(worlds) -> None:  # type: ignore[no-untyped-def]
    recognizer = calibrated("holue-plus", worlds, kappa=False)
    features = np.column_stack([np.linspace(-0.5, 0.6, 50), np.full(50, 0.1)])
    for column in (0, 1):
        moved = features.copy()
        moved[:, column] += 0.05
        model, point = recognizer.quality_.model, recognizer.operating_point_
        assert (model.p_enrolled(moved, point) >= model.p_enrolled(features, point) - 1e-12).all()
    assert (np.diff(model.p_enrolled(features, point)) >= -1e-12).all()


@pytest.mark.parametrize("method", sorted(SCORES))
def test_every_probe_is_rated_once(worlds, method: str, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    recognizer, probes = calibrated(method, worlds), worlds[0].probes
    score, calls = type(recognizer.quality_), []
    rated = "probabilities" if score.has_probabilities else "__call__"
    original = getattr(score, rated)
    monkeypatch.setattr(score, rated, lambda self, reading: (calls.append(len(reading)), original(self, reading))[1])
    answers = recognizer.identify(probes.X[:50], probes.concentration[:50])
    assert isinstance(answers, Identifications)
    assert calls == [50]


def grown(worlds, n_calibrated: int, hold: str = "fpir") -> OpenSetRecognizer:  # type: ignore[no-untyped-def]
    """Calibrated on the first subjects of one world, all of the other enrolled."""
    known, others = worlds
    people = np.unique(others.gallery.y)[:n_calibrated]
    strangers = np.unique(others.probes.person[~np.isin(others.probes.person, others.gallery.y)])[:n_calibrated]
    gallery, probes = np.isin(others.gallery.y, people), np.isin(others.probes.person, [*people, *strangers])
    recognizer = OpenSetRecognizer(hold=hold).fit(known.gallery.X, known.gallery.y)  # type: ignore[arg-type]
    return recognizer.calibrate(
        others.probes.X[probes], others.probes.y[probes], gallery=(others.gallery.X[gallery], others.gallery.y[gallery])
    )


def noisy_world(first: int, seed: int) -> SimulatedWorld:
    return simulate(
        n_subjects=240,
        n_strangers=240,
        dim=24,
        concentration=25.0,
        first_subject=first,
        rng=np.random.default_rng(seed),
    )


@pytest.fixture(scope="module")
def noisy_worlds() -> tuple[SimulatedWorld, SimulatedWorld]:
    return noisy_world(0, 2), noisy_world(1000, 3)


def test_probabilities_learned_in_a_small_gallery_come_true_in_a_larger_one(noisy_worlds) -> None:  # type: ignore[no-untyped-def]
    probes = noisy_worlds[0].probes
    answers = grown(noisy_worlds, 40).identify(probes.X)
    nobody = ~np.isin(probes.person, noisy_worlds[0].gallery.y)
    # 40 people calibrate, and their own spread is worth some hundredths. As in the gallery of 40 the mean would be 0.56 of 0.5.
    assert answers.p_unknown.mean() == pytest.approx(nobody.mean(), abs=0.03)
    assert expected_calibration_error(answers.p_unknown, correct=nobody) < 0.06


@pytest.mark.filterwarnings("ignore::holue.recognition.calibration.doubts.CalibrationWarning")
def test_probabilities_do_not_depend_on_what_is_held(noisy_worlds) -> None:  # type: ignore[no-untyped-def]
    probes = noisy_worlds[0].probes.X[:50]
    held = [grown(noisy_worlds, 40, hold).identify(probes).p_unknown for hold in ("fpir", "model", "threshold")]
    np.testing.assert_allclose(held[1], held[0], atol=1e-6)
    np.testing.assert_allclose(held[2], held[0], atol=1e-6)


def test_probabilities_follow_a_gallery_that_grows_as_if_calibrated_for_it(noisy_worlds) -> None:  # type: ignore[no-untyped-def]
    gallery, probes = noisy_worlds[0].gallery, noisy_worlds[0].probes.X[:50]
    at_once = grown(noisy_worlds, 40)
    later = grown(noisy_worlds, 40)
    later.remove(gallery.y[60:])
    fewer = later.identify(probes).p_unknown
    later.enroll(gallery.X[60:], gallery.y[60:])
    np.testing.assert_allclose(later.identify(probes).p_unknown, at_once.identify(probes).p_unknown, atol=1e-9)
    assert np.abs(fewer - at_once.identify(probes).p_unknown).max() > 0.01


def test_earlier_saves_with_the_weights_of_one_size_are_read(worlds) -> None:  # type: ignore[no-untyped-def]
    recognizer = calibrated("holue-plus", worlds)
    score, reading = recognizer.quality_, recognizer.examine(worlds[0].probes.X, worlds[0].probes.concentration).reading
    earlier = dict(score.state())
    del earlier["poor_sample"]
    for width in (2, 3):
        here = int(np.flatnonzero(earlier.pop(f"enrolled_{width}_shifts") == 0)[0])
        earlier[f"enrolled_{width}_weights"] = earlier[f"enrolled_{width}_weights"][here]
    read = CalibratedQuality()
    read.restore(earlier)
    np.testing.assert_allclose(read(reading), score(reading), atol=1e-12)
    assert len(read.explain(reading).sentences) == len(reading)


@pytest.mark.parametrize(
    ("name", "value"),
    [("enrolled_2_shifts", [0.0, 0.0, 0.0, 0.0, 0.0]), ("enrolled_3_shifts", [0.0]), ("poor_sample", [np.nan])],
)
def test_what_was_learned_at_shifts_is_checked_when_read(name: str, value: list[float], worlds) -> None:  # type: ignore[no-untyped-def]
    state = {**calibrated("holue-plus", worlds).quality_.state(), name: np.array(value)}
    with pytest.raises(ValueError, match=name):
        CalibratedQuality().restore(state)
