"""``holue demo``: a first look, in a simulated world whose truth is known."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from holue.cli.output import Json, console, print_json
from holue.datasets.simulated import SimulatedWorld, simulate
from holue.gallery.subjects import UNKNOWN
from holue.recognition.identifications import Identifications
from holue.recognition.recognizer import OpenSetRecognizer

DIM, CONCENTRATION = 128, 110.0


def demo(
    seed: Annotated[int, typer.Option(help="Seed of the world; the same seed gives the same answers.")] = 0,
    probes: Annotated[int, typer.Option(help="How many probes to show.", min=1)] = 12,
    json: Json = False,
) -> None:
    """Enrol, calibrate and identify in a simulated world, and show which answers to trust.

    80 subjects are enrolled, 10 pairs of them look-alikes. The recogniser is calibrated on other people, then meets probes of
    the enrolled and of strangers, good samples and poor ones. Takes a few seconds.
    """
    rng = np.random.default_rng(seed)
    development = simulate(
        n_subjects=80,
        n_strangers=80,
        probes_per_person=6,
        dim=DIM,
        concentration=CONCENTRATION,
        first_subject=1000,
        rng=rng,
    )
    world = simulate(n_subjects=80, n_strangers=80, dim=DIM, concentration=CONCENTRATION, rng=rng)
    recognizer = OpenSetRecognizer(method="holue-plus", target_fpir=0.05, random_state=seed)
    recognizer.fit(world.gallery.X, world.gallery.y)
    with console.status("Calibrating on other people …"):
        recognizer.calibrate(
            development.probes.X,
            development.probes.y,
            development.probes.concentration,
            gallery=(development.gallery.X, development.gallery.y),
        )
    answers = recognizer.identify(world.probes.X, world.probes.concentration, top_k=3)
    correct = answers.subject == world.probes.y
    trusted = answers.uncertainty <= np.median(answers.uncertainty)
    summary = {
        "enrolled": len(recognizer.gallery_),
        "probes": len(answers),
        "error_rate": float(1 - correct.mean()),
        "error_rate_certain_half": float(1 - correct[trusted].mean()),
        "error_rate_uncertain_half": float(1 - correct[~trusted].mean()),
    }
    shown = _spread(answers, probes)
    if json:
        truth = [None if y is UNKNOWN else y for y in world.probes.y[shown]]
        print_json({"summary": summary, "truth": truth, "answers": answers[shown].to_dict()})
        return
    console.print(
        f"[bold]{summary['enrolled']} subjects enrolled[/], {len(world.look_alikes)} pairs of them look-alikes."
    )
    console.print(str(recognizer.operating_point_), style="dim")
    console.print(_table(answers, world, shown))
    console.print(
        f"Wrong answers among all {summary['probes']} probes: [bold]{summary['error_rate']:.1%}[/]. "
        f"Among the certain half: [bold green]{summary['error_rate_certain_half']:.1%}[/], "
        f"among the uncertain half: [bold red]{summary['error_rate_uncertain_half']:.1%}[/]."
    )
    console.print("\nNext, with your own embeddings (numpy arrays), in Python:", style="bold")
    console.print(
        "  from holue import OpenSetRecognizer, UNKNOWN\n"
        "  r = OpenSetRecognizer('holue-plus').fit(X_gallery, y_gallery)\n"
        "  r.calibrate(X_dev, y_dev, concentration_dev)  # y_dev: UNKNOWN for strangers\n"
        "  answers = r.identify(X, concentration)\n"
        "docs/quickstart.md explains each line; with files: holue split, holue evaluate (see --help)."
    )


def _spread(answers: Identifications, count: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Rows from the most to the least certain, denser towards the end, where there is something to see."""
    order = np.argsort(answers.uncertainty, kind="stable")
    return order[(np.linspace(0, 1, min(count, len(order))) ** 0.4 * (len(order) - 1)).astype(np.int64)]


def _table(answers: Identifications, world: SimulatedWorld, rows: np.ndarray[Any, np.dtype[np.int64]]) -> Table:
    table = Table(title="Probes, from the most to the least certain answer", title_justify="left")
    for name in ("truth", "answer", "", "P(wrong)", "why"):
        table.add_column(name, justify="right" if name == "P(wrong)" else "left")
    for row in rows:
        one, truth = answers[int(row)], world.probes.y[row]
        right = one.subject is truth or one.subject == truth
        table.add_row(
            _name(truth),
            _name(one.subject),
            "[green]right[/]" if right else "[red]wrong[/]",
            f"{one.uncertainty:.2f}",
            one.reason,
        )
    return table


def _name(subject: object) -> str:
    return "unknown" if subject is UNKNOWN else str(subject)
