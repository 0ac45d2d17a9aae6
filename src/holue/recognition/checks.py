"""Checks: the ranges that settings of the mathematics must lie in, each with its error."""

from __future__ import annotations

from numbers import Real

import numpy as np

from holue.errors import InvalidConcentrationError, InvalidParameterError


def is_number(value: object) -> bool:
    """Whether ``value`` is one real number (a bool is not)."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_share(name: str, value: float) -> float:
    """``value`` when it lies strictly between 0 and 1."""
    if not is_number(value) or not 0 < value < 1:
        raise InvalidParameterError(f"{name} must lie strictly between 0 and 1, got {value!r}")
    return float(value)


def check_positive(name: str, value: float) -> float:
    """``value`` when it is positive and finite."""
    if not is_number(value) or not 0 < value < np.inf:
        error = InvalidConcentrationError if name == "concentration" else InvalidParameterError
        raise error(f"{name} must be positive and finite, got {value!r}")
    return float(value)


def check_threshold(threshold: float) -> float:
    """``threshold`` when it can be compared with a cosine."""
    if not is_number(threshold) or not -1 - 1e-5 <= threshold <= 1 + 1e-5:
        raise InvalidParameterError(f"threshold must be a cosine between -1 and 1, got {threshold!r}")
    return float(threshold)


def check_size(dim: int, n_subjects: int) -> None:
    """At least two dimensions and one subject."""
    for name, value, least in (("dim", dim, 2), ("n_subjects", n_subjects, 1)):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise InvalidParameterError(f"{name} must be a whole number of at least {least}, got {value!r}")
