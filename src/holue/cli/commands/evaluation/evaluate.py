"""``holue evaluate``: which method finds the errors, on anyone's embeddings."""

from __future__ import annotations

import shlex
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from holue.cli.output import Json, print_json_text, say
from holue.cli.several import separated
from holue.cli.spelling import spelled
from holue.cli.table import print_table
from holue.datasets.formats.folder import load_folder
from holue.errors import InvalidParameterError
from holue.evaluation.comparison.results import FORMAT, Results, results_json
from holue.evaluation.comparison.settings import Settings
from holue.evaluation.comparison.study import evaluate as run_study
from holue.evaluation.report.result_folder import check_result_folder
from holue.evaluation.report.tables import accuracy_table, prr_table, recognition_table
from holue.progress import progress_bar

DEFAULTS = Settings()


def evaluate(
    ctx: typer.Context,
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder with dev/ and eval/, each with gallery and probes.")
    ],
    fpir: Annotated[
        list[str] | None,
        typer.Option(metavar="FPIR ...", help="Target FPIRs, such as 0.05 0.1 0.2.", show_default="0.05 0.1 0.2"),
    ] = None,
    methods: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME ...", help="Methods by name, such as galue holue, or all.", show_default="all"),
    ] = None,
    report: Annotated[Path | None, typer.Option(metavar="OUT", help="Write the report into this folder.")] = None,
    threshold_from: Annotated[
        str,
        typer.Option(metavar="dev|eval", help="Part that sets the threshold; eval is the oracle of the paper."),
    ] = DEFAULTS.threshold_from,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples for every interval.")] = DEFAULTS.n_resamples,
    seed: Annotated[
        int, typer.Option(help="Seed of the resamples and of the training of HolUE-MLP.", min=0)
    ] = DEFAULTS.seed,
    max_rejection: Annotated[
        float, typer.Option(help="Largest share of probes that PRR filters.")
    ] = DEFAULTS.max_rejection,
    points: Annotated[
        int | None,
        typer.Option(help="Points of the rejection curve for PRR; the paper has 20.", show_default="every count"),
    ] = None,
    temperature: Annotated[float, typer.Option(help="Temperature T of HolUE.")] = DEFAULTS.temperature,
    unknown_prior: Annotated[float, typer.Option(help="Prior probability of 'not enrolled'.")] = DEFAULTS.unknown_prior,
    fpir_confidence: Annotated[
        float | None,
        typer.Option(
            help="Choose thresholds so that FPIR is at most its target with this confidence over people, such as 0.95.",
            show_default="aim at the target itself",
        ),
    ] = None,
    prr: Annotated[
        str,
        typer.Option(
            metavar="counted|paper",
            help="Range of PRR: --max-rejection of the probes that its metric counts, or of all probes as in the paper.",
        ),
    ] = DEFAULTS.prr,
    trust: Annotated[
        bool | None,
        typer.Option(
            "--trust/--no-trust",
            help="Also certify which answers you can act on, with candidate sets, reasons and groups.",
            show_default="with --report, unless --threshold-from is eval",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare uncertainty methods on your own embeddings: which of them finds the errors?

    DIR holds `dev/` and `eval/`, each with `gallery.npz` and `probes.npz` (or `.parquet`) with the keys `embeddings` and
    `subject_id`, and optionally `concentration`, `variance`, `scale`, `quality`, `template_id`, `media_id`, `group`. Probes whose
    subject is not in the gallery are strangers. Thresholds and methods learn from `dev/`; all numbers are measured on `eval/`.
    `holue split` makes such a folder from one file of embeddings.

    Prints the table of prediction rejection ratios. With `--report OUT` it also writes `report.html` (one page to read),
    `results.json`, `outcomes.parquet`, `tables/` and `figures/`. The page also says which answers you can act on, with a
    certified error rate (`--trust`). Example: `holue evaluate faces --fpir 0.05 0.1 0.2 --report out`
    """
    targets = [_number("--fpir", text) for text in separated(fpir or [])] or list(DEFAULTS.fpir)
    names = separated(methods or []) or ["all"]
    if report is not None:
        check_result_folder(report, format=FORMAT, what="report")
    protocol = load_folder(folder)
    quiet = json or not sys.stderr.isatty()
    with nullcontext(None) if quiet else progress_bar("evaluating") as progress:
        results = run_study(
            protocol,
            fpir=targets,
            methods=names,
            threshold_from=threshold_from,  # type: ignore[arg-type]
            n_resamples=resamples,
            seed=seed,
            max_rejection=max_rejection,
            points=points,
            temperature=temperature,
            unknown_prior=unknown_prior,
            fpir_confidence=fpir_confidence,
            prr=prr,  # type: ignore[arg-type]
            progress=progress,
        )
        if (report is not None and not results.settings.is_oracle) if trust is None else trust:
            if progress is not None:
                progress(1, 1, "which answers to act on")
            from holue.evaluation.deployment.trust_study import trust_study

            study = trust_study(
                protocol, target_fpir=results.settings.fpir[0], n_resamples=min(resamples, 1000), seed=seed
            )
            if study.refusal is not None:
                study = replace(study, refusal=spelled(study.refusal, ctx.command))
            results = replace(results, trust=study)
        if report is not None:
            if progress is not None:
                progress(1, 1, "writing the report")
            from holue.evaluation.report.report import write_report

            write_report(results, report, command=_command(folder, names, results, trust))
    if json:
        print_json_text(results_json(results))
        return
    say(f"{results.headline}\n", "bold")
    print_table(prr_table(results), intervals=True)
    print_table(accuracy_table(results), intervals=False)
    print_table(recognition_table(results), intervals=False)
    for point in results.points:
        if (expected := point.point.fpir_interval) is not None:
            say(f"FPIR to expect at target {point.target_fpir:g}: {expected}")
        if point.point.shortfall is not None:
            say(spelled(point.point.shortfall, ctx.command))
    say(results.answer)
    if results.trust is not None:
        say(results.trust.answer)
    if report is not None:
        say(f"Report: {report / 'report.html'}")


def _command(folder: Path, names: list[str], results: Results, trust: bool | None) -> str:
    """The command that gives this report again: what differs from the defaults, and what the question was."""
    settings = results.settings
    words = ["holue", "evaluate", str(folder), "--fpir", *(f"{target:g}" for target in settings.fpir)]
    words += ["--methods", *names, "--threshold-from", settings.threshold_from]
    words += ["--resamples", str(settings.n_resamples), "--seed", str(settings.seed)]
    for option, value, default in (
        ("--max-rejection", settings.max_rejection, DEFAULTS.max_rejection),
        ("--points", settings.points, DEFAULTS.points),
        ("--temperature", settings.temperature, DEFAULTS.temperature),
        ("--unknown-prior", settings.unknown_prior, DEFAULTS.unknown_prior),
    ):
        words += [] if value == default else [option, f"{value:g}"]
    words += [] if settings.fpir_confidence is None else ["--fpir-confidence", f"{settings.fpir_confidence:g}"]
    words += [] if settings.prr == DEFAULTS.prr else ["--prr", settings.prr]
    words += [] if trust is None else ["--trust" if trust else "--no-trust"]
    return f"{shlex.join(words)} --report OUT"  # the same results are the same bytes, wherever they are written


def _number(option: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidParameterError(f"{option} takes numbers between 0 and 1, got {text!r}") from None
