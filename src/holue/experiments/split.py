"""Split: subjects dealt out to parts that share none of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holue.errors import InvalidParameterError
from holue.gallery.subjects import Subjects


def shares(subjects: Subjects, parts: Sequence[float], rng: np.random.Generator) -> tuple[Subjects, ...]:
    """Deal the subjects out at random, each part its share of them, sorted; together they are all subjects.

    >>> [len(part) for part in shares(np.arange(10), (0.5, 0.2, 0.3), np.random.default_rng(0))]
    [5, 2, 3]
    """
    if abs(sum(parts) - 1) > 1e-9 or min(parts) <= 0:
        raise InvalidParameterError(f"the shares of the parts must be positive with sum 1, got {list(parts)}")
    bounds = np.round(np.cumsum(parts)[:-1] * len(subjects)).astype(int)
    return tuple(np.sort(part) for part in np.split(rng.permutation(subjects), bounds))
