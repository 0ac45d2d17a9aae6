"""Summary: the demo in the terminal, in eighty columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holue.demo.demo import Demo
from holue.demo.groups import spread
from holue.demo.scene import Scene

if TYPE_CHECKING:
    from rich.console import RenderableType

PER_GROUP = 2
"""Rows of the table for each group of probes."""

NEXT = """\
Next, your own embeddings. In Python, one row per sample:
  np.savez("mine.npz", embeddings=X, subject_id=y)
In the shell:
  holue split mine.npz mine
  holue evaluate mine --report mine-report
  holue audit mine.npz --html audit.html
docs/quickstart.md goes through it step by step."""


def summary(demo: Demo, page: Path) -> list[RenderableType]:
    """What was enrolled, where it accepts, a table of answers, how many are wrong, and what to try next."""
    from rich.markup import escape

    scene = demo.scene
    return [
        *(f"{line}\n" for line in (_enrolled(scene), _accepts(scene))),
        _table(demo),
        f"\n{_errors(scene)}\n",
        f"[bold]Report, with a picture of every probe above:[/]\n  {escape(str(page))}\n",
        escape(NEXT),
    ]


def _enrolled(scene: Scene) -> str:
    counts, others = scene.outcomes.counts, len(scene.world.development.known)
    return (
        f"[bold]{len(scene.part.known)} characters are enrolled[/], {len(scene.part.gallery) // len(scene.part.known)} clean "
        f"samples of each; {counts.total} samples arrive, small, blurred, noisy or partly covered: {counts.mated} of enrolled "
        f"characters, {counts.non_mated} of strangers. Calibrated on {others} other characters."
    )


def _accepts(scene: Scene) -> str:
    point, counts = scene.reading.point, scene.outcomes.counts
    target = (
        ""
        if point.target_fpir is None
        else f", so that {point.target_fpir:.0%} of the strangers in the calibration are accepted"
    )
    return (
        f"[bold]Operating point[/]: a name is given from a cosine of {point.threshold:.2f} on{target}. Here "
        f"{counts.false_acceptances / counts.non_mated:.1%} of the strangers were accepted, and "
        f"{counts.false_negatives / counts.mated:.1%} of the enrolled were missed."
    )


def _errors(scene: Scene) -> str:
    rates = scene.error_rates
    return (
        f"[bold]Wrong answers: {rates['all']:.1%}[/] of all {len(scene.answers)}, [bold green]"
        f"{rates['certain_half']:.1%}[/] of the certain half, [bold red]{rates['uncertain_half']:.1%}[/] of the uncertain half."
    )


def _table(demo: Demo) -> RenderableType:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, title="Some answers of every kind", title_justify="left")
    table.add_column("shows", no_wrap=True)
    table.add_column("answer", no_wrap=True)
    table.add_column("", no_wrap=True)
    for name in ("P", "P(wrong)"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    for group in demo.groups:
        # Of those with a card, so that the page shows what the table names; the extremes say least about a group.
        inner = group.shown[1:-1] if len(group.shown) > PER_GROUP + 1 else group.shown
        for row in spread(inner, PER_GROUP):
            table.add_row(*_cells(demo.scene, int(row)))
        table.add_section()
    table.caption = "P: the probability of the answer; P(wrong): the rest of it"
    table.caption_justify = "left"
    return table


def _cells(scene: Scene, row: int) -> tuple[str, ...]:
    from rich.markup import escape

    answer, mated = scene.answers[row], bool(scene.outcomes.mated[row])
    accepted, right = bool(scene.outcomes.accepted[row]), bool(scene.outcomes.correct[row])
    label = str(scene.part.probes.subject_id[row])
    return (
        escape(label if mated else f"{label} stranger"),
        escape(str(answer.subject)) if accepted else "unknown",
        "[green]✓[/]" if right else "[red]✗[/]",
        f"{scene.p_answer[row]:.2f}",
        f"{answer.uncertainty:.2f}",
        escape(str(scene.answers.reason[row])),
    )
