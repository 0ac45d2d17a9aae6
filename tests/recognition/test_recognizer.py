import json

import numpy as np
import pytest

from holue import UNKNOWN, Gallery, OpenSetRecognizer
from holue.datasets.simulated import SimulatedWorld
from holue.errors import (
    CalibrationDataError,
    GalleryTooSmallError,
    InvalidConcentrationError,
    InvalidEmbeddingsError,
    InvalidParameterError,
    InvalidSubjectsError,
    NotCalibratedError,
    NotFittedYetError,
)
from holue.recognition.quality import SCORES

FAST = [name for name in SCORES if name != "holue"]  # the trained head has its own test


def calibrated(
    method: str, world: SimulatedWorld, development: SimulatedWorld, **settings: object
) -> OpenSetRecognizer:
    recognizer = OpenSetRecognizer(method=method, target_fpir=0.1, **settings)  # type: ignore[arg-type]
    recognizer.fit(world.gallery.X, world.gallery.y, world.gallery.concentration)
    d = development
    return recognizer.calibrate(
        d.probes.X, d.probes.y, d.probes.concentration, gallery=(d.gallery.X, d.gallery.y, d.gallery.concentration)
    )


@pytest.mark.parametrize("method", FAST)
def test_every_method_finds_its_own_mistakes_better_than_chance(
    method: str, world: SimulatedWorld, development: SimulatedWorld
) -> None:
    recognizer = calibrated(method, world, development)
    uncertainty = recognizer.predict_uncertainty(world.probes.X, world.probes.concentration)
    correct = recognizer.predict(world.probes.X) == world.probes.y
    assert 0.5 < correct.mean() < 1
    wrong_above_right = (uncertainty[~correct][:, None] > uncertainty[correct][None, :]).mean()
    assert wrong_above_right > 0.6


def test_the_whole_answer_agrees_with_its_parts(world: SimulatedWorld, development: SimulatedWorld) -> None:
    recognizer = calibrated("galue", world, development)
    X = world.probes.X
    answers, proba = recognizer.identify(X, top_k=3), recognizer.predict_proba(X)
    assert proba.shape == (len(X), 41)
    np.testing.assert_allclose(proba.sum(1), 1, atol=1e-12)
    assert recognizer.classes_[-1] is UNKNOWN
    np.testing.assert_array_equal(answers.subject, recognizer.predict(X))
    np.testing.assert_array_equal(recognizer.classes_[proba.argmax(1)], answers.subject)
    np.testing.assert_allclose(answers.model_p_unknown, proba[:, -1], atol=1e-12)
    np.testing.assert_allclose(answers.quality, proba.max(1), atol=1e-12)
    np.testing.assert_allclose(answers.uncertainty, recognizer.predict_uncertainty(X), atol=1e-15)
    np.testing.assert_array_equal(recognizer.decision_function(X) >= 0, answers.accepted)
    best = np.sort(proba[:, :-1], axis=1)[:, ::-1][:, :3]
    np.testing.assert_allclose(answers.model_candidate_probabilities, best, atol=1e-12)
    assert recognizer.score(X, world.probes.y) == pytest.approx((answers.subject == world.probes.y).mean())


def test_every_answer_takes_a_concentration_and_only_trust_reads_it(
    world: SimulatedWorld, development: SimulatedWorld
) -> None:
    recognizer = calibrated("holue-plus", world, development)
    X, kappa = world.probes.X, world.probes.concentration
    for verb in (recognizer.predict, recognizer.decision_function, recognizer.predict_proba):
        np.testing.assert_array_equal(verb(X, concentration=kappa), verb(X))
    assert recognizer.score(X, world.probes.y, concentration=kappa) == recognizer.score(X, world.probes.y)
    sets = [recognizer.predict_set(X, 0.9, concentration=given) for given in (kappa, None)]
    np.testing.assert_array_equal(sets[0].p_unknown, sets[1].p_unknown)
    with pytest.raises(InvalidConcentrationError, match="one number per embedding"):
        recognizer.predict_proba(X, concentration=kappa[:3])
    worse = recognizer.predict_uncertainty(X, concentration=kappa / 4)
    assert (worse != recognizer.predict_uncertainty(X, concentration=kappa)).any()


