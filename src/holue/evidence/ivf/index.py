"""Approximate evidence: a large gallery without reading all of it.

The gallery is grouped into lists of neighbours. A probe reads the lists nearest to it, row by row and exactly; what the
others weigh is estimated from their moments and a fixed sample (see ``tail.py``), and the evidence carries the standard
errors. The cost grows like √K.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Self

import numpy as np
import numpy.typing as npt

from holue.errors import GalleryTooSmallError, InvalidEmbeddingsError, InvalidParameterError
from holue.evidence.accumulator import Accumulator
from holue.evidence.block import Block
from holue.evidence.canonical_top import (
    best_places,
    canonical_scores,
    kept_by_kernel,
    rounding_of_scores,
    with_canonical_top,
    with_top_of,
)
from holue.evidence.evidence import NO_SUBJECT, Evidence, merge
from holue.evidence.ivf.inverted_lists import InvertedLists, group
from holue.evidence.ivf.kmeans import ITERATIONS, Float32Array, Rows, Step
from holue.evidence.ivf.list_loops import visit, visitors_of
from holue.evidence.ivf.living_lists import LivingLists
from holue.evidence.ivf.missed_mates import MissedMates, blurred
from holue.evidence.ivf.sample import Mask, Sample
from holue.evidence.ivf.tail import Unread, with_tail
from holue.evidence.ivf.tail_calibration import TailCalibration
from holue.evidence.link import Link, cosine_link
from holue.evidence.precision import Precision
from holue.evidence.scan import check_sharpness, check_top_k, n_threads, scan
from holue.evidence.threads.blas import single_threaded
from holue.evidence.threads.thread_pool import parallel_map, slices
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.segment import Segment

SMALLEST_GALLERY = 10_000
"""Subjects under which reading everything is as fast."""
Progress = Callable[[int, int], None]
"""Called with the steps done and the steps in all."""
SAMPLED_ROWS = 8192
ROUTED_PROBES = 512
"""Probes whose scores with centres and sample are in memory at once."""
PROBES_PER_THREAD = 8
"""Under which a further thread costs more than it brings."""
TRIALS = 4096
"""Noisy copies of enrolled rows that decide how many lists to read."""
FEWEST_LISTS = 32
"""Lists read where fewer would find the mates: strangers are weighed better with some more, and reading them costs little."""
LEARNED_ROWS = 1024
"""Rows of the gallery that stand in for probes to learn the calibration."""
LEARNED_BLOCK = 128
LEARNED_AT, LEARNED_BEYOND = (0.125, 0.25, 0.375, 0.5, 0.75, 1.0), (1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
"""Sharpnesses it is learned at, as multiples of the sample's reach."""


