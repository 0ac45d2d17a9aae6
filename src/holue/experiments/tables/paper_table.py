"""Paper table: the PRR that the paper printed beside those of a run on the same data set."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holue.evaluation.comparison.settings import THRESHOLD_LABELS
from holue.evaluation.intervals.estimates import Estimate
from holue.evaluation.report.tables import Cell, Table

Document = Mapping[str, Any]

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
PAPER_TABLE_2: dict[str, tuple[float, float, float]] = {
    "holue-sum test": (0.74, 0.74, 0.74),
    "holue-sum val": (0.52, 0.26, 0.47),
    "holue test": (0.82, 0.84, 0.87),
    "holue val": (0.82, 0.79, 0.87),
}
"""PRR of F1 on IJB-C by what standardises the terms, as printed in the paper."""
KEYS = {"PFE": "pfe", "SCF": "scf", "SF": "sf", "AccScr": "acceptance", "GalUE": "galue", "HolUE-MLP": "holue"}
WAYS = {"paper": "paper", "eval": "oracle", "dev": "ours"}


def printed_prr(column: str) -> dict[str, dict[str, float]]:
    """A data set's part of the paper's Table 1, by the key of the method and by FPIR.

    >>> printed_prr("IJB-B")["holue"]
    {'0.05': 0.71, '0.1': 0.58, '0.2': 0.82}
    """
    place = PAPER_COLUMNS.index(column)
    return {
        KEYS[name]: dict(zip(PAPER_FPIR[place], values[3 * place : 3 * place + 3]))
        for name, values in PAPER_TABLE_1.items()
    }


def paper_tables(document: Document) -> list[Table]:
    """Table 1's column and Table 2 beside the paper's; none where the run is not on data of the paper."""
    column = document.get("paper")
    if column is None:
        return []
    by_source = {variant.get("threshold_from", "dev"): variant for variant in document["variants"]}
    targets, printed = [f"{target:g}" for target in document["fpir"]], printed_prr(column)
    head = ("Method", *(f"FPIR {target} {way}" for target in targets for way in WAYS.values()))
    methods = document["variants"][0]["methods"]
    rows = []
    for key, name in methods.items():
        cells = []
        for place, target in enumerate(targets):
            for way in WAYS:
                if way == "paper":
                    value = printed.get(key, {}).get(target)
                else:
                    value = (
                        by_source[way]["operating_points"][place]["prr_f1"][key]["value"] if way in by_source else None
                    )
                cells.append(Cell(Estimate(value, None, None)))
        rows.append((name, tuple(cells)))
    title = f"PRR of F1 on {document['title']}: the paper's, ours with its oracle threshold, ours with the development threshold"
    tables = [
        Table("beside_the_paper", title, f"see the columns; commit {document['versions']['commit']}", head, tuple(rows))
    ]
    if column == PAPER_COLUMNS[0]:
        tables.append(_ablation(by_source, targets))
    return tables


def _ablation(by_source: Mapping[str, Document], targets: list[str]) -> Table:
    way = "eval" if "eval" in by_source else "dev"
    points = by_source[way]["operating_points"]
    rows = []
    for name, printed in PAPER_TABLE_2.items():
        key, source = name.split()
        ours = [point["normalisation"].get(key, {}).get(source) for point in points]
        theirs = [dict(zip(PAPER_FPIR[0], printed)).get(target) for target in targets]
        cells = [Cell(Estimate(value, None, None)) for pair in zip(theirs, ours) for value in pair]
        rows.append((name, tuple(cells)))
    head = ("Terms standardised by", *(f"FPIR {target} {who}" for target in targets for who in ("paper", "ours")))
    threshold = f"{THRESHOLD_LABELS[way]}; commit {by_source[way]['commit']}"
    return Table("beside_the_paper_2", "Table 2: PRR of F1 on IJB-C", threshold, head, tuple(rows))
