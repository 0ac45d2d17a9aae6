"""Markdown: tables and numbers as the page writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from holue.bench.sections.section import Row


def distinct(rows: Iterable[Row], *keys: str) -> list[tuple[Any, ...]]:
    """The different values of some keys, in the order of the rows.

    >>> distinct([{"dim": 8, "probes": 1}, {"dim": 8, "probes": 2}], "dim")
    [(8,)]
    """
    return list(dict.fromkeys(tuple(row[key] for key in keys) for row in rows))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], align: str) -> list[str]:
    """The lines of a table; ``align`` has a letter per column.

    >>> print("\\n".join(table(("what", "ms"), [("a scan", "1.5")], "lr")))
    | what | ms |
    |---|---:|
    | a scan | 1.5 |
    """
    rule = "|".join("---:" if side == "r" else "---" for side in align)
    return [f"| {' | '.join(head)} |", f"|{rule}|", *(f"| {' | '.join(row)} |" for row in rows)]


def number(value: float | None, digits: int) -> str:
    """A number, or a dash where there is none.

    >>> number(1.25, 1), number(None, 1)
    ('1.2', '–')
    """
    return "–" if value is None else f"{value:.{digits}f}"


def spaced(count: int) -> str:
    """A count with thin spaces between its thousands.

    >>> spaced(1234), spaced(123456) == "123\\u202f456"
    ('1234', True)
    """
    return f"{count:,}".replace(",", "\u202f") if count >= 10_000 else str(count)


def cut(value: float | None) -> str:
    """A number cut after the second digit, not rounded: what falls short of a limit never reads as if it reached it.

    >>> cut(2.999), cut(3.0), cut(None)
    ('2.99', '3.00', '–')
    """
    return "–" if value is None else f"{int(100 * value + 1e-6) / 100:.2f}"


def percent(share: float) -> str:
    """A share in per cent, cut likewise.

    >>> percent(0.99899), percent(1.0)
    ('99.89 %', '100.00 %')
    """
    return f"{cut(100 * share)} %"
