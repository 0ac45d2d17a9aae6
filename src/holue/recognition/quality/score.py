"""QualityScore: what every quality score is. Higher = more reliable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array
from holue.recognition.reading import Reading

State = Mapping[str, npt.NDArray[np.float64]]
"""What a fitted score remembers: named arrays, so that saving needs no pickle."""


class QualityScore(ABC):
    """A score of how far each answer of a :class:`Reading` can be trusted; higher = more reliable.

    Most scores are a formula and are ready at once; those with ``needs_fit`` learn from validation readings first.
    """

    name: ClassVar[str]
    needs_fit: ClassVar[bool] = False
    needs_concentration: ClassVar[bool] = False
    is_probability: ClassVar[bool] = False
    fits_on_one_thread: ClassVar[bool] = False
    """Whether :meth:`fit` must read the gallery with one thread, since it amplifies how threads round the sums they merge."""

    @abstractmethod
    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,) of the answers."""

    def fit(self, reading: Reading, correct: npt.NDArray[np.bool_], rng: np.random.Generator) -> None:  # noqa: B027
        """Learn from validation probes and whether each of their answers was right."""

    def uncertainty(self, reading: Reading) -> Float64Array:
        """Higher = less certain: ``1 − q`` where q is a probability, else ``−q``."""
        quality = self(reading)
        return 1.0 - quality if self.is_probability else -quality

    def reasons(self, reading: Reading) -> Sequence[str]:
        """One sentence per answer on why it is uncertain; empty where the score cannot tell."""
        return [""] * len(reading)

    def state(self) -> State:
        """The fitted numbers, to be saved."""
        return {}

    def restore(self, state: State) -> None:  # noqa: B027
        """Take back what :meth:`state` gave."""
