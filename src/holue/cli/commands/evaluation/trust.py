"""``holue trust``: which answers are safe to act on automatically, at what error rate, with a guarantee."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from holue.cli.output import Json, console, print_json
from holue.cli.spelling import spelled


def trust(
    ctx: typer.Context,
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Folder with dev/ and eval/, as split writes it.")],
    risk: Annotated[
        str,
        typer.Option(help="error, false-acceptance, misidentification, false-rejection, fpir or fnir."),
    ] = "error",
    target: Annotated[float, typer.Option(help="The highest risk wanted among automatic decisions.")] = 0.01,
    confidence: Annotated[float, typer.Option(help="Confidence of the guarantee.")] = 0.95,
    unit: Annotated[str, typer.Option(help="What is independent: subject, or probe (one probe each).")] = "subject",
    method: Annotated[
        str | None, typer.Option(help="Quality score; by default holue-plus, or galue where probes are too few for it.")
    ] = None,
    target_fpir: Annotated[float, typer.Option(help="Share of strangers that the threshold may accept.")] = 0.05,
    groups: Annotated[
        bool, typer.Option("--groups", help="Also rates and guarantee for each value of group, group_sex, ...")
    ] = False,
    smallest: Annotated[int, typer.Option(help="Groups with fewer subjects than this are flagged.")] = 20,
    seed: Annotated[int, typer.Option(help="Seed of the split of the development subjects.", min=0)] = 0,
    json: Json = False,
) -> None:
    """Which answers are safe to act on? Find the filter threshold that keeps a risk below its target, with a guarantee.

    Half of the development subjects calibrate the recogniser. The other half certify the threshold. The evaluation part then
    shows how many answers are filtered and the risk among the others. If the target cannot be certified, the command says how
    many more development probes are needed, and its exit code is 1. Example: `holue trust lfw --risk error --target 0.02`
    """
    from holue.datasets.formats.folder import load_folder
    from holue.evaluation.deployment.trust import trust_report

    report = trust_report(
        load_folder(directory),
        method=method,
        risk=risk,  # type: ignore[arg-type]  # checked by name where it is used
        target_level=target,
        confidence_level=confidence,
        unit=unit,  # type: ignore[arg-type]
        target_fpir=target_fpir,
        by_group=groups,
        smallest=smallest,
        seed=seed,
    )
    if report.refusal is not None:
        report = replace(report, refusal=spelled(report.refusal, ctx.command))
    if json:
        print_json(report.to_dict())
    else:
        console.print(str(report), markup=False, soft_wrap=True)
    if report.certificate is None:
        raise typer.Exit(1)
