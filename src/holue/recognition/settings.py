"""Settings: the rules that a recogniser's parameters obey, checked when they are first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from holue.errors import InvalidParameterError
from holue.recognition.checks import check_positive, check_share, check_threshold, is_number
from holue.recognition.quality import SCORES
from holue.recognition.search import SEARCHES

if TYPE_CHECKING:
    from holue.recognition.recognizer import OpenSetRecognizer


def check_settings(settings: OpenSetRecognizer) -> None:
    """Refuse a parameter outside its range; scikit-learn's constructors only store."""
    if settings.method not in SCORES:
        raise InvalidParameterError(f"method must be one of {', '.join(SCORES)}; got {settings.method!r}")
    check_share("target_fpir", settings.target_fpir)
    check_share("unknown_prior", settings.unknown_prior)
    check_positive("temperature", settings.temperature)
    if settings.threshold is not None:
        check_threshold(settings.threshold)
        if settings.hold == "fpir":
            raise InvalidParameterError(
                "hold='fpir' follows the scores of validation strangers, and threshold= fixes the threshold without them; "
                "use hold='model' or 'threshold'"
            )
    seed = settings.random_state
    a_seed = isinstance(seed, int | np.integer) and not isinstance(seed, bool) and seed >= 0
    if not (a_seed or seed is None or isinstance(seed, np.random.Generator | np.random.RandomState)):
        raise InvalidParameterError(
            f"random_state must be a whole number of at least 0, a generator or None, got {seed!r}"
        )
    if settings.embedding_model is not None and not isinstance(settings.embedding_model, str):
        raise InvalidParameterError(f"embedding_model must be a name or None, got {settings.embedding_model!r}")
    lowest = settings.filter_below
    if lowest is not None and not (is_number(lowest) and np.isfinite(lowest)):
        raise InvalidParameterError(f"filter_below must be a finite quality or None, got {lowest!r}")
    for name, value, allowed in (
        ("hold", settings.hold, ("model", "fpir", "threshold")),
        ("search", settings.search, SEARCHES),
        ("weighting", settings.weighting, ("uniform", "concentration")),
    ):
        if value not in allowed:
            raise InvalidParameterError(f"{name} must be {' or '.join(map(repr, allowed))}, got {value!r}")