@dataclass(frozen=True, eq=False)
class ApproximateIndex:
    """The lists and the sample of a segment, as one version of the gallery reads them, and the number of lists a probe reads.

    >>> rng = np.random.default_rng(0)
    >>> x = rng.standard_normal((10_000, 16), dtype=np.float32)
    >>> x /= np.linalg.norm(x, axis=1, keepdims=True)
    >>> index = ApproximateIndex.build(x, n_lists=64, n_probe=8, seed=0)
    >>> evidence = index.scan(x[:1], [50.0, 2.5])
    >>> int(evidence.top_index[0, 0]), evidence.n_subjects
    (0, 10000)
    >>> bool(evidence.precision.log_mass_error[0, 1] < 0.01)
    True
    """

    lists: InvertedLists
    sample: Sample
    calibration: TailCalibration
    n_probe: int
    fingerprint: str
    numbers: Rows  # (K,) of the rows
    living: LivingLists
    mates: MissedMates
    later: Block | None = None  # rows enrolled after the lists were made: read one by one

    @classmethod
    def build(
        cls,
        gallery: Gallery | Segment | FloatArray,
        *,
        n_lists: int | None = None,
        n_probe: int | None = None,
        n_sample: int = SAMPLED_ROWS,
        mated_cosine: float = 0.8,
        recall: float = 0.999,
        seed: int | np.random.Generator = 0,
        progress: Progress | None = None,
    ) -> Self:
        """Group a gallery of at least 10 000 subjects; the same seed gives the same index.

        The lists are a copy of the gallery in another order, float32 and in memory: 4 K d bytes, 5 GB for ten million
        subjects of 128 features, beside the gallery itself, which may stay on disk. A million takes about a minute of
        two processors, during which ``progress`` hears how far it is.

        ``n_lists`` is about 8 √K by default. ``n_probe``, the lists a probe reads, is by default as many as find the own
        list of an enrolled row blurred to the cosine ``mated_cosine`` in a share ``recall`` of trials; set that cosine to
        the lowest at which mated probes are to be found, and check it with :meth:`lists_needed` on probes of your own.
        """
        directions, numbers = _rows_of(gallery)
        n_subjects = len(directions)
        if n_subjects < SMALLEST_GALLERY:
            raise GalleryTooSmallError(
                f"approximate evidence needs at least {SMALLEST_GALLERY} subjects, got {n_subjects}: "
                "scan() reads so few exactly in a moment"
            )
        if n_lists is None:
            n_lists = 2 ** round(np.log2(8 * np.sqrt(n_subjects)))
        _check_whole("n_lists", n_lists, 1)
        _check_whole("n_sample", n_sample, 2)
        for field, value in (("mated_cosine", mated_cosine), ("recall", recall)):
            if not 0 < value < 1:
                raise InvalidParameterError(f"{field} must be between 0 and 1, got {value!r}")
        rng = np.random.default_rng(seed)
        workers = n_threads(None, directions.size * int(n_lists))
        step = _counted(progress, 2 * ITERATIONS + LEARNED_ROWS // LEARNED_BLOCK)
        with single_threaded():
            lists = group(directions, int(n_lists), rng, workers=workers, step=step)
        sample = Sample.draw(lists, int(n_sample), rng)
        whole = LivingLists.whole(lists, sample)
        made = cls(
            lists,
            sample,
            TailCalibration.unknown(),
            1,
            fingerprint_of(directions),
            numbers,
            whole,
            MissedMates.unknown(len(lists)),
        )
        if n_probe is None:
            rows = rng.integers(n_subjects, size=TRIALS)
            n_probe = max(made.lists_needed(blurred(directions[rows], mated_cosine, rng), rows, recall), FEWEST_LISTS)
        _check_whole("n_probe", n_probe, 1)
        n_probe = min(int(n_probe), len(lists))
        with single_threaded():
            mates = MissedMates.measure(lists, sample.vectors, rng, fewest=n_probe, workers=workers)
        made = replace(made, n_probe=n_probe, mates=mates)
        return replace(made, calibration=made._learn(directions, mated_cosine, rng, workers, step))

    def __len__(self) -> int:
        return len(self.living) + (0 if self.later is None else self.later.n_living)

    def __repr__(self) -> str:
        later = "" if self.later is None else f", {len(self.later.rows)} later rows"
        return (
            f"ApproximateIndex({len(self)} subjects, d={self.dim}, {self.n_probe} of {len(self.lists)} lists read, "
            f"{len(self.sample)} rows sampled{later})"
        )

    @property
    def dim(self) -> int:
        """The number of coordinates, d."""
        return int(self.lists.vectors.shape[1])

    def lists_needed(self, directions: FloatArray, rows: npt.ArrayLike, recall: float = 0.999) -> int:
        """How many lists have to be read so that a share ``recall`` of mated probes meets its own gallery row."""
        mates = self.lists.of_rows()[np.asarray(rows)]
        needed = np.empty(len(mates), dtype=np.int64)
        for first in range(0, len(mates), 1024):
            part = slice(first, first + 1024)
            scores = np.asarray(directions[part], dtype=np.float32) @ self.lists.centres.T
            needed[part] = (scores >= np.take_along_axis(scores, mates[part, None], axis=1)).sum(axis=1)
        return int(np.quantile(needed, recall, method="higher"))

    def lists_read(self, decisive: float | None) -> tuple[int, float]:
        """How many lists a probe reads where the threshold is ``decisive``, and the share of mates there that are missed."""
        if decisive is None:
            return self.n_probe, float("nan")
        lists, missed = self.mates.at(decisive)
        return max(lists, self.n_probe), missed

    def of(self, left: Mask | None) -> Self:
        """The index of a version of the gallery that these rows of the segment have left; those who have are skipped."""
        return self if left is self.living.left else replace(self, living=self.living.of(left))

    def scan(
        self,
        directions: FloatArray,
        sharpness: npt.ArrayLike,
        *,
        top_k: int = 5,
        link: Link = cosine_link,
        n_probe: int | None = None,
        decisive: float | None = None,
        threads: int | None = None,
    ) -> Evidence:
        """Evidence of the whole gallery about unit ``directions`` (n, d), the unread part estimated; all in float32.

        The top is that of the lists read, its scores exact. ``decisive``, the threshold of the decision, has so many lists read
        that at most 0.001 of the mates at that cosine are missed (see ``missed_mates.py``). ``n_probe`` reads more
        lists than the index was built for; with all of them nothing is left to estimate. Probes are trusted to be valid.
        """
        a = check_sharpness(sharpness)
        if link is not cosine_link:
            raise InvalidParameterError(
                "approximate evidence knows the cosine link only (von Mises-Fisher classes); use scan() for other class models"
            )
        if n_probe is not None:
            _check_whole("n_probe", n_probe, self.n_probe)  # the errors were learned with so many read
        if directions.shape[1] != self.dim:
            raise InvalidEmbeddingsError(
                f"directions have {directions.shape[1]} features, the index has {self.dim}: "
                "both must come from the same embedding model"
            )
        probes = np.ascontiguousarray(directions, dtype=np.float32)
        enough, missed = self.lists_read(decisive)
        n_read = min(max(int(n_probe or 0), enough), len(self.lists))
        places = check_top_k(top_k)
        reads = n_read * (len(self.lists.rows) // len(self.lists)) + len(self.sample) + len(self.lists)
        workers = min(n_threads(threads, len(probes) * reads * self.dim), max(len(probes) // PROBES_PER_THREAD, 1))
        empty = Evidence.empty(len(probes), a, places)
        tail = np.zeros((4, len(probes), len(a)))
        with single_threaded():
            for first in range(0, len(probes), ROUTED_PROBES):
                block = slice(first, first + ROUTED_PROBES)
                unread = self._route(probes[block], n_read, workers)
                seen = self._visit(unread, a, places, workers)
                empty.top_scores[block], empty.top_index[block] = seen.top_scores, seen.top_index
                tail[:, block] = _completed(seen, unread, self.calibration, workers)
        log_mass, mean_score, log_mass_error, mean_score_error = tail
        precision = replace(
            Precision.exact(*log_mass.shape),
            log_mass_error=log_mass_error,
            mean_score_error=mean_score_error,
            missed=np.full(len(probes), missed),
        )
        known = replace(
            empty, log_mass=log_mass, mean_score=mean_score, n_subjects=len(self.living), precision=precision
        )
        if self.later is None:
            return known
        return merge(known, scan(probes, [self.later], a, top_k=top_k, threads=threads))

    def _visit(self, unread: Unread, a: Float64Array, top_k: int, workers: int, *, far: bool = False) -> Evidence:
        """Evidence of the lists that are near the probes (or of those that are not), shared among threads list by list."""
        visitors, firsts = visitors_of(~unread.near if far else unread.near)
        cuts = np.searchsorted(firsts, [worker * firsts[-1] // workers for worker in range(1, workers)]).tolist()

        def read(part: tuple[int, int]) -> Accumulator:
            begin, end = part
            sums = Accumulator.start(len(unread.probes), a, kept_by_kernel(top_k))
            starts, lists = self.lists.starts[begin : end + 1], self.lists
            own = visitors, firsts[begin : end + 1]
            visit(unread.probes, lists.vectors, lists.everybody, self.living.gone, starts, *own, sums.arrays)
            return sums

        found, *others = parallel_map(read, list(zip([0, *cuts], [*cuts, len(self.lists)])))
        for other in others:
            found.add(other)
        found.n_subjects = len(self.living)
        if top_k == 0:
            return found.evidence(found.top_scores, found.top_index, found.top_scores)
        return self._with_canonical_top(found, unread, top_k, workers)

    def _with_canonical_top(self, found: Accumulator, unread: Unread, top_k: int, workers: int) -> Evidence:
        """The best by canonical score of those found in the lists that were read, named by their numbers."""
        probes = unread.probes.astype(np.float64)
        vectors = [Block(self.lists.vectors, self.lists.everybody, self.living.gone)]
        exact = canonical_scores(vectors, found.top_index, probes, workers)
        found.top_index = self._named(found.top_index)
        seen, certain = with_canonical_top(found, exact, top_k, rounding_of_scores(np.float32, self.dim))
        for i in np.flatnonzero(~certain):
            starts, ends = self.lists.starts[:-1][unread.near[i]], self.lists.starts[1:][unread.near[i]]
            read = np.concatenate([np.arange(*span) for span in zip(starts, ends)])[None]
            if len(self.living.gone):
                read = read[:, ~self.living.gone[read[0]]]
            one = np.array([i])
            top_scores, top_index, _ = best_places(
                canonical_scores(vectors, read, probes[one]), self._named(read), top_k
            )
            # As they were summed they are not known: up to the rounding of float32 they are these.
            seen = with_top_of(seen, one, top_scores, top_index, top_scores)
        return seen

    def _named(self, places: Rows) -> Rows:
        """The numbers at some places among the lists' vectors; nobody stays nobody."""
        return np.where(places == NO_SUBJECT, NO_SUBJECT, self.numbers[self.lists.rows[places]])

    def _route(self, probes: Float32Array, n_read: int, workers: int) -> Unread:
        """Which lists are near the probes, and the mean scores of all; shared among threads probe by probe."""
        living = self.living
        means = np.empty((len(probes), len(self.lists)), dtype=np.float32)
        near = np.empty(means.shape, dtype=bool)

        def route(part: slice) -> None:
            scores = living.centres.products(probes[part])
            near[part] = _nearest(scores, n_read) | living.always_read
            np.multiply(scores, living.mean_lengths, out=means[part])

        parallel_map(route, slices(len(probes), workers))
        return Unread(probes, means, near, self.lists.elongation(probes), living)

    def _learn(
        self, directions: FloatArray, mated_cosine: float, rng: np.random.Generator, workers: int, step: Step
    ) -> TailCalibration:
        """How the expected mass of the unread lists compares with the true one, for rows of the gallery as probes.

        Half of them are blurred, as mated probes are. With its own list read a row is not among what is unread: it is
        left out.
        """
        if not np.isfinite(self.sample.reach):
            return TailCalibration.unknown()
        small, large = self.sample.reach * np.array(LEARNED_AT), self.sample.reach * np.array(LEARNED_BEYOND)
        rows = rng.choice(len(directions), LEARNED_ROWS, replace=False)
        probes = np.asarray(directions[rows], dtype=np.float32)
        probes[::2] = blurred(probes[::2], mated_cosine, rng)
        own = self.lists.of_rows()[rows]
        log_off, mean_off = [], []
        with single_threaded():
            for first in range(0, LEARNED_ROWS, LEARNED_BLOCK):
                block = slice(first, first + LEARNED_BLOCK)
                unread = self._route(probes[block], self.n_probe, workers)
                unread.near[np.arange(LEARNED_BLOCK), own[block]] = True
                some = ~unread.near.all(axis=1)
                truth = self._visit(unread, np.concatenate([small, large]), 0, workers, far=True)
                log_mass, mean = _expected(unread, small, large)
                log_off.append(truth.log_mass[some] - log_mass[some])
                mean_off.append(truth.mean_score[some] - mean[some])
                step()
        if not any(map(len, log_off)):
            return TailCalibration.unknown()
        return TailCalibration.learn(small, large, np.concatenate(log_off), np.concatenate(mean_off))


def _expected(unread: Unread, small: Float64Array, large: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Log-mass and mean score (n, g + e) expected of the unread lists; of those that read all, anything."""
    log_mass, mean = np.empty((2, len(unread.probes), len(small)))
    for column, a in enumerate(small):
        measured = unread.measure(float(a))
        log_mass[:, column] = measured.log_unit + np.log(np.where(measured.expected > 0, measured.expected, 1.0))
        mean[:, column] = measured.expected_mean
    log_highest, mean_highest = unread.highest(large, np.full((len(mean), len(large)), -np.inf))
    return np.hstack([log_mass, log_highest]), np.hstack([mean, mean_highest])


def _counted(progress: Progress | None, total: int) -> Step:
    """Something to call after every step."""
    done = 0

    def step() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    return step


def _completed(seen: Evidence, unread: Unread, calibration: TailCalibration, workers: int) -> Float64Array:
    """What was seen, with the tail of what was not (4, n, m); shared among threads probe by probe."""

    def complete(part: slice) -> Float64Array:
        return with_tail(seen.log_mass[part], seen.mean_score[part], seen.sharpness, unread.of(part), calibration)

    return np.concatenate(parallel_map(complete, slices(len(unread.probes), workers)), axis=1)


def fingerprint_of(directions: FloatArray) -> str:
    """A digest of a gallery's rows, to know whether an index was made from them."""
    digest = blake2b(digest_size=16)
    digest.update(str((directions.shape, directions.dtype.str)).encode())
    for first in range(0, len(directions), 65536):
        digest.update(directions[first : first + 65536].tobytes())
    return digest.hexdigest()


def _rows_of(gallery: Gallery | Segment | FloatArray) -> tuple[FloatArray, Rows]:
    """The rows of those who have not left, and their numbers."""
    if isinstance(gallery, Gallery | Segment):
        return gallery.directions, gallery.numbers
    return np.asarray(gallery), np.arange(len(gallery))


def _nearest(scores: Float32Array, count: int) -> Mask:
    """The lists (n, L) with the ``count`` highest centre scores of each probe; equal ones come along."""
    least = np.partition(scores, scores.shape[1] - count, axis=1)[:, scores.shape[1] - count]
    near: Mask = scores >= least[:, None]
    return near


def _check_whole(field: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InvalidParameterError(f"{field} must be a whole number of at least {least}, got {value!r}")
