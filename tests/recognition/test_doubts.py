"""A recogniser says itself when its calibration no longer fits: once, by name, and not where growth is provided for."""

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from holue.datasets.simulated import SimulatedWorld, simulate
from holue.errors import InvalidParameterError
from holue.recognition.calibration.doubts import CalibrationWarning
from holue.recognition.recognizer import OpenSetRecognizer
from holue.recognition.risk.certificate import RiskCertificate

X = np.random.default_rng(0).normal(size=(120, 16))


@pytest.fixture(scope="module")
def world() -> SimulatedWorld:
    return simulate(
        n_subjects=60, n_strangers=200, dim=32, concentration=60.0, look_alike_pairs=0, rng=np.random.default_rng(1)
    )


def calibrated(world: SimulatedWorld, **settings: object) -> OpenSetRecognizer:
    recognizer = OpenSetRecognizer("galue", threads=1, **settings).fit(world.gallery.X, world.gallery.person)  # type: ignore[arg-type]
    return recognizer.calibrate(world.probes.X, world.probes.person)


def abouts(recognizer: OpenSetRecognizer) -> list[str]:
    return [doubt.about for doubt in recognizer.doubts()]


def told(recognizer: OpenSetRecognizer, verb: str, probes: np.ndarray) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(recognizer, verb)(probes)
    return [str(warning.message) for warning in caught if warning.category is CalibrationWarning]


def more(world: SimulatedWorld, count: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(count)
    return rng.normal(size=(count, world.gallery.X.shape[1])), 10_000 + np.arange(count)


@pytest.mark.parametrize("verb", ["predict", "identify"])
def test_an_outgrown_gallery_is_told_once_with_its_numbers(world: SimulatedWorld, verb: str) -> None:
    recognizer = calibrated(world, hold="model")
    assert told(recognizer, verb, world.probes.X[:3]) == []
    recognizer.enroll(*more(world, 20))  # a factor of 1.33
    assert recognizer.doubts() == ()
    recognizer.enroll(*(some + 1000 * (some.ndim == 1) for some in more(world, 40)))
    first = told(recognizer, verb, world.probes.X[:3])
    assert len(first) == 1
    assert "holds 120 subjects and was calibrated for 60, a factor of 2" in first[0]
    assert told(recognizer, verb, world.probes.X[:3]) == [], "a warning at every call is read by nobody"
    assert abouts(recognizer) == ["gallery"], "asked, it goes on saying so"


@pytest.mark.parametrize("verb", ["predict", "identify"])
def test_the_warning_points_at_the_line_that_asked(world: SimulatedWorld, verb: str) -> None:
    recognizer = calibrated(world, hold="model").enroll(*more(world, 60))
    with pytest.warns(CalibrationWarning) as caught:
        # a helper of numpy between the call and whoever called this test: one level too many would name its file
        np.apply_along_axis(lambda probe: [len(getattr(recognizer, verb)(probe[None]))], 1, world.probes.X[:1])
    assert caught[0].filename == __file__


def test_calibrating_anew_removes_the_doubt(world: SimulatedWorld) -> None:
    recognizer = calibrated(world, hold="model").enroll(*more(world, 60))
    assert abouts(recognizer) == ["gallery"]
    recognizer.calibrate(world.probes.X, world.probes.person)
    assert recognizer.doubts() == ()


def test_where_the_threshold_follows_the_strangers_growth_is_no_doubt(world: SimulatedWorld) -> None:
    recognizer = calibrated(world, hold="fpir").enroll(*more(world, 600))
    assert recognizer.doubts() == ()
    assert told(recognizer, "identify", world.probes.X[:3]) == []
    point = recognizer.operating_point_
    recognizer.operating_point_ = replace(point, calibrated=replace(point, n_subjects=5, calibrated=None))
    assert abouts(recognizer) == ["gallery"], "beyond what was ever measured it is"


def test_a_certificate_reaches_only_as_far_as_the_gallery_it_was_made_in(world: SimulatedWorld) -> None:
    recognizer = calibrated(world, hold="fpir")
    recognizer.certificate_ = RiskCertificate("error", 0.1, 0.95, "subject", "betting", 0.5, 0.1, 99, 99, 90, 1, 60)
    assert recognizer.doubts() == ()
    recognizer.enroll(*more(world, 60))
    assert "certified for 60" in str(recognizer.doubts()[0])


def test_another_embedding_model_is_told_at_answering_and_refused_at_enrolling(tmp_path: Path) -> None:
    recognizer = OpenSetRecognizer("galue", threshold=0.5, embedding_model="one").fit(X[:10], np.arange(10))
    recognizer.save(tmp_path / "saved")
    loaded = OpenSetRecognizer.load(tmp_path / "saved")
    assert loaded.doubts() == ()
    loaded.set_params(embedding_model="two")
    assert "from 'one' to 'two'" in told(loaded, "predict", X[:2])[0]
    for verb in (loaded.enroll, loaded.calibrate, loaded.calibrate_leave_one_out):
        with pytest.raises(InvalidParameterError, match="enrolled with 'one'"):
            verb(X[10:20], np.arange(10, 20))
    assert loaded.fit(X[:10], np.arange(10)).doubts() == ()
    with pytest.raises(InvalidParameterError, match="embedding_model must be a name"):
        OpenSetRecognizer("galue", embedding_model=3).fit(X[:10], np.arange(10))  # type: ignore[arg-type]


def test_every_verb_takes_a_concentration(world: SimulatedWorld) -> None:
    recognizer, probes = calibrated(world), world.probes
    kappa = np.full(len(probes.X), 50.0)
    for verb in ("predict", "decision_function", "predict_proba"):
        with_it, without = (getattr(recognizer, verb)(probes.X, *given) for given in ((kappa,), ()))
        np.testing.assert_array_equal(with_it, without)
    assert recognizer.score(probes.X, probes.person, kappa) == recognizer.score(probes.X, probes.person)
