"""Outcomes: what was decided about each probe, beside the truth."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holue.evaluation.columns import BoolArray, flags, same_length, subject_ids


class OutcomeKind(IntEnum):
    """The five things that can happen to a probe: two are right, three are errors."""

    TRUE_POSITIVE = 0
    """Mated, accepted, as the right subject."""
    FALSE_ACCEPTANCE = 1
    """Non-mated, accepted."""
    FALSE_REJECTION = 2
    """Mated, rejected."""
    MISIDENTIFICATION = 3
    """Mated, accepted as another subject."""
    TRUE_NEGATIVE = 4
    """Non-mated, rejected."""


@dataclass(frozen=True)
class OutcomeCounts:
    """How many probes there are of each kind.

    ``FN = false_rejections + misidentifications``; a misidentification is never an ``FP`` (the paper's
    appendix, "Quality metrics").
    """

    true_positives: int
    false_acceptances: int
    false_rejections: int
    misidentifications: int
    true_negatives: int

    @property
    def false_negatives(self) -> int:
        """Mated probes that were not identified: rejected, or accepted as another."""
        return self.false_rejections + self.misidentifications

    @property
    def false_positives(self) -> int:
        """Non-mated probes that were accepted."""
        return self.false_acceptances

    @property
    def errors(self) -> int:
        """The three error kinds together."""
        return self.false_acceptances + self.false_negatives

    @property
    def mated(self) -> int:
        """Probes whose subject is enrolled."""
        return self.true_positives + self.false_negatives

    @property
    def non_mated(self) -> int:
        """Probes whose subject is not enrolled."""
        return self.false_acceptances + self.true_negatives

    @property
    def total(self) -> int:
        """All probes."""
        return self.mated + self.non_mated


@dataclass(frozen=True, eq=False, init=False)
class Outcomes:
    """What was decided about each probe, beside the truth: arrays with a row per probe.

    ``mated``: the probe's subject is enrolled. ``accepted``: the probe was taken for an enrolled subject.
    ``correct_subject``: the subject named is the probe's own; it only matters where the probe is mated and
    accepted. ``subject``: the probe's true subject, over which the bootstrap resamples; ``None`` where
    unknown.

    >>> outcomes = Outcomes(
    ...     mated=[True, True, True, False, False],
    ...     accepted=[True, True, False, True, False],
    ...     correct_subject=[True, False, False, False, False],
    ... )
    >>> outcomes.counts
    OutcomeCounts(true_positives=1, false_acceptances=1, false_rejections=1, misidentifications=1,
                  true_negatives=1)
    >>> outcomes.correct
    array([ True, False, False, False,  True])
    """

    mated: BoolArray
    accepted: BoolArray
    correct_subject: BoolArray
    subject: NDArray[Any] | None

    def __init__(
        self,
        mated: ArrayLike,
        accepted: ArrayLike,
        correct_subject: ArrayLike,
        subject: ArrayLike | None = None,
    ) -> None:
        checked = {
            "mated": flags("mated", mated),
            "accepted": flags("accepted", accepted),
            "correct_subject": flags("correct_subject", correct_subject),
            "subject": None if subject is None else subject_ids(subject),
        }
        same_length(**{name: rows for name, rows in checked.items() if rows is not None})
        for name, rows in checked.items():
            object.__setattr__(self, name, rows)

    def __len__(self) -> int:
        return len(self.mated)

    @property
    def false_acceptance(self) -> BoolArray:
        """Non-mated probes that were accepted."""
        return ~self.mated & self.accepted

    @property
    def false_rejection(self) -> BoolArray:
        """Mated probes that were rejected."""
        return self.mated & ~self.accepted

    @property
    def misidentification(self) -> BoolArray:
        """Mated probes that were accepted as another subject."""
        return self.mated & self.accepted & ~self.correct_subject

    @property
    def correct(self) -> BoolArray:
        """Mated probes accepted as their own subject, and non-mated probes rejected."""
        return np.where(self.mated, self.accepted & self.correct_subject, ~self.accepted)

    @property
    def kind(self) -> NDArray[np.int8]:
        """The ``OutcomeKind`` of each probe."""
        mated_kind = np.where(
            self.accepted,
            np.where(self.correct_subject, OutcomeKind.TRUE_POSITIVE, OutcomeKind.MISIDENTIFICATION),
            OutcomeKind.FALSE_REJECTION,
        )
        other_kind = np.where(self.accepted, OutcomeKind.FALSE_ACCEPTANCE, OutcomeKind.TRUE_NEGATIVE)
        return np.where(self.mated, mated_kind, other_kind).astype(np.int8)

    @property
    def counts(self) -> OutcomeCounts:
        """How many probes there are of each kind."""
        counts = np.bincount(self.kind, minlength=len(OutcomeKind))
        return OutcomeCounts(*(int(count) for count in counts))
