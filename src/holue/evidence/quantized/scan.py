"""Compressed scan: evidence from a compressed gallery, with certified bounds, and exact where it matters.

One pass over the codes finds approximate scores, each with a bound on its error, and keeps a list of the subjects that may score
highest. Those are scored again from the exact rows. If no other subject can reach the k-th best of them, the top k is that of an
exact scan, ties included; if one can, that probe is scanned exactly. What the rest adds to log-mass and mean score is bounded
(``error_bounds.py``), and the bounds are part of the evidence.

A decision needs no more. It compares the best subject's ``ℓ_1`` with the stranger's ``ℓ_0``, and both probabilities are divided
by the same total: the exact top score alone decides, whatever the bound on the mass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from holue.errors import InvalidParameterError
from holue.evidence.block import NOBODY, Block
from holue.evidence.canonical_top import best_of, canonical_scores, rounding_of_scores
from holue.evidence.evidence import Evidence, concatenate
from holue.evidence.precision import Precision
from holue.evidence.quantized.bounded_sums import BoundedSums
from holue.evidence.quantized.code_loops import Span
from holue.evidence.quantized.error_bounds import bound_sums, float64_precision
from holue.evidence.quantized.kernel import CompressedKernel, compressed_kernel_for
from holue.evidence.scan import check_shapes, check_sharpness, check_top_k, n_threads, scan
from holue.evidence.threads.blas import single_threaded
from holue.evidence.threads.thread_pool import parallel_map
from holue.gallery.compressed import CompressedGallery
from holue.gallery.embeddings import Float64Array, FloatArray

LISTED = 64
"""Subjects scored exactly for every probe, at least; four times the top where that is more."""

LONGEST_UNIT_ROW = 1.001
"""At least the length of a row of a gallery: 1 up to the rounding of float16."""


def scan_compressed(
    directions: FloatArray,
    compressed: CompressedGallery,
    sharpness: npt.ArrayLike,
    *,
    top_k: int = 5,
    tolerance: float | None = None,
    threads: int | None = None,
) -> Evidence:
    """Evidence of a compressed gallery about unit ``directions`` (n, d), with its precision.

    The top k is that of :func:`holue.evidence.scan.scan`, bit for bit. A probe whose log-mass could be off by more than
    ``tolerance`` at any sharpness is scanned in float64, and its bounds are those of float64 rounding; None accepts every
    bound, 0 none.

    >>> from holue.gallery.compressed import compress
    >>> rng = np.random.default_rng(0)
    >>> gallery = rng.normal(size=(200, 16)).astype(np.float32)
    >>> gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)
    >>> seen = scan_compressed(gallery[:1], compress(gallery, "int8"), [10.0], top_k=1)
    >>> seen.top_index.tolist(), bool(0 < seen.precision.log_mass_bound[0, 0] < 0.05)
    ([[0]], True)
    """
    a, top_k = check_sharpness(sharpness), check_top_k(top_k)
    if tolerance is not None and not tolerance >= 0:
        raise InvalidParameterError(f"tolerance must be at least 0 or None, got {tolerance!r}")
    n_subjects, dim = len(compressed), compressed.dim
    check_shapes(directions, n_subjects, dim)
    probes = np.ascontiguousarray(directions, dtype=np.float64)
    kernel = compressed_kernel_for(probes, compressed)
    listed = min(n_subjects, max(LISTED, 4 * top_k))
    n_rows = sum(map(len, compressed.parts))
    workers = min(n_threads(threads, len(probes) * n_rows * dim), n_rows)

    def read(worker: int) -> None:
        for span in _spans(compressed, worker * n_rows // workers, (worker + 1) * n_rows // workers):
            kernel.add(shares[worker], span, scratch[worker])

    shares = [BoundedSums.start(len(probes), a, listed) for _ in range(workers)]
    scratch = [kernel.scratch() for _ in range(workers)]
    with single_threaded() if kernel.uses_blas else nullcontext():
        parallel_map(read, range(workers))
    sums, *others = shares
    for other in others:
        sums.add(other)
    seen, certain = _bounded(probes, compressed, sums, kernel, top_k, workers)
    if tolerance is not None and seen.precision is not None:
        certain &= (seen.precision.log_mass_bound <= tolerance).all(axis=1)
    return seen if certain.all() else _with_exact(seen, ~certain, probes, compressed, threads)


def _spans(compressed: CompressedGallery, begin: int, end: int) -> Iterator[Span]:
    """The rows ``begin .. end`` of the gallery, part by part."""
    start = 0
    for part in compressed.parts:
        first, last = max(begin - start, 0), min(end - start, len(part))
        if first < last:
            gone = NOBODY if part.gone is None else part.gone
            yield Span(part.codes, part.scales, part.errors, part.numbers, gone, first, last)
        start += len(part)


def _bounded(
    probes: Float64Array,
    compressed: CompressedGallery,
    sums: BoundedSums,
    kernel: CompressedKernel,
    top_k: int,
    workers: int,
) -> tuple[Evidence, npt.NDArray[np.bool_]]:
    """Evidence with the listed subjects scored exactly, and for which probes no other subject can be among the top."""
    n, listed = sums.keys.shape
    m, n_subjects, dim = len(sums.sharpness), len(compressed), compressed.dim
    error = compressed.error
    beta = kernel.beta
    largest = kernel.lengths * (compressed.largest_norm + error)
    errors = compressed.errors_of(sums.subjects.ravel()).reshape(n, listed)
    exact = canonical_scores(_exact_blocks(compressed), sums.subjects, probes, workers)
    log_mass, mean_score, mass_bound, mean_bound = (np.empty((n, m)) for _ in range(4))
    bound_sums(
        sums.sharpness,
        sums.sums,
        sums.peak,
        sums.keys,
        errors,
        exact,
        n_subjects,
        error,
        beta,
        kernel.lengths * compressed.residual_norm,
        largest,
        dim,
        log_mass,
        mean_score,
        mass_bound,
        mean_bound,
    )
    zero = np.zeros((n, m))
    precision = Precision(mass_bound, mean_bound, zero, zero, error + beta)
    seen = best_of(Evidence(exact, sums.subjects, log_mass, mean_score, n_subjects, sums.sharpness, precision), top_k)
    if top_k == 0 or listed == n_subjects:
        return seen, np.ones(n, dtype=bool)
    # No other subject's canonical score, which is rounded itself, reaches this.
    ceiling = sums.keys[:, -1] + beta + rounding_of_scores(np.float64, dim) * largest
    return seen, seen.top_scores[:, -1] > ceiling


def _exact_blocks(compressed: CompressedGallery) -> list[Block]:
    """The exact rows of each part."""
    return [Block(part.exact, part.numbers, NOBODY if part.gone is None else part.gone) for part in compressed.parts]


def scan_in_float64(
    directions: FloatArray, blocks: list[Block], sharpness: npt.ArrayLike, *, top_k: int, threads: int | None = None
) -> Evidence:
    """Evidence of some blocks of unit rows, summed in float64, with bounds of its rounding: to merge with a compressed scan."""
    probes = np.ascontiguousarray(directions, dtype=np.float64)
    seen = scan(probes, blocks, sharpness, top_k=top_k, threads=threads)
    largest = np.sqrt(np.einsum("ij,ij->i", probes, probes)) * LONGEST_UNIT_ROW
    return replace(seen, precision=float64_precision(seen, largest, probes.shape[1]))


def _with_exact(
    seen: Evidence,
    rows: npt.NDArray[np.bool_],
    probes: Float64Array,
    compressed: CompressedGallery,
    threads: int | None,
) -> Evidence:
    """The same evidence with some probes scanned in float64, and what bounds the rounding of that."""
    top_k = seen.top_index.shape[1]
    exact = scan(probes[rows], _exact_blocks(compressed), seen.sharpness, top_k=top_k, threads=threads)
    lengths = np.sqrt(np.einsum("ij,ij->i", probes[rows], probes[rows]))
    largest = lengths * (compressed.largest_norm + compressed.error)
    exact = replace(exact, precision=float64_precision(exact, largest, compressed.dim))
    order = np.argsort(np.concatenate([np.flatnonzero(~rows), np.flatnonzero(rows)]))
    return concatenate([seen.take(np.flatnonzero(~rows)), exact]).take(order)
