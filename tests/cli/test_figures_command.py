"""``holue figures`` draws the paper's illustrations and prints their numbers."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.errors import InvalidFileError

runner = CliRunner()


def test_figures_are_written_and_their_numbers_printed(tmp_path: Path) -> None:
    result = runner.invoke(app, ["figures", "--out", str(tmp_path / "figures"), "--json"])
    assert result.exit_code == 0, result.output
    numbers = json.loads(result.stdout)
    toy, strip = numbers["figure1_toy_world"], numbers["figure3_interpolation"]
    assert toy["outer_probe"]["uncertainty"] < toy["inner_probe"]["uncertainty"]
    assert strip["highest_at"]["GalUE"] == strip["highest_at"]["HolUE"] == 0.5 != strip["highest_at"]["SCF"]
    names = {path.name for path in (tmp_path / "figures").iterdir()}
    assert names == {f"{name}.{suffix}" for name in numbers for suffix in ("png", "svg")}


def test_people_read_the_two_numbers(tmp_path: Path) -> None:
    result = runner.invoke(app, ["figures"])
    assert result.exit_code == 0
    assert "0.37" in result.stdout
    assert "0.53" in result.stdout


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.raises(InvalidFileError, match="taken: is a file"):
        runner.invoke(app, ["figures", "--out", str(tmp_path / "taken")], catch_exceptions=False)
