"""The figures of the paper show what they are meant to show, and a figure's bytes depend on the data alone."""

from pathlib import Path

import numpy as np
import pytest

from holue.evaluation.paper.figures import draw_interpolation, draw_toy_world
from holue.evaluation.paper.interpolation import interpolation
from holue.evaluation.paper.toy_world import FIRST, INNER, OUTER, SECOND, toy_world
from holue.evaluation.report.drawing import Drawing


def test_of_two_probes_equally_far_the_one_near_both_subjects_is_less_certain() -> None:
    world = toy_world()
    assert abs(OUTER - FIRST) == abs(INNER - FIRST)
    assert abs(INNER - SECOND) < abs(OUTER - SECOND)
    assert world.outer_uncertainty < world.inner_uncertainty - 0.1
    assert world.posterior.sum(axis=1) == pytest.approx(1.0)


def test_the_toy_world_is_most_certain_at_a_subject_and_far_from_both() -> None:
    world = toy_world()
    at = {degrees: world.uncertainty[np.argmin(np.abs(world.angles - degrees))] for degrees in (FIRST, 70.0, -110.0)}
    assert at[-110.0] < at[FIRST] < at[70.0]
    assert world.angles[world.uncertainty.argmax()] == pytest.approx((FIRST + SECOND) / 2, abs=0.5)


def test_halfway_between_two_subjects_galue_and_holue_peak_and_sample_quality_does_not() -> None:
    strip = interpolation()
    middle = len(strip.position) // 2
    assert strip.uncertainty["GalUE"].argmax() == middle
    assert strip.uncertainty["HolUE"].argmax() == middle
    assert strip.uncertainty["SCF"].argmax() != middle
    assert strip.uncertainty["SCF"][middle] < 0.01
    poor = int(strip.uncertainty["SCF"].argmax())
    assert strip.uncertainty["HolUE"][poor] > 0.3 > strip.uncertainty["GalUE"][poor], "HolUE sees the poor sample too"


def test_the_strip_is_symmetric_where_the_sample_is_good() -> None:
    galue = interpolation().uncertainty["GalUE"]
    np.testing.assert_allclose(galue, galue[::-1], atol=1e-9)


@pytest.mark.parametrize("draw", [lambda: draw_toy_world(toy_world()), lambda: draw_interpolation(interpolation())])
def test_drawn_twice_the_bytes_are_the_same(draw: object, tmp_path: Path) -> None:
    def bytes_of(name: str) -> dict[str, bytes]:
        folder = tmp_path / name
        folder.mkdir()
        drawing: Drawing = draw()  # type: ignore[operator]
        drawing.save(folder)
        return {path.name: path.read_bytes() for path in folder.iterdir()}

    first = bytes_of("first")
    assert {Path(name).suffix for name in first} == {".png", ".svg"}
    assert first == bytes_of("second")
