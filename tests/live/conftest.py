"""People to enrol: directions that differ, and samples around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from holue.gallery.subjects import UNKNOWN

DIM = 16


@dataclass(frozen=True)
class People:
    """``samples(i, n)`` are noisy views of person ``i``, float32, the same for the same arguments."""

    centres: npt.NDArray[np.float64]
    dim: int = DIM

    def samples(self, person: int, n: int, seed: int = 0) -> npt.NDArray[np.float32]:
        rng = np.random.default_rng([person, seed])
        return (self.centres[person] + 0.35 * rng.standard_normal((n, DIM))).astype(np.float32)

    def probes(self) -> npt.NDArray[np.float32]:
        """A fresh sample of each of the first thirty."""
        return np.concatenate([self.samples(person, 1, seed=9) for person in range(30)])

    def development(self) -> tuple[npt.NDArray[np.float32], list[Any], tuple[npt.NDArray[np.float32], list[str]]]:
        """To calibrate on: probes of people who are never enrolled, their names, and a gallery of some of them."""
        known, enrolled = self.several(range(100, 160), 2)
        mated, _ = self.several(range(100, 160), 2, seed=5)
        strangers, _ = self.several(range(200, 300), 2, seed=5)
        return np.concatenate([mated, strangers]), [*enrolled, *[UNKNOWN] * len(strangers)], (known, enrolled)

    def several(self, persons: range, n: int, seed: int = 0) -> tuple[npt.NDArray[np.float32], list[str]]:
        return (
            np.concatenate([self.samples(person, n, seed) for person in persons]),
            [f"p{person}" for person in persons for _ in range(n)],
        )


@pytest.fixture(scope="session")
def people() -> People:
    return People(np.random.default_rng(1).standard_normal((400, DIM)))
