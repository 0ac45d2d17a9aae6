"""Heads used on another data set than the one they learned on."""

from __future__ import annotations

from dataclasses import replace

import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.errors import InvalidParameterError
from holue.evaluation.comparison.study import evaluate
from holue.experiments.across import HEADS, across_table, study_across
from holue.experiments.experiment import MAIN, Experiment
from holue.experiments.sets.ijb_world import IJBC, world_protocol

GOOD = replace(IJBC, enrolled=80, others=80, mated=400, non_mated=400)
POOR = replace(GOOD, best=0.5, middling=0.5)


def made_up(name: str, settings: object) -> Experiment:
    return Experiment(name, name, lambda size: lambda seed: {MAIN: world_protocol(seed, settings=settings)})  # type: ignore[arg-type]


def test_a_head_of_ones_own_is_what_evaluate_gives_and_a_foreign_one_is_another() -> None:
    rows = study_across([made_up("good", GOOD), made_up("poor", POOR)], seeds=1, fpir=0.1)
    assert len(rows) == 4 * len(HEADS)
    by = {(row.trained_on, row.used_on, row.head): row for row in rows}
    results = evaluate(world_protocol(0, settings=POOR), fpir=0.1, methods=list(HEADS), n_resamples=2, prr="paper")
    for head in HEADS:
        own = results.points[0].of(head)
        row = by["poor", "poor", head]
        assert row.prr == pytest.approx(own.prr.value, abs=1e-9)
        if own.calibration is not None:
            assert row.calibration_error == pytest.approx(own.calibration.value, abs=1e-9)
        assert by["good", "poor", head].prr != row.prr
    assert by["good", "poor", "holue-plus"].calibration_error > by["poor", "poor", "holue-plus"].calibration_error
    assert across_table(rows).count("\n") == 5


def test_the_command_wants_two_sets_that_it_knows() -> None:
    for arguments, complaint in ((["glyphs"], "give two"), (["glyphs", "penguins"], "penguins")):
        with pytest.raises(InvalidParameterError, match=complaint):
            CliRunner().invoke(app, ["across", *arguments], catch_exceptions=False)
