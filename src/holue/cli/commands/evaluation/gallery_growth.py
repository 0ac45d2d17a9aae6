"""``holue gallery-growth``: what a growing gallery does to FPIR, on anyone's embeddings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from holue.cli.output import Json, console, print_json, say
from holue.datasets.formats.samples import read_samples
from holue.errors import InvalidFileError
from holue.evaluation.deployment.gallery_growth import draw_growth
from holue.evaluation.deployment.gallery_growth import gallery_growth as grow

WAYS = ("fixed", "held", "followed", "resolved")


def gallery_growth(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Samples: .npz or .parquet.")],
    fpir: Annotated[float, typer.Option(help="Target FPIR.")] = 0.05,
    first: Annotated[int, typer.Option(help="Subjects in the first gallery.")] = 100,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the figure, .png and .svg.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the order of enrolment and of the two halves.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Enrol more and more of a file's subjects, and show FPIR at a fixed threshold and at three that follow the gallery.

    FILE holds `embeddings` and `subject_id`. A fixed threshold accepts more strangers as the gallery grows. The columns compare
    four thresholds: `fixed` is that of the first gallery; `held` keeps κ and β, which adds ln(K′/K)/κ; `followed` predicts it
    from the highest scores of strangers in the first gallery; `resolved` is calibrated again at each size. Half of the people set
    thresholds, the other half measure FPIR.
    Example: `holue gallery-growth faces.npz --out figures`
    """
    samples = read_samples(file)
    if out is not None and out.exists() and not out.is_dir():
        raise InvalidFileError(f"{out}: is a file; choose a folder for the figure")
    growth = grow(samples.embeddings, samples.subjects, target_fpir=fpir, first=first, rng=np.random.default_rng(seed))
    if out is not None:
        draw_growth(growth).save(out)
    if json:
        print_json(growth.to_dict())
        return
    # Narrow enough for eighty columns: heads in two lines, one space between columns.
    title = f"FPIR of {growth.n_people} people, target {growth.target_fpir:g}, and the thresholds τ"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for head in ("subjects", *(f"FPIR\n{way}" for way in WAYS), *(f"τ\n{way}" for way in WAYS)):
        table.add_column(head, justify="right", no_wrap=True)
    for step in growth.steps:
        rates, thresholds = ([getattr(step, f"{kind}_{way}") for way in WAYS] for kind in ("fpir", "threshold"))
        table.add_row(str(step.n_subjects), *(f"{rate:.3f}" for rate in rates), *(f"{tau:.3f}" for tau in thresholds))
    console.print(table)
    if out is not None:
        say(f"Figure: {out / 'gallery_growth.svg'}")
