"""``holue demo``: the first two minutes, in pictures."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from holue.cli.output import Json, console, print_json
from holue.demo.demo import check_demo_folder, make_demo, require_extra
from holue.demo.scene import SUBJECTS


def demo(
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder for the report; an earlier demo is replaced.")
    ] = Path("demo"),
    seed: Annotated[int, typer.Option(help="Seed of the world; the same seed gives the same answers.", min=0)] = 0,
    subjects: Annotated[int, typer.Option(help="Characters to enrol; fewer is quicker.", min=60)] = SUBJECTS,
    open_page: Annotated[bool, typer.Option("--open", help="Open the report in the browser.")] = False,
    json: Json = False,
) -> None:
    """Recognise characters, and see which answers to trust: a summary here, and a page of pictures in DIR.

    Clean renderings of characters are enrolled. Poorer renderings of these and of other characters are then identified.
    Look-alikes (O and 0), poor samples and strangers cause the same kinds of errors as with faces and voices. All images are
    drawn on this machine. The small model that embeds them comes with the package and was trained on other characters. Takes
    under two minutes.

    Writes `report.html` (one page, opens offline), `results.json` and `figures/`. Example: `holue demo --open`
    """
    require_extra()
    check_demo_folder(out)
    quiet = json or not sys.stderr.isatty()
    with nullcontext() if quiet else console.status("Starting …") as status:
        made = make_demo(seed=seed, subjects=subjects, step=(lambda what: None) if status is None else status.update)
        if status is not None:
            status.update("Drawing the report …")
        page = made.write(out)
    if json:
        print_json(made.document())
    else:
        from holue.demo.summary import summary

        for part in summary(made, page):
            console.print(part)
    if open_page:
        typer.launch(str(page))
