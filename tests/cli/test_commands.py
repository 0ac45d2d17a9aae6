"""Every command teaches through --help, speaks JSON, and turns a user's mistake into one line."""

import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from holue.cli.app import app

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_explains_itself_and_offers_json(name: str) -> None:
    command = COMMANDS[name]
    leaves = getattr(command, "commands", {name: command}).values()
    for leaf in leaves:
        assert len(leaf.help or "") > 80, f"{leaf.name} needs help that teaches"
        options = {option for parameter in leaf.params for option in parameter.opts}
        assert "--json" in options, f"{leaf.name} needs --json"
        for parameter in leaf.params:
            assert getattr(parameter, "help", None), f"{leaf.name} {parameter.name} needs a help text"


@pytest.mark.parametrize("words", [[], *([name] for name in sorted(COMMANDS))], ids=str)
def test_help_shows_the_type_of_a_value_and_none_beside_a_flag(words: list[str]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], env={"COLUMNS": "160"}).output
    assert "--help" in shown
    assert "bool" not in shown.lower()
    assert "path" in shown.lower() or words != ["split"], "values keep their types"


@pytest.mark.parametrize(
    "name", [name for name in sorted(COMMANDS) if "seed" in {p.name for p in COMMANDS[name].params}]
)
def test_a_seed_below_zero_is_refused_at_once(name: str) -> None:
    arguments = ["scf" for parameter in COMMANDS[name].params if parameter.param_type_name == "argument"]
    result = CliRunner().invoke(app, [name, *arguments, "--seed", "-1"])
    assert result.exit_code == 2
    assert "'--seed'" in result.output


OPTIONAL = (
    "torch",
    "onnx",
    "onnxruntime",
    "onnxscript",
    "PIL",
    "soundfile",
    "kaldi_native_fbank",
    "matplotlib",
    "jinja2",
)
OPTIONAL += ("pandas", "pyarrow", "psycopg", "faiss", "usearch")


def test_the_help_of_all_commands_needs_no_other_extra_than_cli() -> None:
    code = f"""
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {OPTIONAL}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Absent())
sys.argv = ["holue", "--help"]
from holue.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in COMMANDS)


def test_version_and_module_entry_point() -> None:
    done = subprocess.run([sys.executable, "-m", "holue", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("holue 0.")
