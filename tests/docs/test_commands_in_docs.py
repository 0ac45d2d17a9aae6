"""The commands that the documentation tells people to type exist, with the options it gives them."""

import re
import shlex
from pathlib import Path

import pytest
import typer

from holue.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELL = re.compile(r"^```(?:bash|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(holue [a-z][^`\n]*)`")
COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]


def typed(page: str) -> list[str]:
    """Command lines of shell blocks and of inline code that begin with holue."""
    lines = [line.removeprefix("$ ").strip() for block in SHELL.findall(page) for line in block.splitlines()]
    return [line for line in lines + INLINE.findall(page) if line.startswith("holue ")]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_command_and_option_exists(path: Path) -> None:
    for line in typed(path.read_text("utf-8")):
        words = shlex.split(line, comments=True)[1:]
        if words[0].startswith("-") or words[0].isupper():
            continue
        assert words[0] in COMMANDS, f"{path.name}: {line!r}: there is no command {words[0]!r}"
        known = {
            option for parameter in COMMANDS[words[0]].params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        for word in words[1:]:
            if word.startswith("--"):
                assert word.partition("=")[0] in known | {"--help"}, (
                    f"{path.name}: {line!r}: {words[0]} has no option {word}"
                )


def test_commands_are_found_in_blocks_and_in_the_text() -> None:
    page = "Run `holue demo --seed 1`.\n\n```console\n$ holue split a.npz a\nwritten\n```\n"
    assert typed(page) == ["holue split a.npz a", "holue demo --seed 1"]
