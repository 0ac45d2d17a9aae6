"""The binary section measures mates and strangers apart, and its page has a row for every question."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from holue.bench.page.page import speed_page
from holue.bench.sections.binary import WORLDS, Case, equal_recall
from holue.bench.sections.program import run
from holue.bench.worlds.clusters import Families
from holue.bench.worlds.sizes import FULL, QUICK
from holue.cli.app import app

SMALL = replace(
    QUICK,
    binary_shapes=((2000, 32),),
    binary_batches=(1, 3),
    binary_probes=40,
    threads=(1,),
    pause=0.0,
    seconds_each=0.01,
)


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    return run(sections=["binary"], sizes=SMALL, rounds=1)


def test_every_question_is_asked_of_every_system(measured: dict[str, Any]) -> None:
    speed = measured["binary"]["speed"]
    worlds = {row["world"] for row in speed}
    assert {"uniform", "families"} <= worlds <= set(WORLDS)
    for world in worlds:
        here = [row for row in speed if row["world"] == world]
        assert {(row["who"], row["probes"]) for row in here} == {("mated", 1), ("strangers", 1), ("both", 3)}
        assert {"holue", "holue int8", "holue binary"} <= {row["system"] for row in here}
    for row in measured["binary"]["accuracy"]:
        assert row["same_decisions"] == 1.0
        assert row["bits"] in (1, 2)
        assert row["binary_mb"] < row["int8_mb"] < row["float32_mb"]


def test_the_page_is_of_bits_alone(measured: dict[str, Any]) -> None:
    page = speed_page(measured)
    assert page.startswith("# Speed of one and two bits per coordinate\n")
    assert "docs/binary-speed.md" in page
    assert page.count("| one, a stranger |") == len(measured["binary"]["accuracy"])


def test_faiss_is_given_the_fewest_that_decide_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case.of(Families.found(np.random.default_rng(0), 2000, 32), 2000, 40, 0)
    asked = []

    def found(index: object, gallery: object, probes: np.ndarray, reranked: int, threads: int) -> Any:
        asked.append(reranked)
        exact = case.exact
        best = exact.top_index[:, 0] if reranked >= 64 else np.full(len(probes), -5)
        return best, exact.top_scores[:, 0]

    monkeypatch.setattr("holue.bench.sections.binary.faiss_best", found)
    assert equal_recall(case, None, 1.0) == (64, 1.0)
    assert asked == [16, 64]


def test_a_large_run_has_a_million_subjects_and_is_no_quick_one() -> None:
    assert FULL.large().binary_shapes == ((1_000_000, 512), (1_000_000, 128))
    assert FULL.large().binary_probes == 20_000
    refused = CliRunner().invoke(app, ["bench", "--quick", "--large"])
    assert refused.exit_code != 0
    assert "leave one out" in str(refused.exception)
