"""Scan: a whole gallery, streamed block by block over threads, into one evidence.

Memory is O(block): the N×K matrix of scores never exists. Each thread owns a run of gallery blocks, BLAS stays on one thread
inside it, and the threads' evidences merge.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from functools import reduce

import numpy as np
import numpy.typing as npt

from holue.errors import GalleryTooSmallError, InvalidEmbeddingsError, InvalidParameterError
from holue.evidence.accumulator import Accumulator
from holue.evidence.evidence import Evidence, merge
from holue.evidence.kernels.kernel import SUBJECT_BLOCK as SUBJECT_BLOCK
from holue.evidence.kernels.kernel import kernel_for
from holue.evidence.link import Link, cosine_link
from holue.evidence.threads.blas import single_threaded
from holue.evidence.threads.thread_pool import team
from holue.gallery.embeddings import FloatArray
from holue.gallery.gallery import Gallery

PRODUCTS_PER_THREAD = 8_000_000
"""Multiplications under which a further thread is not started: about 0.5 ms of work, which is what starting one costs."""

Block = tuple[int, FloatArray]


def scan(
    directions: FloatArray,
    gallery: Gallery | FloatArray,
    sharpness: npt.ArrayLike,
    *,
    top_k: int = 5,
    link: Link = cosine_link,
    threads: int | None = None,
) -> Evidence:
    """Evidence of the whole gallery about unit ``directions`` (n, d), which are trusted to be valid.

    The product is computed in the wider precision of the two; a float32 cosine is good to about 1e-7, hence a float32
    log-mass to about ``a·1e-7``.
    """
    a, top_k = _sharpness(sharpness), _places(top_k)
    parts = list(gallery.blocks(max(len(gallery), 1))) if isinstance(gallery, Gallery) else [(0, np.asarray(gallery))]
    n_subjects = sum(len(part) for _, part in parts)
    if n_subjects == 0:
        raise GalleryTooSmallError("the gallery is empty: enrol at least one subject")
    dim = parts[0][1].shape[1]
    if directions.shape[1] != dim:
        raise InvalidEmbeddingsError(
            f"directions have {directions.shape[1]} features, the gallery has {dim}: "
            "both must come from the same embedding model"
        )
    dtype = np.result_type(directions.dtype, parts[0][1].dtype, np.float32)
    kernel = kernel_for(np.ascontiguousarray(directions, dtype=dtype), link)
    workers = min(_threads(threads, len(directions) * n_subjects * dim), n_subjects)

    def read(worker: int) -> None:
        begin, end = worker * n_subjects // workers, (worker + 1) * n_subjects // workers
        for first_subject, block in _blocks(parts, begin, end, kernel.block_rows):
            kernel.add(sums[worker], block, first_subject, rooms[worker])

    # Made here: until a helper is in compiled code it and its caller wait for each other.
    sums = [Accumulator.start(len(directions), a, top_k) for _ in range(workers)]
    rooms = [kernel.room() for _ in range(workers)]
    with single_threaded() if kernel.uses_blas else nullcontext(), team(workers) as share:
        share(read, range(workers))
    return reduce(merge, (own.evidence() for own in sums))


def _blocks(parts: Iterable[Block], begin: int, end: int, size: int) -> Iterator[Block]:
    """The rows ``begin .. end`` of the gallery as views of at most ``size`` rows, each within one part."""
    for start, part in parts:
        last = min(end - start, len(part))
        for first in range(max(begin - start, 0), last, size):
            yield start + first, part[first : min(first + size, last)]


def _sharpness(value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    given = np.asarray(value)
    if given.size and given.dtype.kind not in "iuf":
        raise InvalidParameterError(f"sharpness must be numbers, got dtype {given.dtype}")
    a = np.atleast_1d(given.astype(np.float64))
    if a.ndim != 1 or not all(0 <= each < math.inf for each in a.tolist()):
        raise InvalidParameterError(f"sharpness must be one or several finite numbers of at least 0, got {value!r}")
    return a


def _places(top_k: int) -> int:
    if isinstance(top_k, bool) or not isinstance(top_k, int | np.integer) or top_k < 0:
        raise InvalidParameterError(f"top_k must be a whole number of at least 0, got {top_k!r}")
    return int(top_k)


def _threads(threads: int | None, products: int) -> int:
    if threads is None:
        # A thread is worth its start only if it has something to do.
        return min(_processors(), 1 + products // PRODUCTS_PER_THREAD)
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InvalidParameterError(f"threads must be a whole number of at least 1 or None, got {threads!r}")
    return int(threads)


def _processors() -> int:
    """Processors this process may use, which in a container can be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
