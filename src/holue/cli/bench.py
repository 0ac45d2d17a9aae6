"""``holue bench``: how fast the gallery is read, beside the bare product and the usual search libraries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from holue.bench.program import run
from holue.bench.sizes import FULL, MAPPED_SUBJECTS, QUICK
from holue.bench.table import as_text
from holue.cli.output import Json, console, print_json


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a look in under a minute.")] = False,
    rounds: Annotated[int | None, typer.Option(help="Interleaved rounds.", show_default="15, quick 5", min=1)] = None,
    mapped: Annotated[
        bool,
        typer.Option("--mapped", help="Also scan 10 million subjects memory-mapped from disk (5 GB, deleted after)."),
    ] = False,
    evaluation: Annotated[
        bool, typer.Option("--evaluation", help="Also time a whole evaluation at IJB-C's size (minutes).")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Also write the numbers to this JSON file.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random galleries.")] = 0,
    json: Json = False,
) -> None:
    """Measure how fast the whole posterior is, against a bare matrix product, FAISS, usearch and dense numpy.

    All systems take turns in one process with threads pinned, so that a busy machine slows all alike: read the ratios, not the
    milliseconds. Systems that are not installed are left out and named (`pip install 'holue[bench]'`).
    """
    sizes = QUICK if quick else FULL
    if mapped:
        sizes = replace(sizes, mapped_subjects=MAPPED_SUBJECTS)

    def say(line: str) -> None:
        if not json:
            console.print(line, style="dim")

    result = run(sizes=sizes, rounds=rounds or (5 if quick else 15), out=out, seed=seed, report=say)
    if evaluation:
        from holue.bench.evaluation import bench_evaluation

        say("a whole evaluation at IJB-C's size")
        result["evaluation"] = bench_evaluation()
    if json:
        print_json(result)
    else:
        console.print(as_text(result), markup=False)
        if evaluation:
            console.print(result["evaluation"])
