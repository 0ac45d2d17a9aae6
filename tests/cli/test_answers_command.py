"""``holue answers``: a set that is not there is named, and the tables hold what the study found."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.errors import InvalidParameterError
from holue.experiments import answer_page, answer_study
from holue.experiments.answer_study import CLAIMS, AnswerResult, Claims


def test_an_unknown_set_is_refused_by_name() -> None:
    with pytest.raises(InvalidParameterError, match="'penguins'"):
        CliRunner().invoke(app, ["answers", "penguins"], catch_exceptions=False)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> None:
    """A set whose probabilities are 0.75, of which 3 of 4 came true in every split."""
    claims = Claims(np.full(4, 0.75), np.array([True, True, True, False]), np.array(list("abcd")))
    named = {"half-way": {"boundary": 1, "look-alike": 3, "sample": 0, "none": 0}}
    result = AnswerResult(dict.fromkeys(CLAIMS, claims), named)
    monkeypatch.setattr(answer_study, "SETS", {"made": lambda size: [("made", lambda seed: ())]})
    monkeypatch.setattr(answer_page, "SETS", {"made": lambda size: [("made", lambda seed: ())]})
    monkeypatch.setattr(answer_page, "study", lambda **options: result)


@pytest.mark.usefixtures("made")
def test_the_tables_hold_every_set_with_and_without_concentrations() -> None:
    printed = CliRunner().invoke(app, ["answers", "--seeds", "2"]).output
    for word in ("with", "without"):
        assert f"| made | {word} | half-way | 8 | 0.25 | 0.75 | 0.00 | 0.00 |" in printed
        for claim in CLAIMS:
            assert f"| made | {word} | {claim} | 0.000 (0.000) |" in printed


@pytest.mark.usefixtures("made")
def test_json_holds_numbers_with_names() -> None:
    told = json.loads(CliRunner().invoke(app, ["answers", "--seeds", "2", "--json"]).stdout)
    row = told["calibration"][0]
    assert (row["data"], row["concentrations"], row["claim"]) == ("made", True, "best candidate")
    assert (row["splits"], row["answers"], row["error"], row["pooled_error"]) == (2, 8, 0.0, 0.0)
    assert all(isinstance(row[name], float) for name in ("worst_error", "chance_error", "debiased_error"))
    assert told["reasons"][0] == {
        "data": "made",
        "concentrations": True,
        "planted": "half-way",
        "answers": 8,
        "named": {"boundary": 2, "look-alike": 6, "sample": 0, "none": 0},
    }
