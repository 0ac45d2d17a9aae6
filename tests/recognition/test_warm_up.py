import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holue.cli.app import app
from holue.cli.commands import warm_up as command
from holue.recognition import warm_up as module
from holue.recognition.quality import SCORES
from holue.recognition.warm_up import WarmUp, warm_up


def test_a_second_warm_up_has_nothing_left_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    # All methods and searches would train heads and build an index, which takes seconds even if all is compiled.
    monkeypatch.setattr(module, "SCORES", {"galue": SCORES["galue"]})
    monkeypatch.setattr(module, "SEARCHES", ("exact", "int8"))
    told: list[tuple[int, int]] = []
    warm_up(lambda done, total, note: told.append((done, total)))
    again = warm_up()
    assert again.compiled == 0
    assert Path(again.place).is_dir()
    assert told == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("kept", [True, False])
def test_the_command_says_where_the_code_is_kept(monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    monkeypatch.setattr(command, "compile_all", lambda progress: WarmUp(3, 1.5, "somewhere", kept))
    said = CliRunner().invoke(app, ["warm-up"])
    assert said.exit_code == 0
    assert "3 functions compiled" in said.output
    assert ("kept in somewhere" if kept else "set NUMBA_CACHE_DIR") in said.output
    as_json = CliRunner().invoke(app, ["warm-up", "--json"])
    assert json.loads(as_json.output) == {"compiled": 3, "seconds": 1.5, "place": "somewhere", "kept": kept}
