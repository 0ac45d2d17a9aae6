"""Ties: a metric averaged over every order in which equally reliable probes may be filtered.

Probes of equal quality form a group; a curve that filters ``j`` of its ``g`` members must not depend on
which come first in the file, so the value is the average over all orders, that is over all ways to keep
``m = g − j`` of them. With ``A`` probes counted and ``B`` others kept for certain, and ``a`` and ``b`` of
them in the group,

    E[ w(A + X) / (w(A + X) + B + Y) ],   (X, Y) multivariate hypergeometric(a, b, g − a − b; m).

It is *not* the ratio of the expected counts: the two differ by O(1/D), ``D`` the denominator. The sum is
taken term by term, outwards from the mode until terms vanish in double precision. In a wide group over a
large denominator that would be slow, and the expansion to second order in the (co)variances is used
instead. Its error stays below ``wσ²/D³ + 3σ⁴/D⁴``, the size of the next terms (``σ²`` the variance of the
denominator's parts; held by a test), and it is used only where that is below the caller's tolerance.

Orders that leave the metric without a value (nothing left to divide by) are not averaged: the value is
the mean over the orders that have one, and NaN when there is none. Random filtering of rare mated probes
would otherwise turn every curve into NaN.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from holue.sphere.compiled import njit

EXACT = 1e-7
"""Tolerance of point values: how far the average over orders may be off."""

RESAMPLED = 1e-4
"""Tolerance of bootstrap replicates, whose spread is far wider."""


@njit(cache=True, nogil=True)
def _ratio(weight: int, counted: float, others: float) -> float:
    total = weight * counted + others
    return weight * counted / total if total > 0 else np.nan


@njit(cache=True, nogil=True)
def _hypergeometric(population: int, marked: int, drawn: int) -> tuple[int, NDArray[np.float64]]:
    """P(hits) for hits = first, first + 1, ...: all that matter of ``drawn`` from ``population``."""
    lowest = max(0, drawn - (population - marked))
    highest = min(marked, drawn)
    mode = min(max(((drawn + 1) * (marked + 1)) // (population + 2), lowest), highest)
    spread = 0.0
    if population > 1:
        share = marked / population
        spread = np.sqrt(drawn * share * (1 - share) * (population - drawn) / (population - 1))
    # Nine deviations: what lies beyond weighs less than rounding does.
    reach = int(9 * spread) + 9
    first, last = max(lowest, mode - reach), min(highest, mode + reach)
    p = np.empty(last - first + 1)
    p[mode - first] = 1.0
    for hits in range(mode, last):
        up = ((marked - hits) * (drawn - hits)) / ((hits + 1.0) * (population - marked - drawn + hits + 1.0))
        p[hits + 1 - first] = p[hits - first] * up
    for hits in range(mode, first, -1):
        down = (hits * (population - marked - drawn + hits)) / ((marked - hits + 1.0) * (drawn - hits + 1.0))
        p[hits - 1 - first] = p[hits - first] * down
    return first, p / p.sum()


@njit(cache=True, nogil=True)
def _sum_over_orders(weight: int, counted: int, others: int, a: int, b: int, size: int, kept: int) -> float:
    value, defined = 0.0, 0.0
    first_x, p_x = _hypergeometric(size, a, kept)
    for i in range(len(p_x)):
        x = first_x + i
        top = float(weight * (counted + x))
        first_y, p_y = _hypergeometric(size - a, b, kept - x)
        for k in range(len(p_y)):
            total = top + (others + first_y + k)
            if total > 0:
                value += p_x[i] * p_y[k] * top / total
                defined += p_x[i] * p_y[k]
    return value / defined if defined > 0 else np.nan


@njit(cache=True, nogil=True)
def expected_ratio(
    weight: int, counted: int, others: int, a: int, b: int, size: int, kept: int, tolerance: float
) -> float:
    """Average ``w(A+X) / (w(A+X)+B+Y)`` over the ways to keep ``kept`` of a group of ``size``.

    ``counted`` and ``others`` are ``A`` and ``B`` outside the group, ``a`` and ``b`` those within it.

    >>> expected_ratio(2, 2, 0, 1, 1, 2, 1, 0.0) == (2 * 3 / (2 * 3 + 0) + 2 * 2 / (2 * 2 + 1)) / 2
    True
    """
    share = kept / size
    certain = kept == size or kept == 0 or a == size or b == size or a + b == 0
    if certain or (weight == 1 and a + b == size):
        return float(_ratio(weight, counted + a * share, others + b * share))
    if others + b == 0:
        return 1.0
    if counted + a == 0:
        return 0.0

    A, B = counted + a * share, others + b * share
    D = weight * A + B
    unit = share * (1 - share) / (size - 1)
    var_x, var_y, cov = unit * a * (size - a), unit * b * (size - b), -unit * a * b
    variance = weight * weight * var_x + var_y
    if weight * variance / D**3 + 3 * variance**2 / D**4 > tolerance:
        return float(_sum_over_orders(weight, counted, others, a, b, size, kept))

    curvature = -2 * weight * B * var_x * weight + 2 * weight * A * var_y + 2 * weight * (weight * A - B) * cov
    return weight * A / D + 0.5 * curvature / D**3


@njit(cache=True, nogil=True)
def filtered_curve(
    counted: NDArray[np.int64],
    others: NDArray[np.int64],
    size: NDArray[np.int64],
    filtered: NDArray[np.int64],
    weight: int,
    is_count: bool,
    tolerance: float,
) -> NDArray[np.float64]:
    """The metric on what is left after filtering each number of probes in ``filtered`` (ascending).

    ``counted``, ``others`` and ``size`` describe the groups of equal quality, the least reliable first.
    """
    values = np.empty(len(filtered))
    counted_left, others_left = counted.sum(), others.sum()
    group, gone = 0, 0
    for i in range(len(filtered)):
        while group < len(size) and filtered[i] >= gone + size[group]:
            counted_left -= counted[group]
            others_left -= others[group]
            gone += size[group]
            group += 1
        partly = filtered[i] - gone
        if partly == 0 or group == len(size):
            values[i] = counted_left if is_count else _ratio(weight, counted_left, others_left)
        elif is_count:
            values[i] = counted_left - counted[group] * (partly / size[group])
        else:
            values[i] = expected_ratio(
                weight,
                counted_left - counted[group],
                others_left - others[group],
                counted[group],
                others[group],
                size[group],
                size[group] - partly,
                tolerance,
            )
    return values
