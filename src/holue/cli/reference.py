"""The command reference: a page made from the commands themselves, so that it cannot fall behind."""

from __future__ import annotations

import inspect
from typing import Any

import typer


def command_reference(app: typer.Typer) -> str:
    """Every command with its arguments and options, as Markdown."""
    root = typer.main.get_command(app)
    parts = ["# Commands", f"{root.help} Every command takes `--help`, and `--json` for programs."]
    for name, command in sorted(root.commands.items()):  # type: ignore[attr-defined]
        leaves = getattr(command, "commands", None)
        if leaves is None:
            parts.append(_section(f"holue {name}", command))
        else:
            parts += [_section(f"holue {name} {leaf}", each) for leaf, each in sorted(leaves.items())]
    return "\n\n".join(parts) + "\n"


def _section(title: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
    usage = " ".join([title, *(_metavar(p) for p in arguments), "[OPTIONS]"])
    rows = [(f"`{_metavar(p)}`", _help(p)) for p in arguments]
    rows += [(f"`{'`, `'.join([*p.opts, *p.secondary_opts])}`", _help(p)) for p in options]
    table = "\n".join(["| | |", "|---|---|", *(f"| {left} | {right} |" for left, right in rows)])
    return f"## {title}\n\n```bash\n{usage}\n```\n\n{inspect.cleandoc(command.help or '')}\n\n{table}"


def _metavar(parameter: Any) -> str:
    name = parameter.metavar or parameter.name.upper()
    return f"{name if parameter.required else f'[{name}]'}{'...' if parameter.nargs == -1 else ''}"


def _help(parameter: Any) -> str:
    text = " ".join((parameter.help or "").split()).replace("|", "\\|")
    shown = parameter.show_default if isinstance(getattr(parameter, "show_default", None), str) else parameter.default
    if shown is None or shown is False or callable(shown) or parameter.required:
        return text
    return f"{text} Default: {shown}."
