"""Levels: which method finds the errors among probes degraded alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holue.datasets.degradation import LABEL_SEPARATOR
from holue.evaluation.comparison.results import PointResult, Results
from holue.evaluation.metrics.rejection import prediction_rejection
from holue.gallery.subjects import Subjects


def level_documents(runs: Sequence[Results], place: int) -> list[dict[str, Any]]:
    """For every level: its probes, its share of errors and the PRR of F1 of every method, means over the seeds.

    A probe with two degradations counts at both of their levels. ``place`` is that of the operating point. A PRR is None where
    no seed has one: too few probes, or no error among them.
    """
    labels = [_groups(run) for run in runs]
    levels = sorted({level for some in labels for label in np.unique(some) for level in _levels(label)}, key=_order)
    return [_document(level, runs, labels, place) for level in levels]


def _document(level: str, runs: Sequence[Results], labels: Sequence[Subjects], place: int) -> dict[str, Any]:
    at_level = [np.array([level in _levels(label) for label in some]) for some in labels]
    points = [run.points[place] for run in runs]
    wrong = [~point.outcomes.correct[rows] for point, rows in zip(points, at_level) if rows.any()]
    keys = [result.method.key for result in points[0].methods]
    return {
        "level": level,
        "probes": float(np.mean([rows.sum() for rows in at_level])),
        "error_rate": float(np.mean([some.mean() for some in wrong])),
        "prr_f1": {key: _mean_prr(key, points, at_level) for key in keys},
    }


def _mean_prr(key: str, points: Sequence[PointResult], at_level: Sequence[Any]) -> float | None:
    ratios = []
    for point, rows in zip(points, at_level):
        quality = point.of(key).quality
        if quality is None or not rows.any():
            continue
        outcomes = point.outcomes
        found = prediction_rejection(
            quality[rows],
            mated=outcomes.mated[rows],
            accepted=outcomes.accepted[rows],
            correct_subject=outcomes.correct_subject[rows],
            prr="paper",
        )
        if found.reason is None:
            ratios.append(found.ratio)
    return float(np.mean(ratios)) if ratios else None


def _groups(run: Results) -> Subjects:
    part = run.protocol.evaluation
    return np.full(len(part.probes), "all probes") if part.groups is None else part.groups


def _levels(label: object) -> list[str]:
    return str(label).split(LABEL_SEPARATOR)


def _order(level: str) -> tuple[str, float, str]:
    """By what is degraded, then by how much: ``14 px`` before ``112 px``."""
    words = level.split()
    number = next((float(word) for word in words if word.replace(".", "", 1).isdigit()), 0.0)
    name = " ".join(word for word in words if not word.replace(".", "", 1).isdigit())
    return name, number, level
