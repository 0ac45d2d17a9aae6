"""Rate by subject: the mean of one rate per subject, with its interval; samples of one subject succeed and fail together."""

from __future__ import annotations

import numpy as np
from scipy.stats import norm

from holue.gallery.embeddings import Float64Array

LEVEL = 0.95
"""Of the interval."""


def rate_by_subject(rates: Float64Array) -> tuple[float, float, float]:
    """The mean of one rate per subject, and Wilson's interval for ``p (1 − p) / (var / K)`` independent answers.

    That number is at most what the variance allows and at least K, the number of subjects, where the rates do not vary.

    >>> [round(value, 3) for value in rate_by_subject(np.ones(100))]
    [1.0, 0.963, 1.0]
    """
    n, p = len(rates), float(np.mean(rates))
    variance = float(np.var(rates, ddof=1)) / n if n > 1 else 0.0
    answers = p * (1 - p) / variance if variance > 0 and 0 < p < 1 else float(n)
    z = float(norm.ppf((1 + LEVEL) / 2))
    middle = (p + z**2 / (2 * answers)) / (1 + z**2 / answers)
    half = z / (1 + z**2 / answers) * float(np.sqrt(p * (1 - p) / answers + z**2 / (4 * answers**2)))
    return p, max(middle - half, 0.0), min(middle + half, 1.0)
