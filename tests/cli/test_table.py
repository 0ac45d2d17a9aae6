"""A table on a terminal keeps every word and number whole, whatever the width."""

import io

import pytest
from rich.console import Console

from holue.cli.table import table_blocks
from holue.evaluation.intervals.estimates import Estimate
from holue.evaluation.report.tables import Cell, Table


def shown(table: Table, *, intervals: bool, width: int) -> str:
    file = io.StringIO()
    console = Console(file=file, width=width)
    for block in table_blocks(table, intervals=intervals, width=width):
        console.print(block)
    return file.getvalue()


@pytest.mark.parametrize("n_columns", [1, 3, 5, 9])
@pytest.mark.parametrize("intervals", [True, False])
@pytest.mark.parametrize("width", [40, 80])
def test_no_word_and_no_number_is_cut(n_columns: int, intervals: bool, width: int) -> None:
    numbers = [Estimate(0.1 * i + 0.011, 0.1 * i + 0.001, 0.1 * i + 0.021) for i in range(n_columns)]
    rows = tuple((name, tuple(Cell(number) for number in numbers)) for name in ("GalUE-entropy", "HolUE-plus"))
    table = Table("t", "Title", "threshold", ("Method", *(f"Precision 0.0{i}" for i in range(n_columns))), rows)
    text = shown(table, intervals=intervals, width=width)
    assert max(len(line) for line in text.splitlines()) <= width
    assert "…" not in text
    for cell in rows[0][1]:
        assert text.count(cell.value) >= 2
        assert (text.count(cell.interval) == 2) == intervals
    blocks = list(table_blocks(table, intervals=intervals, width=width))
    assert text.count("GalUE-entropy") == len(blocks), "every block names its rows"
    assert sum(len(block.columns) - 1 for block in blocks) == n_columns
