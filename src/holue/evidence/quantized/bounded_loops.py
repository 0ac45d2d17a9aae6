"""Bounded loops: the compiled inside of bounded sums: ``exponential_sums.py`` with what certifies the result.

Beside mass and moment a chunk adds what bounds the error of both (see ``error_bounds.py``): with ``w = e^{a(ŝ−p)}``,
``x = ŝ − p`` and the row's own error ``e``, the seven sums ``Σw, Σxw, Σx²w, Σw², Σxw², Σx²w², Σew``.

A row's *key* ``ŝ + e`` is the most its exact score can be. The subjects with the highest keys are kept, to be scored exactly.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from holue.evidence.kernels.exponential_sums import (
    ANY_ORDER,
    CHUNK,
    INDEX,
    insert_top,
    maximum_of_two,
    power_of_two,
    row_maximum,
)
from holue.evidence.kernels.set_bits import BITS, first_bit, higher
from holue.evidence.kernels.simd import (
    FLOATS,
    INT64,
    VECTOR_LENGTH,
    add_across,
    any_above,
    broadcast,
    constant,
    load,
    maximum,
    multiply_add,
    powers_of_two,
)
from holue.sphere.compiled import njit

N_SUMS = 7
MASS, MOMENT, SECOND_MOMENT, SQUARE_MASS, SQUARE_MOMENT, SQUARE_SECOND_MOMENT, ERROR_MASS = range(N_SUMS)
"""Places of the sums Σw, Σxw, Σx²w, Σw², Σxw², Σx²w² and Σew of a probe at one sharpness."""


class BoundedArrays(NamedTuple):
    """What some probes have seen of a compressed gallery so far, as the loops take it; everything is changed in place."""

    keys: npt.NDArray[np.float64]  # (n, R) the highest keys ŝ + e, best first; −inf where unfilled
    subjects: npt.NDArray[np.int64]  # (n, R) whose they are
    sharpness: npt.NDArray[np.float64]  # (m,) a
    slope: npt.NDArray[np.float32]  # (m,) a / ln 2
    peak: npt.NDArray[np.float64]  # (n,) p, the highest score
    sums: npt.NDArray[np.float64]  # (n, m, 7)


_LOWEST = np.float32(-44.0)  # of a weight's power of two: all that is less may be left out, and is bounded
_LEAST = np.finfo(np.float32).min
_STEP = 4 * VECTOR_LENGTH  # scores weighed side by side


@njit(cache=True, nogil=True, fastmath=ANY_ORDER)
def _weigh_with_errors(row, errors, peak, slope):
    """The seven sums of a few scores."""
    mass = moment = second_moment = np.float32(0.0)
    square_mass = square_moment = square_second_moment = error_mass = np.float32(0.0)
    for j in range(row.shape[0]):
        x = row[j] - peak
        w = power_of_two(maximum_of_two(slope * x, _LOWEST))
        xw = x * w
        mass += w
        moment += xw
        second_moment += x * xw
        square_mass += w * w
        square_moment += w * xw
        square_second_moment += xw * xw
        error_mass += errors[j] * w
    return mass, moment, second_moment, square_mass, square_moment, square_second_moment, error_mass


def _add_weighed(builder, sums, x, w, e):
    """Add one vector to each of the seven sums."""
    xw = builder.fmul(x, w)
    for total, term in zip(sums, (w, xw)):
        builder.store(builder.fadd(builder.load(total), term), total)
    for total, (left, right) in zip(sums[2:], ((x, xw), (w, w), (w, xw), (xw, xw), (e, w))):
        builder.store(multiply_add(builder, left, right, builder.load(total)), total)


@intrinsic
def _weigh_vectors(typing_context, row, errors, end, peak, slope, lowest):
    """The seven sums over the first ``end`` scores, a multiple of 32; ``slope·lowest`` is the least exponent.

    Of 32 scores that all lie below it none is weighed: at a high sharpness that is most of them.
    """

    def generate(context, builder, signature, arguments):
        row, errors, end, *numbers = arguments
        scores, own_errors = (
            context.make_array(kind)(context, builder, array).data for kind, array in zip(signature.args, (row, errors))
        )
        peak, slope, lowest = (broadcast(builder, number) for number in numbers)
        sums = [cgutils.alloca_once_value(builder, constant(0.0)) for _ in range(N_SUMS)]
        with cgutils.for_range_slice(builder, INT64(0), end, INT64(_STEP)) as (j, _):
            places = [builder.add(j, INT64(first)) for first in range(0, _STEP, VECTOR_LENGTH)]
            below = [builder.fsub(load(builder, scores, at, FLOATS), peak) for at in places]
            with builder.if_then(any_above(builder, below, lowest)):
                # Two vectors at a time: with four side by side the seven sums would not stay in registers.
                for pair in (slice(0, 2), slice(2, 4)):
                    held = [maximum(builder, x, lowest) for x in below[pair]]
                    for at, x, w in zip(places[pair], held, powers_of_two(builder, slope, held)):
                        _add_weighed(builder, sums, x, w, load(builder, own_errors, at, FLOATS))
        results = [add_across(builder, builder.load(total)) for total in sums]
        return context.make_tuple(builder, signature.return_type, results)

    single = types.float32
    return types.UniTuple(single, N_SUMS)(row, errors, INDEX, single, single, single), generate


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh_chunk(row, errors, peak, slope, sums):
    """Add a chunk to one probe's seven sums at one sharpness."""
    whole = row.shape[0] - row.shape[0] % _STEP
    lowest = _LOWEST / slope if slope > 0 else _LEAST
    chunk = _weigh_vectors(row, errors, whole, peak, slope, lowest)
    for number in range(N_SUMS):
        sums[number] += chunk[number]
    if whole < row.shape[0]:
        rest = _weigh_with_errors(row[whole:], errors[whole:], peak, slope)
        for number in range(N_SUMS):
            sums[number] += rest[number]