def test_strangers_set_the_threshold_and_the_target_holds_on_them(
    world: SimulatedWorld, development: SimulatedWorld
) -> None:
    recognizer = calibrated("acceptance", world, development)
    twin = OpenSetRecognizer(method="acceptance", target_fpir=0.1).fit(development.gallery.X, development.gallery.y)
    twin.calibrate(development.probes.X, development.probes.y)
    strangers = development.probes.y == UNKNOWN
    accepted = twin.predict(development.probes.X)[strangers] != UNKNOWN
    assert accepted.sum() == int(0.1 * strangers.sum())
    moved = recognizer.operating_point_.threshold - twin.operating_point_.threshold
    tail = twin.operating_point_.tail
    assert tail is not None
    assert moved == pytest.approx(tail.threshold(40, 0.1) - tail.threshold(60, 0.1))
    by_model = calibrated("acceptance", world, development, hold="model")
    moved = by_model.operating_point_.threshold - twin.operating_point_.threshold
    assert moved == pytest.approx(np.log(40 / 60) / twin.operating_point_.concentration)


def test_labels_not_in_the_gallery_are_strangers_too(world: SimulatedWorld) -> None:
    by_sentinel = OpenSetRecognizer(method="galue").fit(world.gallery.X, world.gallery.y)
    by_name = OpenSetRecognizer(method="galue").fit(world.gallery.X, world.gallery.y)
    by_sentinel.calibrate(world.probes.X, world.probes.y)
    by_name.calibrate(world.probes.X, world.probes.person)
    one, other = by_sentinel.operating_point_, by_name.operating_point_
    assert (one.threshold, one.concentration, one.achieved_fpir) == (
        other.threshold,
        other.concentration,
        other.achieved_fpir,
    )
    assert one.interval is not None
    assert other.interval is not None
    assert one.interval.n_people == other.interval.n_people * 4  # four probes each, each of which counts as a person


def test_holue_learns_p_correct_and_survives_the_disk(
    world: SimulatedWorld,
    development: SimulatedWorld,
    tmp_path,  # type: ignore[no-untyped-def]
) -> None:
    recognizer = calibrated("holue", world, development)
    X, kappa = world.probes.X, world.probes.concentration
    answers = recognizer.identify(X, kappa)
    assert ((answers.quality > 0) & (answers.quality < 1)).all()
    np.testing.assert_allclose(answers.uncertainty, 1 - answers.quality)
    recognizer.save(tmp_path / "saved")
    again = OpenSetRecognizer.load(tmp_path / "saved")
    np.testing.assert_array_equal(again.identify(X, kappa).quality, answers.quality)
    np.testing.assert_array_equal(again.predict(X), answers.subject)
    assert again.operating_point_ == recognizer.operating_point_
    assert again.get_params() == recognizer.get_params()


def test_enrolling_and_removing_move_the_threshold_with_the_gallery(
    world: SimulatedWorld, development: SimulatedWorld
) -> None:
    recognizer = calibrated("galue", world, development)
    before = recognizer.operating_point_
    stranger = world.probes.X[-1:]
    assert recognizer.predict(stranger)[0] is UNKNOWN
    recognizer.enroll(stranger, [777], concentration=50.0)
    assert recognizer.predict(stranger)[0] == 777
    assert recognizer.operating_point_.n_subjects == 41
    assert recognizer.operating_point_.threshold > before.threshold
    recognizer.remove(777)
    assert recognizer.operating_point_.threshold == pytest.approx(before.threshold)
    assert recognizer.predict(stranger)[0] is UNKNOWN


