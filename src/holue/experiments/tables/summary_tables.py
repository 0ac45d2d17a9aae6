"""Summary tables: the document of an experiment as rows and columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holue.evaluation.comparison.settings import THRESHOLD_LABELS
from holue.evaluation.intervals.estimates import Estimate
from holue.evaluation.report.tables import Cell, Table

Document = Mapping[str, Any]
ERROR_METRICS = {"fpir": "FPIR", "fnir": "FNIR", "misidentifications": "misidentifications"}
ABLATION_TITLES = {
    "prr_f1": "PRR of F1",
    "prr_accuracy": "PRR of accuracy",
    "calibration_error": "expected calibration error (lower is better)",
}
FILTERED = 0.2
"""The filtered fraction at which the curves by error kind are read."""


def variant_tables(variant: Document) -> list[Table]:
    """Every table of one variant: Table 1, Table 2, recognition, calibration, error kinds, levels."""
    tables = [
        prr_table(variant),
        difference_table(variant),
        accuracy_table(variant),
        accuracy_difference_table(variant),
        normalisation_table(variant),
        recognition_table(variant),
        calibration_table(variant),
        *(ablation_table(variant, measure) for measure in ABLATION_TITLES),
        *(error_kind_table(variant, point) for point in variant["operating_points"]),
        *(level_table(variant, point) for point in variant["operating_points"]),
    ]
    return [table for table in tables if table.rows]


def prr_table(variant: Document) -> Table:
    """Table 1 of the paper: PRR of F1 per method and FPIR, means over seeds."""
    rows = [(name, [_estimate(point["prr_f1"][key]) for point in _points(variant)]) for key, name in _methods(variant)]
    return _table(variant, "table1_prr", "Prediction rejection ratio of F1 (higher is better)", _ranked(rows))


def difference_table(variant: Document) -> Table:
    """PRR of every method less that of HolUE-MLP, paired by seed and by resample."""
    rows = _differences(variant, "difference_to_holue")
    return _table(variant, "differences", "PRR of F1 less that of HolUE-MLP, paired", rows)


def accuracy_table(variant: Document) -> Table:
    """PRR of accuracy, where a right rejection counts as much as a right name; F1 gives it no credit."""
    rows = [
        (name, [_estimate(point["prr_accuracy"][key]) for point in _points(variant)]) for key, name in _methods(variant)
    ]
    title = "Prediction rejection ratio of accuracy, the share of right answers (higher is better)"
    return _table(variant, "prr_accuracy", title, _ranked(rows))


def accuracy_difference_table(variant: Document) -> Table:
    """PRR of accuracy of every method less that of HolUE-MLP, paired by seed and by resample."""
    rows = _differences(variant, "difference_of_accuracy_to_holue")
    return _table(variant, "differences_accuracy", "PRR of accuracy less that of HolUE-MLP, paired", rows)


def ablation_table(variant: Document, measure: str) -> Table:
    """HolUE-plus with one part left out or exchanged."""
    points = _points(variant)
    rows = [
        (name, [Estimate(point["ablation"][name][measure], None, None) for point in points])
        for name in points[0]["ablation"]
        if all(name in point["ablation"] for point in points)
    ]
    ranked = _ranked(rows, highest=measure != "calibration_error")
    return _table(
        variant, f"ablation_{measure}", f"HolUE-plus taken apart: {ABLATION_TITLES[measure]}", ranked, "Estimator"
    )


def _differences(variant: Document, field: str) -> list[tuple[str, tuple[Cell, ...]]]:
    return [
        (name, tuple(Cell(_estimate(point[field][key])) for point in _points(variant)))
        for key, name in _methods(variant)
        if all(key in point[field] for point in _points(variant))
    ]


def normalisation_table(variant: Document) -> Table:
    """Table 2 of the paper: terms standardised by the development ("val") or by the evaluation probes ("test")."""
    names = dict(_methods(variant))
    rows = [
        (
            f"{names[key]} {source}",
            [Estimate(point["normalisation"][key][source], None, None) for point in _points(variant)],
        )
        for key in _points(variant)[0]["normalisation"]
        for source in ("test", "val")
    ]
    title = "PRR of F1 with KL terms standardised by development (val) or evaluation (test) probes"
    return _table(variant, "table2_normalisation", title, _ranked(rows))


def recognition_table(variant: Document) -> Table:
    """Rates before anything is filtered."""
    rates = {"fpir": "FPIR", "dir": "DIR", "precision": "Precision", "f1": "F1"}
    rows = [
        (label, tuple(Cell(_estimate(point["recognition"][rate])) for point in _points(variant)))
        for rate, label in rates.items()
    ]
    return _table(variant, "recognition", "Recognition on all evaluation probes", rows, first="Rate")


def calibration_table(variant: Document) -> Table:
    """Expected calibration error of the methods that give a probability."""
    names = dict(_methods(variant))
    rows = [
        (names[key], [_estimate(point["calibration_error"][key]) for point in _points(variant)])
        for key in _points(variant)[0]["calibration_error"]
    ]
    title = "Expected calibration error of P(correct), 15 bins (lower is better)"
    return _table(variant, "calibration", title, _ranked(rows, highest=False))


def error_kind_table(variant: Document, point: Document) -> Table:
    """What is left of each kind of error once a fifth of the probes is filtered."""
    curves = point["rejection_curves"]
    place = min(range(len(curves["filtered_fraction"])), key=lambda i: abs(curves["filtered_fraction"][i] - FILTERED))
    names = {**dict(_methods(variant)), "random": "random", "oracle": "oracle"}
    rows = [
        (name, [Estimate(curves[metric][key][place], None, None) for metric in ERROR_METRICS])
        for key, name in names.items()
        if all(key in curves[metric] for metric in ERROR_METRICS)
    ]
    fpir = f"{point['target_fpir']:g}"
    title = f"What is left with {FILTERED:.0%} of the probes filtered, from FPIR {fpir} (lower is better)"
    competing = _ranked(rows[:-2], highest=False) + [(name, tuple(map(Cell, some))) for name, some in rows[-2:]]
    head = ("Method", *ERROR_METRICS.values())
    return Table(f"error_kinds_fpir_{fpir}", title, _label(variant), head, tuple(competing))


def level_table(variant: Document, point: Document) -> Table:
    """PRR of F1 by level of degradation: one row per level, one column per method."""
    methods = _methods(variant)
    rows = []
    for level in point["levels"]:
        known = (Cell(text=f"{level['probes']:.0f}"), Cell(text=f"{level['error_rate']:.3f}"))
        ratios = _placed([Estimate(level["prr_f1"][key], None, None) for key, _ in methods], highest=True)
        rows.append((level["level"], (*known, *ratios)))
    fpir = f"{point['target_fpir']:g}"
    head = ("Level", "probes", "errors", *(name for _, name in methods))
    title = f"PRR of F1 by degradation level, FPIR {fpir}"
    return Table(f"levels_fpir_{fpir}", title, _label(variant), head, tuple(rows))


def _table(
    variant: Document, name: str, title: str, rows: Sequence[tuple[str, tuple[Cell, ...]]], first: str = "Method"
) -> Table:
    head = (first, *(f"FPIR {point['target_fpir']:g}" for point in _points(variant)))
    return Table(name, title, _label(variant), head, tuple(rows))


def _label(variant: Document) -> str:
    """Where the variant's thresholds come from, and which code made its numbers."""
    moved = ", moved with the gallery's size by the paper's model" if variant["hold"] == "model" else ""
    return f"{THRESHOLD_LABELS[variant['threshold_from']]}{moved}; commit {variant['commit']}"


def _ranked(
    rows: Sequence[tuple[str, Sequence[Estimate]]], *, highest: bool = True
) -> list[tuple[str, tuple[Cell, ...]]]:
    """Cells that know whether they are best or second of their column."""
    if not rows:
        return []
    columns = [_placed([cells[i] for _, cells in rows], highest=highest) for i in range(len(rows[0][1]))]
    return [(name, tuple(column[row] for column in columns)) for row, (name, _) in enumerate(rows)]


def _placed(numbers: Sequence[Estimate], *, highest: bool) -> list[Cell]:
    """Numbers that print alike share a place."""
    printed = sorted({f"{n.value:.3f}" for n in numbers if n.value is not None}, key=float, reverse=highest)
    place = {text: i + 1 for i, text in enumerate(printed[:2])}
    return [Cell(number, 0 if number.value is None else place.get(f"{number.value:.3f}", 0)) for number in numbers]


def _estimate(document: Document) -> Estimate:
    return Estimate(document["value"], document["low"], document["high"], document.get("reason"))


def _points(variant: Document) -> list[Document]:
    return list(variant["operating_points"])


def _methods(variant: Document) -> list[tuple[str, str]]:
    return list(variant["methods"].items())
