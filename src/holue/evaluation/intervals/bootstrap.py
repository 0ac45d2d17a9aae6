"""Bootstrap: resamples of subjects, drawn once and shared by everything that is compared."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from holue.errors import InvalidParameterError, InvalidSubjectsError
from holue.evaluation.columns import subject_ids


@dataclass(frozen=True, eq=False)
class SubjectBootstrap:
    """Resamples of subjects with replacement; all probes of a drawn subject come along.

    Probes of one subject succeed and fail together, so a bootstrap over probes would promise too much.
    ``cluster``: which subject each probe belongs to, shape (n,). ``times_drawn``: how often each resample
    holds each subject, shape (n_resamples, n_subjects). One bootstrap serves every method and metric:
    differences between them are then paired.

    >>> resamples = SubjectBootstrap.draw(["ann", "ann", "bob", None], n_resamples=3, rng=0)
    >>> resamples.cluster
    array([0, 0, 1, 2])
    >>> resamples.times_drawn.sum(axis=1).tolist()
    [3, 3, 3]
    """

    cluster: NDArray[np.int64]
    times_drawn: NDArray[np.uint8]

    @classmethod
    def draw(cls, subject: ArrayLike, *, n_resamples: int = 1000, rng: np.random.Generator | int) -> SubjectBootstrap:
        """Draw resamples of the subjects of n probes; a probe whose id is None or NaN is its own subject.

        ``rng`` is a generator or a seed. Subjects are drawn in the order of their ids, so the same seed
        gives the same resamples whatever the order of the probes.
        """
        if isinstance(n_resamples, bool) or n_resamples != int(n_resamples) or n_resamples < 1:
            raise InvalidParameterError(f"n_resamples must be a whole number of at least 1; got {n_resamples!r}")
        generator = np.random.default_rng(rng)
        cluster = subject_clusters(subject)
        n_subjects = int(cluster.max()) + 1
        # A byte suffices: no subject comes up 256 times in as many draws as there are subjects
        # (probability below 1e-500).
        times_drawn = np.empty((n_resamples, n_subjects), dtype=np.uint8)
        for row in times_drawn:
            row[:] = np.bincount(generator.integers(n_subjects, size=n_subjects), minlength=n_subjects)
        return cls(cluster, times_drawn)

    def __len__(self) -> int:
        return len(self.times_drawn)

    @property
    def n_subjects(self) -> int:
        """How many subjects there are to draw."""
        return int(self.times_drawn.shape[1])

    @property
    def n_probes(self) -> int:
        """How many probes they have."""
        return len(self.cluster)

    def probes(self, resample: int) -> NDArray[np.int64]:
        """Rows of the probes in one resample, repeated as often as their subject was drawn."""
        return np.repeat(np.arange(self.n_probes), self.times_drawn[resample][self.cluster])


def subject_clusters(subject: ArrayLike) -> NDArray[np.int64]:
    """Number the subjects of n probes by the order of their ids; probes without one come last, one each.

    >>> subject_clusters([7, 3, 7])
    array([1, 0, 1])
    """
    ids = subject_ids(subject)
    if len(ids) == 0:
        raise InvalidSubjectsError("subject is empty; at least one probe is needed")
    named = ~_is_missing(ids)
    cluster = np.empty(len(ids), dtype=np.int64)
    n_named = 0
    if named.any():
        try:
            levels, cluster[named] = np.unique(ids[named], return_inverse=True)
        except TypeError:
            types = sorted({type(value).__name__ for value in ids[named]})
            raise InvalidSubjectsError(
                f"subject must hold ids of one type; got {', '.join(types)}: convert them to one"
            ) from None
        n_named = len(levels)
    cluster[~named] = n_named + np.arange(np.count_nonzero(~named))
    return cluster


def _is_missing(ids: NDArray[Any]) -> NDArray[np.bool_]:
    # NaN is the one value that differs from itself.
    return np.array([value is None or value != value for value in ids.tolist()], dtype=np.bool_)
