"""Every command teaches through --help, speaks JSON, and turns a user's mistake into one line."""

import subprocess
import sys

import pytest
import typer

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


def test_version_and_module_entry_point() -> None:
    done = subprocess.run([sys.executable, "-m", "holue", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("holue 0.")
