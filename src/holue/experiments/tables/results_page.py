"""Results page: in how many cells each method is best, and all tables, with the paper's numbers for comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holue.experiments.experiment import MAIN, REFERENCE
from holue.experiments.tables.experiment_report import counts_text
from holue.experiments.tables.findings import PAPER_METHODS, findings_lines
from holue.experiments.tables.paper_table import PAPER_COLUMNS, PAPER_FPIR, PAPER_TABLE_1
from holue.experiments.tables.summary_tables import (
    ABLATION_TITLES,
    ablation_table,
    accuracy_difference_table,
    accuracy_table,
    calibration_table,
    difference_table,
    error_kind_table,
    level_table,
    normalisation_table,
    prr_table,
    recognition_table,
)

Document = Mapping[str, Any]
OURS = {"holue-plus": "HolUE-plus", "holue-f1": "HolUE-F1"}
"""The methods of this package that are compared with HolUE-MLP: by P(correct), and by the expected gain in F1."""
MEASURES = {"f1": "difference_to_holue", "accuracy": "difference_of_accuracy_to_holue"}
"""What a prediction rejection ratio is of, and where its paired differences are."""


def results_page(documents: Sequence[Document], remarks: str = "", charts: Mapping[str, str] | None = None) -> str:
    """The page in Markdown, charts first (paths of pictures → captions); ``remarks`` are put after the summary."""
    lines = ["# Results", ""]
    for path, caption in (charts or {}).items():
        lines += [f"![{caption}]({path})", ""]
    lines += [
        "The tables here are made by `holue results` from the `results.json` of each run, and so is every sentence above "
        "the hand-written remarks. "
        "Every number is a mean over seeds; each seed assigns people at random to training, development and evaluation, and "
        "no person is in two of them. Intervals (95 %) are from a bootstrap over subjects that all seeds share, and "
        "differences are paired by seed and by resample. Thresholds, normalisation and heads are learnt on the development "
        "part alone. **Bold** is best of its column, <u>underlined</u> second.",
        "",
        f"The runs were made at commit {commits_text(documents)}.",
        "",
    ]
    lines += ["To run again (the extra `train`, and all but glyphs need `HOLUE_DATA` and `HOLUE_MODELS`):", ""]
    lines += [f"- `holue experiment {one['name']} --seeds {one['seeds']} --report OUT`" for one in documents]
    if any(document["quick"] for document in documents):
        lines += ["", "**Some runs used `--quick`, on a part of the data: do not use their numbers.**"]
    lines += ["", "## Summary", "", *summary_lines(documents)]
    lines += ["", "## What the numbers say", "", *findings_lines(documents)]
    if remarks.strip():
        lines += ["", remarks.strip()]
    lines += ["", "## The paper's Table 1", "", *_paper_lines()]
    for document in documents:
        lines += ["", *_experiment_lines(document)]
    return "\n".join(lines) + "\n"


def commits_text(documents: Sequence[Document]) -> str:
    """The commits at which the runs were made, each once."""
    return ", ".join(dict.fromkeys(document["versions"]["commit"] for document in documents))


def summary(documents: Sequence[Document]) -> dict[str, Any]:
    """How many cells (data set × FPIR) were won: HolUE-MLP among the paper's six, and ours against HolUE-MLP."""
    cells = list(_cells(documents))
    return {
        "cells": len(cells),
        "holue_first_of_paper": sum(cell["first_of_paper"] == REFERENCE for cell in cells),
        "ours": {key: {measure: _wins(cells, key, measure) for measure in MEASURES} for key in OURS},
        "by_cell": cells,
    }


def summary_lines(documents: Sequence[Document]) -> list[str]:
    """The summary in sentences and a table."""
    found = summary(documents)
    lines = [
        f"- HolUE-MLP is first of the paper's six methods in **{found['holue_first_of_paper']} of {found['cells']}** cells "
        "(data set × FPIR).",
    ]
    for key, name in OURS.items():
        by_f1, by_accuracy = (found["ours"][key][measure] for measure in MEASURES)
        lines.append(
            f"- {name} is above HolUE-MLP in **{by_f1['above']} of {found['cells']}** cells, with the interval of the paired "
            f"difference above 0 in **{by_f1['clearly']}**. By accuracy, which unlike F1 credits right rejections, it is "
            f"above in **{by_accuracy['above']}**, clearly in **{by_accuracy['clearly']}**."
        )
    names = [f"{name} less HolUE-MLP (95 %)" for name in OURS.values()]
    lines += [
        "",
        f"**PRR of F1; threshold from the development part; commit {commits_text(documents)}**",
        "",
        f"| Data | FPIR | first of the paper's six | best of all | HolUE-MLP | {' | '.join(names)} |",
        f"| --- | ---: | --- | --- | ---: |{' ---: |' * len(names)}",
    ]
    for cell in found["by_cell"]:
        names = cell["names"]
        differences = (cell["differences"]["f1"].get(key) for key in OURS)
        lines.append(
            f"| {cell['experiment']} | {cell['fpir']:g} | {names[cell['first_of_paper']]} | {names[cell['best']]} "
            f"| {_number(cell['holue'])} | "
            + " | ".join("–" if d is None else f"{_number(d['value'])} ({_interval(d)})" for d in differences)
            + " |"
        )
    return lines


def _wins(cells: Sequence[Mapping[str, Any]], key: str, measure: str) -> dict[str, int]:
    judged = [cell["differences"][measure].get(key) for cell in cells]
    return {
        "above": sum(d is not None and d["value"] is not None and d["value"] > 0 for d in judged),
        "clearly": sum(d is not None and d["low"] is not None and d["low"] > 0 for d in judged),
    }


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
                "differences": {measure: dict(point[field]) for measure, field in MEASURES.items()},
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
            tables += [accuracy_table(variant), accuracy_difference_table(variant)]
            tables += [normalisation_table(variant), calibration_table(variant)]
            tables += [ablation_table(variant, measure) for measure in ABLATION_TITLES]
            tables += [error_kind_table(variant, middle), level_table(variant, middle)]
        for table in tables:
            if table.rows:
                lines += ["", table.markdown().rstrip()]
    return lines


def _paper_lines() -> list[str]:
    heads = [f"{name} {fpir}" for name, targets in zip(PAPER_COLUMNS, PAPER_FPIR) for fpir in targets]
    lines = [
        "PRR of F1, as printed in the paper (not measured here). The paper used other data and larger recognisers, and its "
        "thresholds come from the test probes. Compare the order of the methods, not the numbers.",
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
