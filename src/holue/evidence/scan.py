"""Scan: a whole gallery, streamed block by block over threads, into one evidence.

Memory is O(block): the N×K matrix of scores never exists. Each thread owns a run of gallery blocks, and the threads' sums are
added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from holue.errors import GalleryTooSmallError, InvalidEmbeddingsError, InvalidParameterError
from holue.evidence.accumulator import Accumulator
from holue.evidence.block import Block, blocks_of, cut, rows_of
from holue.evidence.canonical_top import (
    canonical_scores,
    kept_by_kernel,
    rounding_of_scores,
    with_canonical_top,
    with_top_of,
)
from holue.evidence.evidence import NO_SUBJECT, Evidence
from holue.evidence.kernels.kernel import SUBJECT_BLOCK as SUBJECT_BLOCK
from holue.evidence.kernels.kernel import Kernel, LinkedKernel, kernel_for
from holue.evidence.link import Link, cosine_link
from holue.evidence.threads.processors import available_processors
from holue.evidence.threads.thread_pool import parallel_map
from holue.gallery.embeddings import Float64Array, FloatArray
from holue.gallery.gallery import Gallery
from holue.gallery.segment import Numbers

PRODUCTS_PER_THREAD = 8_000_000
"""Multiplications under which a further thread is not worth waking: about 0.5 ms of work."""
_NO_SHARPNESS = np.empty(0)


def scan(
    directions: FloatArray,
    gallery: Gallery | FloatArray | list[Block],
    sharpness: npt.ArrayLike,
    *,
    top_k: int = 5,
    link: Link = cosine_link,
    threads: int | None = None,
) -> Evidence:
    """Evidence of a whole gallery, or of some blocks, about unit ``directions`` (n, d), which are trusted to be valid.

    Who has left a gallery is skipped. The top is named by the subjects' numbers; its scores are canonical
    (``canonical_top.py``): in float64, and bit for bit the same for every batch size, number of threads and layout of the gallery
    in segments. Log-mass and mean score are the same bits for every number of threads and every layout, and where parts of a
    gallery are scanned and merged (``reproducible_sums.py``); not for every batch size, since the products of few and of many
    probes are summed in different orders. They are computed in the wider precision of the two; a float32 cosine is good to about
    1e-7, hence a float32 log-mass to about ``a·1e-7 + 1e-6``.
    """
    a, top_k = check_sharpness(sharpness), check_top_k(top_k)
    blocks = blocks_of(gallery)
    n_rows, dim = sum(len(block.rows) for block in blocks), blocks[0].rows.shape[1]
    check_shapes(directions, n_rows, dim)
    dtype = np.result_type(directions.dtype, blocks[0].rows.dtype, np.float32)
    kernel = kernel_for(np.ascontiguousarray(directions, dtype=dtype), link, a)
    workers = min(n_threads(threads, len(directions) * n_rows * dim), n_rows)
    if isinstance(kernel, LinkedKernel):
        found = _read(kernel, len(directions), blocks, a, top_k, workers)
        return found.evidence(found.top_scores, found.top_index, kernel.linked(found.top_scores))
    found = _read(kernel, len(directions), blocks, a, kept_by_kernel(top_k), workers)
    if top_k == 0:
        return found.evidence(found.top_scores, found.top_index, found.top_scores)
    probes = np.ascontiguousarray(directions, dtype=np.float64)
    exact = canonical_scores(blocks, found.top_index, probes, workers)
    seen, certain = with_canonical_top(found, exact, top_k, rounding_of_scores(dtype, dim))
    if certain.all():
        return seen
    uncertain = np.flatnonzero(~certain)
    top = canonical_scan(probes[uncertain], blocks, top_k, workers)
    summed = _summed(kernel, uncertain, blocks, top.top_index)
    return with_top_of(seen, uncertain, top.top_scores, top.top_index, summed)


def canonical_scan(probes: Float64Array, blocks: Sequence[Block], top_k: int, workers: int) -> Accumulator:
    """The top of all subjects by canonical score, and no sums: slower than a scan, and certain in every tie."""
    return _read(LinkedKernel(probes, cosine_link), len(probes), blocks, _NO_SHARPNESS, top_k, workers)


def _summed(kernel: Kernel, probes: Numbers, blocks: Sequence[Block], wanted: Numbers) -> FloatArray:
    """The scores that a kernel summed of some of its probes with their own ``wanted`` (n, k) numbers; −inf for nobody."""
    summed = np.full(wanted.shape, -np.inf, dtype=np.float32)
    every = np.unique(wanted[wanted != NO_SUBJECT])
    for first in range(0, len(every), SUBJECT_BLOCK):
        numbers = every[first : first + SUBJECT_BLOCK]
        scores = kernel.scores(rows_of(blocks, numbers))
        row, place = np.nonzero((wanted >= numbers[0]) & (wanted <= numbers[-1]))
        summed[row, place] = scores[probes[row], np.searchsorted(numbers, wanted[row, place])]
    return summed


def _read(
    kernel: Kernel,
    n_probes: int,
    blocks: Sequence[Block],
    a: Float64Array,
    top_k: int,
    workers: int,
) -> Accumulator:
    """Top and sums by one kernel, each worker reading a run of the gallery."""

    def read(worker: int) -> None:
        begin, end = worker * n_rows // workers, (worker + 1) * n_rows // workers
        for block in cut(blocks, begin, end, kernel.block_rows):
            kernel.add(sums[worker], block, scratch[worker])

    n_rows = sum(len(block.rows) for block in blocks)
    # Allocate here: a worker holds the GIL until it enters compiled code, so allocating inside it would block the caller.
    sums = [Accumulator.start(n_probes, a, top_k, kernel.n_bins) for _ in range(workers)]
    scratch = [kernel.scratch() for _ in range(workers)]
    parallel_map(read, range(workers))
    found, *others = sums
    for other in others:
        found.add(other)
    return found


def check_shapes(directions: FloatArray, n_subjects: int, dim: int) -> None:
    """An error that names the sizes, unless probes of ``dim`` coordinates meet a gallery that is not empty."""
    if n_subjects == 0:
        raise GalleryTooSmallError("the gallery is empty: enrol at least one subject")
    if directions.ndim != 2 or directions.shape[1] != dim:
        raise InvalidEmbeddingsError(
            f"directions have {directions.shape[-1]} features, the gallery has {dim}: "
            "both must come from the same embedding model"
        )


def check_sharpness(value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """One or several sharpnesses as an array, or an error that names them."""
    given = np.asarray(value)
    if given.size and given.dtype.kind not in "iuf":
        raise InvalidParameterError(f"sharpness must be numbers, got dtype {given.dtype}")
    a = np.atleast_1d(given.astype(np.float64))
    if a.ndim != 1 or not all(0 <= each < math.inf for each in a.tolist()):
        raise InvalidParameterError(f"sharpness must be one or several finite numbers of at least 0, got {value!r}")
    return a


def check_top_k(top_k: int) -> int:
    """A number of subjects, or an error that names it."""
    if isinstance(top_k, bool) or not isinstance(top_k, int | np.integer) or top_k < 0:
        raise InvalidParameterError(f"top_k must be a whole number of at least 0, got {top_k!r}")
    return int(top_k)


def n_threads(threads: int | None, products: int) -> int:
    """How many parts to split so many multiplications into: as asked, or by the processors there are."""
    if threads is None:
        # A thread is worth waking only if it has something to do.
        return min(available_processors(), 1 + products // PRODUCTS_PER_THREAD)
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InvalidParameterError(f"threads must be a whole number of at least 1 or None, got {threads!r}")
    return int(threads)
