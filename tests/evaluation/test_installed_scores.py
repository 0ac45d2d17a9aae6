"""A score of another package is evaluated like holue's own, and a broken one is told with its package."""

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holue.bench.sections.evaluation import simulated_protocol
from holue.cli.app import app
from holue.datasets.formats.folder import save_folder
from holue.errors import InvalidParameterError
from holue.evaluation.comparison.methods import choose_methods
from holue.evaluation.comparison.study import evaluate
from holue.evaluation.protocol import IdentificationProtocol

SCORE = """
import numpy as np
from holue.recognition.quality import QualityScore

class Presence(QualityScore):
    name = "Presence"

    def __call__(self, reading):
        return np.abs(reading.posterior.log_p_known - reading.posterior.log_p_unknown)
"""
Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Put a distribution on the path: its module, its metadata, its entry points."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(site)

    def put(source: str, entries: str, *, package: str = "my-scores", module: str = "my_scores") -> None:
        (site / f"{module}.py").write_text(source)
        info = site / f"{module}-1.2.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.2\n")
        (info / "entry_points.txt").write_text(f"[holue.scores]\n{entries}\n")
        monkeypatch.delitem(sys.modules, module, raising=False)

    return put


@pytest.fixture(scope="module")
def protocol() -> IdentificationProtocol:
    people = {"n_subjects": 30, "n_strangers": 30}
    return simulated_protocol(development=people, evaluation=people, dim=16, concentration=30.0, look_alike_pairs=4)


def test_an_installed_score_is_evaluated_by_its_name(install: Install, protocol: IdentificationProtocol) -> None:
    install(SCORE, "presence = my_scores:Presence")
    results = evaluate(protocol, fpir=0.1, methods=["presence", "galue"], n_resamples=5)
    assert results.points[0].of("presence").prr.value is not None
    assert results.points[0].of("presence").method.name == "Presence"


def test_the_command_line_evaluates_and_lists_it(
    install: Install, protocol: IdentificationProtocol, tmp_path: Path
) -> None:
    install(SCORE, "presence = my_scores:Presence")
    save_folder(protocol, tmp_path / "people")
    asked = [
        "evaluate",
        str(tmp_path / "people"),
        "--fpir",
        "0.1",
        "--methods",
        "presence",
        "--resamples",
        "5",
        "--json",
    ]
    told = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert json.loads(told.stdout)["operating_points"][0]["methods"]["presence"]["name"] == "Presence"
    listed = json.loads(CliRunner().invoke(app, ["scores", "--json"], catch_exceptions=False).stdout)
    assert {"key": "presence", "package": "my-scores 1.2"}.items() <= listed[-1].items()
    assert "presence        Presence        my-scores 1.2" in CliRunner().invoke(app, ["scores"]).stdout


@pytest.mark.parametrize(
    ("source", "entry", "why"),
    [
        ("import no_such_module", "mine = my_scores:Presence", "cannot be imported .ModuleNotFoundError"),
        ("raise RuntimeError('no')", "mine = my_scores:Presence", "cannot be imported .RuntimeError: no"),
        ("Presence = 3", "mine = my_scores:Presence", "is no class derived from"),
        (SCORE, "mine = my_scores:Absence", "cannot be imported .AttributeError"),
    ],
)
def test_a_broken_score_names_its_package_where_it_is_asked_for_and_is_skipped_among_all(
    install: Install, protocol: IdentificationProtocol, source: str, entry: str, why: str
) -> None:
    install(source, entry)
    with pytest.raises(InvalidParameterError, match=f"'mine' cannot be used: package my-scores 1.2 offers.*{why}"):
        choose_methods(["galue", "mine"], protocol)
    _, skipped = choose_methods("all", protocol)
    assert any(one.key == "mine" and "my-scores 1.2" in one.reason for one in skipped)
    chosen, skipped = choose_methods("galue", protocol)
    assert [method.key for method in chosen] == ["galue"]
    assert not skipped
    assert "not usable: package my-scores 1.2" in CliRunner().invoke(app, ["scores"]).stdout


def test_a_score_cannot_take_the_name_of_another(install: Install, protocol: IdentificationProtocol) -> None:
    install(SCORE, "galue = my_scores:Presence")
    chosen, _ = choose_methods("galue", protocol)
    assert [method.name for method in chosen] == ["GalUE"]
    assert "holue has a method of that name" in CliRunner().invoke(app, ["scores"]).stdout
    install(SCORE, "twice = one:Presence", package="one", module="one")
    install(SCORE, "twice = two:Presence", package="two", module="two")
    with pytest.raises(InvalidParameterError, match=r"packages one 1\.2 and two 1\.2 both offer the score 'twice'"):
        choose_methods("twice", protocol)
