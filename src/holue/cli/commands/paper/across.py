"""``holue across``: heads trained on one data set and used on another."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from holue.cli.output import Json, print_json, say
from holue.errors import InvalidParameterError
from holue.progress import progress_bar


def across(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="SET",
            help="Two or more of lfw, speakers, chimpanzees, chimpanzees-blind, glyphs, ijbc-world, ijbb-world.",
        ),
    ],
    seeds: Annotated[int, typer.Option(help="Random splits of each set.", min=1)] = 5,
    fpir: Annotated[float, typer.Option(help="Target FPIR.")] = 0.05,
    quick: Annotated[bool, typer.Option("--quick", help="Use a part of the data, to try the command.")] = False,
    cache: Annotated[
        Path | None,
        typer.Option(help="Where embeddings and trained heads are kept.", show_default="HOLUE_CACHE or ~/.cache/holue"),
    ] = None,
    json: Json = False,
) -> None:
    """Train HolUE-plus, HolUE-F1 and HolUE-MLP on one data set and use them on another.

    The other set keeps its own gallery and threshold; only the head is foreign. Prints the calibration error of P(the answer is
    right) and PRR of F1 (the paper's) of every pair, means over splits. Sets are those of `holue experiment`, and need its data.
    Example: `holue across lfw speakers glyphs`
    """
    from holue.experiments.across import across_table, study_across
    from holue.experiments.experiment import Size
    from holue.experiments.registry import EXPERIMENTS

    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise InvalidParameterError(f"SET must be of {', '.join(EXPERIMENTS)}, got {unknown[0]!r}")
    chosen = list(dict.fromkeys(names))
    if len(chosen) < 2:
        raise InvalidParameterError(
            f"SET: a head is carried from one set to another, so give two; got {chosen[0]!r} only"
        )
    with nullcontext(None) if json or not sys.stderr.isatty() else progress_bar("measuring") as progress:
        size = Size(quick=quick, cache_dir=cache)
        rows = study_across(
            [EXPERIMENTS[name] for name in chosen], seeds=seeds, fpir=fpir, size=size, progress=progress
        )
    if json:
        plain = [{key: None if value != value else value for key, value in asdict(row).items()} for row in rows]
        print_json({"seeds": seeds, "fpir": fpir, "rows": plain})
        return
    say(across_table(rows))
