"""Cause study: every level of every cause on several seeds, each kept in the cache as it is done."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t as student

from holue.artifact import write_text
from holue.evaluation.comparison.study import evaluate
from holue.evaluation.metrics.rejection import prediction_rejection
from holue.evaluation.metrics.undefined import UndefinedMetricWarning
from holue.evaluation.protocol import IdentificationProtocol, ProtocolPart
from holue.experiments.cache import cache_location
from holue.experiments.causes.conditions import CAUSES, Cause, Conditions, Level
from holue.experiments.sets.ijb_world import world_protocol
from holue.gallery.embeddings import Embeddings
from holue.progress import Progress

VERSION = 1
"""Raised when the same conditions would give other numbers."""
METHODS = ("scf", "acceptance", "galue", "holue-sum", "holue", "holue-plus")
DEFINITIONS: Mapping[str, Mapping[str, Any]] = {
    "20 points": {"prr": "paper", "points": 20},
    "every count": {"prr": "paper"},
    "counted": {"prr": "counted"},
}
"""The paper's PRR, the same on every count, and the one of ``holue evaluate``."""
FACTS = ("threshold", "rank_1", "dir", "fpir", "f1", "accepted_strangers")
"""What the world is like: rates, and the share of accepted strangers among the errors."""
LEVEL = 0.95
Record = dict[str, dict[str, float | None]]


@dataclass(frozen=True)
class Mean:
    """A mean over seeds, with half the width of Student's interval; one seed has none."""

    value: float
    half: float | None

    @classmethod
    def of(cls, values: Sequence[float | None]) -> Mean | None:
        """None where a seed has no value."""
        known = np.array([np.nan if value is None else value for value in values])
        if not len(known) or np.isnan(known).any():
            return None
        value = float(known.mean())
        if len(known) < 2:
            return cls(value, None)
        return cls(value, float(student.ppf((1 + LEVEL) / 2, len(known) - 1) * known.std(ddof=1) / np.sqrt(len(known))))


@dataclass(frozen=True)
class LevelResult:
    """One level of a cause over all seeds: PRR of every method, and what its world is like."""

    level: Level
    prr: Mapping[str, Mean | None]
    facts: Mapping[str, Mean | None]

    def document(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "level": self.level.label,
            "prr": {key: None if mean is None else asdict(mean) for key, mean in self.prr.items()},
            "facts": {key: None if mean is None else asdict(mean) for key, mean in self.facts.items()},
        }


@dataclass(frozen=True)
class CauseResult:
    """All levels of one cause."""

    cause: Cause
    levels: tuple[LevelResult, ...]

    def document(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return {
            "cause": self.cause.key,
            "title": self.cause.title,
            "levels": [one.document() for one in self.levels],
        }


def study_causes(
    causes: Sequence[Cause] = CAUSES,
    *,
    seeds: int = 20,
    cache_dir: Path | None = None,
    progress: Progress | None = None,
) -> list[CauseResult]:
    """Measure every level; conditions that causes share are measured once, and what is in the cache is not measured again."""
    distinct = list(dict.fromkeys(level.conditions for cause in causes for level in cause.levels))
    found: dict[Conditions, list[Record]] = {conditions: [] for conditions in distinct}
    for seed in range(seeds):
        for done, conditions in enumerate(distinct):
            found[conditions].append(_kept(conditions, seed, cache_dir))
            if progress is not None:
                progress(seed * len(distinct) + done + 1, len(distinct) * seeds, f"seed {seed}")
    return [
        CauseResult(cause, tuple(_level(level, found[level.conditions]) for level in cause.levels)) for cause in causes
    ]


def measure(conditions: Conditions, seed: int) -> Record:
    """PRR of every method by every definition, and what the world is like, on one seed."""
    protocol = _protocol(conditions, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        results = evaluate(
            protocol,
            fpir=conditions.fpir,
            methods=METHODS,
            threshold_from=conditions.threshold_from,
            temperature=conditions.temperature,
            n_resamples=2,
            seed=seed,
            threads=1,
        )
    point = results.points[0]
    outcomes = point.outcomes
    record: Record = {
        definition: {
            result.method.key: None
            if result.quality is None
            else _number(
                prediction_rejection(
                    result.quality,
                    mated=outcomes.mated,
                    accepted=outcomes.accepted,
                    correct_subject=outcomes.correct_subject,
                    **settings,
                ).ratio
            )
            for result in point.methods
        }
        for definition, settings in DEFINITIONS.items()
    }
    counts = outcomes.counts
    errors = counts.false_acceptances + counts.false_rejections + counts.misidentifications
    record["facts"] = {
        "threshold": point.point.threshold,
        **{rate: point.recognition[rate].value for rate in ("rank_1", "dir", "fpir", "f1")},
        "accepted_strangers": counts.false_acceptances / errors if errors else None,
    }
    return record


def _protocol(conditions: Conditions, seed: int) -> IdentificationProtocol:
    protocol = world_protocol(seed, settings=conditions.world, development=conditions.development)
    rng = np.random.default_rng([seed, 12])
    development, evaluation = protocol.development, protocol.evaluation
    if conditions.shuffled:
        development, evaluation = (_shuffled(part, rng) for part in (development, evaluation))
    if conditions.head_probes is not None:
        some = rng.permutation(len(development.probes))[: conditions.head_probes]
        development = ProtocolPart(development.gallery, development.probes.take(some), development.probe_subjects[some])
    return IdentificationProtocol(protocol.name, development, evaluation, protocol.notes)


def _shuffled(part: ProtocolPart, rng: np.random.Generator) -> ProtocolPart:
    concentrations = part.probes.concentrations
    assert concentrations is not None
    return ProtocolPart(
        part.gallery, Embeddings(part.probes.directions, rng.permutation(concentrations)), part.probe_subjects
    )


def _kept(conditions: Conditions, seed: int, cache_dir: Path | None) -> Record:
    name = json.dumps([VERSION, asdict(conditions), seed], sort_keys=True)
    path = cache_location(cache_dir, "causes") / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
    if path.is_file():
        try:
            kept: Record = json.loads(path.read_text("utf-8"))
            return kept
        except ValueError:
            pass  # damaged: measured again
    record = measure(conditions, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, json.dumps(record, allow_nan=False))
    return record


def _level(level: Level, records: Sequence[Record]) -> LevelResult:
    return LevelResult(
        level,
        {key: Mean.of([record[level.definition].get(key) for record in records]) for key in METHODS},
        {fact: Mean.of([record["facts"][fact] for record in records]) for fact in FACTS},
    )


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
