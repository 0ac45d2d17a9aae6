"""Kill shards, nodes, drivers and the head of a Ray cluster under a steady load, and check every answer.

    python tests/torture/lose_nodes.py --kills 100 --seed 17

A head and two nodes run on this machine. One thread enrols and removes, two threads ask. Every answer must be, bit for bit, that
of its version on one machine; while a replica of every shard lives none may fail or be incomplete. What is decided although a
shard is away must be decided as on one machine. Answers are compared after the load, so that the comparison delays none.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import holue
from holue.cluster.cluster import Cluster
from holue.cluster.local_ray import LocalRay
from holue.cluster.status import ReplicaStatus
from holue.live.clustered import ClusterAddress
from holue.live.live_gallery import LiveGallery
from holue.live.version import GalleryVersion
from holue.recognition.answer.identifications import Identifications

LOADS = itertools.count()
DIM, SETTINGS = 64, {"method": "galue", "threshold": 0.5}
FIELDS = ("subject", "decision", "score", "p_subject", "p_unknown", "candidate_scores", "candidate_probabilities")

DRIVER = """
import sys, numpy as np, holue
from holue.live.clustered import ClusterAddress
gallery = holue.open(sys.argv[1], cluster=ClusterAddress(sys.argv[2], n_shards=2))
rng = np.random.default_rng(int(sys.argv[3]))
for n in range(10**9):
    gallery.enroll(rng.standard_normal((1, gallery.dim)), [f"{sys.argv[3]}-{n}"])
    gallery.identify(rng.standard_normal((1, gallery.dim)))
    print(n, flush=True)
