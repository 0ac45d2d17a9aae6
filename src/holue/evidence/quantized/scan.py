"""Compressed scan: evidence from a compressed gallery, with certified bounds, and exact where it matters.

One pass over the codes finds approximate scores, each with a bound on its error, and keeps a list of the subjects that may score
highest. Those are scored again from the exact rows. If no other subject can reach the k-th best of them, the top k is that of an
exact scan, ties included; if one can, that probe is scanned exactly. What the rest adds to log-mass and mean score is bounded
(``bounds.py``), and the bounds are part of the evidence.

A decision needs no more. It compares the best subject's ``ℓ_1`` with the stranger's ``ℓ_0``, and both probabilities are divided
by the same total: the exact top score alone decides, whatever the bound on the mass.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from holue.errors import GalleryTooSmallError, InvalidEmbeddingsError, InvalidParameterError
from holue.evidence.evidence import NO_SUBJECT, Evidence
from holue.evidence.precision import Precision
from holue.evidence.quantized.bounded_sums import BoundedSums
from holue.evidence.quantized.code_loops import exact_products, exact_top, in_gallery_order
from holue.evidence.quantized.error_bounds import settle
from holue.evidence.quantized.kernel import CompressedKernel, compressed_kernel_for
from holue.evidence.scan import _places, _sharpness, _threads, scan
from holue.evidence.threads.blas import single_threaded
from holue.evidence.threads.thread_pool import team
from holue.gallery.compressed import CompressedGallery, CompressedPart
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.gallery import Gallery

LISTED = 64
"""Subjects scored exactly for every probe, at least; four times the top where that is more."""

PROBES_AT_ONCE = 16
"""Probes whose listed rows are fetched together: 2 MB at d = 512."""

_NO_SHARPNESS = np.empty(0)
Span = tuple[CompressedPart, int, int, int]


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

    The top k is that of :func:`holue.evidence.scan.scan` of each probe alone. A probe whose log-mass could be off by more than
    ``tolerance`` at any sharpness is scanned exactly, and its bounds are 0; None accepts every bound, 0 none.

    >>> from holue.gallery.compressed import compress
    >>> rng = np.random.default_rng(0)
    >>> gallery = rng.normal(size=(200, 16)).astype(np.float32)
    >>> gallery /= np.linalg.norm(gallery, axis=1, keepdims=True)
    >>> seen = scan_compressed(gallery[:1], compress(gallery, "int8"), [10.0], top_k=1)
    >>> seen.top_index.tolist(), bool(0 < seen.precision.log_mass_bound[0, 0] < 0.05)
    ([[0]], True)
    """
    a, top_k = _sharpness(sharpness), _places(top_k)
    if tolerance is not None and not tolerance >= 0:
        raise InvalidParameterError(f"tolerance must be at least 0 or None, got {tolerance!r}")
    n_subjects, dim = len(compressed), compressed.dim
    if n_subjects == 0:
        raise GalleryTooSmallError("the gallery is empty: enrol at least one subject")
    if directions.ndim != 2 or directions.shape[1] != dim:
        raise InvalidEmbeddingsError(
            f"directions have {directions.shape[-1]} features, the gallery has {dim}: "
            "both must come from the same embedding model"
        )
    probes = directions.astype(np.float64)
    kernel = compressed_kernel_for(probes, compressed)
    listed = min(n_subjects, max(LISTED, 4 * top_k))
    workers = min(_threads(threads, len(probes) * n_subjects * dim), n_subjects)

    def read(worker: int) -> None:
        for span in _spans(compressed, worker * n_subjects // workers, (worker + 1) * n_subjects // workers):
            kernel.add(shares[worker], *span, rooms[worker])

    shares = [BoundedSums.start(len(probes), a, listed) for _ in range(workers)]
    rooms = [kernel.room() for _ in range(workers)]
    with single_threaded() if kernel.uses_blas else nullcontext(), team(workers) as share:
        share(read, range(workers))
    sums, *others = shares
    for other in others:
        sums.add(other)
    seen, certain = _settled(directions, probes, compressed, sums, kernel, top_k)
    if tolerance is not None and seen.precision is not None:
        certain &= (seen.precision.log_mass_bound <= tolerance).all(axis=1)
    return seen if certain.all() else _with_exact(seen, ~certain, directions, compressed, threads)


def _spans(compressed: CompressedGallery, begin: int, end: int) -> Iterator[Span]:
    """The rows ``begin .. end`` of the gallery as parts with their own first and last row and where they start."""
    start = 0
    for part in compressed.parts:
        first, last = max(begin - start, 0), min(end - start, len(part))
        if first < last:
            yield part, first, last, start
        start += len(part)


def _settled(
    directions: FloatArray,
    probes: Float64Array,
    compressed: CompressedGallery,
    sums: BoundedSums,
    kernel: CompressedKernel,
    top_k: int,
) -> tuple[Evidence, npt.NDArray[np.bool_]]:
    """Evidence with the listed subjects scored exactly, and for which probes no other subject can be among the top."""
    n, listed = sums.keys.shape
    m, n_subjects, dim = len(sums.sharpness), len(compressed), compressed.dim
    error = compressed.error
    beta = kernel.beta
    largest = kernel.lengths * (compressed.largest_norm + error)
    errors = compressed.errors_of(sums.subjects.ravel()).reshape(n, listed)
    top_scores, top_index, exact = _rescored(directions, probes, compressed, sums.subjects, top_k)
    log_mass, mean_score, mass_bound, mean_bound = (np.empty((n, m)) for _ in range(4))
    settle(
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
    seen = Evidence(top_scores, top_index, log_mass, mean_score, n_subjects, sums.sharpness, precision)
    if top_k == 0 or listed == n_subjects:
        return seen, np.ones(n, dtype=bool)
    # Neither the exact score of another subject nor its rounding in a float32 scan reaches this.
    ceiling = sums.keys[:, -1] + beta + (dim + 2) * 2.0**-24 * largest
    return seen, top_scores[:, -1] > ceiling


def _rescored(
    directions: FloatArray,
    probes: Float64Array,
    compressed: CompressedGallery,
    listed: npt.NDArray[np.int64],
    top_k: int,
) -> tuple[Float64Array, npt.NDArray[np.int64], Float64Array]:
    """Top scores and subjects as a scan of the listed subjects alone gives them, and the listed subjects' scores in float64."""
    n, size = listed.shape
    dtype = np.result_type(directions.dtype, compressed.parts[0].exact.dtype, np.float32)
    asked = np.ascontiguousarray(directions, dtype=dtype)
    top_scores, top_index = np.full((n, top_k), -np.inf), np.full((n, top_k), NO_SUBJECT, dtype=np.int64)
    exact = np.empty((n, size))
    # In the gallery's order, so that equal scores go to the earlier subject.
    subjects, places = np.empty_like(listed), np.empty_like(listed)
    in_gallery_order(listed, subjects, places)
    for first in range(0, n, PROBES_AT_ONCE):
        block = slice(first, first + PROBES_AT_ONCE)
        rows = compressed.exact_rows(subjects[block].ravel()).astype(dtype, copy=False)
        rows = rows.reshape(-1, size, compressed.dim)
        exact_products(rows, probes[block], places[block], exact[block])
        if top_k and dtype == np.float32:
            exact_top(rows, asked[block], subjects[block], top_scores[block], top_index[block])
        elif top_k:
            for i, own in enumerate(rows, start=first):
                alone = scan(asked[i : i + 1], own, _NO_SHARPNESS, top_k=top_k, threads=1)
                found = alone.top_index[0]
                top_scores[i], top_index[i] = alone.top_scores[0], np.where(found < 0, NO_SUBJECT, subjects[i, found])
    return top_scores, top_index, exact


def _with_exact(
    seen: Evidence,
    rows: npt.NDArray[np.bool_],
    directions: FloatArray,
    compressed: CompressedGallery,
    threads: int | None,
) -> Evidence:
    """The same evidence with some probes scanned exactly."""
    parts = tuple(part.exact for part in compressed.parts)
    gallery = parts[0] if len(parts) == 1 else Gallery(np.arange(len(compressed)), parts)
    top_k = seen.top_index.shape[1]
    exact = scan(directions[rows], gallery, seen.sharpness, top_k=top_k, threads=threads)
    fields = ("top_scores", "top_index", "log_mass", "mean_score")
    changed = {name: getattr(seen, name).copy() for name in fields}
    for name in fields:
        changed[name][rows] = getattr(exact, name)
    bounds = {
        name: np.where(rows.reshape(-1, *[1] * (value.ndim - 1)), 0.0, value)
        for name, value in vars(seen.precision).items()
    }
    return replace(seen, **changed, precision=Precision(**bounds))
