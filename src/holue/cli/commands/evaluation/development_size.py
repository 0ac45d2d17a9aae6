"""``holue development-size``: how many development people are enough, on anyone's embeddings?"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from holue.cli.output import Json, console, print_json
from holue.cli.several import separated
from holue.datasets.formats.samples import read_samples
from holue.errors import InvalidParameterError
from holue.evaluation.deployment.development_size import PEOPLE, development_study, middle
from holue.progress import progress_bar

HEADS = ("people", "error of\nP(right)", "FPIR", "DIR", "certi-\nfied", "filtered", "wrong")


def development_size(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Samples: .npz or .parquet.")],
    people: Annotated[
        list[str] | None,
        typer.Option(metavar="N ...", help="Development people.", show_default=" ".join(map(str, PEOPLE))),
    ] = None,
    fpir: Annotated[float, typer.Option(help="Target FPIR.")] = 0.05,
    risk: Annotated[float, typer.Option(help="Share of wrong answers to certify.")] = 0.05,
    enrolled: Annotated[int, typer.Option(help="Subjects enrolled for evaluation, beside as many strangers.")] = 200,
    splits: Annotated[int, typer.Option(help="How many random splits.", min=1)] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the splits.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Calibrate with more and more development people, and measure on others what their number is worth.

    FILE holds `embeddings` and `subject_id`. Half of the development people are enrolled in a gallery of their own, half are
    strangers. The table has the calibration error of P(the answer is right), FPIR and DIR on other people, and in how many splits
    a risk was certified (half of the people calibrate, half certify). Where it was: the share of probes filtered, and of wrong
    answers among the rest. Each number is the median of the splits, with their 10th and 90th percentiles.
    Example: `holue development-size faces.npz --people 50 200 1000`
    """
    try:
        sizes = [int(text) for text in separated(people or [])] or list(PEOPLE)
    except ValueError:
        raise InvalidParameterError(f"--people takes whole numbers, got {' '.join(people or [])!r}") from None
    samples = read_samples(file)
    with nullcontext(None) if json or not sys.stderr.isatty() else progress_bar("splits") as progress:
        study = development_study(
            samples.embeddings,
            samples.subjects,
            people=sizes,
            target_fpir=fpir,
            target_risk=risk,
            enrolled=enrolled,
            splits=splits,
            seed=seed,
            progress=progress,
        )
    if json:
        print_json(study.to_dict())
        return
    table = Table(
        title=f"{splits} splits, {enrolled} enrolled, target FPIR {fpir:g}, certified risk {risk:g}",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for head in HEADS:
        table.add_column(head, justify="right", no_wrap=True)
    for one in study.sizes:
        measured = (one.calibration_error, one.fpir, one.dir)
        certificate = (one.filtered, one.risk)
        table.add_row(
            str(one.people),
            *(_cell(values) for values in measured),
            f"{one.certified} of {splits}",
            *(_cell(values) for values in certificate),
        )
    console.print(table)


def _cell(values: tuple[float, ...]) -> str:
    found = middle(values)
    return "-" if found is None else "{:.3f}\n{:.3f}–{:.3f}".format(*found)
