"""Cluster: two shards of one core each on a Ray of this machine beside the local scan on two threads, and what a call costs."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from holue.bench.sections.section import Result, Row, Step
from holue.bench.worlds.sizes import Sizes
from holue.bench.worlds.world import CONCENTRATION, TEMPERATURE, Float32Array, random_directions, random_probes
from holue.cluster.cluster import Cluster
from holue.cluster.cluster_search import ClusterSearch
from holue.cluster.feeding import VersionToServe
from holue.cluster.local_ray import LocalRay
from holue.cluster.shards.stripes import STRIPE
from holue.errors import MissingDependencyError
from holue.gallery.gallery import Gallery
from holue.live.batches import QUESTIONS_UNDER_WAY, Batches
from holue.live.clustered import ClusterAddress
from holue.live.opening import open as open_gallery
from holue.live.version import GalleryVersion
from holue.recognition.search.gallery_search import GallerySearch

SHARPNESS = [CONCENTRATION, CONCENTRATION / TEMPERATURE]
PROBES = (1, 256)
SHARDS = 2
CALLS = {1: 20, 256: 1}
CALLED = 200
BATCHED_UP_TO = 100_000 * 512
"""Coordinates up to which a gallery is also enrolled, to ask it as the command does."""


def cluster_steps(result: Result, sizes: Sizes, rounds: int, seed: int) -> Iterator[Step]:
    """One step per gallery."""
    result["cluster"] = {"rows": [], "calls": [], "batches": []}
    for subjects, dim in sizes.cluster_shapes:
        note = f"cluster: K = {subjects}, d = {dim}"
        batches = sizes.cluster_batch_probes if subjects * dim <= BATCHED_UP_TO else 0
        yield note, partial(_measure, result["cluster"], subjects, dim, batches, rounds, seed)


def _measure(found: Result, subjects: int, dim: int, batch_probes: int, rounds: int, seed: int) -> None:
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
            if not found["calls"]:
                found["calls"] = _call_costs(cluster, dim)
        finally:
            cluster.down()
        if batch_probes:
            found["batches"].append(_batch_rates(local_ray.address, subjects, dim, batch_probes, 3, seed))


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


def _call_costs(cluster: Cluster, dim: int) -> list[Row]:
    """What a call costs on its way, from the submission to a question with probes; the shards hold hardly anybody."""
    replicas = cluster.replicas()
    gallery = Gallery.of(np.arange(SHARDS * STRIPE), random_directions(np.random.default_rng(0), SHARDS * STRIPE, dim))
    few = VersionToServe("2@0", gallery, lambda base, wanted: None)
    cluster.serve(few)
    cluster.unreached()
    search, local = ClusterSearch(cluster, few, "exact"), GallerySearch.exact(gallery)

    def submit() -> object:
        return replicas[0].handle.about.remote()

    def question(n: int) -> Callable[[], object]:
        return lambda: search.scan(gallery.directions[:n], SHARPNESS, top_k=10)

    ways: dict[str, Callable[[], object]] = {
        "submitting a call": submit,
        "an empty call, there and back": lambda: replicas[0].call("about").result(30),
        "two empty calls at once": lambda: [each.result(30) for each in [one.call("about") for one in replicas]],
        "a question of 1 probe": question(1),
        "a question of 256 probes": question(256),
        "the scan of that in this process, 1 probe": lambda: local.scan(gallery.directions[:1], SHARPNESS, top_k=10),
        "the scan of that in this process, 256 probes": lambda: local.scan(
            gallery.directions[:256], SHARPNESS, top_k=10
        ),
    }
    rows = []
    for name, way in ways.items():
        taken = []
        for _ in range(CALLED):
            start = time.perf_counter()
            way()
            taken.append(1e3 * (time.perf_counter() - start))
        rows.append({"what": name, "p50_ms": float(np.median(taken)), "p99_ms": float(np.quantile(taken, 0.99))})
    return rows


def _batch_rates(address: str, subjects: int, dim: int, n_probes: int, rounds: int, seed: int) -> Row:
    """Probes per second of ``holue identify``, asked in batches as the command does, on two shards and in this process."""
    rng = np.random.default_rng([seed, subjects])
    rows = random_directions(rng, subjects, dim)
    probes = random_probes(rng, rows, n_probes)
    seconds: dict[str, list[float]] = {"local": [], "cluster": []}
    with TemporaryDirectory() as folder:
        home = f"{folder}/gallery"
        with open_gallery(home, create=True, dim=dim, method="galue", threshold=0.5) as made:
            made.enroll(rows, [f"p{i}" for i in range(subjects)])
        where = ClusterAddress(address, n_shards=SHARDS, replicas=1)
        with open_gallery(home, cluster=where) as spread, open_gallery(home, read_only=True) as single:
            for _ in range(rounds):
                for name, live, under_way in (("local", single, 1), ("cluster", spread, QUESTIONS_UNDER_WAY)):
                    now = live.current

                    def answer(part: slice, now: GalleryVersion = now) -> list[dict[str, Any]]:
                        return [one.to_dict() for one in now.identify(probes[part])]

                    start = time.perf_counter()
                    for _ in Batches(answer, n_probes, under_way, None, {}):
                        pass
                    seconds[name].append(time.perf_counter() - start)
            assert spread.clustered is not None
            spread.clustered.cluster.down()
    rate = {name: n_probes / float(np.median(taken)) for name, taken in seconds.items()}
    return {
        "subjects": subjects, "dim": dim, "probes": n_probes, "local_per_s": rate["local"],
        "cluster_per_s": rate["cluster"], "ratio": rate["cluster"] / rate["local"],
    }  # fmt: skip
