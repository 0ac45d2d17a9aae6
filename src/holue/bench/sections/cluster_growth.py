"""Cluster growth: 1 to 8 shards with simulated delays and stragglers, beside a model; constants for galleries that are larger.

The shards are real, on a Ray of this machine. A delayed shard waits before it answers, as if its answer had come over a network.
A straggler waits far longer, now and then, and its replica is asked instead.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from holue.bench.sections.section import Result, Row, Step
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import CONCENTRATION, TEMPERATURE, Float32Array, random_directions, random_probes
from holue.cluster.asking import HEDGED_AFTER, HEDGED_LEAST
from holue.cluster.cluster import Cluster
from holue.cluster.cluster_search import ClusterSearch
from holue.cluster.feeding import VersionToServe
from holue.cluster.local_ray import LocalRay
from holue.cluster.shard_actor import ShardActor
from holue.cluster.stripes import STRIPE
from holue.errors import MissingDependencyError
from holue.gallery.gallery import Gallery
from holue.recognition.search.gallery_search import GallerySearch
from holue.recognition.search.prepared_segments import PreparedSegments
from holue.recognition.search.search import SearchKind

SHARPNESS = [CONCENTRATION, CONCENTRATION / TEMPERATURE]
PROCESSORS = 2
DELAYS_MS = (0.0, 0.2, 1.0, 5.0)
STRAGGLING, PAUSE_MS = 0.01, 200.0
"""The share of answers that come late, and how late."""
KINDS: tuple[SearchKind, ...] = ("exact", "int8", "binary", "approximate")


class DelayedShard(ShardActor):
    """A shard that answers late on purpose."""

    _delay = _share = _pause = 0.0

    def behave(self, delay_ms: float, share: float, pause_ms: float, seed: int) -> None:
        """From now on, wait before every answer, and longer before a share of them."""
        self._delay, self._share, self._pause = delay_ms / 1e3, share, pause_ms / 1e3
        self._rng = np.random.default_rng(seed)

    def scan(self, *question: Any) -> Any:
        """Evidence, late."""
        late = self._pause if self._share and self._rng.random() < self._share else 0.0
        if self._delay or late:
            time.sleep(self._delay + late)
        return super().scan(*question)


def growth_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """One step per number of shards, and one for the constants."""
    result["cluster_growth"] = {"rows": [], "kinds": []}
    subjects, dim = sizes.cluster_growth_shape
    for shards in sizes.cluster_shards:
        yield (
            f"cluster: {shards} shards",
            partial(_grown, result["cluster_growth"], subjects, dim, shards, sizes.cluster_calls, seed),
        )
    yield "cluster: constants", partial(_constants, result["cluster_growth"], subjects, dim, seed)


def _grown(found: Result, subjects: int, dim: int, shards: int, calls: int, seed: int) -> None:
    rng = np.random.default_rng([seed, subjects, dim])
    rows = random_directions(rng, subjects, dim)
    probes = random_probes(rng, rows, 64)
    whole = Gallery.of(np.arange(subjects), rows)
    # Of hardly anybody in each shard: what is left are the calls.
    few = Gallery.of(np.arange(shards * STRIPE), rows[: shards * STRIPE])
    try:
        local_ray = LocalRay(2)
    except MissingDependencyError as error:
        found["skipped"] = str(error)
        return
    with local_ray:
        empty = _with_shards(few, shards, 1, probes, calls, [(0.0, 0.0, 0.0)], seed)[0]
        alone = _scan_ms(GallerySearch.exact(whole), probes, calls)
        behaviours = [(delay, 0.0, 0.0) for delay in DELAYS_MS]
        told = _with_shards(whole, shards, 1, probes, calls, behaviours, seed)
        late = _with_shards(whole, shards, 2, probes, calls, [(0.0, STRAGGLING, PAUSE_MS)], seed)[0]
    common = {"subjects": subjects, "dim": dim, "shards": shards, "call_ms": empty["p50_ms"], "scan_ms": alone}
    for delay, row in zip(DELAYS_MS, told, strict=True):
        model = empty["p50_ms"] + delay + alone / min(shards, PROCESSORS)
        found["rows"].append({**common, "delay_ms": delay, "straggling": 0.0, "model_ms": model, **row})
    usual = empty["p50_ms"] + alone / min(shards, PROCESSORS)
    hedged = max(1e3 * HEDGED_LEAST, HEDGED_AFTER * usual) + usual
    found["rows"].append(
        {**common, "delay_ms": 0.0, "straggling": STRAGGLING, "model_ms": usual, "model_p99_ms": hedged, **late}
    )


def _with_shards(
    gallery: Gallery,
    shards: int,
    replicas: int,
    probes: Float32Array,
    calls: int,
    behaviours: list[tuple[float, float, float]],
    seed: int,
) -> list[Row]:
    version = VersionToServe("1@0", gallery, lambda base, wanted: None)
    identity, rows = f"bench-{secrets.token_hex(4)}", []
    with Cluster(identity, n_shards=shards, replicas=replicas, actor=DelayedShard) as cluster:
        cluster.start(version)
        try:
            for behaviour in behaviours:
                for number, replica in enumerate(cluster.replicas()):
                    replica.call("behave", *behaviour, seed + number).result(30)
                rows.append(_timed(ClusterSearch(cluster, version, "exact"), probes, calls))
        finally:
            cluster.down()
    return rows


def _timed(search: ClusterSearch, probes: Float32Array, calls: int) -> Row:
    for place in range(10):
        search.scan(probes[place : place + 1], SHARPNESS, top_k=10)
    taken = []
    for call in range(calls):
        place = call % len(probes)
        start = time.perf_counter()
        search.scan(probes[place : place + 1], SHARPNESS, top_k=10)
        taken.append(1e3 * (time.perf_counter() - start))
    return {"p50_ms": float(np.median(taken)), "p99_ms": float(np.quantile(taken, 0.99))}


def _scan_ms(search: GallerySearch, probes: Float32Array, calls: int) -> float:
    taken = []
    for call in range(calls // 2 + 3):
        place = call % len(probes)
        start = time.perf_counter()
        search.scan(probes[place : place + 1], SHARPNESS, top_k=10, threads=1)
        taken.append(1e3 * (time.perf_counter() - start))
    return float(np.median(taken[3:]))


def _constants(found: Result, subjects: int, dim: int, seed: int) -> None:
    """One probe and 64 on one thread, by kind of search: what a shard of one core does."""
    rng = np.random.default_rng([seed, subjects, dim])
    rows = random_directions(rng, subjects, dim)
    probes = random_probes(rng, rows, 64)
    gallery = Gallery.of(np.arange(subjects), rows)
    for kind in KINDS:
        prepared = PreparedSegments()
        search = prepared.search(kind, gallery, lambda old, segment: False)
        one = _scan_ms(search, probes, 30)
        start = time.perf_counter()
        search.scan(probes, SHARPNESS, top_k=10, threads=1)
        many = 1e3 * (time.perf_counter() - start) / len(probes)
        found["kinds"].append({"kind": kind, "subjects": subjects, "dim": dim, "one_ms": one, "each_of_64_ms": many})
