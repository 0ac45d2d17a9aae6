"""QualityScore: what every quality score is. Higher = more reliable."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array
from holue.recognition.answer.probabilities import Probabilities
from holue.recognition.reading import Reading

State = Mapping[str, npt.NDArray[np.float64]]
"""What a fitted score remembers: named arrays, so that saving needs no pickle."""


@dataclass(frozen=True, eq=False)
class Rating:
    """What a score says about n answers."""

    quality: Float64Array  # (n,) higher = more reliable
    uncertainty: Float64Array  # (n,) higher = less certain
    reasons: Sequence[str]  # why an answer is uncertain; "" where the score cannot tell
    probabilities: Probabilities | None = None  # the distribution that the quality is part of, where it is


class QualityScore(ABC):
    """A score of how far each answer of a :class:`Reading` can be trusted; higher = more reliable.

    Most scores are a formula and are ready at once; those with ``needs_fit`` learn from validation readings first.
    """

    name: ClassVar[str]
    needs_fit: ClassVar[bool] = False
    needs_concentration: ClassVar[bool] = False
    is_probability: ClassVar[bool] = False
    has_probabilities: ClassVar[bool] = False  # whether its ratings come with calibrated probabilities of their own

    @abstractmethod
    def __call__(self, reading: Reading) -> Float64Array:
        """Quality (n,) of the answers."""

    def fit(self, reading: Reading, truth: npt.NDArray[np.int64], rng: np.random.Generator) -> None:  # noqa: B027
        """Learn from validation probes and the gallery row of the subject each of them shows, −1 for strangers."""

    def uncertainty(self, reading: Reading, quality: Float64Array | None = None) -> Float64Array:
        """Higher = less certain: ``1 − q`` where q is a probability, else ``−q``; ``quality`` where it is there already."""
        quality = self(reading) if quality is None else quality
        return 1.0 - quality if self.is_probability else -quality

    def rate(self, reading: Reading) -> Rating:
        """Everything the score says about the answers, computed once."""
        quality = self(reading)
        return Rating(quality, self.uncertainty(reading, quality), [""] * len(reading))

    def state(self) -> State:
        """The fitted numbers, to be saved."""
        return {}

    def restore(self, state: State) -> None:  # noqa: B027
        """Take back what :meth:`state` gave."""
