"""Binary scan: evidence from one bit per coordinate, with exact scores of all who can matter.

One pass over the codes estimates every score, lists the rows with the highest keys, and weighs all others
(``estimate_loops.py``). The listed are scored again from the exact rows, down to the key that the probe asks for. A subject who
scores more than ``C``, the highest key that was left out, is among the listed with probability ``1 − MISSED`` over the draw of
the rotation, whoever it is (who is best does not depend on the rotation, so no sum over all rows is needed). So with that chance

- the best subject is that of an exact scan where its score is above ``C``,
- and the decision is that of an exact scan where ``C`` is at most the threshold, too: nobody left out reaches it.

A probe of which neither can be said is scanned exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from holue.evidence.binary.completion import complete
from holue.evidence.binary.estimate_loops import (
    N_SUMS,
    Codes,
    Listing,
    Probes,
    raise_cut,
    read_codes,
    sample_keys,
    scratch_for,
)
from holue.evidence.binary.part import BLOCK_ROWS, BinaryPart
from holue.evidence.binary.rotation import deviations
from holue.evidence.binary.scoring import score_listed
from holue.evidence.binary.tables import Tables
from holue.evidence.block import NOBODY
from holue.evidence.canonical_top import best_places
from holue.evidence.evidence import Evidence, concatenate
from holue.evidence.kernels.exponential_sums import CHUNK
from holue.evidence.precision import EVERY_PLACE, Precision
from holue.evidence.scan import check_shapes, check_sharpness, check_top_k, n_threads, scan
from holue.evidence.threads.thread_pool import parallel_map
from holue.gallery.embeddings import Float64Array, FloatArray

MISSED = 1e-6
"""At most the probability that a probe's top, or its decision, is not that of an exact scan."""
PROBES_PER_PASS = 32
"""Probes that read the codes together."""
FEWEST_LISTED, LISTED_SHARE = 4096, 1 / 64
"""Rows a probe may list, at least and of all."""
SCORED_FIRST, SCORED_FIRST_SHARE = 256, 1 / 1024
"""Rows that are scored in any case, at least and of all."""
SCORED_SHARE = 1 / 256
"""Of all rows: so many are scored so that the whole top is promised, not the decision alone."""
SURE_DEVIATIONS, SURE_NATS = 3.0, 2.0
"""Rows are scored down to so many deviations and nats below the best, so that hardly one that weighs anything is missing."""
LOWER_DEVIATIONS = 4.0
"""The best score is hardly ever so many deviations below the best estimate."""
STEEP = 3.0
"""Sharpness times deviation from which a row's estimate says too little about its weight."""
SAMPLED_FROM, SAMPLED_BLOCKS = 65_536, 16
"""From so many rows on a first cut is taken from so many blocks."""
NO_WEIGHT = 21.0
"""Nats below everything: what is not listed is not weighed where all of it together would be less."""


@dataclass(frozen=True, eq=False)
class BinaryGallery:
    """Binary parts of one gallery."""

    parts: tuple[BinaryPart, ...]

    def __len__(self) -> int:
        return sum(part.n_living for part in self.parts)

    def __repr__(self) -> str:
        return f"BinaryGallery({len(self)} subjects, d={self.parts[0].dim})"

    @property
    def nbytes(self) -> int:
        """Bytes that a scan reads, without the exact rows."""
        return sum(part.nbytes for part in self.parts)

    @property
    def typical_deviation(self) -> float:
        """The mean of the parts' typical deviations, by their rows."""
        return float(
            np.average([part.typical_deviation() for part in self.parts], weights=[len(part) for part in self.parts])
        )