"""


@dataclass
class Load:
    """Threads that ask and change, and what they saw."""

    gallery: LiveGallery
    probes: np.ndarray
    seed: int
    seconds: list[float] = field(default_factory=list)
    incomplete: int = 0
    wrong: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    changes: int = 0
    changing: bool = True
    decided: int = 0  # although a shard was away
    _given: list[tuple[GalleryVersion, np.ndarray, Identifications]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _threads: list[threading.Thread] = field(default_factory=list)

    def __enter__(self) -> Load:
        jobs = [(self._ask, 1), (self._ask, 2)] + ([(self._change, 3)] if self.changing else [])
        self._threads = [threading.Thread(target=job, args=(number,)) for job, number in jobs]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._compare()

    def _compare(self) -> None:
        alone: GalleryVersion | None = None
        for now, probes, answers in sorted(self._given, key=lambda each: each[0].version):
            if alone is None or alone.version != now.version:
                alone = GalleryVersion.of(now.version, now.settings, now.gallery, now.calibrated)
            expected, open_ones = alone.identify(probes), answers.incomplete
            partly = np.array(["could not be read" in why for why in answers.reason])
            self.incomplete += bool(open_ones.any())
            self.decided += int((partly & ~open_ones).sum())
            for name in FIELDS if not partly.any() else ("subject", "decision"):
                if not np.array_equal(getattr(answers, name)[~open_ones], getattr(expected, name)[~open_ones]):
                    self.wrong.append(f"version {now.version}: {name}")
        self._given.clear()

    def _ask(self, number: int) -> None:
        rng = np.random.default_rng([self.seed, number])
        while not self._stop.wait(0.02):
            some = self.probes[rng.integers(0, len(self.probes), rng.integers(1, 9))]
            now = self.gallery.current
            begin = time.perf_counter()
            try:
                answers = now.identify(some)
            except Exception as error:
                self.failed.append(repr(error)[:200])
                continue
            self.seconds.append(time.perf_counter() - begin)
            self._given.append((now, some, answers))

    def _change(self, number: int) -> None:
        # Names differ from those of the loads before.
        rng, names = np.random.default_rng([self.seed, number, next(LOADS)]), []
        while not self._stop.wait(0.05):
            if names and rng.random() < 0.4:
                self.gallery.remove([names.pop(int(rng.integers(len(names))))])
            else:
                names.append(f"{self.seed}/{rng.integers(1 << 62)}")
                self.gallery.enroll(rng.standard_normal((1, DIM)), names[-1:])
            self.changes += 1

    def report(self, what: str, begin: float, **more: Any) -> dict[str, Any]:
        took = np.array(self.seconds) * 1e3
        quantiles = np.percentile(took, [50, 99, 100]).round(1).tolist() if len(took) else [None] * 3
        row = {
            "fault": what, "seconds": round(time.monotonic() - begin, 1), "questions": len(took), "changes": self.changes,
            "ms_median": quantiles[0], "ms_p99": quantiles[1], "ms_longest": quantiles[2], "incomplete": self.incomplete,
            "failed": len(self.failed), "wrong": len(self.wrong), **more,
        }  # fmt: skip
        print(json.dumps(row), flush=True)
        for line in (*self.failed[:3], *self.wrong[:3]):
            print("   ", line, flush=True)
        return row


def cluster_of(gallery: LiveGallery) -> Cluster:
    assert gallery.clustered is not None
    return gallery.clustered.cluster


def wait_ready(gallery: LiveGallery, n_replicas: int = 4, seconds: float = 120.0) -> tuple[float, list[ReplicaStatus]]:
    """Until all replicas answer and hold a version; how long that took."""
    begin = time.monotonic()
    while True:
        status = cluster_of(gallery).status()
        if len(status) == n_replicas and all(row.answers and row.version for row in status):
            return round(time.monotonic() - begin, 2), status
        assert time.monotonic() - begin < seconds, f"not whole after {seconds} s: {status}"
        time.sleep(0.1)


def answers_again(gallery: LiveGallery, victim: ReplicaStatus, seconds: float = 120.0) -> None:
    """Until another process of the same replica answers, and holds a version."""
    replica = next(
        one for one in cluster_of(gallery).replicas() if (one.shard, one.node) == (victim.shard, victim.node)
    )
    end = time.monotonic() + seconds
    while True:
        assert time.monotonic() < end, f"shard {victim.shard} does not come back"
        try:
            about = replica.call("about").result(5.0)
        except Exception:
            time.sleep(0.02)
            continue
        if about["pid"] != victim.pid and about["versions"]:
            return


def calm(gallery: LiveGallery, probes: np.ndarray, seed: int) -> dict[str, Any]:
    begin = time.monotonic()
    with Load(gallery, probes, seed) as load:
        time.sleep(5)
    return load.report("none", begin)


def kill_actors(gallery: LiveGallery, probes: np.ndarray, kills: int, seed: int) -> dict[str, Any]:
    rng, begin, back = np.random.default_rng(seed), time.monotonic(), []
    with Load(gallery, probes, seed) as load:
        for _ in range(kills):
            status = wait_ready(gallery)[1]
            victim = status[int(rng.integers(len(status)))]
            os.kill(int(victim.pid or 0), signal.SIGKILL)
            killed = time.monotonic()
            answers_again(gallery, victim)
            back.append(time.monotonic() - killed)
            time.sleep(float(rng.uniform(0.05, 0.3)))
    return load.report(f"{kills} shards killed", begin, back_after_median=round(float(np.median(back)), 2))


def stop_actor(gallery: LiveGallery, probes: np.ndarray, seed: int) -> dict[str, Any]:
    begin = time.monotonic()
    with Load(gallery, probes, seed) as load:
        victim = wait_ready(gallery)[1][seed % 4]
        os.kill(int(victim.pid or 0), signal.SIGSTOP)
        time.sleep(5)
        os.kill(int(victim.pid or 0), signal.SIGCONT)
        wait_ready(gallery)
    return load.report("a shard stopped for 5 s", begin)


def lose_both(gallery: LiveGallery, probes: np.ndarray, seed: int) -> dict[str, Any]:
    """Stopped for longer than the deadline, so that answers are incomplete; then killed, and waited for."""
    begin = time.monotonic()
    with Load(gallery, probes, seed) as load:
        both = [int(row.pid or 0) for row in wait_ready(gallery)[1] if row.shard == 1]
        for pid in both:
            os.kill(pid, signal.SIGSTOP)
        time.sleep(8)
        for pid in both:
            os.kill(pid, signal.SIGCONT)
        resumed = _whole(gallery, probes)
        wait_ready(gallery)
        for pid in both:
            os.kill(pid, signal.SIGKILL)
        restarted = _whole(gallery, probes)
        wait_ready(gallery)
    if not load.incomplete:
        load.wrong.append("no answer was incomplete while a shard was away")
    return load.report(
        "both replicas of a shard away", begin, whole_after_stop=resumed, whole_after_kill=restarted,
        decided_all_the_same=load.decided,
    )  # fmt: skip


def _whole(gallery: LiveGallery, probes: np.ndarray) -> float:
    begin = time.monotonic()
    while gallery.identify(probes[:1]).incomplete.any():
        time.sleep(0.05)
    return round(time.monotonic() - begin, 2)


def kill_node(gallery: LiveGallery, local: LocalRay, probes: np.ndarray, seed: int) -> dict[str, Any]:
    begin = time.monotonic()
    with Load(gallery, probes, seed) as load:
        wait_ready(gallery)
        lost = time.monotonic()
        local.kill(local.nodes.pop(0))
        joined = local.add_node()
        local.nodes.append(joined)
        while not any(row.node == joined.node_id for row in cluster_of(gallery).status()):
            time.sleep(0.1)
        wait_ready(gallery)
        restored = round(time.monotonic() - lost, 1)
    return load.report("a node killed, another joined", begin, replicas_restored_after=restored)


def kill_driver(home: str, local: LocalRay, probes: np.ndarray, seed: int) -> tuple[LiveGallery, dict[str, Any]]:
    begin = time.monotonic()
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, home, local.address, str(seed)], stdout=subprocess.PIPE, text=True
    )
    assert driver.stdout is not None
    acknowledged = -1
    for line in driver.stdout:
        acknowledged = int(line)
        if acknowledged == 40:
            driver.kill()
            break
    acknowledged = max([acknowledged, *map(int, driver.stdout.read().split())])
    driver.wait()
    opening = time.monotonic()
    gallery = holue.open(home, cluster=ClusterAddress(local.address))
    opened = round(time.monotonic() - opening, 2)
    lost = [n for n in range(acknowledged + 1) if gallery.subject(f"{seed}-{n}") is None]
    with Load(gallery, probes, seed) as load:
        time.sleep(2)
    load.wrong += [f"acknowledged, and lost: {lost}"] if lost else []
    return gallery, load.report(
        "the driver killed", begin, acknowledged=acknowledged + 1, lost=len(lost), opened_in=opened
    )


def kill_head(home: str, local: LocalRay, probes: np.ndarray, seed: int) -> dict[str, Any]:
    from holue.cluster.engine import disconnect

    begin = time.monotonic()
    disconnect()
    for node in (local.head, *local.nodes):
        local.kill(node)
    started = time.monotonic()
    with LocalRay() as again:
        ray_after = round(time.monotonic() - started, 1)
        with holue.open(home, cluster=ClusterAddress(again.address, n_shards=2)) as gallery:
            cold = round(time.monotonic() - started, 1)
            with Load(gallery, probes, seed) as load:
                time.sleep(2)
            return load.report("the head killed: a cold start", begin, ray_started_in=ray_after, answering_after=cold)


def lose_postgres(local: LocalRay, X: np.ndarray, probes: np.ndarray, seed: int) -> dict[str, Any]:
    """Questions go on at the last version, whose age is stated; after the server is back, changes do too."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from conftest import PostgresServer

    server, begin = PostgresServer(), time.monotonic()
    try:
        where = ClusterAddress(local.address, n_shards=2)
        with holue.open(server.url("away"), create=True, dim=DIM, cluster=where, **SETTINGS) as gallery:
            gallery.enroll(X, [f"p{i}" for i in range(len(X))])
            wait_ready(gallery)
            gallery.identify(probes[:8])
            with Load(gallery, probes, seed, changing=False) as load:
                time.sleep(1)
                server.crash()
                time.sleep(6)
                age = gallery.status().store.age
            if age is None or age < 1:
                load.wrong.append(f"the age of the version is not stated: {age}")
            server.start()
            back = time.monotonic()
            while True:
                try:
                    gallery.enroll(X[:1], ["back"])
                    break
                except Exception:
                    assert time.monotonic() - back < 60, "changes do not go on"
                    time.sleep(0.1)
            back_after = round(time.monotonic() - back, 1)
            if gallery.identify(X[:1]).subject[0] not in ("p0", "back"):
                load.wrong.append("the change after the loss is not seen")
            cluster_of(gallery).down()
        return load.report("PostgreSQL away for 6 s", begin, age=round(age or 0.0, 1), changes_again_after=back_after)
    finally:
        server.stop()


