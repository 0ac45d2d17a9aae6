"""Scan: a whole gallery, streamed block by block over threads, into one evidence.

Memory is O(block): the N×K matrix of scores never exists. Each thread owns a run of gallery blocks, BLAS stays on one thread
inside it, and the threads' evidences merge.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from holue.errors import GalleryTooSmallError, InvalidEmbeddingsError, InvalidParameterError
from holue.evidence.evidence import Evidence, merge
from holue.evidence.kernel import Accumulator
from holue.evidence.link import Link, cosine_link
from holue.gallery.embeddings import FloatArray
from holue.gallery.gallery import Gallery

PROBE_BLOCK = 512
SUBJECT_BLOCK = 2048

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
    a = _sharpness(sharpness)
    if isinstance(top_k, bool) or not isinstance(top_k, int | np.integer) or top_k < 0:
        raise InvalidParameterError(f"top_k must be a whole number of at least 0, got {top_k!r}")
    blocks = list(_blocks(gallery))
    if not blocks:
        raise GalleryTooSmallError("the gallery is empty: enrol at least one subject")
    dim = blocks[0][1].shape[1]
    if directions.shape[1] != dim:
        raise InvalidEmbeddingsError(
            f"directions have {directions.shape[1]} features, the gallery has {dim}: "
            "both must come from the same embedding model"
        )
    dtype = np.result_type(directions.dtype, blocks[0][1].dtype)
    probes = np.ascontiguousarray(directions, dtype=dtype)
    workers = min(_threads(threads), len(blocks))
    runs = [blocks[i * len(blocks) // workers : (i + 1) * len(blocks) // workers] for i in range(workers)]
    with threadpool_limits(limits=1, user_api="blas"):
        if workers == 1:
            return _scan_run(probes, runs[0], a, int(top_k), link)
        with ThreadPoolExecutor(workers) as pool:
            parts = pool.map(lambda run: _scan_run(probes, run, a, int(top_k), link), runs)
            return reduce(merge, parts)


def _scan_run(
    probes: FloatArray, blocks: Iterable[Block], sharpness: npt.NDArray[np.float64], top_k: int, link: Link
) -> Evidence:
    whole = Accumulator.start(len(probes), sharpness, top_k)
    for first_subject, block in blocks:
        held = block.astype(probes.dtype, copy=False)
        for first_probe in range(0, len(probes), PROBE_BLOCK):
            rows = slice(first_probe, first_probe + PROBE_BLOCK)
            whole.rows(rows).add(probes[rows], held, first_subject, link, first_probe)
        whole.n_subjects += len(block)
    return whole.evidence()


def _blocks(gallery: Gallery | FloatArray) -> Iterable[Block]:
    if isinstance(gallery, Gallery):
        yield from gallery.blocks(SUBJECT_BLOCK)
    else:
        for first in range(0, len(gallery), SUBJECT_BLOCK):
            yield first, gallery[first : first + SUBJECT_BLOCK]


def _sharpness(value: npt.ArrayLike) -> npt.NDArray[np.float64]:
    a = np.atleast_1d(np.asarray(value, dtype=np.float64))
    if a.ndim != 1 or not (np.isfinite(a) & (a >= 0)).all():
        raise InvalidParameterError(f"sharpness must be one or several finite numbers of at least 0, got {value!r}")
    return a


def _threads(threads: int | None) -> int:
    if threads is None:
        return os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer) or threads < 1:
        raise InvalidParameterError(f"threads must be a whole number of at least 1 or None, got {threads!r}")
    return int(threads)
