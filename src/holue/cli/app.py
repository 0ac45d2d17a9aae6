"""The app: every command under its name."""

from __future__ import annotations

import logging
from typing import Annotated, ClassVar

import typer

from holue import __version__
from holue.cli.command import LazyCommand, LazyGroup
from holue.cli.several import SeveralValues

YOURS, LIVING = "On your embeddings", "A gallery on disk"
HEADS, PAPER = "From images and recordings to embeddings", "The paper and the package"
LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)
"""Of the messages shown, by how often ``-v`` is given."""


class Commands(LazyGroup):
    """Every command under its name; a command costs the imports of its own module alone."""

    lazy: ClassVar = {
        "demo": LazyCommand("demo"),
        "split": LazyCommand("evaluation.split", YOURS),
        "evaluate": LazyCommand("evaluation.evaluate", YOURS, SeveralValues),
        "scores": LazyCommand("evaluation.scores", YOURS),
        "trust": LazyCommand("evaluation.trust", YOURS),
        "audit": LazyCommand("evaluation.audit", YOURS),
        "gallery-growth": LazyCommand("evaluation.gallery_growth", YOURS),
        "promise": LazyCommand("evaluation.promise", YOURS, SeveralValues),
        "development-size": LazyCommand("evaluation.development_size", YOURS, SeveralValues),
        "create": LazyCommand("gallery.upkeep", LIVING),
        "enroll": LazyCommand("gallery.people", LIVING),
        "calibrate": LazyCommand("gallery.answers", LIVING),
        "identify": LazyCommand("gallery.answers", LIVING),
        "remove": LazyCommand("gallery.people", LIVING),
        "erase": LazyCommand("gallery.people", LIVING),
        "status": LazyCommand("gallery.upkeep", LIVING),
        "verify": LazyCommand("gallery.upkeep", LIVING),
        "compact": LazyCommand("gallery.upkeep", LIVING),
        "snapshot": LazyCommand("gallery.upkeep", LIVING),
        "restore": LazyCommand("gallery.upkeep", LIVING),
        "log": LazyCommand("gallery.upkeep", LIVING),
        "serve": LazyCommand("serve", LIVING),
        "cluster": LazyCommand("cluster", LIVING),
        "embed": LazyCommand("models.embed", HEADS),
        "train": LazyCommand("models.train", HEADS),
        "apply": LazyCommand("models.apply", HEADS),
        "experiment": LazyCommand("paper.experiment", PAPER),
        "results": LazyCommand("paper.experiment", PAPER),
        "answers": LazyCommand("paper.answers", PAPER),
        "causes": LazyCommand("paper.causes", PAPER),
        "across": LazyCommand("paper.across", PAPER),
        "figures": LazyCommand("paper.figures", PAPER),
        "bench": LazyCommand("bench", PAPER),
        "warm-up": LazyCommand("warm_up", PAPER),
    }


app = typer.Typer(
    name="holue",
    cls=Commands,
    help="Open-set recognition that knows when it is wrong: who, nobody enrolled, or too uncertain to decide.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


@app.callback(invoke_without_command=True)
def root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
    verbose: Annotated[
        int,
        typer.Option(
            "-v", "--verbose", count=True, metavar="", show_default=False, help="Say what is done; -vv says every step."
        ),
    ] = 0,
) -> None:
    """What every command shares."""
    log_to_stderr(LEVELS[min(verbose, len(LEVELS) - 1)])
    if version:
        typer.echo(f"holue {__version__}")
        raise typer.Exit


def log_to_stderr(level: int) -> None:
    """Show holue's own messages from this level on; other packages' loggers stay as they are."""
    logger = logging.getLogger("holue")
    for handler in [one for one in logger.handlers if not isinstance(one, logging.NullHandler)]:
        logger.removeHandler(handler)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    logger.addHandler(handler)
    logger.setLevel(level)