def test_answers_can_be_indexed_and_written(world: SimulatedWorld, development: SimulatedWorld) -> None:
    answers = calibrated("galue", world, development).identify(world.probes.X, top_k=2)
    one = answers[3]
    assert one.subject == answers.subject[3]
    assert len(one.candidates) == 2
    assert one.candidates[0].probability == one.p_subject
    assert len(answers[answers.accepted]) == int(answers.accepted.sum())
    assert len(answers[2:5]) == 3
    assert [a.decision for a in answers[:4]] == answers.decision[:4].tolist()
    plain = json.loads(json.dumps(answers.to_dict()))
    assert json.loads(json.dumps(one.to_dict())) == {name: column[3] for name, column in plain.items()}
    assert plain["subject"][3] == (None if one.subject is UNKNOWN else one.subject)
    frame = answers.to_pandas()
    assert len(frame) == len(answers)
    assert {"subject", "decision", "quality", "candidate_1", "probability_2", "model_probability_2"} <= set(
        frame.columns
    )


def test_the_fpir_can_be_held_while_the_gallery_changes(
    world: SimulatedWorld, development: SimulatedWorld, tmp_path
) -> None:  # type: ignore[no-untyped-def]
    recognizer = calibrated("galue", world, development, hold="fpir")
    before = recognizer.operating_point_
    recognizer.save(tmp_path / "saved")
    for one in (recognizer, OpenSetRecognizer.load(tmp_path / "saved")):
        one.enroll(world.probes.X[-20:], list(range(500, 520)), concentration=50.0)
        assert one.operating_point_.threshold > before.threshold
        one.remove(list(range(500, 520)))
        assert one.operating_point_.threshold == pytest.approx(before.threshold)


def test_holue_plus_gives_its_reason_with_every_answer(
    world: SimulatedWorld, development: SimulatedWorld, tmp_path
) -> None:  # type: ignore[no-untyped-def]
    recognizer = calibrated("holue-plus", world, development)
    answers = recognizer.identify(world.probes.X, world.probes.concentration, top_k=1)
    assert answers.candidate_subjects.shape == (len(answers), 1)
    assert {reason.split(" ")[0] for reason in answers.reason} >= {"clear", "just", "between", "poor"}
    assert answers[0].reason == answers.reason[0]
    recognizer.save(tmp_path / "saved")
    again = OpenSetRecognizer.load(tmp_path / "saved").identify(world.probes.X, world.probes.concentration)
    np.testing.assert_array_equal(again.reason, answers.reason)
    with pytest.raises(InvalidConcentrationError, match="calibrated with concentrations, asked without"):
        recognizer.identify(world.probes.X)
    assert (calibrated("galue", world, development).identify(world.probes.X).reason == "").all()


def test_string_subjects_and_float32_work_alike(world: SimulatedWorld) -> None:
    names = np.array([f"subject-{i}" for i in world.gallery.y])
    labels = np.where(
        world.probes.y == UNKNOWN, UNKNOWN, np.array([f"subject-{i}" for i in world.probes.y], dtype=object)
    )
    r64 = (
        OpenSetRecognizer(method="galue")
        .fit(world.gallery.X, world.gallery.y)
        .calibrate(world.probes.X, world.probes.y)
    )
    r32 = OpenSetRecognizer(method="galue").fit(world.gallery.X.astype(np.float32), names)
    r32.calibrate(world.probes.X.astype(np.float32), labels)
    same = r32.predict(world.probes.X.astype(np.float32)) == np.where(
        r64.predict(world.probes.X) == UNKNOWN, UNKNOWN, [f"subject-{i}" for i in r64.predict(world.probes.X)]
    )
    assert same.mean() > 0.99  # a probe within float32 rounding of the threshold may fall either way


def test_a_fixed_threshold_needs_no_calibration(world: SimulatedWorld) -> None:
    recognizer = OpenSetRecognizer(method="galue", threshold=0.5).fit(world.gallery.X, world.gallery.y)
    accepted = recognizer.identify(world.probes.X).accepted
    np.testing.assert_array_equal(accepted, recognizer.decision_function(world.probes.X) >= 0)
    assert recognizer.operating_point_.threshold == 0.5
    learned = OpenSetRecognizer(method="holue-sum", threshold=0.5).fit(world.gallery.X, world.gallery.y)
    learned.predict(world.probes.X)
    with pytest.raises(NotCalibratedError, match="'holue-sum' is learned"):
        learned.predict_uncertainty(world.probes.X, world.probes.concentration)


