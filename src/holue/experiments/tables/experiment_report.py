"""Experiment report: a run as a folder with its numbers, its tables and its rejection curves.

OUT/results.json    the document, from which everything else is made
OUT/tables/         .md and .csv per variant
OUT/figures/        rejection curves, means over seeds, .png and .svg
OUT/report.md       all tables on one page
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from holue.artifact import whole_folder
from holue.errors import InvalidFileError
from holue.evaluation.comparison.results import CURVE_METRICS
from holue.evaluation.report.displays import CURVE_STYLES, REFERENCE_STYLES
from holue.evaluation.report.drawing import Drawing, look, new_figure
from holue.evaluation.report.figures import SHOWN, TITLES
from holue.evaluation.report.result_folder import RESULTS_FILE, check_result_folder
from holue.experiments.experiment import FORMAT, MAIN, VERSION
from holue.experiments.tables.paper_table import paper_tables
from holue.experiments.tables.summary_tables import variant_tables

Document = Mapping[str, Any]


def write_experiment(document: Document, folder: str | Path) -> Path:
    """Write the folder, all or nothing; an earlier run there is replaced, anything else is refused."""
    folder = Path(folder)
    check_destination(folder)
    with whole_folder(folder) as partial:
        _fill(document, partial)
    return folder


def check_destination(folder: str | Path) -> None:
    """Refuse to write over anything but an earlier run or an empty folder; ask before the work."""
    check_result_folder(Path(folder), format=FORMAT, what="experiment")


def read_experiment(path: str | Path) -> dict[str, Any]:
    """The document of a run, from its folder or its ``results.json``."""
    path = Path(path)
    file = path / RESULTS_FILE if path.is_dir() else path
    if not file.is_file():
        raise InvalidFileError(f"{file}: no such file; give the folder that `holue experiment NAME --report` wrote")
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InvalidFileError(f"{file}: not readable as JSON ({error})") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise InvalidFileError(f"{file}: not the results of an experiment (format {FORMAT!r}); choose another path")
    if document.get("version", 0) > VERSION:
        raise InvalidFileError(f"{file}: version {document['version']} is newer than {VERSION}; update holue")
    if document.get("version", 0) < VERSION:
        raise InvalidFileError(
            f"{file}: version {document.get('version', 0)} of the results has not all that version {VERSION} has; delete the "
            "folder and run the experiment again"
        )
    return document


def report_text(document: Document) -> str:
    """All tables of a run in Markdown."""
    lines = [f"# {document['title']}", "", f"{document['seeds']} seeds; means, with 95 % intervals over subjects."]
    if document["quick"]:
        lines += ["", "**A quick run on a part of the data: its numbers mean nothing.**"]
    for table in paper_tables(document):
        lines += ["", table.markdown().rstrip()]
    if "peak_megabytes" in document:
        lines += [
            "",
            f"{document['seconds']['total']:.0f} s and at most {document['peak_megabytes']:.0f} MB of memory.",
        ]
    for variant in document["variants"]:
        lines += ["", f"## {variant['variant'] or 'Main experiment'}", "", counts_text(variant)]
        for table in variant_tables(variant):
            lines += ["", table.markdown().rstrip()]
    return "\n".join(lines) + "\n"


def counts_text(variant: Document) -> str:
    """How large the parts are, in the first seed."""
    sentences = []
    for role in ("development", "evaluation"):
        part = variant["protocol"][role]
        sentences.append(
            f"{role.capitalize()}: {part['gallery_subjects']} subjects enrolled, {part['mated_probes']} mated and "
            f"{part['non_mated_probes']} non-mated probes of {part['mated_subjects'] + part['non_mated_subjects']} subjects."
        )
    return " ".join(sentences)


def curves_figure(document: Document, variant: Document, point: Document) -> Drawing:
    """Four metrics against the filtered fraction, means over seeds, with random and oracle."""
    curves, names = point["rejection_curves"], variant["methods"]
    ratios = {key: number["value"] for key, number in point["prr_f1"].items() if number["value"] is not None}
    best = sorted(ratios, key=lambda key: -ratios[key])[:SHOWN]
    fractions = np.array(curves["filtered_fraction"])
    name = f"rejection_curves_fpir_{point['target_fpir']:g}"
    with look(name):
        figure, axes = new_figure(9, 7.4, 2, 2)
        for ax, metric in zip(axes.flat, CURVE_METRICS):
            lines = {names[key]: (curves[metric][key], style) for key, style in zip(best, CURVE_STYLES)}
            lines |= {name: (curves[metric][name], style) for name, style in REFERENCE_STYLES.items()}
            for label, (values, style) in lines.items():
                ax.plot(fractions, np.array(values, dtype=float), label=label, **style)
            ax.set_title(TITLES[metric])
            ax.set_xlabel("filtered fraction of probes")
            ax.set_xlim(0, float(fractions.max()))
            if metric != "f1":
                ax.set_ylim(bottom=0)
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, handlelength=3.4)
        figure.suptitle(f"{document['title']}, FPIR {point['target_fpir']:g}", x=0.01, ha="left", fontsize=11)
    return Drawing(
        name, f"Rejection curves of the best methods by PRR of F1, mean of {document['seeds']} seeds.", figure
    )


def _fill(document: Document, folder: Path) -> None:
    (folder / "tables").mkdir(parents=True)
    (folder / "figures").mkdir()
    text = json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False)
    (folder / RESULTS_FILE).write_text(text + "\n", encoding="utf-8")
    (folder / "report.md").write_text(report_text(document), encoding="utf-8")
    for table in paper_tables(document):
        (folder / "tables" / f"{table.name}.md").write_text(table.markdown(), encoding="utf-8")
        (folder / "tables" / f"{table.name}.csv").write_text(table.csv(), encoding="utf-8")
    for variant in document["variants"]:
        prefix = f"{variant['variant'].replace(' ', '_')}_" if variant["variant"] else ""
        for table in variant_tables(variant):
            (folder / "tables" / f"{prefix}{table.name}.md").write_text(table.markdown(), encoding="utf-8")
            (folder / "tables" / f"{prefix}{table.name}.csv").write_text(table.csv(), encoding="utf-8")
        if variant["variant"] == MAIN:
            for point in variant["operating_points"]:
                curves_figure(document, variant, point).save(folder / "figures")
