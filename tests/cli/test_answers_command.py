"""``holue answers``: a set that is not there is named, and the tables hold what the study found."""

import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.errors import InvalidParameterError
from holue.experiments import answer_page
from holue.experiments.answer_study import AnswerResult


def test_an_unknown_set_is_refused_by_name() -> None:
    with pytest.raises(InvalidParameterError, match="'penguins'"):
        CliRunner().invoke(app, ["answers", "penguins"], catch_exceptions=False)


def test_the_tables_hold_every_set_with_and_without_concentrations(monkeypatch: pytest.MonkeyPatch) -> None:
    named = {"half-way": dict.fromkeys(answer_page.CAUSES, 1)}
    monkeypatch.setattr(answer_page, "SETS", {"made": lambda size: [("made", lambda seed: ())]})
    monkeypatch.setattr(answer_page, "study", lambda **options: AnswerResult(0.01, 0.02, 0.005, named, 0.5))
    printed = CliRunner().invoke(app, ["answers", "glyphs", "--help"]).output
    assert "splits" in printed
    calibration, causes = answer_page.answer_tables(["made"], 2)
    assert calibration == [f"| made | {word} | 0.010 (0.010) | 0.020 (0.020) | 0.005 |" for word in ("with", "without")]
    assert len(causes) == 2
    assert answer_page.answer_page(calibration, causes).count("| made |") == 4
