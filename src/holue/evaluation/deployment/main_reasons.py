"""MainReasons: why answers are uncertain, counted by cause, with an example of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from holue.evaluation.columns import BoolArray
from holue.evaluation.deployment.rehearsal import Rehearsal
from holue.recognition.answer.causes import CAUSES
from holue.recognition.quality.calibrated import CalibratedQuality

MEANING = {
    "boundary": "close to the threshold",
    "look-alike": "close to several subjects",
    "sample": "poor sample, or a score unlike its quality",
    "none": "clear",
}


@dataclass(frozen=True)
class ReasonExample:
    """The most uncertain answer of a cause."""

    cause: str
    probe: str
    sentence: str
    outcome_right: bool


@dataclass(frozen=True)
class MainReasons:
    """How many answers have each main cause (``none`` where the answer is clear): all of them, the wrong and the filtered."""

    all: Mapping[str, int]
    wrong: Mapping[str, int]
    filtered: Mapping[str, int]
    examples: tuple[ReasonExample, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return asdict(self)


def main_reasons(rehearsal: Rehearsal, filtered: BoolArray) -> MainReasons | None:
    """Causes on the evaluation part; None where the method gives no reasons."""
    quality = rehearsal.examination.score
    if not isinstance(quality, CalibratedQuality):
        return None
    reasons = quality.explain(rehearsal.reading)
    cause = np.array(reasons.main_cause)
    part, correct = rehearsal.protocol.evaluation, rehearsal.outcomes.correct
    names = part.probe_names

    def count(rows: BoolArray) -> dict[str, int]:
        return {name: int((rows & (cause == name)).sum()) for name in (*CAUSES, "none")}

    examples = []
    for name in CAUSES:
        rows = np.flatnonzero(cause == name)
        if len(rows):
            row = int(rows[np.argmax(reasons.shares[rows, CAUSES.index(name)])])
            examples.append(ReasonExample(name, names[row], reasons.sentences[row], bool(correct[row])))
    return MainReasons(count(np.ones_like(correct)), count(~correct), count(filtered), tuple(examples))
