"""Probabilities: one distribution over the candidates and "nobody enrolled"."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from holue.gallery.embeddings import Float64Array
from holue.recognition.reading import Reading


@dataclass(frozen=True, eq=False)
class Probabilities:
    """For n probes: the probability of each candidate and of nobody."""

    candidates: Float64Array  # (n, k) best score first
    nobody: Float64Array  # (n,)
    calibrated: bool  # on validation probes; else they are the class model's own posterior
    enrolled: Float64Array | None = None  # (n,) of somebody enrolled, where learned: what ``nobody`` is 1 less of

    @classmethod
    def of_model(cls, reading: Reading) -> Probabilities:
        """The class model's own posterior, GalUE's, at T = 1: exact if embeddings were von Mises-Fisher, else overconfident."""
        return cls(np.exp(reading.posterior.log_p_top), np.exp(reading.posterior.log_p_unknown), False)

    def of_decision(self, accepted: npt.NDArray[np.bool_]) -> Float64Array:
        """The probability (n,) of what was decided: of the best candidate where accepted, of nobody where rejected."""
        return np.where(accepted, self.candidates[:, 0], self.nobody)
