"""``holue demo`` refuses before it works; what it writes is tested with the demo itself."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

import holue.demo.demo as module
from holue.cli.app import app
from holue.errors import InvalidFileError, MissingDependencyError

runner = CliRunner()


def test_a_folder_in_the_way_is_refused_before_the_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "holiday.jpg").write_text("dear")
    monkeypatch.setattr(module, "make_scene", lambda *_, **__: pytest.fail("worked before asking"))
    with pytest.raises(InvalidFileError, match="exists and is no demo"):
        runner.invoke(app, ["demo", "--out", str(tmp_path)], catch_exceptions=False)


def test_a_missing_package_is_named_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda name: None if name == "onnxruntime" else object())
    with pytest.raises(MissingDependencyError, match=r"onnxruntime is not installed; run: pip install 'holue\[demo\]'"):
        runner.invoke(app, ["demo", "--out", str(tmp_path / "demo")], catch_exceptions=False)
    assert not (tmp_path / "demo").exists()
