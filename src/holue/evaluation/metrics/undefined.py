"""Undefined: how a metric without a value says why."""

from __future__ import annotations

import warnings


class UndefinedMetricWarning(UserWarning):
    """A metric came out as NaN; the message names the metric and the reason.

    Turn it into an error with ``warnings.simplefilter("error", UndefinedMetricWarning)``.
    """


def undefined(metric: str, reason: str) -> float:
    """Return NaN and warn that ``metric`` is undefined, and why.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     undefined("fpir", "there is no non-mated probe")
    nan
    >>> str(caught[0].message)
    'fpir is undefined: there is no non-mated probe'
    """
    warnings.warn(f"{metric} is undefined: {reason}", UndefinedMetricWarning, stacklevel=3)
    return float("nan")
