"""Results page: what the runs of the experiments won and what they did not, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holue.experiments.experiment import MAIN, REFERENCE
from holue.experiments.experiment_report import counts_text
from holue.experiments.summary_tables import (
    calibration_table,
    difference_table,
    error_kind_table,
    level_table,
    normalisation_table,
    prr_table,
    recognition_table,
)

Document = Mapping[str, Any]
PAPER_METHODS = ("pfe", "scf", "sf", "acceptance", "galue", REFERENCE)
OURS = "holue-plus"

PAPER_COLUMNS = ("IJB-C", "IJB-B", "Whale", "VB-Eval-L-5")
PAPER_FPIR = (("0.05", "0.1", "0.2"),) * 3 + (("0.01", "0.05", "0.1"),)
PAPER_TABLE_1: dict[str, tuple[float, ...]] = {
    "PFE": (0.38, 0.26, 0.14, 0.24, 0.2, 0.19, 0.0, -0.01, -0.01, 0.56, 0.33, 0.2),
    "SCF": (0.42, 0.32, 0.22, 0.29, 0.25, 0.22, 0.16, 0.01, -0.1, 0.55, 0.27, 0.13),
    "SF": (0.38, 0.27, 0.14, 0.3, 0.21, 0.16, 0.19, 0.11, 0.03, 0.44, 0.52, 0.44),
    "AccScr": (0.74, 0.73, 0.66, 0.65, 0.69, 0.63, 0.77, 0.75, 0.65, 0.65, 0.77, 0.73),
    "GalUE": (0.75, 0.76, 0.7, 0.67, 0.7, 0.66, 0.74, 0.76, 0.7, 0.64, 0.89, 0.88),
    "HolUE-MLP": (0.82, 0.79, 0.87, 0.71, 0.58, 0.82, 0.82, 0.87, 0.9, 0.85, 0.86, 0.92),
}
"""PRR of F1 as printed in the paper."""


def results_page(documents: Sequence[Document], remarks: str = "") -> str:
    """The page in Markdown; ``remarks`` are put after the summary."""
    lines = [
        "# Results",
        "",
        "This page is made by `holue results` from the `results.json` of each run; none of its numbers is typed by hand. "
        "Every number is a mean over seeds; a seed deals people out to training, development and evaluation anew, and no person "
        "is in two of them. Intervals (95 %) are from a bootstrap over subjects that all seeds share, and differences are paired "
        "by seed and by resample. Thresholds, normalisation and heads are learnt on the development part alone. **Bold** is best "
        "of its column, <u>underlined</u> second.",
        "",
    ]
    lines += [
        f"Run again with `holue experiment {one['name']} --seeds {one['seeds']} --report OUT`." for one in documents
    ]
    if any(document["quick"] for document in documents):
        lines += ["", "**Some runs are quick ones, on a part of the data: their numbers mean nothing.**"]
    lines += ["", "## Summary", "", *summary_lines(documents)]
    if remarks.strip():
        lines += ["", remarks.strip()]
    lines += ["", "## The paper's Table 1", "", *_paper_lines()]
    for document in documents:
        lines += ["", *_experiment_lines(document)]
    return "\n".join(lines) + "\n"


def summary(documents: Sequence[Document]) -> dict[str, Any]:
    """How many cells (data set × FPIR) were won: HolUE-MLP among the paper's six, and ours against HolUE-MLP."""
    cells = list(_cells(documents))
    first = [cell for cell in cells if cell["first_of_paper"] == REFERENCE]
    judged = [cell["difference"] for cell in cells if cell["difference"] is not None]
    above = [difference for difference in judged if difference["value"] is not None and difference["value"] > 0]
    return {
        "cells": len(cells),
        "holue_first_of_paper": len(first),
        "ours_above_holue": len(above),
        "ours_clearly_above_holue": sum(1 for one in above if one["low"] is not None and one["low"] > 0),
        "by_cell": cells,
    }


def summary_lines(documents: Sequence[Document]) -> list[str]:
    """The summary in sentences and a table."""
    found = summary(documents)
    lines = [
        f"- HolUE-MLP is first of the paper's six methods in **{found['holue_first_of_paper']} of {found['cells']}** cells "
        "(data set × FPIR).",
        f"- HolUE-plus is above HolUE-MLP in **{found['ours_above_holue']} of {found['cells']}** cells, with the interval of "
        f"the paired difference above 0 in **{found['ours_clearly_above_holue']}**.",
        "",
        "| Data | FPIR | first of the paper's six | best of all | HolUE-MLP | HolUE-plus | difference (95 %) |",
        "| --- | ---: | --- | --- | ---: | ---: | ---: |",
    ]
    for cell in found["by_cell"]:
        difference, names = cell["difference"], cell["names"]
        lines.append(
            f"| {cell['experiment']} | {cell['fpir']:g} | {names[cell['first_of_paper']]} | {names[cell['best']]} "
            f"| {_number(cell['holue'])} | {_number(cell['ours'])} | "
            + ("– |" if difference is None else f"{_number(difference['value'])} ({_interval(difference)}) |")
        )
    return lines


def _cells(documents: Sequence[Document]) -> Iterator[dict[str, Any]]:
    for document in documents:
        main = next(variant for variant in document["variants"] if variant["variant"] == MAIN)
        for point in main["operating_points"]:
            values = {key: number["value"] for key, number in point["prr_f1"].items() if number["value"] is not None}
            paper = {key: value for key, value in values.items() if key in PAPER_METHODS}
            yield {
                "experiment": document["name"],
                "fpir": point["target_fpir"],
                "first_of_paper": max(paper, key=lambda key: paper[key]),
                "best": max(values, key=lambda key: values[key]),
                "holue": values.get(REFERENCE),
                "ours": values.get(OURS),
                "difference": point["difference_to_holue"].get(OURS),
                "names": dict(main["methods"]),
            }


def _experiment_lines(document: Document) -> list[str]:
    lines = [f"## {document['title']}"]
    for variant in document["variants"]:
        is_main = variant["variant"] == MAIN
        if not is_main:
            lines += ["", f"### Variant: {variant['variant']}"]
        lines += ["", f"{document['seeds']} seeds. {counts_text(variant)} (Counts of the first seed.)"]
        tables = [recognition_table(variant), prr_table(variant), difference_table(variant)]
        if is_main:
            middle = variant["operating_points"][len(variant["operating_points"]) // 2]
            tables += [normalisation_table(variant), calibration_table(variant)]
            tables += [error_kind_table(variant, middle), level_table(variant, middle)]
        for table in tables:
            lines += ["", table.markdown().rstrip()]
    return lines


def _paper_lines() -> list[str]:
    heads = [f"{name} {fpir}" for name, targets in zip(PAPER_COLUMNS, PAPER_FPIR) for fpir in targets]
    lines = [
        "PRR of F1, as printed. Its data are other data and its recognisers larger ones, and its thresholds come from the test "
        "probes; what can be compared is the order of the methods.",
        "",
        f"| Method | {' | '.join(heads)} |",
        f"| --- |{' ---: |' * len(heads)}",
    ]
    for method, values in PAPER_TABLE_1.items():
        lines.append(f"| {method} | {' | '.join(f'{value:.2f}' for value in values)} |")
    return lines


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(number: Document) -> str:
    return f"{_number(number['low'])} to {_number(number['high'])}"
