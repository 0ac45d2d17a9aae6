"""The app: every command under its name."""

from __future__ import annotations

from typing import Annotated

import typer

from holue import __version__
from holue.cli.command import Command, CommandGroup
from holue.cli.commands.apply import apply
from holue.cli.commands.audit import audit
from holue.cli.commands.bench import bench
from holue.cli.commands.demo import demo
from holue.cli.commands.embed import embed
from holue.cli.commands.evaluate import evaluate
from holue.cli.commands.experiment import experiment, results
from holue.cli.commands.figures import figures
from holue.cli.commands.gallery_growth import gallery_growth
from holue.cli.commands.split import split
from holue.cli.commands.train import train
from holue.cli.commands.trust import trust
from holue.cli.commands.warm_up import warm_up
from holue.cli.several import SeveralValues

app = typer.Typer(
    name="holue",
    cls=CommandGroup,
    help="Open-set recognition that knows when it is wrong: who, nobody enrolled, or too uncertain to decide.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """What every command shares."""
    if version:
        typer.echo(f"holue {__version__}")
        raise typer.Exit


YOURS, HEADS, PAPER = "On your embeddings", "From images and recordings to embeddings", "The paper and the package"

app.command(cls=Command)(demo)
app.command(cls=Command, rich_help_panel=YOURS)(split)
app.command(cls=SeveralValues, rich_help_panel=YOURS)(evaluate)
app.command(cls=Command, rich_help_panel=YOURS)(trust)
app.command(cls=Command, rich_help_panel=YOURS)(audit)
app.command(cls=Command, rich_help_panel=YOURS)(gallery_growth)
app.command(cls=Command, rich_help_panel=HEADS)(embed)
app.command(cls=Command, rich_help_panel=HEADS)(train)
app.command(cls=Command, rich_help_panel=HEADS)(apply)
app.command(cls=Command, rich_help_panel=PAPER)(experiment)
app.command(cls=Command, rich_help_panel=PAPER)(results)
app.command(cls=Command, rich_help_panel=PAPER)(figures)
app.command(cls=Command, rich_help_panel=PAPER)(bench)
app.command(cls=Command, rich_help_panel=PAPER)(warm_up)
