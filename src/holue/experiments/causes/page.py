"""Cause page: the numbers of a cause study as tables of markdown, and one figure for each cause."""

from __future__ import annotations

from collections.abc import Sequence

from holue.evaluation.report.drawing import (
    BLACK,
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILLION,
    Drawing,
    look,
    new_figure,
)
from holue.experiments.causes.study import CauseResult, Mean

STYLES = {
    "scf": ("SCF", ORANGE, "s"),
    "acceptance": ("AccScr", GREY, "x"),
    "galue": ("GalUE", GREEN, "^"),
    "holue-sum": ("HolUE-sum", PURPLE, "D"),
    "holue": ("HolUE-MLP", BLUE, "o"),
    "holue-plus": ("HolUE-plus", VERMILLION, "P"),
}
"""Name, colour and marker of a method."""
LOWEST = -0.25
"""Where the axis of a figure ends; a mean below it is drawn there."""


def cause_tables(results: Sequence[CauseResult]) -> str:
    """One table for each cause, as markdown."""
    return "\n\n".join(_table(result) for result in results)


def cause_figures(results: Sequence[CauseResult]) -> list[Drawing]:
    """One figure for each cause: PRR of every method over its levels."""
    return [_figure(result) for result in results]


def _table(result: CauseResult) -> str:
    names = [name for name, _, _ in STYLES.values()]
    lines = [
        f"**{result.cause.title}**",
        "",
        f"| | {' | '.join(names)} | rank-1 | DIR | strangers among errors |",
        f"|---|{'---:|' * (len(names) + 3)}",
    ]
    for one in result.levels:
        prr = [_cell(one.prr[key]) for key in STYLES]
        facts = [_cell(one.facts[key], interval=False) for key in ("rank_1", "dir", "accepted_strangers")]
        lines.append(f"| {one.level.label} | {' | '.join([*prr, *facts])} |")
    return "\n".join(lines)


def _cell(mean: Mean | None, *, interval: bool = True) -> str:
    if mean is None:
        return "no value"
    return f"{mean.value:.2f} ± {mean.half:.2f}" if interval and mean.half is not None else f"{mean.value:.2f}"


def _figure(result: CauseResult) -> Drawing:
    name = f"cause-{result.cause.key}"
    with look(name):
        figure, ax = new_figure(5.2, 3.4)
        for i, (key, (label, color, marker)) in enumerate(STYLES.items()):
            known = [(place, mean) for place, one in enumerate(result.levels) if (mean := one.prr[key]) is not None]
            # A little apart, so that intervals of one level can be told from each other.
            places = [place + 0.035 * (i - len(STYLES) / 2 + 0.5) for place, _ in known]
            ax.errorbar(
                places,
                [max(mean.value, LOWEST) for _, mean in known],
                yerr=[mean.half or 0.0 for _, mean in known],
                color=color,
                marker=marker,
                markersize=5,
                linewidth=1,
                elinewidth=1,
                label=label,
            )
        ax.set_xticks(range(len(result.levels)), [one.level.label for one in result.levels])
        ax.set_xlim(-0.3, len(result.levels) - 0.7)
        ax.set_ylim(LOWEST - 0.03, 1.02)
        ax.axhline(0, color=BLACK, linewidth=0.8)
        ax.set_xlabel(result.cause.title)
        ax.set_ylabel("PRR of F1")
        figure.legend(loc="outside lower center", ncols=3, fontsize=9)
    caption = f"{result.cause.title}: PRR of F1, means over seeds with 95 % intervals."
    return Drawing(name, caption, figure)
