"""``OpenSetRecognizer()`` is the best there is for the data it gets, and says where it had to settle for less."""

import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holue import UNKNOWN, OpenSetRecognizer
from holue.artifact import read_artifact, write_artifact
from holue.datasets.simulated import SimulatedWorld
from holue.errors import CalibrationDataError, InvalidConcentrationError, NotCalibratedError
from holue.recognition.calibration.fallback import FallbackWarning
from holue.recognition.quality.calibrated import CalibratedQuality
from holue.recognition.quality.gallery import GalleryQuality


def test_plain_embeddings_calibrate_the_default_without_a_word(world: SimulatedWorld) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recognizer = OpenSetRecognizer().fit(world.gallery.X, world.gallery.y)
        recognizer.calibrate(world.probes.X, world.probes.y)
        answers = recognizer.identify(world.probes.X)
    assert isinstance(recognizer.quality_, CalibratedQuality)
    assert recognizer.get_params()["method"] == "holue-plus"
    assert recognizer.get_params()["hold"] == "fpir"
    assert recognizer.fallbacks_ == ()
    right = answers.subject == world.probes.y
    certain = answers.uncertainty <= np.median(answers.uncertainty)
    assert right[certain].mean() > right[~certain].mean()


def test_the_default_takes_concentrations_where_there_are_some(world: SimulatedWorld) -> None:
    recognizer = OpenSetRecognizer().fit(world.gallery.X, world.gallery.y)
    recognizer.calibrate(world.probes.X, world.probes.y, world.probes.concentration)
    recognizer.identify(world.probes.X, world.probes.concentration)
    with pytest.raises(InvalidConcentrationError, match="calibrated with concentrations, asked without"):
        recognizer.identify(world.probes.X)
    recognizer.calibrate(world.probes.X, world.probes.y)
    with pytest.raises(InvalidConcentrationError, match="calibrated without concentrations, asked with"):
        recognizer.identify(world.probes.X, world.probes.concentration)


def test_a_method_that_reads_concentrations_says_so_where_there_are_none(world: SimulatedWorld) -> None:
    recognizer = OpenSetRecognizer("holue").fit(world.gallery.X, world.gallery.y)
    with pytest.raises(CalibrationDataError, match=r"no concentration was given.*'holue-plus'"):
        recognizer.calibrate(world.probes.X, world.probes.y)


def test_too_few_right_rejections_fall_back_to_a_formula_with_the_reason(world: SimulatedWorld, tmp_path: Path) -> None:
    strangers = np.flatnonzero(world.probes.y == UNKNOWN)[:12]
    rows = np.concatenate([np.flatnonzero(world.probes.y != UNKNOWN), strangers])
    X, y = world.probes.X[rows], world.probes.y[rows]
    recognizer = OpenSetRecognizer(target_fpir=0.1).fit(world.gallery.X, world.gallery.y)
    with pytest.warns(
        FallbackWarning, match="'galue' is used in place of 'holue-plus': only 11 .* rightly rejected"
    ) as told:
        recognizer.calibrate(X, y)
    assert [warning.filename for warning in told] == [__file__] * 2
    assert "29 people" in str(told[1].message)  # 12 cannot show an FPIR of 0.1
    assert isinstance(recognizer.quality_, GalleryQuality)
    assert [fallback.setting for fallback in recognizer.fallbacks_] == ["method"]
    answers = recognizer.identify(world.probes.X)
    recognizer.save(tmp_path / "saved")
    again = OpenSetRecognizer.load(tmp_path / "saved")
    assert again.fallbacks_ == recognizer.fallbacks_
    assert again.method == "holue-plus"
    np.testing.assert_array_equal(again.identify(world.probes.X).uncertainty, answers.uncertainty)
    recognizer.calibrate(world.probes.X, world.probes.y)
    assert recognizer.fallbacks_ == ()
    with pytest.raises(NotCalibratedError, match="set to 'galue' after calibrating"):
        recognizer.set_params(method="galue").identify(world.probes.X)


