"""Tracks: the study asks people whom the calibration never saw, and its tables hold what it found."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.experiments import track_page, track_study
from holue.experiments.track_study import ASKED, CALIBRATED_ON, RISKS, TrackPart, study_tracks


def part(rng: np.random.Generator, prefix: str, people: int = 60, dim: int = 32) -> TrackPart:
    """People of twelve noisy samples, two of each medium; the first half is enrolled by a clean one."""
    centres = rng.standard_normal((people, dim))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    names = np.array([f"{prefix}{number:03}" for number in range(people)])
    noisy = np.repeat(centres, 12, axis=0) + 0.6 * rng.standard_normal((12 * people, dim))
    return TrackPart(
        centres[: people // 2], names[: people // 2], noisy, np.repeat(names, 12), np.repeat(np.arange(6 * people), 2)
    )


@pytest.fixture(scope="module")
def splits() -> list[tuple[TrackPart, list[TrackPart]]]:
    rng = np.random.default_rng(5)
    return [(part(rng, "d"), [part(rng, "e")]) for _ in range(2)]


def test_longer_tracks_are_right_more_often_and_stop_within_the_risk(
    splits: list[tuple[TrackPart, list[TrackPart]]],
) -> None:
    found = study_tracks(*splits[0], seed=0)
    assert set(found.answers) == {(kind, length) for kind in CALIBRATED_ON for length in ASKED}
    right = [found.answers["tracks", length][0].claims.came_true.mean() for length in ASKED]
    assert right[0] < right[1] < right[2]
    for risk in RISKS:
        [ended] = found.stopped[risk]
        taken = ended.samples > 0
        assert (ended.said[taken] <= risk).all()
        assert ended.samples.max() <= max(ASKED)


def test_the_command_prints_the_tables_and_gives_numbers(
    splits: list[tuple[TrackPart, list[TrackPart]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = {"made": lambda size: ("made", lambda seed: splits[seed])}
    monkeypatch.setattr(track_study, "TRACK_SETS", made)
    monkeypatch.setattr(track_page, "TRACK_SETS", made)
    told = json.loads(CliRunner().invoke(app, ["answers", "--tracks", "--seeds", "2", "--json"]).stdout)
    assert len(told["tracks"]) == len(ASKED) * len(CALIBRATED_ON)
    assert len(told["stopped"]) == len(RISKS)
    row = told["tracks"][0]
    assert (row["data"], row["samples"], row["calibrated_on"], row["splits"]) == ("made", 1, "single samples", 2)
    assert row["too_sure_interval"][0] <= row["too_sure"] <= row["too_sure_interval"][1]
    printed = CliRunner().invoke(app, ["answers", "made", "--tracks", "--seeds", "1"]).output
    assert "| made | 10 | tracks |" in printed
    assert "| made | 0.05 |" in printed
