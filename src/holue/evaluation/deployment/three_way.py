"""ThreeWay: how many probes were accepted, rejected and left undecided, each with its errors."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from holue.evaluation.columns import BoolArray
from holue.evaluation.outcomes import Outcomes


@dataclass(frozen=True)
class ThreeWay:
    """Counts of probes; what is filtered is in no error, and ``filtered_wrong`` would have been one.

    >>> import numpy as np
    >>> mated, accepted = np.array([True, True, False, False]), np.array([True, False, True, False])
    >>> ThreeWay.of(Outcomes(mated, accepted, mated), np.array([False, True, False, False])).errors
    1
    """

    accepted_right: int
    misidentifications: int
    false_acceptances: int
    rejected_right: int
    false_rejections: int
    filtered_right: int
    filtered_wrong: int

    @classmethod
    def of(cls, outcomes: Outcomes, filtered: BoolArray) -> ThreeWay:
        """The answer each probe would get, and which of them were filtered."""

        def count(rows: BoolArray) -> int:
            return int((rows & ~filtered).sum())

        return cls(
            count(outcomes.correct & outcomes.accepted),
            count(outcomes.misidentification),
            count(outcomes.false_acceptance),
            count(outcomes.correct & ~outcomes.accepted),
            count(outcomes.false_rejection),
            int((outcomes.correct & filtered).sum()),
            int((~outcomes.correct & filtered).sum()),
        )

    @property
    def accepted(self) -> int:
        """Decided: an enrolled subject."""
        return self.accepted_right + self.misidentifications + self.false_acceptances

    @property
    def rejected(self) -> int:
        """Decided: nobody enrolled."""
        return self.rejected_right + self.false_rejections

    @property
    def filtered(self) -> int:
        """Not decided."""
        return self.filtered_right + self.filtered_wrong

    @property
    def errors(self) -> int:
        """Wrong automatic decisions."""
        return self.misidentifications + self.false_acceptances + self.false_rejections

    @property
    def total(self) -> int:
        """All probes."""
        return self.accepted + self.rejected + self.filtered

    def to_dict(self) -> dict[str, int]:
        """Plain values, ready for JSON."""
        return {**asdict(self), "accepted": self.accepted, "rejected": self.rejected, "filtered": self.filtered}

    def __str__(self) -> str:
        n = self.total
        return (
            f"accepted {self.accepted / n:.1%} ({self.misidentifications} misidentified, {self.false_acceptances} strangers), "
            f"rejected {self.rejected / n:.1%} ({self.false_rejections} of them enrolled), filtered {self.filtered / n:.1%} "
            f"({self.filtered_wrong} of {self.filtered} would have been wrong)"
        )
