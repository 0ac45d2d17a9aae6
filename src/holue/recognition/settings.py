"""Settings: a recogniser's parameters as one checked value."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from holue.errors import InvalidParameterError
from holue.recognition.checks import check_positive, check_share, check_threshold, is_number
from holue.recognition.model.operating_point import Hold
from holue.recognition.quality import SCORES
from holue.recognition.search.search import SEARCHES, SearchKind
from holue.recognition.seeds import RandomState


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What an ``OpenSetRecognizer`` was constructed with (see there); values out of range are refused."""

    method: str
    target_fpir: float
    unknown_prior: float
    temperature: float
    random_state: RandomState
    threshold: float | None
    hold: Hold
    weighting: str
    threads: int | None
    search: SearchKind
    filter_below: float | None
    embedding_model: str | None
    fpir_confidence: float | None = None

    def __post_init__(self) -> None:
        if self.method not in SCORES:
            raise InvalidParameterError(f"method must be one of {', '.join(SCORES)}; got {self.method!r}")
        check_share("target_fpir", self.target_fpir)
        if self.fpir_confidence is not None:
            check_share("fpir_confidence", self.fpir_confidence)
        check_share("unknown_prior", self.unknown_prior)
        check_positive("temperature", self.temperature)
        if self.threshold is not None:
            check_threshold(self.threshold)
        seed = self.random_state
        a_seed = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0
        if not (a_seed or seed is None or isinstance(seed, np.random.Generator | np.random.RandomState)):
            raise InvalidParameterError(
                f"random_state must be a whole number of at least 0, a generator or None, got {seed!r}"
            )
        if self.embedding_model is not None and not isinstance(self.embedding_model, str):
            raise InvalidParameterError(f"embedding_model must be a name or None, got {self.embedding_model!r}")
        lowest = self.filter_below
        if lowest is not None and not (is_number(lowest) and np.isfinite(lowest)):
            raise InvalidParameterError(f"filter_below must be a finite quality or None, got {lowest!r}")
        for name, value, allowed in (
            ("hold", self.hold, ("model", "fpir", "threshold")),
            ("search", self.search, ("auto", *SEARCHES)),
            ("weighting", self.weighting, ("uniform", "concentration")),
        ):
            if value not in allowed:
                raise InvalidParameterError(f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}")


SETTINGS = tuple(field.name for field in fields(Settings))
"""Their names, which are the parameters of the recogniser."""
