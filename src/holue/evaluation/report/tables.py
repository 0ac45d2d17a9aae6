"""Tables: results as rows and columns, in Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holue.evaluation.comparison.methods import Method, grouped_reasons
from holue.evaluation.comparison.results import PointResult, Results
from holue.evaluation.intervals.estimates import Estimate

DASH = "–"
_TEX_SPECIAL = {
    "&": r"\&",
    "%": r"\%",
    "_": r"\_",
    "#": r"\#",
    "$": r"\$",
    "±": r"$\pm$",
    "τ": r"$\tau$",
    "κ": r"$\kappa$",
}


@dataclass(frozen=True)
class Cell:
    """One entry: an estimate, with its place among its column (1 best, 2 second, 0 neither), or a plain text."""

    number: Estimate | None = None
    place: int = 0
    text: str = ""

    @property
    def value(self) -> str:
        """The value, to three decimals."""
        if self.number is None:
            return self.text
        return DASH if self.number.value is None else f"{self.number.value:.3f}"

    @property
    def interval(self) -> str:
        """The interval as ``low to high``, empty where there is none."""
        if self.number is None or self.number.low is None or self.number.high is None:
            return ""
        return f"{self.number.low:.3f} to {self.number.high:.3f}"

    @property
    def reason(self) -> str:
        """Why there is no value, empty where there is one."""
        return self.number.reason or "" if self.number is not None and self.number.value is None else ""


@dataclass(frozen=True)
class Table:
    """A title, column heads, and rows of a name and cells.

    ``threshold`` says where the threshold comes from, and is part of every rendering; ``notes`` explain what cannot be seen.
    """

    name: str
    title: str
    threshold: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    notes: tuple[str, ...] = ()

    def markdown(self) -> str:
        """As Markdown: the best in bold, the second underlined."""
        lines = [
            f"**{self.title}; {self.threshold}**",
            "",
            _pipes(self.head),
            _pipes(["---", *["---:"] * (len(self.head) - 1)]),
        ]
        for name, cells in self.rows:
            lines.append(_pipes([name, *(_decorated(cell, "**{}**", "<u>{}</u>", " ({})") for cell in cells)]))
        return "\n".join([*lines, *(f"\n{note}" for note in self.notes)]) + "\n"

    def csv(self) -> str:
        """As CSV: numbers in full, each estimate as three columns (value, low, high)."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        estimated = [any(cells[i].number is not None for _, cells in self.rows) for i in range(len(self.head) - 1)]
        head = [self.head[0]]
        for name, is_number in zip(self.head[1:], estimated):
            head += [name, f"{name} low", f"{name} high"] if is_number else [name]
        writer.writerow([*head, "threshold"])
        for name, cells in self.rows:
            row: list[object] = [name]
            for cell, is_number in zip(cells, estimated):
                number = cell.number or Estimate(None, None, None)
                row += [number.value, number.low, number.high] if is_number else [cell.text]
            writer.writerow([*row, self.threshold])
        return file.getvalue()

    def tex(self) -> str:
        """As LaTeX, for ``booktabs``."""
        lines = [
            r"\begin{table}[t]",
            rf"\caption{{{_tex(self.title)}; {_tex(self.threshold)}.}}",
            r"\centering",
            rf"\begin{{tabular}}{{l{'c' * (len(self.head) - 1)}}}",
            r"\toprule",
            " & ".join(_tex(name) for name in self.head) + r" \\",
            r"\midrule",
        ]
        for name, cells in self.rows:
            entries = [
                _decorated(cell, r"\textbf{{{}}}", r"\underline{{{}}}", r" {{\scriptsize({})}}") for cell in cells
            ]
            lines.append(" & ".join([_tex(name), *(entry.replace(DASH, "--") for entry in entries)]) + r" \\")
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]) + "\n"


def all_tables(results: Results) -> list[Table]:
    """Every table that these results have rows for."""
    tables = [
        prr_table(results),
        accuracy_table(results),
        normalisation_table(results),
        recognition_table(results),
        calibration_table(results),
        difference_table(results),
    ]
    return [table for table in tables if table.rows]


def _range(results: Results) -> str:
    """Which range of PRR it is, where it is not the default."""
    return ", over all probes as in the paper" if results.settings.prr == "paper" else ""


def prr_table(results: Results) -> Table:
    """Table 1 of the paper: PRR of F1 per method and FPIR."""
    columns = [{result.method: result.prr for result in point.methods} for point in results.points]
    return _table(
        results,
        "table1_prr",
        f"Prediction rejection ratio of F1{_range(results)} (higher is better)",
        ("Method", *_fpir_heads(results)),
        _ranked_rows([(method.name, [column.get(method) for column in columns]) for method in results.methods]),
        (*_not_evaluated(results), *_why_undefined(results, columns)),
    )


def accuracy_table(results: Results) -> Table:
    """PRR of accuracy, where a right rejection counts as much as a right name; F1 gives it no credit."""
    columns = [{result.method: result.prr_accuracy for result in point.methods} for point in results.points]
    return _table(
        results,
        "prr_accuracy",
        f"Prediction rejection ratio of accuracy, the share of right answers{_range(results)} (higher is better)",
        ("Method", *_fpir_heads(results)),
        _ranked_rows([(method.name, [column.get(method) for column in columns]) for method in results.methods]),
        _why_undefined(results, columns),
    )


