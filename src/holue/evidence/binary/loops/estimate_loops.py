"""Estimate loops: sums of lookups become estimates, the highest are listed, and all others are weighed.

An estimate ``ê`` of a score ``s`` has the error law of ``rotation.py``: nearly normal, with the row's standard deviation ``σ``. A
row's *key* ``ê + zσ + β`` is a score that it exceeds with a known small probability. Rows with a key above the *cut* are listed,
to be scored exactly. Most blocks of rows hold none: their sums are compared, as the whole numbers they are, with one that no
row of the block whose key is above the cut stays below.

All others are weighed (``weight_loops.py``): what they add to the sums is estimated. In a large gallery that is done for a random
sample of the places of every chunk, each counting for ``1/rate`` rows.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, call-arg, var-annotated, unreachable"
# Compiled functions and the code that generates them have no Python types to check.

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from holue.evidence.binary.loops.lookup_loops import look_up
from holue.evidence.binary.loops.weight_loops import (
    MASS,
    MOMENT,
    N_SUMS,
    SQUARE_MASS,
    SQUARE_MOMENT,
    SQUARE_SECOND_MOMENT,
    WEIGHED_AT_ONCE,
    weigh_known,
    weigh_sampled,
)
from holue.evidence.binary.part import BLOCK_ROWS
from holue.evidence.kernels.set_bits import first_bit, higher_of_64
from holue.sphere.compiled import njit

CHUNK_ROWS = 2048
"""Rows that are listed or weighed at once: fewer cost more calls, more leave the second-level cache."""
RAISED_EVERY = 8
"""Chunks after which the cut follows the highest key."""
_BLOCKS = CHUNK_ROWS // BLOCK_ROWS


class Codes(NamedTuple):
    """The rows ``first .. last`` of a binary part; ``first`` is the beginning of a block."""

    codes: npt.NDArray[np.uint8]
    weights: npt.NDArray[np.uint16]
    deviations: npt.NDArray[np.uint16]
    scale: npt.NDArray[np.float64]
    extremes: npt.NDArray[np.float32]  # (3, blocks) least and greatest 1/w and greatest σ/w of the block's rows
    gone: npt.NDArray[np.bool_]  # who has left; empty where nobody has
    start: int  # the place of the part's first row among all
    first: int
    last: int


class Probes(NamedTuple):
    """Probes as the loops read them, for one part."""

    tables: npt.NDArray[np.uint8]  # (n, G, 2^bits)
    step: npt.NDArray[np.float32]  # (n,)
    least: npt.NDArray[np.float32]  # (n,)
    base: npt.NDArray[np.float32]  # (n,) ⟨c, z⟩
    beta: npt.NDArray[np.float32]  # (n,) what an estimate may be off beside the law of its error
    rounding: npt.NDArray[np.float32]  # (n,) the variance that tables add to an estimate
    z: np.float32  # deviations between estimate and key


class Listing(NamedTuple):
    """What some probes have listed and weighed so far; everything is changed in place."""

    keys: npt.NDArray[np.float32]  # (n, capacity)
    estimates: npt.NDArray[np.float32]
    variances: npt.NDArray[np.float32]
    bases: npt.NDArray[np.float32]
    rows: npt.NDArray[np.int64]  # places among the rows of all parts
    filled: npt.NDArray[np.int64]  # (n,)
    cut: npt.NDArray[np.float32]  # (n,) rows with a key above it are listed
    best: npt.NDArray[np.float32]  # (n,) the highest key of the listed
    lower: npt.NDArray[np.float64]  # (n,) the best score is surely no more than this below the highest key
    rise: npt.NDArray[np.float64]  # (n,) rows with keys up to this above the best score are wanted for the sums
    decisive: float  # and rows with keys above this, or above the best score; infinite where no cut may rise for that
    kept: int  # rows that stay listed in any case
    sharpness: npt.NDArray[np.float64]  # (m,) those at which rows that are not listed are weighed
    unit: npt.NDArray[np.float64]  # (n,) weights are multiples of e^{a unit}
    sums: npt.NDArray[np.float64]  # (n, 2, m, 5) of the sample, and of rows that were listed for a time


class Scratch(NamedTuple):
    """Buffers for one chunk of rows."""

    sums: npt.NDArray[np.uint16]  # (n, CHUNK_ROWS)
    places: npt.NDArray[np.int64]  # the sample
    columns: npt.NDArray[np.float32]  # (2, sample) weights and deviations
    gathered: npt.NDArray[np.uint16]  # (sample,) its sums with one probe
    bars: npt.NDArray[np.int32]  # (blocks of a chunk,) what sums of a block's listed rows are above


@lru_cache(maxsize=8)
def sample_places(rate: float) -> npt.NDArray[np.int64]:
    """The places of a chunk that are weighed: a random share of all, the same in every process; ascending."""
    if rate > 0.5:  # gathering more would take longer than reading all
        return np.arange(CHUNK_ROWS)
    size = max(round(rate * CHUNK_ROWS / WEIGHED_AT_ONCE), 1) * WEIGHED_AT_ONCE
    return np.sort(np.random.default_rng(0).permutation(CHUNK_ROWS)[:size])


def scratch_for(n_probes: int, places: npt.NDArray[np.int64]) -> Scratch:
    """Buffers for so many probes."""
    return Scratch(
        np.empty((n_probes, CHUNK_ROWS), dtype=np.uint16),
        places,
        np.empty((2, len(places)), dtype=np.float32),
        np.empty(len(places), dtype=np.uint16),
        np.empty(_BLOCKS, dtype=np.int32),
    )


@njit(cache=True, nogil=True)
def raise_unit(listing, i, unit):
    """Make one probe's sums relative to a higher estimate."""
    if listing.unit[i] > -np.inf:
        for m in range(listing.sharpness.shape[0]):
            shrink = math.exp(-listing.sharpness[m] * (unit - listing.unit[i]))
            for kind in range(2):
                own = listing.sums[i, kind, m]
                own[MASS] *= shrink
                own[MOMENT] *= shrink
                for number in (SQUARE_MASS, SQUARE_MOMENT, SQUARE_SECOND_MOMENT):
                    own[number] *= shrink * shrink
    listing.unit[i] = unit


