"""``holue figures``: the paper's illustrations, computed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holue.cli.output import Json, print_json, say
from holue.errors import InvalidFileError
from holue.evaluation.paper.figures import draw_interpolation, draw_toy_world
from holue.evaluation.paper.interpolation import interpolation
from holue.evaluation.paper.toy_world import toy_world


def figures(
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the .png and .svg files.")] = None,
    json: Json = False,
) -> None:
    """Draw the paper's Figure 1 (toy world) and Figure 3 (interpolation), and print the numbers behind them.

    Figure 1: two subjects on a circle, and two probes at the same distance from the nearest of them. The probe that is also
    near the other subject is less certain. Figure 3: a probe moves from one subject to the other. GalUE and HolUE are least
    certain halfway; sample quality is not. Without `--out` only the numbers are printed. Example: `holue figures --out figures`
    """
    world, strip = toy_world(), interpolation()
    if out is not None:
        if out.exists() and not out.is_dir():
            raise InvalidFileError(f"{out}: is a file; choose a folder for the figures")
        for drawing in (draw_toy_world(world), draw_interpolation(strip)):
            drawing.save(out)
    document = {"figure1_toy_world": world.document(), "figure3_interpolation": strip.document()}
    if json:
        print_json(document)
        return
    say(
        f"Figure 1: uncertainty of the probe near one subject {world.outer_uncertainty:.2f}, "
        f"of the probe near both {world.inner_uncertainty:.2f}"
    )
    for method, values in strip.uncertainty.items():
        say(f"Figure 3: {method} is least certain at {strip.position[values.argmax()]:.2f} of the way")
    if out is not None:
        say(f"Written to {out}")
