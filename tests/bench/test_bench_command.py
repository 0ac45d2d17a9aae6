"""``holue bench`` shows numbers again without measuring, and says what is wrong with a file."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holue.bench.sections.program import run
from holue.bench.worlds.sizes import Sizes
from holue.cli.app import app
from holue.errors import InvalidFileError

TINY = Sizes(100, (8,), (1,), (1,), (50,), (8,), (1,), 8, 0, 2, 0.01, 0, 0, 0, 0, pause=0.0)


def test_numbers_of_an_earlier_run_become_a_page_and_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = run(sizes=TINY, rounds=1, out=tmp_path / "speed.json")
    (tmp_path / "why.txt").write_text("## Remarks\n\nBecause.", encoding="utf-8")
    asked = ["bench", "--from", "speed.json", "--page", "speed.md", "--remarks", "why.txt", "--chart", "pictures"]
    shown = CliRunner().invoke(
        app,
        [one if "." not in one else str(tmp_path / one) for one in asked[:-1]] + [str(tmp_path / "pictures"), "--json"],
    )
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout) == json.loads(json.dumps(result))
    page = (tmp_path / "speed.md").read_text("utf-8")
    assert "## Targets" in page
    assert "](pictures/speed.svg)" in page
    assert page.endswith("Because.\n")
    assert (tmp_path / "pictures" / "speed.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("content", "why"), [(None, "no such file"), ("{", "not JSON"), ('{"a": 1}', "not the numbers of a benchmark")]
)
def test_a_file_that_holds_no_numbers_is_refused(tmp_path: Path, content: str | None, why: str) -> None:
    path = tmp_path / "speed.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    shown = CliRunner().invoke(app, ["bench", "--from", str(path)])
    assert isinstance(shown.exception, InvalidFileError)
    assert why in str(shown.exception)
