"""Systems: holue and its alternatives, each as a function of the probes that is ready to be timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec

import numpy as np

from holue.bench.worlds.world import CONCENTRATION, TEMPERATURE, TOP_K, Float32Array
from holue.evidence.scan import scan

Answer = Callable[[Float32Array], object]
System = Callable[[Float32Array, int, int], Answer]

SHARPNESS = (CONCENTRATION, CONCENTRATION / TEMPERATURE)


@contextmanager
def blas_threads(threads: int) -> Iterator[None]:
    """Hold numpy's matrix library to so many threads."""
    with _blas().limit(limits=threads, user_api="blas"):
        yield


@cache
def _blas():  # type: ignore[no-untyped-def]
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def sgemm(gallery: Float32Array, n_probes: int, threads: int) -> Answer:
    """The bare matrix product of the same size: the limit for whoever computes every score."""
    scores = np.empty((n_probes, len(gallery)), dtype=np.float32)

    def answer(probes: Float32Array) -> object:
        with blas_threads(threads):
            return np.matmul(probes, gallery.T, out=scores)

    return answer


def holue_evidence(gallery: Float32Array, n_probes: int, threads: int) -> Answer:
    """holue: the top five, and log-mass and mean score at κ and κ/20."""
    return lambda probes: scan(probes, gallery, SHARPNESS, top_k=TOP_K, threads=threads)


def faiss_flat(gallery: Float32Array, n_probes: int, threads: int) -> Answer:
    """FAISS IndexFlatIP: the one nearest subject."""
    import faiss

    index = faiss.IndexFlatIP(gallery.shape[1])
    index.add(gallery)

    def answer(probes: Float32Array) -> object:
        faiss.omp_set_num_threads(threads)
        return index.search(probes, 1)

    return answer


def usearch_exact(gallery: Float32Array, n_probes: int, threads: int) -> Answer:
    """Usearch, exact: the one nearest subject."""
    from usearch.compiled import MetricKind
    from usearch.index import search

    return lambda probes: search(gallery, probes, 1, MetricKind.IP, exact=True, threads=threads)


def dense_single(gallery: Float32Array, n_probes: int, threads: int) -> Answer:
    """The whole answer by numpy on the dense float32 matrix of scores."""

    def answer(probes: Float32Array) -> object:
        with blas_threads(threads):
            scores = probes @ gallery.T
        top = np.argpartition(scores, -TOP_K, axis=1)[:, -TOP_K:]
        below = scores - scores.max(axis=1, keepdims=True)
        sums = []
        for a in SHARPNESS:
            weights = np.exp(np.float32(a) * below)
            sums.append((weights.sum(axis=1), np.einsum("ij,ij->i", weights, below)))
        return top, sums

    return answer


def dense_double(gallery: Float32Array, n_probes: int, threads: int) -> Answer:
    """The posterior as research code writes it: float64 logits N×K, a softmax over them, at both sharpnesses."""

    def answer(probes: Float32Array) -> object:
        with blas_threads(threads):
            scores = probes.astype(np.float64) @ gallery.T.astype(np.float64)
        posteriors = []
        for a in SHARPNESS:
            logits = a * scores
            weights = np.exp(logits - logits.max(axis=1, keepdims=True))
            posterior = weights / weights.sum(axis=1, keepdims=True)
            posteriors.append((posterior.max(axis=1), posterior.argmax(axis=1)))
        return posteriors

    return answer


SYSTEMS: dict[str, System] = {
    "sgemm": sgemm,
    "holue": holue_evidence,
    "faiss": faiss_flat,
    "usearch": usearch_exact,
    "numpy float32": dense_single,
    "numpy float64": dense_double,
}
_PACKAGES = {"faiss": "faiss", "usearch": "usearch"}


def missing(system: str) -> str | None:
    """Why a system cannot be measured here, or None if it can."""
    package = _PACKAGES.get(system)
    if package is None or find_spec(package) is not None:
        return None
    return f"{package} is not installed; run: pip install 'holue[bench]'"
