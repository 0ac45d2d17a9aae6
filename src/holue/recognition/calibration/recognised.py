"""Recognised: how many samples of enrolled people a calibration accepts as their own subject.

A threshold can keep its FPIR and be of no use: where the embedding model does not tell subjects apart, strangers are kept out
together with nearly everybody who is enrolled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.recognition.calibration.rate_by_subject import LEVEL, rate_by_subject

HALF = 0.5
"""Where the whole interval lies below, most are not recognised: the same rule as in the audit."""


@dataclass(frozen=True)
class Recognised:
    """Samples of enrolled people that were accepted as their own subject at the threshold, of all that were tried.

    ``rate`` is the mean over people, each counting the same (DIR; FNIR is the rest), and ``low`` and ``high`` are its interval.

    >>> print(Recognised.of(np.array([True, True, False, True]), np.array([0, 0, 1, 1])))
    3 of 4 samples of 2 enrolled people are recognised (DIR 0.750, 95 % interval 0.256 to 0.963)
    """

    samples: int
    accepted: int  # as their own subject
    people: int
    rate: float
    low: float
    high: float

    @classmethod
    def of(cls, right: npt.NDArray[np.bool_], person: npt.NDArray[np.integer]) -> Recognised:
        """Of the answers about samples of enrolled people, and whom each shows."""
        who = np.unique(person, return_inverse=True)[1]
        rate, low, high = rate_by_subject(np.bincount(who, right) / np.bincount(who))
        return cls(len(right), int(right.sum()), int(who.max()) + 1, rate, low, high)

    @property
    def is_rare(self) -> bool:
        """Whether most are not recognised, beyond chance."""
        return self.high < HALF

    @property
    def doubt(self) -> str:
        """What it means that most are not recognised, and what to do."""
        return (
            f"most samples of enrolled people are not recognised at this threshold: {self}; strangers are kept out, but so are "
            "the enrolled; look at the gallery with holue audit, which says whether the embedding model tells its subjects apart"
        )

    def __str__(self) -> str:
        return (
            f"{self.accepted} of {self.samples} samples of {self.people} enrolled people are recognised (DIR {self.rate:.3f}, "
            f"{100 * LEVEL:g} % interval {self.low:.3f} to {self.high:.3f})"
        )
