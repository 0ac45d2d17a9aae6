"""Table on a terminal: no word or number of it is cut; columns that do not fit go below, with their row names again."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.markup import escape
from rich.table import Table as RichTable

from holue.cli.output import console, say
from holue.evaluation.report.tables import Cell, Table

GAP = 2


def print_table(table: Table, *, intervals: bool) -> None:
    """Print the title, the table and its notes; ``intervals`` puts each interval beneath its number."""
    say(f"{table.title}; {table.threshold}", "italic")
    for block in table_blocks(table, intervals=intervals, width=console.width):
        console.print(block)
    for note in table.notes:
        say(note, "dim")
    say("")


def table_blocks(table: Table, *, intervals: bool, width: int) -> Iterator[RichTable]:
    """The table in as many blocks of columns as the width needs."""
    names = _longest_word([table.head[0]]), max((len(name) for name, _ in table.rows), default=0)
    left = width - max(names)
    block: list[int] = []
    for column, head in enumerate(table.head[1:]):
        cells = [some[column] for _, some in table.rows]
        shown = [len(cell.interval) if intervals else 0 for cell in cells]
        needed = GAP + max(_longest_word([head]), *(len(cell.value) for cell in cells), *shown, 0)
        if block and needed > left:
            yield _rich(table, block, intervals)
            block, left = [], width - max(names)
        block.append(column)
        left -= needed
    yield _rich(table, block, intervals)


def _longest_word(texts: list[str]) -> int:
    return max(len(word) for text in texts for word in text.split() or [""])


def _rich(table: Table, columns: list[int], intervals: bool) -> RichTable:
    shown = RichTable(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, GAP - 1, 0, 0))
    shown.add_column(escape(table.head[0]), no_wrap=True)
    for column in columns:
        shown.add_column(escape(table.head[column + 1]), justify="right")
    for name, cells in table.rows:
        shown.add_row(escape(name), *(_rich_cell(cells[column], intervals) for column in columns))
    return shown


def _rich_cell(cell: Cell, interval: bool) -> str:
    style = {1: "bold", 2: "underline"}.get(cell.place)
    value = f"[{style}]{cell.value}[/]" if style else cell.value
    return f"{value}\n[dim]{cell.interval}[/]" if interval and cell.interval else value