def scan_binary(
    directions: FloatArray,
    gallery: BinaryGallery,
    sharpness: npt.ArrayLike,
    *,
    top_k: int = 5,
    decisive: float | None = None,
    threads: int | None = None,
) -> Evidence:
    """Evidence of a gallery about unit ``directions`` (n, d), from its codes and some of its exact rows.

    The top k is that of :func:`holue.evidence.scan.scan` with probability ``1 − MISSED`` for each probe. With a ``decisive``
    score this holds for the best subject where it scores at least that; and where it does not, that nobody does: all that a
    decision at this threshold needs. The rest of the top is then the best of those scored, certain above ``precision.top_from``.

    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(3000, 64)).astype(np.float32)
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> seen = scan_binary(rows[:1], BinaryGallery((BinaryPart.of_rows(rows, np.arange(3000)),)), [10.0], top_k=1)
    >>> seen.top_index.tolist(), bool(0 < seen.precision.log_mass_error[0, 0] < 0.1)
    ([[0]], True)
    """
    a, top_k = check_sharpness(sharpness), check_top_k(top_k)
    check_shapes(directions, len(gallery), gallery.parts[0].dim)
    probes = np.ascontiguousarray(directions, dtype=np.float64)
    n_rows = sum(map(len, gallery.parts))
    groups = []
    for first in range(0, len(probes), PROBES_PER_PASS):
        some = probes[first : first + PROBES_PER_PASS]
        # A lookup adds four coordinates, for sixteen times as many rows as a product.
        workers = min(n_threads(threads, len(some) * n_rows * gallery.parts[0].dim // 16), -(-n_rows // CHUNK))
        groups.append(_Pass(gallery, some, a, top_k, decisive, workers).run())
    seen = concatenate([evidence for evidence, _ in groups]) if len(groups) > 1 else groups[0][0]
    certain = np.concatenate([each for _, each in groups])
    return seen if certain.all() else _with_exact(seen, ~certain, probes, gallery, threads)


class _Pass:
    """One reading of the codes by some probes."""

    def __init__(
        self,
        gallery: BinaryGallery,
        probes: Float64Array,
        sharpness: Float64Array,
        top_k: int,
        decisive: float | None,
        workers: int,
    ) -> None:
        self.gallery, self.probes, self.top_k, self.decisive, self.workers = gallery, probes, top_k, decisive, workers
        self.sharpness = sharpness
        self.n_rows = sum(map(len, gallery.parts))
        self.starts = np.cumsum([0, *map(len, gallery.parts)])
        self.width = gallery.parts[0].width
        self.z = deviations(self.width, MISSED)
        self.largest = max(part.largest_deviation for part in gallery.parts)
        # The whole top is missed with the same probability, shared among its places.
        self.more = (deviations(self.width, MISSED / max(top_k, 1)) - self.z) * self.largest
        self.typical = gallery.typical_deviation
        self.shared = max(part.shared for part in gallery.parts)
        self.mean_factor = max(part.mean_factor for part in gallery.parts)
        tables = Tables.of(probes)
        self.beta = np.max([tables.error_in(part) for part in gallery.parts], axis=0)
        self.read = [
            Probes(tables.entries, tables.step, tables.least, probes @ part.centre, self.beta, self.z)
            for part in gallery.parts
        ]
        y = sharpness * self.typical
        rest = 0.5 * y * y * 0.9 < np.log(max(self.n_rows, 2)) + NO_WEIGHT
        self.weighed = np.where(rest, np.cumsum(rest) - 1, -1)
        self.first = int(max(SCORED_FIRST, 2 * top_k, self.n_rows * SCORED_FIRST_SHARE))
        steep = sharpness[y > STEEP]
        sure = SURE_DEVIATIONS * self.typical + SURE_NATS / float(steep.min()) if len(steep) else -np.inf
        self.rise = self.z * self.typical + self.beta - sure

    def run(self) -> tuple[Evidence, npt.NDArray[np.bool_]]:
        """Evidence, and of which probes it is what was promised."""
        listings = self._list()
        cut = np.max([listing.cut for listing in listings], axis=0)
        scores = [np.full(listing.keys.shape, np.nan) for listing in listings]
        levels = np.array([self._first_level(listings, i) for i in range(len(self.probes))], dtype=np.float32)
        self._score(listings, np.maximum(levels, cut), scores)
        levels = np.array(
            [self._level(listings, scores, i, levels[i]) for i in range(len(self.probes))], dtype=np.float32
        )
        self._score(listings, np.maximum(levels, cut), scores)
        return self._complete(listings, np.maximum(levels, cut), scores)

    def _codes(self, number: int, first: int, last: int) -> Codes:
        part = self.gallery.parts[number]
        gone = NOBODY if part.gone is None else part.gone
        start = int(self.starts[number])
        return Codes(part.codes, part.weights, part.deviations, part.scale, gone, start, first, last)

    def _list(self) -> list[Listing]:
        n = len(self.probes)
        wanted = int(max(FEWEST_LISTED, self.n_rows * LISTED_SHARE))
        capacity = 2 * (wanted // self.workers + CHUNK)
        cut = self._first_cut(1.5 * wanted / self.n_rows)
        sharpness = self.sharpness[self.weighed >= 0]

        def read(worker: int) -> None:
            for number, part in enumerate(self.gallery.parts):
                chunks = -(-len(part) // CHUNK)
                first, last = (CHUNK * (each * chunks // self.workers) for each in (worker, worker + 1))
                if first < last:
                    codes = self._codes(number, first, min(last, len(part)))
                    read_codes(codes, self.read[number], 0, n, scratch[worker], listings[worker])

        listings = [
            Listing(
                np.empty((n, capacity), dtype=np.float32),
                np.empty((n, capacity), dtype=np.float32),
                np.empty((n, capacity), dtype=np.float32),
                np.empty((n, capacity), dtype=np.float32),
                np.empty((n, capacity), dtype=np.int64),
                np.zeros(n, dtype=np.int64),
                cut.copy(),
                np.full(n, -np.inf, dtype=np.float32),
                (self.z + LOWER_DEVIATIONS) * self.largest + self.beta,
                self.rise,
                np.inf if self.decisive is None or self.top_k == 0 else self.decisive,
                max(self.first // self.workers, 1),
                sharpness,
                np.full(n, -np.inf),
                np.zeros((n, len(sharpness), N_SUMS)),
            )
            for _ in range(self.workers)
        ]
        scratch = [scratch_for(n) for _ in range(self.workers)]
        parallel_map(read, range(self.workers))
        return listings

    def _first_cut(self, share: float) -> npt.NDArray[np.float32]:
        """A key that about so many of the rows are above; without it every row would be listed until the list is full."""
        n = len(self.probes)
        cut = np.full(n, -np.inf, dtype=np.float32)
        number = int(np.argmax([len(part) for part in self.gallery.parts]))
        whole = len(self.gallery.parts[number]) // BLOCK_ROWS
        if len(self.gallery.parts[number]) < SAMPLED_FROM:
            return cut
        blocks = np.linspace(0, whole - 1, SAMPLED_BLOCKS).astype(np.int64)
        scratch, keys = scratch_for(1), np.empty(len(blocks) * BLOCK_ROWS)
        codes = self._codes(number, 0, whole * BLOCK_ROWS)
        for i in range(n):
            sample_keys(codes, self.read[number], i, blocks, scratch, keys)
            cut[i] = np.quantile(keys, 1 - share)
        return cut

    def _first_level(self, listings: Sequence[Listing], i: int) -> float:
        keys = np.concatenate([listing.keys[i, : listing.filled[i]] for listing in listings])
        return float(np.partition(keys, -self.first)[-self.first]) if len(keys) > self.first else -np.inf

    def _score(self, listings: Sequence[Listing], levels: npt.NDArray[np.float32], scores: list[Float64Array]) -> None:
        def work(worker: int) -> None:
            for number, part in enumerate(self.gallery.parts):
                score_listed(
                    part.exact, int(self.starts[number]), self.probes, listings[worker], levels, scores[worker]
                )

        parallel_map(work, range(self.workers))

    def _level(self, listings: Sequence[Listing], scores: Sequence[Float64Array], i: int, first: float) -> float:
        """The key down to which the rows of a probe are scored."""
        known = np.concatenate([own[i, : listing.filled[i]] for listing, own in zip(listings, scores)])
        found = known[~np.isnan(known)]
        if len(found) == 0:
            return -np.inf
        best = float(found.max())
        kth = float(np.partition(found, -self.top_k)[-self.top_k]) if 0 < self.top_k <= len(found) else -np.inf
        level = np.inf
        if self.top_k:
            if self.decisive is None:
                level = kth - self.more
            else:
                level = best if best >= self.decisive else self.decisive
                above = sum(int((listing.keys[i, : listing.filled[i]] > kth - self.more).sum()) for listing in listings)
                if above <= self.n_rows * SCORED_SHARE:
                    level = min(level, kth - self.more)
        level = min(level, best + self.rise[i], first)
        # Just below the level: a row whose key is the level itself is scored.
        return float(np.nextafter(np.float32(level), np.float32(-np.inf)))

    def _complete(
        self, listings: Sequence[Listing], levels: npt.NDArray[np.float32], scores: Sequence[Float64Array]
    ) -> tuple[Evidence, npt.NDArray[np.bool_]]:
        n, m, n_subjects = len(self.probes), len(self.sharpness), len(self.gallery)
        results = np.empty((n, 4, m))
        top_scores, top_index = np.full((n, self.top_k), -np.inf), np.full((n, self.top_k), -1, dtype=np.int64)
        ceiling = np.empty(n)
        certain = np.ones(n, dtype=bool)
        for i in range(n):
            exact, deviation, bases, rows = [], [], [], []
            for listing, own in zip(listings, scores):
                there = np.flatnonzero(listing.keys[i, : listing.filled[i]] > levels[i])
                exact.append(own[i, there])
                deviation.append(np.sqrt(listing.variances[i, there]))
                bases.append(listing.bases[i, there])
                rows.append(listing.rows[i, there])
                raise_cut(listing, i, levels[i])
            s, sigma, base, at = (np.concatenate(each) for each in (exact, deviation, bases, rows))
            everybody = len(s) == n_subjects
            cut = -np.inf if everybody else float(levels[i])
            unit, sums = _together(listings, i)
            sigma, base = sigma.astype(np.float64), base.astype(np.float64)
            cuts = cut - self.z * sigma - self.beta[i]
            complete(
                s, sigma, base, cuts, self.sharpness, self.weighed, unit, sums, self.typical, self.shared, results[i]
            )
            if self.top_k:
                best, index, _ = best_places(s[None], self._numbers(at)[None], self.top_k)
                top_scores[i], top_index[i] = best[0], index[0]
            ceiling[i] = EVERY_PLACE if everybody else cut + self.more
            if self.top_k and not everybody:
                if self.decisive is None:
                    certain[i] = top_scores[i, -1] > ceiling[i]
                else:
                    certain[i] = top_scores[i, 0] > cut if top_scores[i, 0] >= self.decisive else cut <= self.decisive
        zero = np.zeros((n, m))
        log_mass, mean_score, log_mass_error, mean_score_error = np.moveaxis(results, 1, 0)
        precision = Precision(zero, zero, log_mass_error, self.mean_factor * mean_score_error, np.zeros(n), ceiling)
        return Evidence(top_scores, top_index, log_mass, mean_score, n_subjects, self.sharpness, precision), certain

    def _numbers(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        if len(self.gallery.parts) == 1:
            return self.gallery.parts[0].numbers[rows]
        numbers = np.empty(len(rows), dtype=np.int64)
        for part, start in zip(self.gallery.parts, self.starts):
            here = (rows >= start) & (rows < start + len(part))
            numbers[here] = part.numbers[rows[here] - start]
        return numbers


def _together(listings: Sequence[Listing], i: int) -> tuple[float, Float64Array]:
    """The sums of all workers, relative to one unit."""
    unit = max(float(listing.unit[i]) for listing in listings)
    total = np.zeros_like(listings[0].sums[i])
    for listing in listings:
        if np.isfinite(listing.unit[i]):
            shrink = np.exp(listing.sharpness * (listing.unit[i] - unit))[:, None]
            total += listing.sums[i] * np.concatenate([shrink, shrink, *[shrink**2] * (N_SUMS - 2)], axis=1)
    return unit, total


def _with_exact(
    seen: Evidence, rows: npt.NDArray[np.bool_], probes: Float64Array, gallery: BinaryGallery, threads: int | None
) -> Evidence:
    """The same evidence with some probes scanned exactly."""
    blocks = [part.block for part in gallery.parts]
    narrow = probes[rows].astype(np.result_type(blocks[0].rows.dtype, np.float32))
    exact = scan(narrow, blocks, seen.sharpness, top_k=seen.top_index.shape[1], threads=threads)
    exact = replace(exact, precision=Precision.exact(*exact.log_mass.shape), sums=None)
    order = np.argsort(np.concatenate([np.flatnonzero(~rows), np.flatnonzero(rows)]))
    return concatenate([seen.take(np.flatnonzero(~rows)), exact]).take(order)