FAULTS = ("none", "stop", "shards", "both", "node", "driver", "postgres", "head")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="shards to kill one after the other")
    parser.add_argument("--subjects", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=17)
    parser.add_argument("--faults", default=",".join(FAULTS), help="which, in this order")
    given = parser.parse_args()
    faults = given.faults.split(",")
    rng = np.random.default_rng(given.seed)
    folder = tempfile.mkdtemp(prefix="holue-lose-nodes-")
    os.environ["HOLUE_CACHE"] = folder + "/nodes"
    X = rng.standard_normal((given.subjects, DIM)).astype(np.float32)
    probes = (X[:500] + 0.6 * rng.standard_normal((500, DIM))).astype(np.float32)
    home = folder + "/gallery"
    rows: dict[str, dict[str, Any]] = {}
    try:
        with holue.open(home, create=True, dim=DIM, **SETTINGS) as made:
            made.enroll(X, [f"p{i}" for i in range(given.subjects)])
        local = LocalRay()
        gallery = holue.open(home, cluster=ClusterAddress(local.address, n_shards=2))
        under_load = {
            "none": lambda: calm(gallery, probes, given.seed),
            "stop": lambda: stop_actor(gallery, probes, given.seed),
            "shards": lambda: kill_actors(gallery, probes, given.kills, given.seed),
            "both": lambda: lose_both(gallery, probes, given.seed),
            "node": lambda: kill_node(gallery, local, probes, given.seed),
        }
        for fault, job in under_load.items():
            if fault in faults:
                rows[fault] = job()
        gallery.close()
        if "driver" in faults:
            gallery, rows["driver"] = kill_driver(home, local, probes, given.seed)
            gallery.close()
        if "postgres" in faults:
            rows["postgres"] = lose_postgres(local, X, probes, given.seed)
        if "head" in faults:
            rows["head"] = kill_head(home, local, probes, given.seed)
        else:
            local.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    bad = [
        fault for fault, row in rows.items() if row["wrong"] or row["failed"] or (row["incomplete"] and fault != "both")
    ]
    print(f"broken under: {', '.join(bad)}" if bad else "every promise held")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
