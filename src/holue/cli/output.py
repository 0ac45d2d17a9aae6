"""Output: a result as JSON for programs, or as text for people."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.console import Console

from holue.cli.streams import is_unicode

Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")]

console = Console(highlight=False)


def say(text: str, style: str | None = None) -> None:
    """Print a line of plain text; in a pipe it is not broken, so that paths in it stay whole."""
    console.print(text, style=style, markup=False, soft_wrap=not console.is_terminal)


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "sample"), counted(3, "sample")
    ('1 sample', '3 samples')
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")


def print_json(result: Any) -> None:
    """Print plain JSON; NaN is not JSON and becomes null where results are made, so it is refused here."""
    typer.echo(json.dumps(result, indent=2, allow_nan=False, ensure_ascii=not is_unicode()))


def print_json_text(text: str) -> None:
    """Print JSON that is written out already, and ends with its line."""
    typer.echo(text if is_unicode() else json.dumps(json.loads(text), indent=2) + "\n", nl=False)
