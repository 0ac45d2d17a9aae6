"""``holue causes``: what moves PRR, in a made-up world in which one thing is varied at a time."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from holue.cli.output import Json, print_json, say
from holue.errors import InvalidFileError, InvalidParameterError
from holue.progress import progress_bar


def causes(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CAUSE",
            help="Of definition, fpir, threshold, gallery, strangers, poor, spread, kappa, look-alikes, recogniser, "
            "wrong-faces, temperature, head, development; all by default.",
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(help="Worlds drawn for every level.", min=1)] = 20,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for one figure per cause.")] = None,
    cache: Annotated[
        Path | None,
        typer.Option(help="Where finished worlds are kept.", show_default="HOLUE_CACHE or ~/.cache/holue"),
    ] = None,
    json: Json = False,
) -> None:
    """Vary one thing at a time in a made-up world with the errors of IJB-C, and measure the PRR of the paper's methods.

    The world is an eighth of `ijbc-world`. All causes with 20 seeds take some 25 minutes on one processor; if you interrupt the
    command, run it again: it continues where it stopped. Prints one table for each cause, means over seeds with 95 % intervals.
    Example: `holue causes kappa poor --seeds 5`
    """
    from holue.experiments.causes.conditions import CAUSES
    from holue.experiments.causes.page import cause_figures, cause_tables
    from holue.experiments.causes.study import study_causes

    known = {one.key: one for one in CAUSES}
    unknown = [name for name in names or () if name not in known]
    if unknown:
        raise InvalidParameterError(f"CAUSE must be of {', '.join(known)}, got {unknown[0]!r}")
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidFileError(f"{out}: is a file; choose a folder for the figures")
    chosen = [known[name] for name in names or known]
    quiet = json or not sys.stderr.isatty()
    with nullcontext(None) if quiet else progress_bar("measuring") as progress:
        results = study_causes(chosen, seeds=seeds, cache_dir=cache, progress=progress)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        for drawing in cause_figures(results):
            drawing.save(out)
    if json:
        print_json({"seeds": seeds, "causes": [one.document() for one in results]})
        return
    say(cause_tables(results))
    if out is not None:
        say(f"Figures: {out}")
