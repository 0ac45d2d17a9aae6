"""Seeds: a generator from what scikit-learn calls a random state."""

from __future__ import annotations

import numpy as np

RandomState = int | np.random.Generator | np.random.RandomState | None


def generator(random_state: RandomState) -> np.random.Generator:
    """A generator of that seed; a generator is used as it is, an old RandomState seeds a new one.

    >>> int(generator(0).integers(100)) == int(generator(0).integers(100))
    True
    """
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
