"""Answer page: the numbers of an answer study, and their tables as markdown; ``holue answers`` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from holue.experiments.answer_study import CAUSES, CLAIMS, SETS, AnswerResult, Claims, study
from holue.experiments.experiment import Size
from holue.progress import Progress

WITH = {True: "with", False: "without"}


@dataclass(frozen=True)
class CalibrationRow:
    """How far the probabilities of one set are from what came true, over all splits."""

    data: str
    concentrations: bool
    claim: str  # one of CLAIMS
    splits: int
    answers: int  # in all splits
    error: float  # expected calibration error, mean of the splits
    worst_error: float  # of the worst split
    chance_error: float  # that right probabilities would have by chance, mean of the splits
    debiased_error: float  # root mean square error without the part of chance; 0 where chance explains all of it
    pooled_error: float  # expected calibration error of the answers of all splits together

    @classmethod
    def of(cls, data: str, concentrations: bool, claim: str, splits: Sequence[Claims]) -> CalibrationRow:
        """From the claims of every split."""
        rng = np.random.default_rng(0)
        errors = [one.error for one in splits]
        return cls(
            data,
            concentrations,
            claim,
            len(splits),
            sum(len(one.probability) for one in splits),
            float(np.mean(errors)),
            max(errors),
            float(np.mean([one.by_chance(rng) for one in splits])),
            max(float(np.mean([one.squared_error for one in splits])), 0.0) ** 0.5,
            Claims.joined(splits).error,
        )

    def __str__(self) -> str:
        """A row of the table."""
        start = (
            f"| {self.data} | {WITH[self.concentrations]} | {self.claim} | {self.error:.3f} ({self.worst_error:.3f})"
        )
        return f"{start} | {self.chance_error:.3f} | {self.debiased_error:.3f} | {self.pooled_error:.3f} |"


@dataclass(frozen=True)
class CauseRow:
    """Which causes were named where one was planted, over all splits of one set."""

    data: str
    concentrations: bool
    planted: str
    answers: int
    named: dict[str, int]  # answers by named cause

    def __str__(self) -> str:
        """A row of the table, in shares.

        >>> print(CauseRow("faces", True, "half-way", 4, {"boundary": 1, "look-alike": 3, "sample": 0, "none": 0}))
        | faces | with | half-way | 4 | 0.25 | 0.75 | 0.00 | 0.00 |
        """
        cells = [f"{count / self.answers:.2f}" if self.answers else "–" for count in self.named.values()]
        return f"| {self.data} | {WITH[self.concentrations]} | {self.planted} | {self.answers} | {' | '.join(cells)} |"


def answer_tables(
    sets: Sequence[str], seeds: int, progress: Progress | None = None
) -> tuple[list[CalibrationRow], list[CauseRow]]:
    """The rows of both tables of some sets: calibration errors, and which causes were named."""
    calibration: list[CalibrationRow] = []
    named: list[CauseRow] = []
    for done, key in enumerate(sets):
        if progress is not None:
            progress(done, len(sets), key)
        for name, split in SETS[key](Size()):
            parts = [split(seed) for seed in range(seeds)]
            for concentrations in (True, False):
                results = [study(*one, concentrations=concentrations, seed=seed) for seed, one in enumerate(parts)]
                for claim in CLAIMS:
                    claims = [one.claims[claim] for one in results]
                    calibration.append(CalibrationRow.of(name, concentrations, claim, claims))
                for planted, counts in AnswerResult.joined(results).named.items():
                    named.append(CauseRow(name, concentrations, planted, sum(counts.values()), counts))
    return calibration, named


def answer_page(calibration: Sequence[CalibrationRow], named: Sequence[CauseRow]) -> str:
    """Both tables with their headings."""
    heads = (
        "| data | concentrations | probability of | error (worst split) | by chance | debiased | splits pooled |\n"
        "|---|---|---|---|---|---|---|",
        f"| data | concentrations | planted | answers | {' | '.join(CAUSES)} |\n|{'---|' * (4 + len(CAUSES))}",
    )
    tables = (list(map(str, calibration)), list(map(str, named)))
    return "\n\n".join("\n".join([head, *rows]) for head, rows in zip(heads, tables)) + "\n"