@njit(cache=True, nogil=True, error_model="numpy")
def _weigh_dropped(columns, width, i, listing):
    """Add rows that were listed for a time to the sums of probe ``i``."""
    whole = -(-width // WEIGHED_AT_ONCE) * WEIGHED_AT_ONCE
    columns[:, width:whole] = 0.0
    if listing.cut[i] > listing.unit[i]:
        raise_unit(listing, i, np.float64(listing.cut[i]))
    estimates, variances, bases, there = columns
    for m in range(listing.sharpness.shape[0]):
        a, unit = np.float32(listing.sharpness[m]), np.float32(listing.unit[i])
        found = weigh_known(estimates, variances, bases, there, whole, a, unit, (a,))
        for number in range(N_SUMS):
            listing.sums[i, 1, m, number] += found[number]


@njit(cache=True, nogil=True)
def raise_cut(listing, i, cut):
    """List only rows with a key above ``cut``; the others are weighed."""
    filled, kept = listing.filled[i], 0
    listing.cut[i] = max(cut, listing.cut[i])
    keys, estimates, variances = listing.keys[i], listing.estimates[i], listing.variances[i]
    bases, rows = listing.bases[i], listing.rows[i]
    dropped, columns = 0, np.empty((4, CHUNK_ROWS), dtype=np.float32)
    for j in range(filled):
        if keys[j] > cut:
            keys[kept], estimates[kept], variances[kept] = keys[j], estimates[j], variances[j]
            bases[kept], rows[kept] = bases[j], rows[j]
            kept += 1
        else:
            columns[0, dropped], columns[1, dropped], columns[2, dropped] = estimates[j], variances[j], bases[j]
            columns[3, dropped] = 1.0
            dropped += 1
            if dropped == CHUNK_ROWS:
                _weigh_dropped(columns, dropped, i, listing)
                dropped = 0
    if dropped:
        _weigh_dropped(columns, dropped, i, listing)
    listing.filled[i] = kept


@njit(cache=True, nogil=True)
def _weight_of(codes, row):
    return np.float32(codes.scale[0]) + np.float32(codes.scale[1]) * np.float32(codes.weights[row])


@njit(cache=True, nogil=True)
def _deviation_of(codes, row):
    return np.float32(codes.scale[2]) + np.float32(codes.scale[3]) * np.float32(codes.deviations[row])


@njit(cache=True, nogil=True, error_model="numpy")
def _set_bars(extremes, block, bars, left, z, least, step):
    """Of some blocks: a whole number that the sums of all rows whose keys are above the cut are above; −1: of no use.

    ``left`` is the cut without what keys of all rows have in common, ``step`` the inverse of the tables'.
    """
    inverse, steep = extremes[0 if left >= 0 else 1, block:], extremes[2, block:]
    for number in range(bars.shape[0]):
        lowest = left * inverse[number] - z * steep[number]
        # Less a little for float32, in which keys are computed.
        bar = (lowest - np.float32(1e-5) * abs(lowest) - least) * step - np.float32(1.0)
        bars[number] = np.int32(min(max(bar, np.float32(-1.0)), np.float32(65535.0)))


@njit(cache=True, nogil=True)
def _list_rows(codes, begin, width, i, probes, scratch, listing):
    """List the rows of a chunk whose keys are above the cut; there is space for all."""
    cut, filled, best = listing.cut[i], listing.filled[i], listing.best[i]
    step, least, base = probes.step[i], probes.least[i], probes.base[i]
    beta, rounding, z = probes.beta[i], probes.rounding[i], probes.z
    first, weight_step = np.float32(codes.scale[0]), np.float32(codes.scale[1])
    first_deviation, deviation_step = np.float32(codes.scale[2]), np.float32(codes.scale[3])
    keys, estimates, variances = listing.keys[i], listing.estimates[i], listing.variances[i]
    bases, rows, sums = listing.bases[i], listing.rows[i], scratch.sums[i]
    bars = scratch.bars[: -(-width // BLOCK_ROWS)]
    _set_bars(codes.extremes, begin // BLOCK_ROWS, bars, cut - beta - base, z, least, np.float32(1.0) / step)
    some_gone = codes.gone.shape[0] > 0
    for number in range(bars.shape[0]):
        at, bar = number * BLOCK_ROWS, bars[number]
        found = higher_of_64(sums, at, bar) if bar >= 0 else ~np.uint64(0)
        while found:
            j = at + first_bit(found)
            found &= found - np.uint64(1)
            row = begin + j
            if j >= width or (some_gone and codes.gone[row]):
                continue
            deviation = first_deviation + deviation_step * np.float32(codes.deviations[row])
            weight = first + weight_step * np.float32(codes.weights[row])
            estimate = base + weight * (step * np.float32(sums[j]) + least)
            key = estimate + z * deviation + beta
            if key > cut:
                keys[filled], estimates[filled], bases[filled] = key, estimate, base
                variances[filled] = deviation * deviation + rounding
                rows[filled] = codes.start + row
                filled += 1
                best = max(best, key)
    listing.filled[i], listing.best[i] = filled, best


@njit(cache=True, nogil=True)
def _weigh_sample(i, probes, scratch, listing):
    """Weigh the rows of the sample whose keys are not above the cut; what of the sample is nobody has no weight."""
    sums, places, cut = scratch.sums[i], scratch.places, listing.cut[i]
    size = places.shape[0]
    if size < CHUNK_ROWS:
        gathered = scratch.gathered
        for k in range(size):
            gathered[k] = sums[places[k]]
        sums = gathered
    if cut > listing.unit[i]:
        raise_unit(listing, i, np.float64(cut))  # no estimate of those weighed is above the cut
    weights, deviations = scratch.columns
    numbers = probes.step[i], probes.least[i], probes.base[i], probes.beta[i], probes.rounding[i], probes.z, cut
    for m in range(listing.sharpness.shape[0]):
        a, unit = np.float32(listing.sharpness[m]), np.float32(listing.unit[i])
        found = weigh_sampled(sums, weights, deviations, deviations, size, a, unit, numbers)
        for number in range(N_SUMS):
            listing.sums[i, 0, m, number] += found[number]


@njit(cache=True, nogil=True)
def _unpack_sample(codes, begin, width, scratch):
    """Weights and deviations of the sample in a chunk; a negative deviation where a place is nobody's."""
    weights, deviations = scratch.columns
    if scratch.places.shape[0] == CHUNK_ROWS and width == CHUNK_ROWS and codes.gone.shape[0] == 0:
        first, weight_step = np.float32(codes.scale[0]), np.float32(codes.scale[1])
        first_deviation, deviation_step = np.float32(codes.scale[2]), np.float32(codes.scale[3])
        own, spreads = codes.weights[begin : begin + width], codes.deviations[begin : begin + width]
        for k in range(CHUNK_ROWS):  # without a branch, so that the compiler takes a vector at once
            weights[k] = first + weight_step * np.float32(own[k])
            deviations[k] = first_deviation + deviation_step * np.float32(spreads[k])
        return
    for k in range(scratch.places.shape[0]):
        row = begin + scratch.places[k]
        if scratch.places[k] >= width or (codes.gone.shape[0] and codes.gone[row]):
            weights[k], deviations[k] = 0.0, -1.0
        else:
            weights[k], deviations[k] = _weight_of(codes, row), _deviation_of(codes, row)


@njit(cache=True, nogil=True)
def _raise_to_best(i, listing):
    """Raise the cut as far as the highest key allows (``Listing.lower``), where enough rows stay listed."""
    best = listing.best[i] - listing.lower[i]
    cut = np.float32(min(best + listing.rise[i], max(best, listing.decisive)))
    if cut > listing.cut[i]:
        above = 0
        for j in range(listing.filled[i]):
            above += listing.keys[i, j] > cut
        if above >= listing.kept:
            raise_cut(listing, i, cut)


@njit(cache=True, nogil=True)
def read_codes(codes, probes, scratch, listing):
    """List and weigh some rows for all probes."""
    capacity = listing.keys.shape[1]
    for begin in range(codes.first, codes.last, CHUNK_ROWS):
        width = min(CHUNK_ROWS, codes.last - begin)
        blocks = -(-width // BLOCK_ROWS)
        look_up(codes.codes, begin // BLOCK_ROWS, blocks, probes.tables, 0, probes.tables.shape[0], scratch.sums)
        _unpack_sample(codes, begin, width, scratch)
        for i in range(probes.tables.shape[0]):
            if listing.sharpness.shape[0] and listing.cut[i] > -np.inf:
                _weigh_sample(i, probes, scratch, listing)
            _list_rows(codes, begin, width, i, probes, scratch, listing)
            if listing.filled[i] > capacity - CHUNK_ROWS:
                middle = listing.filled[i] // 2
                raise_cut(listing, i, np.partition(listing.keys[i, : listing.filled[i]], middle)[middle])
            elif begin // CHUNK_ROWS % RAISED_EVERY == RAISED_EVERY - 1 and listing.decisive < np.inf:
                _raise_to_best(i, listing)


@njit(cache=True, nogil=True)
def set_first_cuts(codes, probes, blocks, share, scratch, cuts, spreads):
    """Write a key that about a ``share`` of the rows of some blocks are above to ``cuts`` (n,), and the spread of all."""
    n, wanted = probes.tables.shape[0], blocks.shape[0] * BLOCK_ROWS
    keys = np.empty((n, wanted), dtype=np.float32)
    for number in range(blocks.shape[0]):
        look_up(codes.codes, blocks[number], 1, probes.tables, 0, n, scratch.sums)
        for j in range(BLOCK_ROWS):
            row = blocks[number] * BLOCK_ROWS + j
            weight, deviation = _weight_of(codes, row), _deviation_of(codes, row)
            for i in range(n):
                estimate = probes.base[i] + weight * (probes.step[i] * np.float32(scratch.sums[i, j]) + probes.least[i])
                keys[i, number * BLOCK_ROWS + j] = estimate + probes.z * deviation + probes.beta[i]
    place = max(wanted - 1 - int(share * wanted), 0)
    for i in range(n):
        cuts[i], spreads[i] = np.partition(keys[i], place)[place], keys[i].std()
