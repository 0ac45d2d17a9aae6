"""Answer page: the tables of an answer study, as markdown; ``holue answers`` prints them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holue.experiments.answer_study import CAUSES, SETS, AnswerResult, study
from holue.experiments.experiment import Size
from holue.progress import Progress

WITH = {True: "with", False: "without"}


def calibration_row(name: str, concentrations: bool, results: Sequence[AnswerResult]) -> str:
    """Calibration errors of the splits of one set: mean and worst.

    >>> one = AnswerResult(0.01, 0.02, 0.01, {}, 0.5)
    >>> calibration_row("faces", True, [one, one])
    '| faces | with | 0.010 (0.010) | 0.020 (0.020) | 0.010 |'
    """
    best, nobody = ([getattr(one, field) for one in results] for field in ("error_best", "error_nobody"))
    cells = [f"{np.mean(values):.3f} ({max(values):.3f})" for values in (best, nobody)]
    return f"| {name} | {WITH[concentrations]} | {' | '.join(cells)} | {np.mean([one.chance for one in results]):.3f} |"


def cause_rows(name: str, concentrations: bool, results: Sequence[AnswerResult]) -> list[str]:
    """Shares of named causes for every planted cause, over all splits of one set."""
    rows = []
    for planted in results[0].named:
        counts = np.array([[one.named[planted][cause] for cause in CAUSES] for one in results]).sum(axis=0)
        cells = [f"{share:.2f}" for share in counts / max(counts.sum(), 1)] if counts.sum() else ["–"] * len(CAUSES)
        rows.append(f"| {name} | {WITH[concentrations]} | {planted} | {counts.sum()} | {' | '.join(cells)} |")
    return rows


def answer_tables(sets: Sequence[str], seeds: int, progress: Progress | None = None) -> tuple[list[str], list[str]]:
    """The rows of both tables of some sets: calibration errors, and which causes were named."""
    calibration: list[str] = []
    named: list[str] = []
    for done, key in enumerate(sets):
        if progress is not None:
            progress(done, len(sets), key)
        for name, split in SETS[key](Size()):
            parts = [split(seed) for seed in range(seeds)]
            for concentrations in (True, False):
                results = [study(*one, concentrations=concentrations, seed=seed) for seed, one in enumerate(parts)]
                calibration.append(calibration_row(name, concentrations, results))
                named += cause_rows(name, concentrations, results)
    return calibration, named


def answer_page(calibration: Sequence[str], named: Sequence[str]) -> str:
    """Both tables with their headings."""
    heads = (
        "| data | concentrations | best candidate | nobody | by chance |\n|---|---|---|---|---|",
        f"| data | concentrations | planted | answers | {' | '.join(CAUSES)} |\n|{'---|' * (4 + len(CAUSES))}",
    )
    return "\n\n".join("\n".join([head, *rows]) for head, rows in zip(heads, (calibration, named))) + "\n"
