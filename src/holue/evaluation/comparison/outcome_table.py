"""Outcome table: a row per probe and operating point, with the truth, the decision, the candidates and every quality."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holue.errors import MissingDependencyError
from holue.evaluation.comparison.results import PointResult, Results
from holue.evaluation.outcomes import OutcomeKind
from holue.recognition.answer.identifications import ACCEPTED, REJECTED

KIND_NAMES = {kind.value: kind.name.lower() for kind in OutcomeKind}


def outcome_columns(results: Results, point: PointResult) -> dict[str, NDArray[Any]]:
    """The columns of one operating point.

    ``answer`` is the best candidate where accepted and null where rejected; ``quality_<method>`` is higher for more reliable
    probes, and null where the method has no value.
    """
    part, outcomes = results.protocol.evaluation, point.outcomes
    n = len(outcomes)
    candidates = part.gallery.names(results.top_index)
    answer = candidates[:, 0].astype(object)
    answer[~outcomes.accepted] = None
    columns: dict[str, NDArray[Any]] = {
        "target_fpir": np.full(n, point.target_fpir),
        "threshold_from": np.full(n, results.settings.threshold_from),
        "threshold": np.full(n, point.point.threshold),
        "probe": np.arange(n),
        "subject_id": part.probe_subjects,
        "mated": outcomes.mated,
        "decision": np.where(outcomes.accepted, ACCEPTED, REJECTED),
        "answer": answer,
        "correct": outcomes.correct,
        "outcome": np.array([KIND_NAMES[int(kind)] for kind in outcomes.kind]),
        "score": results.best_score,
        "p_unknown": point.probabilities.nobody,
        "calibrated": np.full(n, point.probabilities.calibrated),
    }
    optional = {
        "sample_id": None if part.probe_samples is None else _or_null(part.probe_samples),
        "template_id": part.probe_templates,
        "group": part.groups,
        **{f"group_{name}": column for name, column in part.more_groups.items()},
    }
    columns |= {name: column for name, column in optional.items() if column is not None}
    for rank in range(candidates.shape[1]):
        columns[f"candidate_{rank + 1}"] = candidates[:, rank]
        columns[f"score_{rank + 1}"] = results.top_scores[:, rank]
        columns[f"probability_{rank + 1}"] = point.probabilities.candidates[:, rank]
    for result in point.methods:
        missing = np.full(n, None, dtype=object)
        columns[f"quality_{result.method.key}"] = missing if result.quality is None else result.quality
    return columns


def _or_null(samples: NDArray[Any]) -> NDArray[Any]:
    """The samples' names, null for a template of several."""
    if samples.dtype.kind != "U":
        return samples
    named = samples.astype(object)
    named[samples == ""] = None
    return named


def write_outcomes(results: Results, path: str | Path) -> None:
    """Write all operating points, one below the other, as Parquet."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "report") from error

    def array(name: str, column: NDArray[Any]) -> Any:
        return pa.array(column, type=pa.float64() if name.startswith("quality_") else None, from_pandas=False)

    tables = [
        pa.table({name: array(name, column) for name, column in outcome_columns(results, point).items()})
        for point in results.points
    ]
    pq.write_table(pa.concat_tables(tables, promote_options="permissive"), path)
