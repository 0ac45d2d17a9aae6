"""``holue answers``: do probabilities come true, and are reasons right, on other people than the calibration saw."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from holue.cli.output import Json, print_json, say
from holue.errors import InvalidParameterError
from holue.progress import progress_bar


def answers(
    sets: Annotated[
        list[str] | None, typer.Argument(metavar="SET", help="Of glyphs, lfw, speakers; all by default.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Random splits of each set.")] = 5,
    json: Json = False,
) -> None:
    """Measure whether probabilities come true and whether the named reasons are the planted ones.

    Each split calibrates on some people, then enrols and identifies others. The first table holds the expected calibration
    error of the best candidate's probability and of "nobody": mean and worst split, the error that chance alone gives, the error
    without the part of chance, and that of all splits pooled. The second holds which cause was named where a cause was planted.
    Needs the data of the set in `HOLUE_DATA`.

    Example: `holue answers glyphs --seeds 2`
    """
    from holue.experiments.answer_page import answer_page, answer_tables
    from holue.experiments.answer_study import SETS

    asked = sets or list(SETS)
    unknown = [name for name in asked if name not in SETS]
    if unknown:
        raise InvalidParameterError(f"SET must be of {', '.join(SETS)}, got {unknown[0]!r}")
    with progress_bar("measuring") as progress:
        calibration, named = answer_tables(asked, seeds, progress)
    if json:
        errors, causes = [asdict(row) for row in calibration], [asdict(row) for row in named]
        print_json({"sets": asked, "seeds": seeds, "calibration": errors, "reasons": causes})
    else:
        say(answer_page(calibration, named))
