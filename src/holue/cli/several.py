"""Several: commands whose options take one value after another, as in ``--fpir 0.05 0.1 0.2``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holue.cli.command import Command


class SeveralValues(Command):
    """A command whose repeatable options also take their values in a row: ``--fpir 0.05 0.1`` is ``--fpir 0.05 --fpir 0.1``.

    The row ends at the next option, or at the name of an existing folder or file, so that an argument may follow.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Spell rows of values out before the usual parsing."""
        repeatable = {
            name for parameter in self.params if getattr(parameter, "multiple", False) for name in parameter.opts
        }
        return super().parse_args(ctx, spell_out(args, repeatable))


def spell_out(args: Iterable[str], repeatable: set[str]) -> list[str]:
    """Repeat the option before each value of its row.

    >>> spell_out(["--fpir", "0.05", "0.1", "--seed", "3"], {"--fpir"})
    ['--fpir', '0.05', '--fpir', '0.1', '--seed', '3']
    """
    spelled: list[str] = []
    row: str | None = None
    is_empty = False
    for arg in args:
        ends = arg.startswith("-") or (not is_empty and Path(arg).exists())
        if row is not None and ends:
            # An option without a value stays as it is: the parser complains better.
            spelled += [row] if is_empty else []
            row = None
        if arg in repeatable:
            row, is_empty = arg, True
            continue
        spelled += [arg] if row is None else [row, arg]
        is_empty = False
    return spelled + ([row] if row is not None and is_empty else [])


def separated(values: Iterable[str]) -> list[str]:
    """Values that may also be joined by commas.

    >>> separated(["0.05,0.1", "0.2"])
    ['0.05', '0.1', '0.2']
    """
    return [part.strip() for value in values for part in value.split(",") if part.strip()]
