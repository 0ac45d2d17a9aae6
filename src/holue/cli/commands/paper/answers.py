"""``holue answers``: do probabilities come true, and are reasons right, on other people than the calibration saw."""

from __future__ import annotations

from collections.abc import Collection
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
    tracks: Annotated[
        bool, typer.Option("--tracks", help="Probes of 1, 3 and 10 samples in place of single ones; lfw, speakers.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure whether probabilities come true and whether the named reasons are the planted ones.

    Each split calibrates on some people, then enrols and identifies others. The first table holds the expected calibration
    error of the best candidate's probability and of "nobody": mean and worst split, the error that chance alone gives, the error
    without the part of chance, and that of all splits pooled. The second holds which cause was named where a cause was planted.
    Needs the data of the set in `HOLUE_DATA`.

    With `--tracks` it asks about probes of several samples: the error of P(right) by length, calibrated on single samples and on
    tracks, and what it costs to stop as soon as a track is sure.

    Example: `holue answers glyphs --seeds 2`
    """
    if tracks:
        _tracks(sets, seeds, json)
        return
    from holue.experiments.answer_page import answer_page, answer_tables
    from holue.experiments.answer_study import SETS

    asked = _asked(sets, SETS)
    with progress_bar("measuring") as progress:
        calibration, named = answer_tables(asked, seeds, progress)
    if json:
        errors, causes = [asdict(row) for row in calibration], [asdict(row) for row in named]
        print_json({"sets": asked, "seeds": seeds, "calibration": errors, "reasons": causes})
    else:
        say(answer_page(calibration, named))


def _tracks(sets: list[str] | None, seeds: int, json: bool) -> None:
    from holue.experiments.track_page import track_page, track_tables
    from holue.experiments.track_study import TRACK_SETS

    asked = _asked(sets, TRACK_SETS)
    with progress_bar("measuring") as progress:
        rows, stops = track_tables(asked, seeds, progress)
    if json:
        print_json(
            {
                "sets": asked,
                "seeds": seeds,
                "tracks": [asdict(row) for row in rows],
                "stopped": [asdict(row) for row in stops],
            }
        )
    else:
        say(track_page(rows, stops))


def _asked(sets: list[str] | None, known: Collection[str]) -> list[str]:
    asked = sets or list(known)
    unknown = [name for name in asked if name not in known]
    if unknown:
        raise InvalidParameterError(f"SET must be of {', '.join(known)}, got {unknown[0]!r}")
    return asked