def normalisation_table(results: Results) -> Table:
    """Table 2 of the paper: HolUE with the terms standardised by the development or by the evaluation probes."""
    names = {method.key: method.name for method in results.methods}
    keys = [key for key in names if any(key in point.normalisation for point in results.points)]
    rows = [
        (f"{names[key]} {source}", [point.normalisation.get(key, {}).get(source) for point in results.points])
        for key in keys
        for source in ("test", "val")
    ]
    return _table(
        results,
        "table2_normalisation",
        "PRR of F1 with KL terms standardised by development (val) or evaluation (test) probes",
        ("Method", *_fpir_heads(results)),
        _ranked_rows(rows),
    )


def recognition_table(results: Results) -> Table:
    """Recognition before anything is filtered."""
    rates = {"fpir": "FPIR", "fnir": "FNIR", "dir": "DIR", "precision": "Precision", "f1": "F1", "rank_1": "Rank-1"}

    def cells(point: PointResult) -> tuple[Cell, ...]:
        settings = (f"{point.point.threshold:.4f}", f"{point.point.concentration:.1f}")
        return (*(Cell(text=text) for text in settings), *(Cell(point.recognition[rate]) for rate in rates))

    return _table(
        results,
        "recognition",
        "Recognition on all evaluation probes",
        ("Target FPIR", "τ", "κ", *rates.values()),
        tuple((f"{point.target_fpir:g}", cells(point)) for point in results.points),
    )


def calibration_table(results: Results) -> Table:
    """Expected calibration error of the methods whose quality is a probability."""
    judged = [method for method in results.methods if method.is_probability]
    rows = [(method.name, [point.of(method.key).calibration for point in results.points]) for method in judged]
    return _table(
        results,
        "calibration",
        "Expected calibration error of P(correct), 15 bins (lower is better)",
        ("Method", *_fpir_heads(results)),
        _ranked_rows(rows, highest=False),
    )


def difference_table(results: Results) -> Table:
    """How far each method's PRR is behind the best, on the same resamples."""

    def cell(point: PointResult, method: Method) -> Cell:
        if method.key == point.best:
            return Cell(text="best")
        behind = point.of(method.key).behind_best
        return Cell(text=DASH) if behind is None else Cell(behind)

    any_best = any(point.best for point in results.points) and len(results.methods) > 1
    rows = [(m.name, tuple(cell(point, m) for point in results.points)) for m in results.methods]
    return _table(
        results,
        "differences",
        "PRR of F1: how far behind the best method, paired",
        ("Method", *_fpir_heads(results)),
        tuple(rows) if any_best else (),
        ("An interval above 0 means clearly behind.",),
    )


def _ranked_rows(
    rows: Sequence[tuple[str, Sequence[Estimate | None]]], *, highest: bool = True
) -> tuple[tuple[str, tuple[Cell, ...]], ...]:
    """Cells that know whether they are best or second of their column; numbers that print alike share a place."""
    n_columns = len(rows[0][1]) if rows else 0
    places: list[dict[str, int]] = []
    for column in range(n_columns):
        printed = {f"{e.value:.3f}" for _, cells in rows if (e := cells[column]) is not None and e.value is not None}
        order = sorted(printed, key=float, reverse=highest)
        # A column of one row has no contest.
        places.append({text: place for place, text in enumerate(order[:2], start=1)} if len(rows) > 1 else {})

    def cell(number: Estimate | None, column: int) -> Cell:
        if number is None:
            return Cell(text=DASH)
        return Cell(number, 0 if number.value is None else places[column].get(f"{number.value:.3f}", 0))

    return tuple((name, tuple(cell(number, i) for i, number in enumerate(cells))) for name, cells in rows)


def _not_evaluated(results: Results) -> tuple[str, ...]:
    told = [f"{names} ({reason})" for reason, names in grouped_reasons(results.skipped).items()]
    return (f"Not evaluated: {'; '.join(told)}.",) if told else ()


def _why_undefined(results: Results, columns: Sequence[Mapping[Method, Estimate]]) -> tuple[str, ...]:
    """A note for each reason, whichever methods and targets it concerns."""
    concerned: dict[str, dict[str, list[str]]] = {}
    for point, column in zip(results.points, columns):
        for method, number in column.items():
            if number.value is None:
                at = concerned.setdefault(number.reason or "", {})
                at.setdefault(f"{point.target_fpir:g}", []).append(method.name)
    notes = []
    for reason, at in concerned.items():
        names = list(dict.fromkeys(name for some in at.values() for name in some))
        who = "every method" if len(names) == len(results.methods) > 1 else ", ".join(names)
        notes.append(f"No value at FPIR {', '.join(at)} for {who}: {reason}.")
    return tuple(notes)


def _table(
    results: Results,
    name: str,
    title: str,
    head: tuple[str, ...],
    rows: tuple[tuple[str, tuple[Cell, ...]], ...],
    notes: tuple[str, ...] = (),
) -> Table:
    settings = results.settings
    intervals = f"{100 * settings.level:g}% intervals from {settings.n_resamples} resamples of subjects"
    return Table(name, f"{results.protocol.name}: {title}, {intervals}", settings.label, head, rows, notes)


def _fpir_heads(results: Results) -> tuple[str, ...]:
    return tuple(f"FPIR {point.target_fpir:g}" for point in results.points)


def _decorated(cell: Cell, best: str, second: str, interval: str) -> str:
    shown = {1: best, 2: second}.get(cell.place, "{}").format(cell.value)
    return shown + (interval.format(cell.interval) if cell.interval else "")


def _pipes(entries: Sequence[str]) -> str:
    return "| " + " | ".join(entry.replace("|", r"\|") for entry in entries) + " |"


def _tex(text: str) -> str:
    return "".join(_TEX_SPECIAL.get(character, character) for character in text)
