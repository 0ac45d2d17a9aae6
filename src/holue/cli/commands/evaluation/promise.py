"""``holue promise``: does a threshold keep its FPIR on new people, over many splits of anyone's embeddings?"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from holue.cli.output import Json, console, print_json, say
from holue.cli.several import separated
from holue.datasets.formats.samples import read_samples
from holue.errors import InvalidParameterError
from holue.evaluation.deployment.promise import draw_promise, people_apart, promise_study
from holue.progress import progress_bar


def promise(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Samples: .npz or .parquet.")],
    fpir: Annotated[
        list[str] | None, typer.Option(metavar="FPIR ...", help="Target FPIRs.", show_default="0.05 0.01")
    ] = None,
    confidence: Annotated[float, typer.Option(help="The fpir_confidence to try.")] = 0.95,
    leave_one_out: Annotated[
        bool,
        typer.Option("--leave-one-out", help="Calibrate on the enrolled samples, each left out in turn."),
    ] = False,
    enrolled: Annotated[int, typer.Option(help="Subjects enrolled when the threshold is set.", min=3)] = 100,
    people: Annotated[int, typer.Option(help="Draws of a stranger who sets the threshold.", min=2)] = 300,
    grown: Annotated[
        int | None, typer.Option(help="Subjects enrolled in the end.", show_default="no growth", min=3)
    ] = None,
    apart: Annotated[
        float | None,
        typer.Option(
            metavar="COSINE",
            help="Leave out people whose template is nearer than this to another's: likely one person under two names.",
        ),
    ] = None,
    splits: Annotated[int, typer.Option(help="How many random splits.", min=1)] = 200,
    seed: Annotated[int, typer.Option(help="Seed of the splits.", min=0)] = 0,
    out: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the figure, .png and .svg.")] = None,
    json: Json = False,
) -> None:
    """Set thresholds on random splits of a file's people, and count how often more strangers are accepted than asked for.

    FILE holds `embeddings` and `subject_id`. In each split some of the people are enrolled. The strangers who set the threshold
    are drawn, with repetition, from the people who stay outside; FPIR is that of all who stay outside. Every threshold is set
    twice: aimed at the target, and so that FPIR stays at or below it with a confidence over people (`fpir_confidence`). DIR says
    what the second costs. Its share of broken splits should be at most one minus the confidence.
    Example: `holue promise faces.npz --fpir 0.05 0.01 --people 300 --grown 2000 --out figures`
    """
    try:
        targets = [float(text) for text in separated(fpir or [])] or [0.05, 0.01]
    except ValueError:
        raise InvalidParameterError(f"--fpir takes numbers between 0 and 1, got {' '.join(fpir or [])!r}") from None
    samples = read_samples(file)
    X, y = samples.embeddings, samples.subjects
    if apart is not None:
        kept = people_apart(X, y, apart)
        X, y = X[kept], y[kept]
    with nullcontext(None) if json or not sys.stderr.isatty() else progress_bar("splits") as progress:
        study = promise_study(
            X,
            y,
            targets=targets,
            confidence=confidence,
            way="leave-one-out" if leave_one_out else "probes",
            enrolled=enrolled,
            people=people,
            grown=grown,
            splits=splits,
            seed=seed,
            progress=progress,
        )
    if out is not None:
        draw_promise(study).save(out)
    if json:
        print_json(study.to_dict())
        return
    never = len(np.unique(y)) - (grown or enrolled)
    whose = f"{enrolled} enrolled people" if leave_one_out else f"{people} draws of the {never} people who stay outside"
    table = Table(
        title=f"{splits} splits, thresholds from {whose}",
        title_justify="left", box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False,
    )  # fmt: skip
    for head in (
        "target",
        "confidence",
        "subjects",
        "mean\nFPIR",
        "above target\n(95 % interval)",
        "mean\nDIR",
        "mean\nτ",
    ):
        table.add_column(head, justify="right", no_wrap=True)
    for one in study.kept:
        numbers, (low, high) = one.to_dict(), one.interval
        start = f"{one.target_fpir:g}", "aimed at" if one.fpir_confidence is None else f"{one.fpir_confidence:g}"
        if not one.fpir:
            table.add_row(*start, str(one.n_subjects), "too few people", "", "", "")
            continue
        table.add_row(
            *start, str(one.n_subjects), f"{numbers['mean_fpir']:.4f}",
            f"{numbers['broken_share']:.1%} ({low:.1%} to {high:.1%})", f"{numbers['mean_dir']:.3f}",
            f"{numbers['mean_threshold']:.3f}",
        )  # fmt: skip
    console.print(table)
    if out is not None:
        say(f"Figure: {out / 'fpir_promise.svg'}")
