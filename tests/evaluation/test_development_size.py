"""Development size: more people give better numbers, and people who are lacking are not invented."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.errors import InvalidParameterError
from holue.evaluation.deployment.development_size import development_study, middle


def made_up(people: int, samples: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(people), samples)
    return rng.normal(size=(people, 24))[y] + 0.7 * rng.normal(size=(len(y), 24)), y


def test_more_people_calibrate_better_and_hold_fpir_more_closely() -> None:
    X, y = made_up(900)
    few, many = development_study(X, y, people=[16, 400], target_fpir=0.1, enrolled=80, splits=3).sizes
    assert (few.people, many.people, many.refused) == (16, 400, 0)
    assert np.mean(many.calibration_error) < np.mean(few.calibration_error)
    assert np.abs(np.array(many.fpir) - 0.1).max() < 0.06
    assert many.certified >= few.certified


def test_a_certified_risk_is_kept() -> None:
    X, y = made_up(900, seed=1)
    (size,) = development_study(X, y, people=[500], target_risk=0.2, enrolled=80, splits=4).sizes
    assert size.certified >= 3
    assert max(size.risk) < 0.25


def test_sizes_for_which_people_lack_are_left_out_and_none_is_an_error() -> None:
    X, y = made_up(100)
    study = development_study(X, y, people=[20, 5000], enrolled=20, splits=1)
    assert [one.people for one in study.sizes] == [20]
    with pytest.raises(InvalidParameterError, match="lower enrolled or people"):
        development_study(X, y, people=[5000], enrolled=20)
    with pytest.raises(InvalidParameterError, match="at least 8, got"):
        development_study(X, y, people=[2], enrolled=20)


def test_the_middle_of_nothing_is_nothing() -> None:
    assert middle([]) is None
    assert middle([0.5]) == (0.5, 0.5, 0.5)


def test_the_command_prints_a_row_for_each_number(tmp_path: Path) -> None:
    X, y = made_up(120)
    np.savez(tmp_path / "some.npz", embeddings=X, subject_id=y)
    call = ["development-size", str(tmp_path / "some.npz"), "--people", "20", "40", "--enrolled", "20", "--splits", "1"]
    printed = CliRunner().invoke(app, call, catch_exceptions=False).output
    assert "of 1" in printed
    told = json.loads(CliRunner().invoke(app, [*call, "--json"]).stdout)
    assert [one["people"] for one in told["sizes"]] == [20, 40]
    with pytest.raises(InvalidParameterError, match="whole numbers"):
        CliRunner().invoke(app, [*call[:2], "--people", "many"], catch_exceptions=False)