def test_a_gallery_object_calibrates_like_its_samples(world: SimulatedWorld, development: SimulatedWorld) -> None:
    d = development
    gallery = Gallery.from_samples(d.gallery.X, d.gallery.y, d.gallery.concentration)
    one = calibrated("galue", world, development)
    other = OpenSetRecognizer(method="galue", target_fpir=0.1).fit(world.gallery.X, world.gallery.y)
    other.calibrate(d.probes.X, d.probes.y, gallery=gallery)
    assert one.operating_point_ == other.operating_point_


def test_fitting_anew_forgets_the_calibration(world: SimulatedWorld, development: SimulatedWorld) -> None:
    recognizer = calibrated("galue", world, development)
    recognizer.fit(world.gallery.X, world.gallery.y)
    with pytest.raises(NotCalibratedError, match="no operating point yet"):
        recognizer.predict(world.probes.X)


# -- bad input ---------------------------------------------------------------------------------------------------------


def test_verbs_out_of_order_say_which_comes_first(world: SimulatedWorld) -> None:
    recognizer = OpenSetRecognizer()
    for verb in (recognizer.predict, recognizer.identify, recognizer.predict_proba, recognizer.predict_uncertainty):
        with pytest.raises(NotFittedYetError, match=r"call fit\(X, y\) first"):
            verb(world.probes.X)
    with pytest.raises(NotFittedYetError):
        recognizer.calibrate(world.probes.X, world.probes.y)
    with pytest.raises(NotFittedYetError):
        recognizer.save("nowhere")
    recognizer.fit(world.gallery.X, world.gallery.y)
    for verb in (recognizer.predict, recognizer.identify, recognizer.predict_proba, recognizer.predict_uncertainty):
        with pytest.raises(NotCalibratedError, match=r"call calibrate\(X_dev, y_dev"):
            verb(world.probes.X)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ({"method": "magic"}, "method must be one of acceptance"),
        ({"target_fpir": 0.0}, "target_fpir must lie strictly"),
        ({"target_fpir": 1.0}, "target_fpir must lie strictly"),
        ({"unknown_prior": 1.0}, "unknown_prior must lie strictly"),
        ({"temperature": 0.0}, "temperature must be positive"),
        ({"threshold": 3.0}, "threshold must be a cosine"),
        ({"hold": "everything"}, "hold must be"),
        ({"weighting": "precision"}, "weighting must be"),
        ({"random_state": "x"}, "random_state must be"),
    ],
)
def test_bad_settings_are_named_when_fitting(setting: dict[str, object], says: str, world: SimulatedWorld) -> None:
    with pytest.raises(InvalidParameterError, match=says):
        OpenSetRecognizer(**setting).fit(world.gallery.X, world.gallery.y)  # type: ignore[arg-type]


def test_bad_galleries_are_named(world: SimulatedWorld) -> None:
    X, y = world.gallery.X, world.gallery.y
    with pytest.raises(GalleryTooSmallError, match="empty"):
        OpenSetRecognizer().fit(np.empty((0, 5)), [])
    with pytest.raises(GalleryTooSmallError, match="at least 2 subjects"):
        OpenSetRecognizer().fit(X[:3], ["one"] * 3)
    with pytest.raises(InvalidSubjectsError, match="is UNKNOWN"):
        OpenSetRecognizer().fit(X[:2], [UNKNOWN, 1])
    with pytest.raises(InvalidSubjectsError, match="y to be passed"):
        OpenSetRecognizer().fit(X)
    recognizer = OpenSetRecognizer(method="galue", threshold=0.5).fit(X[:6], y[:6])
    with pytest.raises(GalleryTooSmallError, match="remove needs"):
        recognizer.remove(recognizer.classes_[0])
    assert len(recognizer.gallery_) == 2
    for y_bad in (None, 3):
        with pytest.raises(InvalidSubjectsError, match="array or list of subjects"):
            recognizer.enroll(X[:1], y_bad)
    with pytest.raises(InvalidSubjectsError, match="beyond 64-bit"):
        OpenSetRecognizer().fit(X[:2], [2**70, 1])
    with pytest.raises(InvalidSubjectsError, match="no subject was named"):
        recognizer.remove([])


