"""Cluster growth: 1 to 8 shards with simulated delays and stragglers, beside a model; constants for galleries that are larger.

The shards are real, on a Ray of this machine. A delayed shard waits before it answers, as if its answer had come over a network.
A straggler waits far longer, now and then, and its replica is asked instead.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator
from functools import partial

import numpy as np

from holue.bench.sections.section import Result, Row, Step
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import CONCENTRATION, TEMPERATURE, Float32Array, random_directions, random_probes
from holue.cluster.asking import HEDGED_AFTER, HEDGED_LEAST
from holue.cluster.cluster import Cluster
from holue.cluster.cluster_search import ClusterSearch
from holue.cluster.feeding import Difference, VersionToServe
from holue.cluster.local_ray import LocalRay
from holue.cluster.shards.packed import unpacked
from holue.cluster.shards.shard_actor import ShardActor
from holue.cluster.shards.stripes import STRIPE
from holue.errors import MissingDependencyError
from holue.gallery.gallery import Gallery
from holue.recognition.search.gallery_search import GallerySearch
from holue.recognition.search.prepared_segments import PreparedSegments
from holue.recognition.search.search import Search, SearchKind

SHARPNESS = [CONCENTRATION, CONCENTRATION / TEMPERATURE]
PROCESSORS = NODES = 2
FEW, WHOLE = "1@0", "2@0"
"""Versions: one to measure the calls with, and the gallery."""
WARM, CONSTANT_CALLS = 5, 20
DECISIVE = 0.5
"""The threshold of a decision, below which one bit per coordinate promises no order."""
DELAYS_MS = (0.0, 0.2, 1.0, 5.0)
STRAGGLING, PAUSE_MS = 0.01, 200.0
"""The share of answers that come late, and how late."""
KINDS: tuple[SearchKind, ...] = ("exact", "int8", "binary", "approximate")


class DelayedShard(ShardActor):
    """A shard that answers late on purpose."""

    _delay = _share = _pause = 0.0

    def behave(self, delay_ms: float, share: float, pause_ms: float, seed: int) -> None:
        """From now on, wait before every answer about the whole gallery, and longer before a share of them."""
        self._delay, self._share, self._pause = delay_ms / 1e3, share, pause_ms / 1e3
        self._rng = np.random.default_rng(seed)

    def scan(self, *question: bytes) -> bytes:
        """Evidence, late."""
        if unpacked(question)[0] == WHOLE:
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
    # Of hardly anybody in each shard: what is left are the calls.
    n_few = shards * STRIPE
    few = VersionToServe(FEW, Gallery.of(np.arange(n_few), rows[:n_few]), lambda base, wanted: None)
    added = Difference(np.arange(n_few, subjects))
    whole = VersionToServe(WHOLE, Gallery.of(np.arange(subjects), rows), lambda base, wanted: added)
    try:
        local_ray = LocalRay(NODES)
    except MissingDependencyError as error:
        found["skipped"] = str(error)
        return
    identity = f"bench-{secrets.token_hex(4)}"
    with local_ray, Cluster(identity, n_shards=shards, replicas=NODES, actor=DelayedShard) as cluster:
        cluster.start(few)
        cluster.unreached()
        cluster.serve(whole)
        cluster.unreached()
        ways: dict[str, Search] = {
            "call": ClusterSearch(cluster, few, "exact"),
            "scan": GallerySearch.exact(whole.gallery),
            "cluster": ClusterSearch(cluster, whole, "exact"),
        }
        try:
            for delay, share in [*((delay, 0.0) for delay in DELAYS_MS), (0.0, STRAGGLING)]:
                for number, replica in enumerate(cluster.replicas()):
                    replica.call("behave", delay, share, PAUSE_MS, seed + number).result(60)
                found["rows"].append(
                    {"subjects": subjects, "dim": dim, "shards": shards, "delay_ms": delay, "straggling": share}
                    | _beside(ways, probes, calls, delay, share)
                )
        finally:
            cluster.down()


def _beside(ways: dict[str, Search], probes: Float32Array, calls: int, delay: float, share: float) -> Row:
    """All in turn, so that whatever else the machine does concerns all."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    worked: dict[str, list[float]] = {name: [] for name in ways}
    for call in range(WARM + calls):
        place = call % len(probes)
        for name, search in ways.items():
            start, before = time.perf_counter(), time.process_time()
            search.scan(probes[place : place + 1], SHARPNESS, top_k=10, threads=1)
            taken[name].append(1e3 * (time.perf_counter() - start))
            worked[name].append(1e3 * (time.process_time() - before))
    middle = {name: float(np.median(each[WARM:])) for name, each in taken.items()}
    usual = middle["call"] + delay + middle["scan"] / PROCESSORS
    row = {
        "call_ms": middle["call"], "asker_ms": float(np.median(worked["call"][WARM:])), "scan_ms": middle["scan"],
        "model_ms": usual, "p50_ms": middle["cluster"],
        "p99_ms": float(np.quantile(taken["cluster"][WARM:], 0.99)),
    }  # fmt: skip
    return row | ({"model_p99_ms": max(1e3 * HEDGED_LEAST, HEDGED_AFTER * usual) + usual} if share else {})


def _scan_ms(search: GallerySearch, probes: Float32Array, calls: int) -> float:
    """Processor time: these scans have no turn with anything, and other programs may run."""
    taken = []
    for _ in range(calls + 1):
        start = time.process_time()
        search.scan(probes, SHARPNESS, top_k=10, decisive=DECISIVE, threads=1)
        taken.append(1e3 * (time.process_time() - start))
    return float(np.median(taken[1:]))


def _constants(found: Result, subjects: int, dim: int, seed: int) -> None:
    """One probe and 64 on one thread, by kind of search: what a shard of one core does."""
    rng = np.random.default_rng([seed, subjects, dim])
    rows = random_directions(rng, subjects, dim)
    probes = random_probes(rng, rows, 64)
    gallery = Gallery.of(np.arange(subjects), rows)
    for kind in KINDS:
        prepared = PreparedSegments()
        search = prepared.search(kind, gallery, lambda old, segment: False)
        one = _scan_ms(search, probes[:1], CONSTANT_CALLS)
        many = _scan_ms(search, probes, 3) / len(probes)
        found["kinds"].append({"kind": kind, "subjects": subjects, "dim": dim, "one_ms": one, "each_of_64_ms": many})
