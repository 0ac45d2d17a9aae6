"""Across: heads trained on one data set and used on another, with the other's own gallery and threshold.

A user without labelled probes has a gallery and a threshold, but no head. Does the head of another recogniser serve? What it
reads are the causes of uncertainty (distance from the threshold, lead over the next subject, κ_x), which every recogniser has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holue.errors import CalibrationDataError, InvalidConcentrationError
from holue.evaluation.comparison.study import evaluate
from holue.evaluation.metrics.calibration_error import expected_calibration_error
from holue.evaluation.metrics.rejection import prediction_rejection
from holue.evaluation.outcomes import Outcomes
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.experiments.experiment import MAIN, Experiment, Size
from holue.gallery.embeddings import Float64Array
from holue.progress import Progress
from holue.recognition.calibration.calibration import Examined, fitted
from holue.recognition.calibration.truth import correct_answers, people, truth_numbers
from holue.recognition.model.operating_point import OperatingPoint
from holue.recognition.quality import SCORES
from holue.recognition.reading import Reading

HEADS = ("holue-plus", "holue-f1", "holue")
TEMPERATURE = 20.0
TARGET_FPIR = 0.05


@dataclass(frozen=True)
class Across:
    """One head on one data set: means over seeds; NaN where it has no value."""

    trained_on: str
    used_on: str
    head: str
    calibration_error: float  # of P(the answer is right); NaN where the head gives no probability
    prr: float


@dataclass(frozen=True, eq=False)
class _Set:
    """A data set, read: the development probes with their truth, and the evaluation probes."""

    development: Examined
    evaluation: Reading
    outcomes: Outcomes
    correct: Float64Array

    @classmethod
    def of(cls, protocol: IdentificationProtocol, fpir: float) -> _Set:
        # Thresholds as evaluate sets them: on the development strangers, carried to the size of the evaluation gallery.
        point = evaluate(protocol, fpir=fpir, methods=["galue"], n_resamples=2).points[0]
        development, evaluation = protocol.development, protocol.evaluation
        reading, truth = _read(evaluation, point.point)
        return cls(
            Examined(
                *_read(development, point.development),
                people(development.probe_subjects, None, len(development.probes))[0],
            ),
            reading,
            point.outcomes,
            correct_answers(reading, truth).astype(np.float64),
        )


def study_across(
    experiments: Sequence[Experiment],
    *,
    seeds: int = 5,
    fpir: float = TARGET_FPIR,
    size: Size | None = None,
    progress: Progress | None = None,
) -> list[Across]:
    """Train every head on every data set and use it on every one; the diagonal is what a head of one's own reaches."""
    size = size or Size()
    protocols = {one.name: one.load(size) for one in experiments}
    found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
    for seed in range(seeds):
        sets = {name: _Set.of(deal(seed)[MAIN], fpir) for name, deal in protocols.items()}
        for done, (key, values) in enumerate(_measured(sets, seed).items()):
            found.setdefault(key, []).append(values)
            if progress is not None:
                progress(seed * len(sets) ** 2 * len(HEADS) + done + 1, seeds * len(sets) ** 2 * len(HEADS), key[0])
    return [Across(*key, *(float(np.mean(column)) for column in zip(*rows))) for key, rows in found.items()]


def _measured(sets: Mapping[str, _Set], seed: int) -> dict[tuple[str, str, str], tuple[float, float]]:
    rows: dict[tuple[str, str, str], tuple[float, float]] = {}
    for source, learned in sets.items():
        for head in HEADS:
            score = SCORES[head]()
            try:
                fitted(score, learned.development, np.random.default_rng(seed))
            except (CalibrationDataError, InvalidConcentrationError):
                rows |= {(source, name, head): (math.nan, math.nan) for name in sets}
                continue
            for name, used in sets.items():
                rows[source, name, head] = _quality(score(used.evaluation), used, score.is_probability)
    return rows


def _quality(quality: Float64Array, used: _Set, is_probability: bool) -> tuple[float, float]:
    outcomes = used.outcomes
    ratio = prediction_rejection(
        quality, mated=outcomes.mated, accepted=outcomes.accepted, correct_subject=outcomes.correct_subject, prr="paper"
    ).ratio
    error = math.nan
    if is_probability:
        error = expected_calibration_error(np.clip(quality, 0, 1), correct=used.correct.astype(bool))
    return error, ratio


def _read(part: ProtocolPart, point: OperatingPoint) -> tuple[Reading, np.ndarray]:
    truth = truth_numbers(part.gallery, part.probe_subjects, len(part.probes))
    return Reading.of(part.probes, part.gallery, point, temperature=TEMPERATURE), truth


def across_table(rows: Sequence[Across]) -> str:
    """A row for each pair, as markdown: the calibration error and PRR of every head."""
    heads = {head: SCORES[head].name for head in HEADS}
    titles = " | ".join(f"{name}: error of P(right) | PRR" for name in heads.values())
    lines = [f"| head of | used on | {titles} |", f"|---|---|{'---:|' * 2 * len(heads)}"]
    cells = {(row.trained_on, row.used_on, row.head): row for row in rows}
    for source, name in dict.fromkeys((row.trained_on, row.used_on) for row in rows):
        found = [cells[source, name, head] for head in heads]
        numbers = [_number(value) for row in found for value in (row.calibration_error, row.prr)]
        lines.append(f"| {source} | {name} | {' | '.join(numbers)} |")
    return "\n".join(lines)


def _number(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.3f}"