def test_a_refused_enrolment_changes_nothing(world: SimulatedWorld) -> None:
    recognizer = OpenSetRecognizer("galue", threshold=0.5).fit(world.gallery.X, world.gallery.y)
    before = recognizer.operating_point_
    with pytest.raises(InvalidParameterError, match="hold"):
        recognizer.set_params(hold="everything").enroll(world.probes.X[-1:], [999])
    assert len(recognizer.gallery_) == before.n_subjects
    assert recognizer.operating_point_ is before


def test_another_method_needs_another_calibration(world: SimulatedWorld, development: SimulatedWorld) -> None:
    recognizer = calibrated("galue", world, development).set_params(method="holue-plus")
    with pytest.raises(NotCalibratedError, match="after calibrating"):
        recognizer.predict_uncertainty(world.probes.X)


def test_bad_probes_are_named(world: SimulatedWorld, development: SimulatedWorld) -> None:
    recognizer = calibrated("holue-sum", world, development)
    X, kappa = world.probes.X, world.probes.concentration
    with pytest.raises(InvalidEmbeddingsError, match="expecting 64 features"):
        recognizer.predict(X[:, :10])
    with pytest.raises(InvalidEmbeddingsError, match="NaN"):
        recognizer.identify(np.full((1, 64), np.nan), 1.0)
    with pytest.raises(InvalidConcentrationError, match="no concentration was given"):
        recognizer.identify(X)
    with pytest.raises(InvalidConcentrationError, match="one number per embedding"):
        recognizer.identify(X, kappa[:3])
    with pytest.raises(InvalidParameterError, match="top_k"):
        recognizer.identify(X, kappa, top_k=0)


def test_bad_validation_probes_are_named(world: SimulatedWorld) -> None:
    recognizer = OpenSetRecognizer(method="galue").fit(world.gallery.X, world.gallery.y)
    X, y = world.probes.X, world.probes.y
    mated = y != UNKNOWN
    with pytest.raises(CalibrationDataError, match="no non-mated validation probes"):
        recognizer.calibrate(X[mated], y[mated])
    with pytest.raises(CalibrationDataError, match="no mated validation probes"):
        recognizer.calibrate(X[~mated], y[~mated])
    with pytest.raises(CalibrationDataError, match="finer than 160 non-mated"):
        recognizer.set_params(target_fpir=0.001).calibrate(X, y)
    with pytest.raises(InvalidSubjectsError, match="strings but the gallery's subjects are integers"):
        recognizer.set_params(target_fpir=0.1).calibrate(X, [str(label) for label in y])
    with pytest.raises(InvalidSubjectsError, match="3 ids for"):
        recognizer.calibrate(X, y[:3])
    with pytest.raises(CalibrationDataError, match="reads the quality of each probe"):
        recognizer.set_params(method="holue").calibrate(X, y)
    with pytest.raises(InvalidParameterError, match="gallery must be"):
        recognizer.set_params(method="galue").calibrate(X, y, gallery=(X,))
    with pytest.raises(InvalidParameterError, match="validation gallery has 3 features"):
        recognizer.calibrate(X, y, gallery=(np.eye(3), [1, 2, 3]))
    assert not hasattr(recognizer, "operating_point_")


def test_printed_answers_are_counted_not_listed() -> None:
    recognizer = OpenSetRecognizer("galue", threshold=0.7).fit(np.eye(4), ["ann", "bob", "cay", "dan"])
    answers = recognizer.identify(np.vstack([np.eye(4), np.ones((1, 4))]))
    assert repr(answers) == "Identifications(5 probes: 4 accepted, 1 rejected)"
    assert repr(answers[:0]) == "Identifications(0 probes: none)"
