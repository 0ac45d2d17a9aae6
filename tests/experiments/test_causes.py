"""Causes: one thing varied at a time, kept as it is measured."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.errors import InvalidParameterError
from holue.experiments.causes import study
from holue.experiments.causes.conditions import BASE, CAUSES, Cause, Conditions, Level
from holue.experiments.causes.study import METHODS, Mean, measure, study_causes

TINY = replace(
    BASE, world=replace(BASE.world, enrolled=60, others=60, mated=300, non_mated=300), fpir=0.1, head_probes=300
)


def test_every_cause_varies_one_thing_and_holds_the_base() -> None:
    base = asdict(BASE)
    for cause in CAUSES:
        assert any(level.conditions == BASE and level.definition == "20 points" for level in cause.levels), cause.key
        for level in cause.levels:
            changed = asdict(level.conditions)
            outer = [name for name in base if name != "world" and changed[name] != base[name]]
            inner = [name for name in base["world"] if changed["world"][name] != base["world"][name]]
            assert len(outer) + len(inner) + (level.definition != "20 points") <= 1, (cause.key, level.label)


def test_true_concentrations_order_samples_better_than_none() -> None:
    """At a low FPIR most errors are rejections of poor samples, which κ_x knows of."""
    world = replace(TINY, fpir=0.02).of_world(middling=0.4)
    true = measure(world.of_world(noise=0.0), 0)["20 points"]["scf"]
    nothing = measure(replace(world, shuffled=True), 0)["20 points"]["scf"]
    assert true is not None
    assert nothing is not None
    assert true > nothing + 0.2


def test_a_finished_world_is_not_measured_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cause = Cause("tiny", "tiny", (Level("one", TINY), Level("again", TINY, "counted")))
    calls: list[int] = []

    def made_up(conditions: Conditions, seed: int) -> study.Record:
        calls.append(seed)
        facts = dict.fromkeys(study.FACTS, 0.5)
        return {**{one: dict.fromkeys(METHODS, 0.1 * seed) for one in study.DEFINITIONS}, "facts": facts}

    monkeypatch.setattr(study, "measure", made_up)
    first = study_causes([cause], seeds=2, cache_dir=tmp_path)
    assert calls == [0, 1]
    assert study_causes([cause], seeds=3, cache_dir=tmp_path)[0].levels[0].prr["scf"] == Mean.of([0.0, 0.1, 0.2])
    assert calls == [0, 1, 2]
    (damaged, *_) = sorted(tmp_path.rglob("*.json"))
    damaged.write_text("{")
    assert study_causes([cause], seeds=2, cache_dir=tmp_path)[0].document() == first[0].document()


def test_an_interval_is_students() -> None:
    mean = Mean.of([0.0, 1.0, 2.0])
    assert mean is not None
    assert mean.value == pytest.approx(1.0)
    assert mean.half == pytest.approx(4.302652729911275 / np.sqrt(3))
    assert Mean.of([0.5]) == Mean(0.5, None), "one seed says nothing of the others"
    assert Mean.of([0.5, None]) is None


def test_the_command_prints_a_table_and_draws_a_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holue.experiments.causes.conditions.CAUSES", (Cause("tiny", "Tiny", (Level("one", TINY),)),))
    arguments = ["causes", "tiny", "--seeds", "1", "--cache", str(tmp_path), "--out", str(tmp_path / "figures")]
    printed = CliRunner().invoke(app, arguments, catch_exceptions=False).output
    assert "| one |" in printed
    assert "HolUE-MLP" in printed
    assert (tmp_path / "figures" / "cause-tiny.png").stat().st_size > 1000
    document = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert document["causes"][0]["levels"][0]["prr"]["galue"]["value"] is not None
    with pytest.raises(InvalidParameterError, match="penguins"):
        CliRunner().invoke(app, ["causes", "penguins"], catch_exceptions=False)
