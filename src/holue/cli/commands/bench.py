"""``holue bench``: how fast the gallery is read, beside the bare product and the usual search libraries."""

from __future__ import annotations

from contextlib import nullcontext
from json import JSONDecodeError, loads
from os.path import relpath
from pathlib import Path
from typing import Annotated, Any

import typer

from holue.artifact import write_text
from holue.cli.output import Json, console, print_json
from holue.cli.several import separated
from holue.errors import InvalidFileError, InvalidParameterError
from holue.progress import progress_bar


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Small galleries; takes a minute.")] = False,
    large: Annotated[
        bool,
        typer.Option(
            "--large",
            help="Binary galleries of a million subjects with 20 000 probes (over half an hour, 12 GB of memory).",
        ),
    ] = False,
    rounds: Annotated[
        int | None, typer.Option(help="Rounds; in each, all systems take turns.", show_default="9, quick 5", min=1)
    ] = None,
    mapped: Annotated[
        bool,
        typer.Option(
            help="Also scan 10 million subjects mapped from disk (5 GB of temporary files); not with --quick."
        ),
    ] = True,
    sections: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="What to measure, separated by commas: exact (the comparison; twelve minutes), other-costs (calibration, "
            "pooling, start; a minute), compressed (float16 and int8; seven minutes), binary (one or two bits per "
            "coordinate, three kinds of galleries; some minutes), approximate (1e5 to 1e7 subjects; eleven minutes "
            "and 6 GB of memory, most of it for 1e7), changes (subjects who come and go; minutes and 6 GB), "
            "faces (whole photographs, where data and models are there; a minute), store (durable enrolments; a minute), live "
            "(living galleries up to 1e6; minutes), peers (other stores of embeddings; minutes), cluster (shards on Ray; "
            "minutes), cluster-growth (1 to 8 shards, delays and stragglers; minutes), "
            "evaluation (an evaluation of IJB-C's size; minutes), or all.",
        ),
    ] = "exact,other-costs",
    add: Annotated[
        bool, typer.Option("--add", help="Keep the other sections of the --out file, to measure in parts.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the numbers to this JSON file, after every step."),
    ] = None,
    page: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all tables and targets as a Markdown page.")
    ] = None,
    remarks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Markdown file to insert at the end of the page.")
    ] = None,
    chart: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Write the charts (speed, approximate; .png and .svg) into this folder."),
    ] = None,
    measured: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Show the numbers of this JSON file instead of measuring."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random galleries.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Measure how fast holue computes a posterior, compared with a matrix product, FAISS, usearch and dense numpy.

    All systems take turns in one process with pinned threads, so other load on the machine affects all of them. Compare the
    ratios, not the milliseconds. Systems that are not installed are left out and named (`pip install 'holue[bench]'`). Examples:
    `holue bench --sections all --out speed.json` (over half an hour),
    `holue bench --sections approximate --add --out speed.json`,
    `holue bench --from speed.json --page docs/speed.md --remarks docs/speed-remarks.txt --chart docs/figures`
    """
    from holue.bench.page.table import as_text

    text = "" if remarks is None else _read(remarks, "remarks")
    if measured is not None:
        result = _numbers(measured)
    else:
        result = _measure(separated([sections]), quick, large, rounds, mapped, add, out, seed, json)
    if page is not None:
        from holue.bench.page.page import speed_page

        figures = None if chart is None else Path(relpath(chart, page.parent)).as_posix()
        write_text(page, speed_page(result, text, figures))
    if chart is not None:
        _draw(result, chart)
    if json:
        print_json(result)
    else:
        console.print(as_text(result), markup=False, soft_wrap=True)


def _measure(
    sections: list[str],
    quick: bool,
    large: bool,
    rounds: int | None,
    mapped: bool,
    add: bool,
    out: Path | None,
    seed: int,
    quiet: bool,
) -> dict[str, Any]:
    from holue.bench.sections.program import run
    from holue.bench.worlds.sizes import FULL, QUICK

    if add and out is None:
        raise InvalidParameterError("--add needs the file to add to, got none: give --out FILE")
    if quick and large:
        raise InvalidParameterError("--quick and --large are two sizes, got both: leave one out")
    sizes = QUICK if quick else FULL.large() if large else FULL
    with nullcontext(None) if quiet else progress_bar("measuring") as progress:
        return run(
            sections=sections,
            sizes=sizes if mapped else sizes.in_memory(),
            rounds=rounds or (5 if quick else 9),
            out=out,
            known=_numbers(out) if add and out is not None and out.exists() else None,
            seed=seed,
            progress=progress,
        )


def _draw(result: dict[str, Any], folder: Path) -> None:
    from holue.bench.page.chart import growth_chart, speed_chart

    if result.get("comparison"):
        speed_chart(result).save(folder)
    if result.get("approximate", {}).get("speed"):
        growth_chart(result["approximate"]["speed"]).save(folder)


def _numbers(path: Path) -> dict[str, Any]:
    try:
        found = loads(_read(path, "numbers"))
    except JSONDecodeError as error:
        raise InvalidFileError(f"{path}: not JSON ({error}); give a file that `holue bench --out` wrote") from error
    if not isinstance(found, dict) or not {"machine", "seconds", "finished"} <= found.keys():
        raise InvalidFileError(f"{path}: not the numbers of a benchmark; give a file that `holue bench --out` wrote")
    return found


def _read(path: Path, what: str) -> str:
    if not path.is_file():
        raise InvalidFileError(f"{path}: no such file of {what}")
    return path.read_text(encoding="utf-8")
