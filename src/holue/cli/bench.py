"""``holue bench``: how fast the gallery is read, beside the bare product and the usual search libraries."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from json import JSONDecodeError, loads
from os.path import relpath
from pathlib import Path
from typing import Annotated, Any

import typer

from holue.cli.output import Json, console, print_json
from holue.embedding.progress import progress_bar
from holue.errors import InvalidFileError


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes: a look in under a minute.")] = False,
    rounds: Annotated[int | None, typer.Option(help="Interleaved rounds.", show_default="9, quick 5", min=1)] = None,
    mapped: Annotated[
        bool,
        typer.Option(help="Scan 10 million subjects memory-mapped from disk (5 GB, deleted after); not with --quick."),
    ] = True,
    evaluation: Annotated[
        bool, typer.Option("--evaluation", help="Also time a whole evaluation at IJB-C's size (minutes).")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the numbers to this JSON file, after every step: interrupt at will."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page in Markdown with all tables and targets.")
    ] = None,
    remarks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Markdown to put at the end of the page: why it came out so.")
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write speed.png and speed.svg into this folder.")
    ] = None,
    measured: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="Measure nothing: show the numbers of this JSON file.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random galleries.")] = 0,
    json: Json = False,
) -> None:
    """Measure how fast the whole posterior is, against a bare matrix product, FAISS, usearch and dense numpy.

    All systems take turns in one process with threads pinned, so that a busy machine slows all alike: read the ratios, not the
    milliseconds. Systems that are not installed are left out and named (`pip install 'holue[bench]'`). Example:
    `holue bench --out speed.json --page docs/speed.md --remarks docs/speed-remarks.txt --chart docs/figures`
    """
    from holue.bench.table import as_text

    text = "" if remarks is None else _read(remarks, "remarks")
    if measured is not None:
        result = _numbers(measured)
    else:
        result = _measure(quick, rounds, mapped, evaluation, out, seed, json)
    if page is not None:
        from holue.bench.page import speed_page

        picture = None if chart is None else relpath(chart / "speed.svg", page.parent)
        page.write_text(speed_page(result, text, picture), encoding="utf-8")
    if chart is not None:
        from holue.bench.chart import speed_chart

        chart.mkdir(parents=True, exist_ok=True)
        speed_chart(result).save(chart)
    if json:
        print_json(result)
    else:
        console.print(as_text(result), markup=False)


def _measure(
    quick: bool, rounds: int | None, mapped: bool, evaluation: bool, out: Path | None, seed: int, quiet: bool
) -> dict[str, Any]:
    from holue.bench.program import run, write
    from holue.bench.sizes import FULL, QUICK

    sizes = QUICK if quick else FULL
    if not mapped:
        sizes = replace(sizes, mapped_subjects=0)
    with nullcontext(None) if quiet else progress_bar("measuring") as progress:
        result = run(sizes=sizes, rounds=rounds or (5 if quick else 9), out=out, seed=seed, progress=progress)
        if evaluation:
            from holue.bench.evaluation import bench_evaluation

            if progress is not None:
                progress(1, 2, "a whole evaluation at IJB-C's size")
            result["evaluation"] = bench_evaluation()
            if out is not None:
                write(out, result)
    return result


def _numbers(path: Path) -> dict[str, Any]:
    try:
        found = loads(_read(path, "numbers"))
    except JSONDecodeError as error:
        raise InvalidFileError(f"{path}: not JSON ({error}); give a file that `holue bench --out` wrote") from error
    if not isinstance(found, dict) or not {"machine", "comparison", "finished"} <= found.keys():
        raise InvalidFileError(f"{path}: not the numbers of a benchmark; give a file that `holue bench --out` wrote")
    return found


def _read(path: Path, what: str) -> str:
    if not path.is_file():
        raise InvalidFileError(f"{path}: no such file of {what}")
    return path.read_text(encoding="utf-8")
