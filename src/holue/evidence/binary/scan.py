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

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from holue.evidence.binary.loops.estimate_loops import (
    CHUNK_ROWS,
    Codes,
    Listing,
    Probes,
    read_codes,
    sample_places,
    scratch_for,
    set_first_cuts,
)
from holue.evidence.binary.loops.levels import Model, Wanted, complete_probes, set_first_levels, set_levels
from holue.evidence.binary.loops.scoring import score_listed
from holue.evidence.binary.loops.weight_loops import N_SUMS
from holue.evidence.binary.part import BLOCK_ROWS, BinaryPart
from holue.evidence.binary.rotation import deviations
from holue.evidence.binary.tables import CHANCE, Tables
from holue.evidence.block import NOBODY
from holue.evidence.canonical_top import best_places
from holue.evidence.evidence import NO_SUBJECT, Evidence, concatenate
from holue.evidence.precision import EVERY_PLACE, Precision
from holue.evidence.scan import check_shapes, check_sharpness, check_top_k, n_threads, scan
from holue.evidence.threads.thread_pool import parallel_map, slices
from holue.gallery.embeddings import Float64Array, FloatArray

MISSED = 1e-6
"""At most the probability that a probe's top, or its decision, is not that of an exact scan."""
PROBES_PER_PASS = 32
"""Probes that read the codes together."""
FEWEST_LISTED, LISTED_SHARE = {1: 4096, 2: 1024}, {1: 1 / 64, 2: 1 / 512}
"""Rows a probe may list, at least and of all, by the bits per coordinate; with fewer, standard errors do not hold."""
FEW_PROBES, FEW_LISTED_SHARE = 4, 1 / 8
"""So many probes may list more, where the decision asks for it: scoring an eighth of the rows takes less than reading all."""
SCORED_FIRST = 256
"""Rows that are scored in any case, at least."""
SCORED_SHARE = 1 / 256
"""Of all rows: so many are scored so that the whole top is promised, not the decision alone."""
SURE_DEVIATIONS, SURE_NATS = 3.0, 2.0
"""Rows are scored down to so many deviations and nats below the best, so that hardly one that weighs anything is missing."""
LOWER_DEVIATIONS = 4.0
"""The best score is hardly ever so many deviations below the best estimate."""
STEEP = 3.0
"""Sharpness times deviation from which a row's estimate says too little about its weight."""
CUT_FROM, CUT_BLOCKS = 4096, 16
"""From so many rows on a first cut is taken from so many blocks."""
WEIGHED_ROWS, SAMPLE_ERROR = 65_536, 0.01
"""Rows that are weighed in a larger gallery, and more where the sample's own relative error would be above this."""
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
        """The root of the mean square of the parts' typical deviations, by their rows."""
        squares = [float(part.typical[1]) ** 2 for part in self.parts]
        return float(np.sqrt(np.average(squares, weights=[len(part) for part in self.parts])))


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
        # A lookup adds several coordinates, for sixteen times as many rows as a product.
        workers = min(n_threads(threads, len(some) * n_rows * gallery.parts[0].dim // 16), -(-n_rows // CHUNK_ROWS))
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
        # Tables round an estimate by more than β with another small chance.
        self.z = deviations(self.width, MISSED - CHANCE)
        self.largest = max(part.largest_deviation for part in gallery.parts)
        # The whole top is missed with the same probability, shared among its places.
        self.more = (deviations(self.width, (MISSED - CHANCE) / max(top_k, 1)) - self.z) * self.largest
        self.typical = gallery.typical_deviation
        self.shared = max(part.shared for part in gallery.parts)
        self.mean_factor = max(part.mean_factor for part in gallery.parts)
        tables = {planes: Tables.of(probes, planes) for planes in {part.planes for part in gallery.parts}}
        self.beta = np.max([tables[part.planes].error_in(part) for part in gallery.parts], axis=0)
        self.read = [self._probes(tables[part.planes], part) for part in gallery.parts]
        y = sharpness * self.typical
        rest = 0.5 * y * y * 0.9 < np.log(max(self.n_rows, 2)) + NO_WEIGHT
        self.weighed = np.where(rest, np.cumsum(rest) - 1, -1)
        self.first = max(SCORED_FIRST, 2 * top_k)
        steep = sharpness[y > STEEP]
        sure = SURE_DEVIATIONS * self.typical + SURE_NATS / float(steep.min()) if len(steep) else -np.inf
        self.rise = self.z * self.typical + self.beta - sure

    def run(self) -> tuple[Evidence, npt.NDArray[np.bool_]]:
        """Evidence, and of which probes it is what was promised."""
        listing, places = self._list()
        n, workers = len(self.probes), self.workers
        cut, levels = listing.cut.max(axis=0), np.empty(n, dtype=np.float32)
        scores = np.full((workers, n, listing.filled.max(initial=0)), np.nan)
        set_first_levels(listing, cut, self.first, levels)
        self._score(listing, levels, scores)
        affordable = int(self.n_rows * SCORED_SHARE)
        wanted = Wanted(self.first, self.top_k, listing.decisive, self.more, affordable, self.rise)
        set_levels(listing, scores, cut, wanted, levels)
        self._score(listing, levels, scores)
        results, n_subjects = np.empty((n, 4, len(self.sharpness))), len(self.gallery)
        top, rows = np.full((n, self.top_k), -np.inf), np.full((n, self.top_k), -1, dtype=np.int64)
        numbers = self._several_parts_top(listing, levels, scores)
        scored = np.empty(n, dtype=np.int64)
        rate = len(places) / CHUNK_ROWS
        drawn_from = float(sum(-(-len(part) // CHUNK_ROWS) * CHUNK_ROWS for part in self.gallery.parts))
        common = self.typical, self.shared, rate, drawn_from, n_subjects
        model = Model(self.sharpness, self.weighed, self.beta, self.z, *common)
        parallel_map(
            lambda own: complete_probes(
                listing, scores, levels, model, own.start, min(own.stop, n), results, top, rows, scored
            ),
            slices(n, workers),
        )
        if numbers is None:
            numbers = top, self._numbers(rows)
        return self._evidence(results, *numbers, levels, scored == n_subjects)

    def _probes(self, tables: Tables, part: BinaryPart) -> Probes:
        def single(numbers: Float64Array) -> npt.NDArray[np.float32]:
            return numbers.astype(np.float32)

        rounding = tables.variance * part.typical[0] ** 2
        base = self.probes @ part.centre
        return Probes(
            tables.entries,
            single(tables.step),
            single(tables.least),
            single(base),
            single(self.beta),
            single(rounding),
            np.float32(self.z),
        )

    def _codes(self, number: int, first: int, last: int) -> Codes:
        part = self.gallery.parts[number]
        gone = NOBODY if part.gone is None else part.gone
        start = int(self.starts[number])
        return Codes(part.codes, part.weights, part.deviations, part.scale, part.extremes, gone, start, first, last)

    def _list(self) -> tuple[Listing, npt.NDArray[np.int64]]:
        """What every worker lists and weighs, and the sample that was weighed."""
        n, workers = len(self.probes), self.workers
        planes = min(part.planes for part in self.gallery.parts)
        wanted = int(max(FEWEST_LISTED[planes], self.n_rows * LISTED_SHARE[planes]))
        cut, spread = self._first_cut(1.5 * wanted / self.n_rows)
        if n <= FEW_PROBES and self.decisive is not None and (cut > self.decisive).any():
            wanted = int(max(wanted, self.n_rows * FEW_LISTED_SHARE))
            below = np.nextafter(np.float32(self.decisive), np.float32(-np.inf))
            cut = np.maximum(self._first_cut(1.5 * wanted / self.n_rows)[0], np.minimum(cut, below))
        capacity = 2 * (wanted // workers) + 2 * CHUNK_ROWS
        sharpness = self.sharpness[self.weighed >= 0]
        places = sample_places(_rows_to_weigh(float(sharpness.max(initial=0.0)) * spread) / self.n_rows)

        def read(worker: int) -> None:
            for number, part in enumerate(self.gallery.parts):
                chunks = -(-len(part) // CHUNK_ROWS)
                first, last = (CHUNK_ROWS * (each * chunks // workers) for each in (worker, worker + 1))
                if first < last:
                    codes = self._codes(number, first, min(last, len(part)))
                    read_codes(codes, self.read[number], scratch[worker], of_worker(listing, worker))

        def space() -> npt.NDArray[np.float32]:
            return np.empty((workers, n, capacity), dtype=np.float32)

        listing = Listing(
            space(),
            space(),
            space(),
            space(),
            np.empty((workers, n, capacity), dtype=np.int64),
            np.zeros((workers, n), dtype=np.int64),
            np.tile(cut, (workers, 1)),
            np.full((workers, n), -np.inf, dtype=np.float32),
            (self.z + LOWER_DEVIATIONS) * self.largest + self.beta,
            self.rise,
            np.inf if self.decisive is None or self.top_k == 0 else self.decisive,
            max(self.first // workers, 1),
            sharpness,
            np.full((workers, n), -np.inf),
            np.zeros((workers, n, 2, len(sharpness), N_SUMS)),
        )
        scratch = [scratch_for(n, places) for _ in range(workers)]
        parallel_map(read, range(workers))
        return listing, places

    def _first_cut(self, share: float) -> tuple[npt.NDArray[np.float32], float]:
        """A key that about so many of the rows are above; without it every row would be listed until the list is full.

        And the greatest spread of a probe's keys, infinite where it is not known.
        """
        n = len(self.probes)
        cut, spread = np.full(n, -np.inf, dtype=np.float32), np.empty(n)
        number = int(np.argmax([len(part) for part in self.gallery.parts]))
        whole = len(self.gallery.parts[number]) // BLOCK_ROWS
        if len(self.gallery.parts[number]) < CUT_FROM:
            return cut, np.inf
        blocks = np.linspace(0, whole - 1, CUT_BLOCKS).astype(np.int64)
        codes = self._codes(number, 0, whole * BLOCK_ROWS)
        set_first_cuts(codes, self.read[number], blocks, share, scratch_for(n, blocks[:0]), cut, spread)
        return cut, float(spread.max(initial=0.0))

    def _score(self, listing: Listing, levels: npt.NDArray[np.float32], scores: Float64Array) -> None:
        def work(worker: int) -> None:
            own = of_worker(listing, worker)
            for part, start in zip(self.gallery.parts, self.starts):
                score_listed(part.exact, int(start), self.probes, own, levels, scores[worker])

        parallel_map(work, range(self.workers))

    def _several_parts_top(
        self, listing: Listing, levels: npt.NDArray[np.float32], scores: Float64Array
    ) -> tuple[Float64Array, npt.NDArray[np.int64]] | None:
        """The top of each probe, where numbers do not rise with the rows: a later part may hold an earlier number."""
        if len(self.gallery.parts) == 1:
            return None
        there = (listing.keys > levels[:, None]) & _filled(listing)
        there = there[:, :, : scores.shape[2]]
        found = []
        for i in range(len(self.probes)):
            numbers = self._numbers(listing.rows[:, i, : scores.shape[2]][there[:, i]])
            found.append(best_places(scores[:, i][there[:, i]][None], numbers[None], self.top_k)[:2])
        return np.concatenate([top for top, _ in found]), np.concatenate([index for _, index in found])

    def _evidence(
        self,
        results: Float64Array,
        top_scores: Float64Array,
        top_index: npt.NDArray[np.int64],
        levels: npt.NDArray[np.float32],
        everybody: npt.NDArray[np.bool_],
    ) -> tuple[Evidence, npt.NDArray[np.bool_]]:
        n, m = len(results), len(self.sharpness)
        cut = levels.astype(np.float64)
        ceiling = np.where(everybody, EVERY_PLACE, cut + self.more)
        certain = np.ones(n, dtype=bool)
        if self.top_k:
            best = top_scores[:, 0]
            if self.decisive is None:
                certain = top_scores[:, -1] > ceiling
            else:
                certain = np.where(best >= self.decisive, best > cut, cut <= self.decisive)
            certain |= everybody
        zero = np.zeros((n, m))
        log_mass, mean_score, log_mass_error, mean_score_error = np.moveaxis(results, 1, 0)
        precision = Precision(zero, zero, log_mass_error, self.mean_factor * mean_score_error, np.zeros(n), ceiling)
        seen = Evidence(top_scores, top_index, log_mass, mean_score, len(self.gallery), self.sharpness, precision)
        return seen, certain

    def _numbers(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The numbers of rows among those of all parts; −1 for −1."""
        numbers = np.full(rows.shape, NO_SUBJECT, dtype=np.int64)
        for part, start in zip(self.gallery.parts, self.starts):
            here = (rows >= start) & (rows < start + len(part))
            numbers[here] = part.numbers[rows[here] - start]
        return numbers


def _rows_to_weigh(spread: float) -> float:
    """Rows of a sample whose weights ``e^{ax}`` have a normal exponent of this spread: they vary by ``e^{spread²} − 1``.

    >>> _rows_to_weigh(1.0), _rows_to_weigh(2.0) > 5e5, _rows_to_weigh(np.inf)
    (65536.0, True, inf)
    """
    return np.inf if spread > 20 else max(float(WEIGHED_ROWS), float(np.expm1(spread**2)) / SAMPLE_ERROR**2)


def of_worker(listing: Listing, worker: int) -> Listing:
    """What one worker lists."""
    whole = ("lower", "rise", "decisive", "kept", "sharpness")
    return Listing(*(value if name in whole else value[worker] for name, value in listing._asdict().items()))


def _filled(listing: Listing) -> npt.NDArray[np.bool_]:
    """Which places of the lists (workers, n, capacity) hold a row."""
    return np.arange(listing.keys.shape[2]) < listing.filled[:, :, None]


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
