"""Levels: down to which key the listed rows of a probe are scored, and what scores and sums say in the end.

Every worker has listed rows of its own; arrays are (workers, n, …).
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"
# Compiled functions have no Python types to check.

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from holue.evidence.binary.loops.completion import complete
from holue.evidence.binary.loops.estimate_loops import Listing, raise_cut
from holue.evidence.binary.loops.weight_loops import (
    MASS,
    MOMENT,
    N_SUMS,
    SQUARE_MASS,
    SQUARE_MOMENT,
    SQUARE_SECOND_MOMENT,
)
from holue.sphere.compiled import njit

_BINS = 1024  # of keys, to find how many are above a level


class Wanted(NamedTuple):
    """What scores are for."""

    first: int  # rows that are scored in any case
    top_k: int
    decisive: float  # infinite where the whole top is promised
    more: float  # the whole top is certain so much above the level
    affordable: int  # rows that are scored for the whole top where the decision alone is promised
    rise: npt.NDArray[np.float64]  # (n,) see ``Listing``


class Model(NamedTuple):
    """What completes the sums."""

    sharpness: npt.NDArray[np.float64]  # (m,)
    weighed: npt.NDArray[np.int64]  # (m,) where a sharpness is among those of the listing, −1 where it is not
    beta: npt.NDArray[np.float64]  # (n,)
    z: float
    typical: float
    shared: float
    rate: float  # of the sample
    places: float  # rows it was drawn from
    n_subjects: int


@njit(cache=True, nogil=True)
def _level_of(listing, i, k):
    """A key that at least k rows of a probe are above, and not many more; −∞ where there are no more than k."""
    workers = listing.keys.shape[0]
    if listing.filled[:, i].sum() <= k:
        return np.float32(-np.inf)
    least, most = np.float32(np.inf), np.float32(-np.inf)
    for worker in range(workers):
        for j in range(listing.filled[worker, i]):
            key = listing.keys[worker, i, j]
            least, most = min(least, key), max(most, key)
    if least == most:
        return np.float32(-np.inf)
    counts = np.zeros(_BINS, dtype=np.int64)
    scale = np.float32(_BINS - 1) / (most - least)
    for worker in range(workers):
        for j in range(listing.filled[worker, i]):
            counts[int((listing.keys[worker, i, j] - least) * scale)] += 1
    above, bin_ = 0, _BINS
    while above < k:
        bin_ -= 1
        above += counts[bin_]
    # Just below the bin, whose lower end was rounded.
    return least + (np.float32(bin_) - np.float32(0.01)) / scale


@njit(cache=True, nogil=True)
def set_first_levels(listing, cut, first, levels):
    """Write the keys above which so many rows of each probe are to ``levels`` (n,), or the cut where that is higher."""
    for i in range(levels.shape[0]):
        levels[i] = max(_level_of(listing, i, first), cut[i])


@njit(cache=True, nogil=True)
def set_levels(listing, scores, cut, wanted, levels):
    """Write the keys down to which the rows of each probe are scored, once those above ``levels`` were."""
    workers = listing.keys.shape[0]
    for i in range(levels.shape[0]):
        known = 0
        for worker in range(workers):
            for j in range(listing.filled[worker, i]):
                known += not np.isnan(scores[worker, i, j])
        if known == 0:
            levels[i] = cut[i]
            continue
        found = np.empty(known)
        known = 0
        for worker in range(workers):
            for j in range(listing.filled[worker, i]):
                if not np.isnan(scores[worker, i, j]):
                    found[known] = scores[worker, i, j]
                    known += 1
        best, k = found.max(), wanted.top_k
        level = np.inf
        if k:
            kth = np.partition(found, known - k)[known - k] if k <= known else -np.inf
            if wanted.decisive == np.inf:
                level = kth - wanted.more
            else:
                level = max(best, wanted.decisive) if best < wanted.decisive else best
                above = 0
                for worker in range(workers):
                    for j in range(listing.filled[worker, i]):
                        above += listing.keys[worker, i, j] > kth - wanted.more
                if above <= wanted.affordable:
                    level = min(level, kth - wanted.more)
        level = min(level, best + wanted.rise[i], np.float64(levels[i]))
        # Just below the level: a row whose key is the level itself is scored.
        levels[i] = max(np.nextafter(np.float32(level), np.float32(-np.inf)), cut[i])


@njit(cache=True, nogil=True)
def _sums_together(listing, i, rate, places, unit, sums, sampled):
    """The sums of all workers relative to one unit: those of the sample count for all, and what sampling adds."""
    sums[:], sampled[:] = 0.0, 0.0
    one = 1.0 / rate
    for m in range(listing.sharpness.shape[0]):
        for worker in range(listing.unit.shape[0]):
            if listing.unit[worker, i] == -np.inf:
                continue
            shrink = math.exp(listing.sharpness[m] * (listing.unit[worker, i] - unit))
            own = listing.sums[worker, i, :, m]
            for number in range(N_SUMS):
                factor = shrink if number in (MASS, MOMENT) else shrink * shrink
                sums[m, number] += factor * (one * own[0, number] + own[1, number])
            for number, kind in enumerate((SQUARE_MASS, SQUARE_MOMENT, SQUARE_SECOND_MOMENT)):
                sampled[m, number] += (one - 1.0) * one * shrink * shrink * own[0, kind]
            sampled[m, 3] += shrink * own[0, MASS]
        # The sample has a fixed number of places: only what varies between them adds to the error.
        sampled[m, 3] = (one - 1.0) * one * sampled[m, 3] ** 2 / max(rate * places, 1.0)


@njit(cache=True, nogil=True, error_model="numpy")
def complete_probes(listing, scores, levels, model, first, last, results, top, places, scored):
    """Write what was seen of the probes ``first .. last``.

    ``results`` (n, 4, m) are log-mass, mean score and their standard errors; ``top`` (n, k) the best scores and ``places`` their
    rows among all, ``−1`` for nobody, of equal scores the earlier row first; ``scored`` (n,) counts. The listing is left with the
    scored.
    """
    workers, top_k, m = listing.keys.shape[0], top.shape[1], listing.sharpness.shape[0]
    sums, sampled = np.empty((m, N_SUMS)), np.empty((m, 4))
    for i in range(first, last):
        count = 0
        for worker in range(workers):
            for j in range(listing.filled[worker, i]):
                count += listing.keys[worker, i, j] > levels[i]
        scored[i] = count
        s, sigma, base, cuts = np.empty((4, count))
        cut = -np.inf if count == model.n_subjects else np.float64(levels[i])
        at, filled = 0, 0
        for worker in range(workers):
            for j in range(listing.filled[worker, i]):
                if listing.keys[worker, i, j] <= levels[i]:
                    continue
                s[at] = scores[worker, i, j]
                sigma[at] = math.sqrt(listing.variances[worker, i, j])
                base[at] = listing.bases[worker, i, j]
                cuts[at] = cut - model.z * sigma[at] - model.beta[i]
                if top_k and (filled < top_k or s[at] >= top[i, top_k - 1]):
                    row = listing.rows[worker, i, j]
                    place = filled
                    while place > 0 and (
                        top[i, place - 1] < s[at] or (top[i, place - 1] == s[at] and places[i, place - 1] > row)
                    ):
                        if place < top_k:
                            top[i, place], places[i, place] = top[i, place - 1], places[i, place - 1]
                        place -= 1
                    if place < top_k:
                        top[i, place], places[i, place] = s[at], row
                        filled = min(filled + 1, top_k)
                at += 1
        unit = -np.inf
        for worker in range(workers):
            own = Listing(
                listing.keys[worker],
                listing.estimates[worker],
                listing.variances[worker],
                listing.bases[worker],
                listing.rows[worker],
                listing.filled[worker],
                listing.cut[worker],
                listing.best[worker],
                listing.lower,
                listing.rise,
                listing.decisive,
                listing.kept,
                listing.sharpness,
                listing.unit[worker],
                listing.sums[worker],
            )
            raise_cut(own, i, levels[i])
            unit = max(unit, listing.unit[worker, i])
        _sums_together(listing, i, model.rate, model.places, unit, sums, sampled)
        complete(
            s,
            sigma,
            base,
            cuts,
            model.sharpness,
            model.weighed,
            unit,
            sums,
            sampled,
            model.typical,
            model.shared,
            results[i],
        )
