"""``holue experiment``: the paper's tables on real faces, voices and animals."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from holue.artifact import write_text
from holue.cli.output import Json, print_json, say
from holue.cli.table import print_table
from holue.errors import InvalidFileError, InvalidParameterError
from holue.evaluation.report.drawing import Drawing
from holue.progress import progress_bar, working


def experiment(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="lfw, speakers, chimpanzees, chimpanzees-blind, glyphs, ijbc-world or ijbb-world; ijbc, ijbb, whale or voxblink "
            "with --data.",
        ),
    ],
    seeds: Annotated[int, typer.Option(help="How many random splits to average over.", min=1)] = 5,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Files of one of the paper's data sets, as they are distributed.")
    ] = None,
    embeddings: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Its embeddings, where they are not in DIR.")
    ] = None,
    dev_embeddings: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Embeddings of MS1MV2 for ijbc and ijbb, where they are not in DIR."),
    ] = None,
    stand_in: Annotated[
        bool,
        typer.Option(
            "--stand-in",
            help="First write made-up files of the data set's size into DIR, a new folder: its numbers mean nothing.",
        ),
    ] = False,
    lists: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Real protocol lists for --stand-in, where you have some.")
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="OUT", help="Write the report into this folder.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Use a part of the data and short training, to try the command.")
    ] = False,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples for every interval.", min=1)] = 1000,
    cache: Annotated[
        Path | None,
        typer.Option(help="Where embeddings and trained heads are kept.", show_default="HOLUE_CACHE or ~/.cache/holue"),
    ] = None,
    json: Json = False,
) -> None:
    """Compare all methods in one experiment on real data, on several random splits.

    Reads the data in the folder `HOLUE_DATA` and the embedding models in the folder `HOLUE_MODELS`; `glyphs`,
    `ijbc-world` and `ijbb-world` need neither.
    Embeddings and trained heads are kept in the cache. The first run takes long; later runs only evaluate. If you interrupt
    the command, run it again: it continues where it stopped.

    Prints the prediction rejection ratio of every method (the paper's Table 1), as means over the splits with intervals over
    subjects. With `--report OUT` it also writes `results.json`, `tables/`, `figures/` and `report.md`.
    Example: `holue experiment lfw --seeds 5 --report lfw-run`

    The paper's own data sets are read from `--data DIR`; if files are missing, all of them are listed. `ijbc` and `ijbb` average
    both galleries. Thresholds come from the development part and, as in the paper, from the evaluation probes, and the paper's
    numbers are printed beside. Example: `holue experiment ijbc --data faces --report ijbc-run`
    """
    from holue.experiments.experiment import Size, run_experiment
    from holue.experiments.paper.paper_set import Sources
    from holue.experiments.registry import find_experiment
    from holue.experiments.tables.experiment_report import check_destination, write_experiment
    from holue.experiments.tables.paper_table import paper_tables
    from holue.experiments.tables.summary_tables import accuracy_table, prr_table, recognition_table

    sources = None if data is None else Sources(data, embeddings, dev_embeddings)
    if sources is None and (embeddings is not None or dev_embeddings is not None):
        raise InvalidParameterError("--embeddings and --dev-embeddings belong to the data set of --data; give that too")
    if stand_in:
        from holue.experiments.paper.stand_in import write_stand_in

        if data is None:
            raise InvalidParameterError("--stand-in writes into the folder of --data; give that too")
        with working(f"writing made-up files of {name}", quiet=json):
            write_stand_in(name, data, lists=lists, part=0.03 if quick else 1.0)
    chosen = find_experiment(name, sources)
    if report is not None:
        check_destination(report)
    quiet = json or not sys.stderr.isatty()
    with nullcontext(None) if quiet else progress_bar(name) as progress:
        size = Size(quick=quick, cache_dir=cache, progress=progress)
        document = run_experiment(chosen, seeds=seeds, n_resamples=resamples, size=size)
    if report is not None:
        write_experiment(document, report)
    if json:
        print_json(document)
        return
    for table in paper_tables(document):
        print_table(table, intervals=False)
    main = document["variants"][0]
    for table in (recognition_table(main), prr_table(main), accuracy_table(main)):
        print_table(table, intervals=True)
    seconds = document["seconds"]["total"]
    say(f"{seconds:.0f} s, at most {document['peak_megabytes']:.0f} MB of memory", "dim")
    if report is not None:
        say(f"The report is in {report}; start with report.md.")


def results(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN", help="Folders that `holue experiment` wrote.")],
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the page here instead of printing it.")
    ] = None,
    remarks: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Markdown file to insert after the summary.")
    ] = None,
    json: Json = False,
) -> None:
    """Make one page of results from the runs of `holue experiment`, with the paper's numbers for comparison.

    All numbers on the page come from the `results.json` of the runs. With `--out` the charts are written to the folder
    `images` beside the page. With `--json` only the summary is printed.
    Example: `holue results lfw-run speakers-run --out docs/results.md`
    """
    from holue.experiments.tables.experiment_report import read_experiment
    from holue.experiments.tables.results_chart import results_charts
    from holue.experiments.tables.results_page import results_page, summary

    documents = [read_experiment(run) for run in runs]
    text = ""
    if remarks is not None:
        if not remarks.is_file():
            raise InvalidFileError(f"{remarks}: no such file of remarks")
        text = remarks.read_text(encoding="utf-8")
    charts = {} if out is None else _saved_charts(results_charts(documents), out.parent)
    page = results_page(documents, text, charts)
    if out is not None:
        write_text(out, page)
    if json:
        print_json(summary(documents))
    elif out is None:
        typer.echo(page)
    else:
        say(f"Written: {out}")


def _saved_charts(charts: list[Drawing], folder: Path) -> dict[str, str]:
    """Save the charts beside the page; their paths from the page, and their captions."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    for chart in charts:
        (folder / "images" / f"{chart.name}.svg").write_text(chart.svg, "utf-8")
    return {f"images/{chart.name}.svg": chart.caption for chart in charts}
