"""Cluster: two shards of one core each on a Ray of this machine beside the local scan on two threads, and what a call costs."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from holue.bench.sections.section import Result, Row, Step
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import CONCENTRATION, TEMPERATURE, Float32Array, random_directions, random_probes
from holue.cluster.cluster import Cluster
from holue.cluster.cluster_search import ClusterSearch
from holue.cluster.feeding import VersionToServe
from holue.cluster.local_ray import LocalRay
from holue.errors import MissingDependencyError
from holue.gallery.gallery import Gallery
from holue.recognition.search.gallery_search import GallerySearch

SHARPNESS = [CONCENTRATION, CONCENTRATION / TEMPERATURE]
PROBES = (1, 256)
SHARDS = 2
CALLS = {1: 20, 256: 1}
EMPTY_CALLS = 300


def cluster_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """One step per gallery."""
    result["cluster"] = {"rows": [], "calls": []}
    for subjects, dim in sizes.cluster_shapes:
        note = f"cluster: K = {subjects}, d = {dim}"
        yield note, partial(_measure, result["cluster"], subjects, dim, rounds, seed)


def _measure(found: Result, subjects: int, dim: int, rounds: int, seed: int) -> None:
    rng = np.random.default_rng([seed, subjects, dim])
    rows = random_directions(rng, subjects, dim)
    probes = random_probes(rng, rows, max(PROBES))
    gallery = Gallery.of(np.arange(subjects), rows)
    try:
        local_ray = LocalRay(SHARDS)
    except MissingDependencyError as error:
        found["skipped"] = str(error)
        return
    with local_ray, Cluster(f"bench-{secrets.token_hex(4)}", n_shards=SHARDS, replicas=1) as cluster:
        version = VersionToServe("1@0", gallery, lambda base, wanted: None)
        start = time.perf_counter()
        cluster.start(version)
        filled = time.perf_counter() - start
        try:
            for n in PROBES:
                row = _beside(cluster, version, probes[:n], rounds)
                found["rows"].append({"subjects": subjects, "dim": dim, "probes": n, "filled_s": filled, **row})
            found["calls"].append({"subjects": subjects, "dim": dim, **_empty_calls(cluster)})
        finally:
            cluster.down()


def _beside(cluster: Cluster, version: VersionToServe, probes: Float32Array, rounds: int) -> Row:
    """Both in turn; the evidence must be the same bits."""
    ours, theirs = ClusterSearch(cluster, version, "exact"), GallerySearch.exact(version.gallery)
    ways: dict[str, Callable[[], object]] = {
        "local": lambda: theirs.scan(probes, SHARPNESS, top_k=10, threads=SHARDS),
        "cluster": lambda: ours.scan(probes, SHARPNESS, top_k=10),
    }
    left, right = (way() for way in ways.values())
    same = all(
        np.array_equal(getattr(left, name), getattr(right, name)) for name in ("top_scores", "top_index", "log_mass")
    )
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            way()
            for _ in range(CALLS[len(probes)]):
                start = time.perf_counter()
                way()
                seconds[name].append(time.perf_counter() - start)
    row: Row = {"same_bits": same}
    for name, taken in seconds.items():
        row |= {f"{name}_ms": 1e3 * float(np.median(taken)), f"{name}_p99_ms": 1e3 * float(np.quantile(taken, 0.99))}
    return row | {"more_ms": row["cluster_ms"] - row["local_ms"], "ratio": row["cluster_ms"] / row["local_ms"]}


def _empty_calls(cluster: Cluster) -> Row:
    """What a call that does nothing costs."""
    replica, taken = cluster.replicas()[0], []
    for _ in range(EMPTY_CALLS):
        start = time.perf_counter()
        replica.call("about").result(30)
        taken.append(time.perf_counter() - start)
    return {"empty_p50_ms": 1e3 * float(np.median(taken)), "empty_p99_ms": 1e3 * float(np.quantile(taken, 0.99))}