def test_strangers_that_are_all_alike_cannot_say_how_the_threshold_follows(world: SimulatedWorld) -> None:
    mated = world.probes.y != UNKNOWN
    stranger = np.repeat(world.probes.X[~mated][:1], 30, axis=0)
    X = np.concatenate([world.probes.X[mated], stranger])
    y = np.concatenate([world.probes.y[mated], np.full(30, UNKNOWN, dtype=object)])
    recognizer = OpenSetRecognizer("galue").fit(world.gallery.X, world.gallery.y)
    with pytest.warns(FallbackWarning, match="hold='model' is used in place of 'fpir': .* all alike"):
        recognizer.calibrate(X, y)
    before = recognizer.operating_point_
    recognizer.enroll(world.probes.X[-3:], [801, 802, 803])
    moved = recognizer.operating_point_.threshold - before.threshold
    assert moved == pytest.approx(np.log(43 / 40) / before.concentration)


def test_a_given_threshold_follows_the_model_and_says_so_on_request(world: SimulatedWorld) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        recognizer = OpenSetRecognizer("galue", threshold=0.5).fit(world.gallery.X, world.gallery.y)
        recognizer.calibrate(world.probes.X, world.probes.y)
    assert "threshold= was given" in str(recognizer.fallbacks_[0])
    assert recognizer.operating_point_.threshold == 0.5


@settings(max_examples=25, deadline=None)
@given(
    steps=st.lists(st.integers(-20, 60), min_size=1, max_size=5),
    hold=st.sampled_from(["model", "fpir", "threshold"]),
    calibrated_on=st.sampled_from(["enrolled", "others"]),
)
def test_the_point_depends_on_how_many_are_enrolled_and_not_on_how_they_came(
    world: SimulatedWorld, development: SimulatedWorld, steps: list[int], hold: str, calibrated_on: str
) -> None:
    more = np.random.default_rng(0).normal(size=(400, world.gallery.X.shape[1]))
    people = world if calibrated_on == "enrolled" else development
    gallery = None if people is world else (people.gallery.X, people.gallery.y)

    def calibrated() -> OpenSetRecognizer:
        recognizer = OpenSetRecognizer("galue", hold=hold, target_fpir=0.1, threads=1)  # type: ignore[arg-type]
        recognizer.fit(world.gallery.X, world.gallery.y)
        return recognizer.calibrate(people.probes.X, people.probes.y, gallery=gallery)

    went = calibrated()
    named = 5000
    for step in steps:
        if step > 0:
            went.enroll(more[:step], np.arange(named, named + step))
            named += step
        elif step < 0 and len(went.gallery_) + step >= 2:
            went.remove(went.gallery_.subjects[:-step])
    size = len(went.gallery_)
    straight = calibrated()
    if size > 40:
        straight.enroll(more[: size - 40], np.arange(5000, 5000 + size - 40))
    elif size < 40:
        straight.remove(straight.gallery_.subjects[: 40 - size])
    assert went.operating_point_ == straight.operating_point_


@pytest.mark.parametrize("hold", ["model", "fpir", "threshold"])
def test_a_save_of_the_earlier_format_is_read(hold: str, world: SimulatedWorld, tmp_path: Path) -> None:
    recognizer = OpenSetRecognizer(hold=hold).fit(world.gallery.X, world.gallery.y)  # type: ignore[arg-type]
    recognizer.calibrate(world.probes.X, world.probes.y).enroll(world.probes.X[-3:], [801, 802, 803])
    recognizer.save(tmp_path / "new")
    content, arrays = read_artifact(tmp_path / "new", "recognizer")
    # What earlier versions wrote: whether there is a quality, and the size that the point was carried from.
    content["quality"] = True
    point = content["operating_point"]
    del content["method"], content["fallbacks"], point["calibrated"]
    point["carried_from"] = 40
    write_artifact(tmp_path / "old", "recognizer", content, arrays)
    old = OpenSetRecognizer.load(tmp_path / "old")
    assert old.fallbacks_ == ()
    assert old.operating_point_.carried_from == 40
    # The point it was carried from is computed back, and may differ by rounding.
    np.testing.assert_allclose(
        old.identify(world.probes.X).uncertainty, recognizer.identify(world.probes.X).uncertainty, atol=1e-12
    )
    for one in (old, recognizer):
        one.remove([801, 802, 803])
    assert old.operating_point_.threshold == pytest.approx(recognizer.operating_point_.threshold, abs=1e-12)
