"""A calibration says how many samples of enrolled people it recognises, and warns where most are not."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.errors import HolueError
from holue.recognition.calibration.doubts import CalibrationWarning
from holue.recognition.calibration.recognised import Recognised
from holue.recognition.recognizer import OpenSetRecognizer
from holue.recognition.saved.recognizer_folder import learned_fields, learned_parts

PEOPLE, EACH, DIM = 24, 25, 64
DOUBT = "most samples of enrolled people are not recognised"


def samples(share_of_own: float) -> tuple[np.ndarray, np.ndarray]:
    """Samples that are mostly noise where the share of their own subject is small."""
    rng = np.random.default_rng(0)
    own = np.repeat(np.arange(PEOPLE), EACH)
    centres = rng.standard_normal((PEOPLE, DIM))
    return share_of_own * centres[own] + rng.standard_normal((len(own), DIM)), own


def left_out(share_of_own: float) -> tuple[OpenSetRecognizer, list[str]]:
    X, y = samples(share_of_own)
    recognizer = OpenSetRecognizer("galue", target_fpir=0.1, threads=1).fit(X, y)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        recognizer.calibrate_leave_one_out(X, y)
        recognizer.identify(X[:3])
    return recognizer, [str(one.message) for one in caught if DOUBT in str(one.message)]


def test_a_model_that_does_not_tell_subjects_apart_is_warned_of_once_and_stays_a_doubt(tmp_path: Path) -> None:
    recognizer, (warning,) = left_out(0.15)
    counted = recognizer.recognised_
    assert (counted.samples, counted.people) == (PEOPLE * EACH, PEOPLE)
    assert counted.low < counted.rate < counted.high < 0.5
    assert f"{counted.accepted} of 600" in warning
    assert "holue audit" in warning
    recognizer.save(tmp_path / "saved")
    loaded = OpenSetRecognizer.load(tmp_path / "saved")
    assert loaded.recognised_ == counted
    assert warning in [str(doubt) for doubt in loaded.doubts() if doubt.about == "recognised"]


def test_a_good_model_is_not_doubted() -> None:
    recognizer, warned = left_out(1.0)
    counted = recognizer.recognised_
    assert counted.rate > 0.9
    assert warned == []
    assert "recognised" not in [doubt.about for doubt in recognizer.doubts()]


def test_the_number_is_that_of_the_answers_about_probes_of_enrolled_people() -> None:
    X, y = samples(0.3)
    enrolled = np.arange(len(y)) % EACH < 5
    strangers = y >= PEOPLE // 2
    recognizer = OpenSetRecognizer("galue", target_fpir=0.1, threads=1).fit(
        X[enrolled & ~strangers], y[enrolled & ~strangers]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)
        recognizer.calibrate(X[~enrolled], y[~enrolled])
        mated = ~enrolled & ~strangers
        right = recognizer.predict(X[mated]) == y[mated]
    counted = recognizer.recognised_
    assert counted == Recognised.of(right.astype(bool), y[mated])
    assert counted.rate == pytest.approx(np.mean([right[y[mated] == who].mean() for who in range(PEOPLE // 2)]))


@pytest.mark.parametrize(("field", "value"), [("accepted", 601), ("rate", 1.5), ("low", float("nan")), ("people", 0)])
def test_a_saved_number_that_cannot_be_is_refused_and_a_save_without_it_loads(
    tmp_path: Path, field: str, value: float
) -> None:
    recognizer, _ = left_out(1.0)
    content, arrays = learned_parts(recognizer._state)
    content = json.loads(json.dumps(content))
    wrong = {**content, "recognised": {**content["recognised"], field: value}}
    with pytest.raises(HolueError, match=field if field in ("rate", "low", "people") else "cannot be"):
        learned_fields(wrong, arrays, recognizer._settings)
    del content["recognised"]
    assert "recognised" not in learned_fields(content, arrays, recognizer._settings)


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(("share_of_own", "is_doubted"), [(0.15, True), (1.0, False)])
def test_calibrate_and_status_say_how_many_are_recognised(
    tmp_path: Path, share_of_own: float, is_doubted: bool
) -> None:
    X, y = samples(share_of_own)
    np.savez(tmp_path / "people.npz", embeddings=X, subject_id=y.astype(str))
    gallery, run = str(tmp_path / "zoo"), CliRunner().invoke
    assert run(app, ["create", gallery, "--dim", str(DIM), "--fpir", "0.1"]).exit_code == 0
    assert run(app, ["enroll", gallery, str(tmp_path / "people.npz")]).exit_code == 0
    said = run(app, ["calibrate", gallery])
    assert "of 600 samples of 24 enrolled people are recognised (DIR" in said.stdout
    assert (DOUBT in said.stderr) == is_doubted
    status = run(app, ["status", gallery]).stdout
    assert "of 600 samples of 24 enrolled people are recognised (DIR" in status
    assert (f"doubt: {DOUBT}" in status) == is_doubted
    told = json.loads(run(app, ["status", gallery, "--json"]).stdout)["recognised"]
    assert told["samples"] == 600
    assert (told["rate"] < 0.5) == is_doubted
    assert json.loads(run(app, ["calibrate", gallery, "--json"]).stdout)["recognised"] == told
