"""SubjectRates: a rate of several groups of probes, observed and on each resample of subjects."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holue.evaluation.columns import BoolArray, FloatArray
from holue.evaluation.intervals.bootstrap import SubjectBootstrap

AT_ONCE = 64
"""Resamples multiplied together: the table of draws is bytes, and widening it whole would take eight times its size."""


@dataclass(frozen=True)
class SubjectRate:
    """A rate with the interval of its subjects; ``note`` says why a number is missing (None) or not to be relied on."""

    value: float | None
    low: float | None
    high: float | None
    n_probes: int  # the denominator
    n_subjects: int  # people in it
    small: bool
    note: str | None = None


@dataclass(frozen=True, eq=False)
class SubjectRates:
    """Numerators and denominators of one rate: observed (2, G) and on each resample (R, 2, G); people in each (G,)."""

    observed: FloatArray
    resampled: FloatArray
    n_probes: NDArray[np.int64]
    n_subjects: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        counted: BoolArray,
        hit: BoolArray,
        masks: list[BoolArray],
        resamples: SubjectBootstrap,
        weight: FloatArray | None = None,
    ) -> SubjectRates:
        """``hit / counted`` in each of the groups ``masks``, each probe counted by its ``weight`` (1 where not given)."""
        n, weight = resamples.n_subjects, np.ones(len(counted)) if weight is None else weight
        per_subject = np.stack(
            [
                np.bincount(resamples.cluster, (column & mask) * weight, minlength=n)
                for column in (hit & counted, counted)
                for mask in masks
            ],
            axis=1,
        )
        drawn = resamples.times_drawn
        sums = np.concatenate(
            [drawn[i : i + AT_ONCE].astype(np.float64) @ per_subject for i in range(0, len(drawn), AT_ONCE)]
        )
        shape = (2, len(masks))
        return cls(
            per_subject.sum(axis=0).reshape(shape),
            sums.reshape(-1, *shape),
            np.array([np.sum(counted & mask) for mask in masks], dtype=np.int64),
            (per_subject[:, len(masks) :] > 0).sum(axis=0),
        )

    def rate(self, i: int, smallest: int, level: float) -> SubjectRate:
        """The rate of group i; small where it rests on fewer than ``smallest`` subjects."""
        hits, n = self.observed[:, i]
        people, probes = int(self.n_subjects[i]), int(self.n_probes[i])
        if n == 0:
            return SubjectRate(None, None, None, 0, 0, True, "is undefined: no such probe was decided")
        if people == 1:
            return SubjectRate(float(hits / n), None, None, probes, 1, True, "rests on one subject: no interval")
        low: float | None
        high: float | None
        if hits in (0, n):
            # Resampling cannot vary what never varied; as many independent subjects could have this one-sided bound.
            edge = float(1 - ((1 - level) / 2) ** (1 / people))
            low, high = (0.0, edge) if hits == 0 else (1 - edge, 1.0)
        else:
            low, high = percentiles(self.replicates(i), level)
        note = f"rests on {people} subjects" if people < smallest else None
        return SubjectRate(float(hits / n), low, high, probes, people, people < smallest, note)

    def replicates(self, i: int) -> FloatArray:
        """The rate of group i on each resample, NaN where it has no value."""
        return quotients(self.resampled[:, 0, i], self.resampled[:, 1, i])


def percentiles(replicates: FloatArray, level: float) -> tuple[float | None, float | None]:
    """The middle ``level`` of the replicates that have a value."""
    defined = replicates[np.isfinite(replicates)]
    if len(defined) == 0:
        return None, None
    low, high = np.quantile(defined, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def quotients(above: FloatArray, below: FloatArray) -> FloatArray:
    """``above / below``, NaN where nothing is below."""
    ratio = np.full(len(above), np.nan)
    np.divide(above, below, out=ratio, where=below > 0)
    return ratio