@njit(cache=True, nogil=True)
def lift(sums, sharpness, rise):
    """Make one probe's sums relative to a maximum that is ``rise`` higher."""
    for t in range(sharpness.shape[0]):
        shrink = np.exp(-sharpness[t] * rise)
        for mass, moment, second_moment, factor in (
            (MASS, MOMENT, SECOND_MOMENT, shrink),
            (SQUARE_MASS, SQUARE_MOMENT, SQUARE_SECOND_MOMENT, shrink * shrink),
        ):
            own = sums[t]
            own[second_moment] += rise * (rise * own[mass] - 2 * own[moment])
            own[moment] -= rise * own[mass]
            own[second_moment] *= factor
            own[moment] *= factor
            own[mass] *= factor
        sums[t, ERROR_MASS] *= shrink


@njit(cache=True, nogil=True)
def _list(scratch, size, numbers, places, i, keys, subjects):
    """Put the first keys of a chunk, of subjects ``numbers[places]``, among the highest of probe ``i``.

    The rest of ``scratch`` is −inf. A subject with an equal key stays behind those that came before it.
    """
    last = keys.shape[1] - 1
    for at in range(0, size, BITS):
        found = higher(scratch, at, np.float32(keys[i, last]))
        while found:
            j = at + first_bit(found)
            found &= found - np.uint32(1)
            key, place = scratch[j], last
            if key > keys[i, last]:
                while place > 0 and keys[i, place - 1] < key:
                    keys[i, place] = keys[i, place - 1]
                    subjects[i, place] = subjects[i, place - 1]
                    place -= 1
                keys[i, place] = key
                subjects[i, place] = numbers[places[j]]


@njit(cache=True, nogil=True)
def _round_to_keys(row, errors, keys):
    """Write ``key = ŝ + e``, round the scores to what ``key − e`` gives in float32, and return the highest key.

    A kept key then tells exactly what was summed.
    """
    most = _LEAST
    for j in range(row.shape[0]):
        key = row[j] + errors[j]
        keys[j] = key
        row[j] = key - errors[j]
        most = maximum_of_two(most, key)
    return most


@njit(cache=True, nogil=True)
def absorb_scores(scores, width, errors, numbers, places, scratch, bounded):
    """Add the first ``width`` columns of ``scores`` to the highest keys and the seven sums.

    ``errors`` (width,) are those of the columns' rows, and ``places`` (width,) say which rows these are. ``numbers`` are the
    rows' own, read for the few that are kept. ``scratch`` (CHUNK,) is for the keys of a chunk: made anew for each, it would cost
    a tenth of a scan of one probe.
    """
    keys, subjects, sharpness, slope, peak, sums = bounded
    last = keys.shape[1] - 1
    for i in range(scores.shape[0]):
        for start in range(0, width, CHUNK):
            size = min(CHUNK, width - start)
            row = scores[i, start : start + size]
            error = errors[start : start + size]
            scratch[size:] = -np.inf
            most = _round_to_keys(row, error, scratch)
            if most > keys[i, last]:
                _list(scratch, size, numbers, places[start:], i, keys, subjects)
            if most > peak[i]:
                best = row_maximum(row)
                if best > peak[i]:
                    if peak[i] > -np.inf:
                        lift(sums[i], sharpness, best - peak[i])
                    peak[i] = best
            highest = np.float32(peak[i])
            for t in range(sharpness.shape[0]):
                if slope[t] * (most - highest) > _LOWEST:
                    _weigh_chunk(row, error, highest, slope[t], sums[i, t])


@njit(cache=True, nogil=True)
def absorb_probes(scores, at, width, errors, numbers, places, scratch, bounded):
    """``absorb_scores`` for some of the probes, from ``at`` on: as many as there are, and as ``scores`` has rows for."""
    last = min(at + scores.shape[0], bounded.keys.shape[0])
    own = slice(at, last)
    part = BoundedArrays(
        bounded.keys[own],
        bounded.subjects[own],
        bounded.sharpness,
        bounded.slope,
        bounded.peak[own],
        bounded.sums[own],
    )
    absorb_scores(scores[: last - at], width, errors, numbers, places, scratch, part)


@njit(cache=True, nogil=True)
def combine(bounded, other):
    """Add the keys and sums of another part of the gallery; both are changed."""
    keys, subjects, sharpness, _, peak, sums = bounded
    other_keys, other_subjects, _, _, other_peak, other_sums = other
    for i in range(keys.shape[0]):
        for j in range(other_keys.shape[1]):
            insert_top(other_keys[i, j : j + 1], other_subjects[i, j : j + 1], keys[i], subjects[i])
        if other_peak[i] > peak[i]:
            if peak[i] > -np.inf:
                lift(sums[i], sharpness, other_peak[i] - peak[i])
            peak[i] = other_peak[i]
        elif other_peak[i] > -np.inf:
            lift(other_sums[i], sharpness, peak[i] - other_peak[i])
        sums[i] += other_sums[i]
