"""SeedMean: numbers averaged over the seeds of an experiment, with intervals over subjects.

Every seed deals the same subjects out anew, so the seeds are not independent: an interval from their spread would promise too
much. One bootstrap over all subjects serves every seed; a replicate of the mean is the mean of the seeds' replicates:

    mean_b = (1/S) Σ_s θ_s(resample b)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from holue.evaluation.columns import FloatArray
from holue.evaluation.intervals.bootstrap import SubjectBootstrap
from holue.evaluation.intervals.estimates import Estimate
from holue.evaluation.intervals.intervals import Bootstrapped
from holue.gallery.subjects import Subjects


def joint_resamples(
    subjects: Sequence[Subjects], *, n_resamples: int, rng: np.random.Generator
) -> list[SubjectBootstrap]:
    """Resamples of the probes of every seed that draw the same subjects equally often in all of them.

    >>> first, second = joint_resamples(
    ...     [np.array(["ann", "bob"]), np.array(["bob", "cid", "cid"])], n_resamples=4, rng=np.random.default_rng(0)
    ... )
    >>> bool((first.times_drawn[:, first.cluster[1]] == second.times_drawn[:, second.cluster[0]]).all())
    True
    """
    everyone = np.unique(np.concatenate(subjects))
    drawn = SubjectBootstrap.draw(everyone, n_resamples=n_resamples, rng=rng).times_drawn
    resamples = []
    for some in subjects:
        keys, cluster = np.unique(some, return_inverse=True)
        resamples.append(SubjectBootstrap(cluster.astype(np.int64), drawn[:, np.searchsorted(everyone, keys)]))
    return resamples


@dataclass(frozen=True, eq=False)
class SeedMean:
    """One number: what it was in every seed (NaN where undefined), and on every resample of every seed (seeds, resamples)."""

    seeds: FloatArray
    replicates: FloatArray

    @classmethod
    def of(cls, numbers: Sequence[Bootstrapped]) -> SeedMean:
        """From the same number of every seed, on joint resamples."""
        return cls(
            np.array([number.estimate for number in numbers]), np.stack([number.replicates for number in numbers])
        )

    def __sub__(self, other: SeedMean) -> SeedMean:
        """The paired difference: seed by seed, resample by resample."""
        return SeedMean(self.seeds - other.seeds, self.replicates - other.replicates)

    def estimate(self, level: float = 0.95) -> Estimate:
        """The mean over the seeds where it is defined, with the percentile interval of its replicates."""
        defined = ~np.isnan(self.seeds)
        if not defined.any():
            return Estimate.undefined("it is undefined in every seed")
        means = self.replicates[defined].mean(axis=0)
        means = means[~np.isnan(means)]
        reason = None if defined.all() else f"undefined in {int((~defined).sum())} of {len(defined)} seeds"
        value = float(self.seeds[defined].mean())
        if not len(means):
            return Estimate(value, None, None, reason or "no resample has a value")
        low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
        return Estimate(value, float(low), float(high), reason)

    def document(self, level: float = 0.95) -> dict[str, Any]:
        """Plain values for JSON: the mean with its interval, and the seeds one by one."""
        seeds = [None if np.isnan(value) else float(value) for value in self.seeds]
        return {**self.estimate(level).document(), "seeds": seeds}
