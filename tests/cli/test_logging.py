"""The library says what it does through ``logging``, and a user sees it with ``-v`` alone."""

import ast
import logging
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import holue
from holue.bench.sections.evaluation import simulated_protocol
from holue.cli.app import app
from holue.datasets.formats.folder import save_folder
from holue.evaluation.comparison.study import evaluate

SOURCE = Path(holue.__file__).parent
PEOPLE = {"n_subjects": 20, "n_strangers": 30}


@pytest.fixture(autouse=True)
def handlers_as_before():
    logger = logging.getLogger("holue")
    handlers, level = list(logger.handlers), logger.level
    yield
    logger.handlers[:] = handlers
    logger.setLevel(level)


def protocol():
    return simulated_protocol(development=PEOPLE, evaluation=PEOPLE, dim=16, concentration=30.0, look_alike_pairs=2)


def test_the_library_prints_nothing() -> None:
    shells = {"cli", "bench", "demo"}  # what people read on a terminal
    notice = Path("sphere/compile_notice.py")  # one sentence, on a terminal only: tests/sphere/test_compile_notice.py
    for path in SOURCE.rglob("*.py"):
        place = path.relative_to(SOURCE)
        if place.parts[0] in shells or place == notice:
            continue
        calls = (node.func for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
        assert not any(isinstance(call, ast.Name) and call.id == "print" for call in calls), path


def test_an_evaluation_logs_what_it_does(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="holue"):
        evaluate(protocol(), fpir=0.1, methods=["galue"], n_resamples=2)
    told = [record.getMessage() for record in caplog.records if record.name.startswith("holue.evaluation")]
    assert told[0] == "evaluating simulated by GalUE"
    assert told[-1].startswith("FPIR 0.1: threshold ")


def test_without_a_configuration_nothing_is_shown() -> None:
    said = "import holue, logging; logging.getLogger('holue.evaluation').warning('heard')"
    run = subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True)
    assert run.stderr == ""


@pytest.mark.parametrize(("asked", "shown"), [([], False), (["-v"], True)])
def test_the_command_line_shows_messages_where_it_is_asked_to(tmp_path: Path, asked: list[str], shown: bool) -> None:
    save_folder(protocol(), tmp_path / "people")
    words = [*asked, "evaluate", str(tmp_path / "people"), "--fpir", "0.1", "--methods", "galue", "--resamples", "2"]
    run = CliRunner().invoke(app, [*words, "--json"], catch_exceptions=False)
    assert ("INFO holue.evaluation.comparison.study: evaluating people by GalUE" in run.stderr) == shown
    assert "INFO" not in run.stdout


def test_a_command_imports_its_own_module_alone() -> None:
    code = (
        "import sys; from typer.testing import CliRunner; from holue.cli.app import app;"
        "CliRunner().invoke(app, ['split', '--help']);"
        "print(sorted(name for name in sys.modules if name.startswith('holue.cli.commands.')))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['holue.cli.commands.evaluation', 'holue.cli.commands.evaluation.split']"
