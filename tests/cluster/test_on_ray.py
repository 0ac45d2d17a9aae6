"""A gallery on a real Ray of a head and two nodes answers like the same gallery on one machine, whatever changes or dies."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import holue
from holue.cluster.cluster import Cluster
from holue.cluster.cluster_search import ClusterSearch
from holue.cluster.local_ray import LocalRay
from holue.errors import IncompleteSearchError
from holue.evidence.link import power_link
from holue.live.calibration.calibrations import Calibrations
from holue.live.clustered import ClusterAddress
from holue.live.live_gallery import LiveGallery
from holue.recognition.answer.identifications import Identifications
from holue.recognition.search.gallery_search import GallerySearch

K, D = 3000, 32
RNG = np.random.default_rng(5)
X = RNG.standard_normal((K, D)).astype(np.float32)
PROBES = (X[:40] + 0.5 * RNG.standard_normal((40, D))).astype(np.float32)
SETTINGS = {"method": "galue", "threshold": 0.6}


def assert_same(left: Identifications, right: Identifications) -> None:
    for name in left.__dataclass_fields__:
        assert np.array_equal(getattr(left, name), getattr(right, name)), name


def wait_until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def cluster_of(gallery: LiveGallery) -> Cluster:
    assert gallery.clustered is not None
    return gallery.clustered.cluster


def all_ready(gallery: LiveGallery) -> bool:
    return all(
        row.answers and row.version and row.version.startswith(f"{gallery.version}@")
        for row in cluster_of(gallery).status()
    )


def questions(gallery: LiveGallery) -> int:
    return sum(replica.call("about").result(5)["questions"] for replica in cluster_of(gallery).replicas())


class Pair:
    """A gallery on the cluster, which writes, and the same one read on this machine."""

    def __init__(self, home: str, address: str) -> None:
        with holue.open(home, create=True, dim=D, **SETTINGS) as made:
            made.enroll(X, [f"p{i}" for i in range(K)])
        self.home, self.where = home, ClusterAddress(address, n_shards=2)
        self.spread = holue.open(home, cluster=self.where)
        self.single = holue.open(home, read_only=True)

    def check(self, probes: np.ndarray = PROBES) -> None:
        self.single.refresh()
        assert self.single.version == self.spread.version
        assert_same(self.spread.identify(probes), self.single.identify(probes))


@pytest.fixture(scope="module")
def pair(ray_cluster: LocalRay, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    made = Pair(str(tmp_path_factory.mktemp("homes") / "gallery"), ray_cluster.address)
    yield made
    cluster_of(made.spread).down()
    made.spread.close()
    made.single.close()


@pytest.mark.parametrize("n", [1, 2, 6, 40])
def test_answers_are_those_of_one_machine_bit_for_bit(pair: Pair, n: int) -> None:
    pair.check(PROBES[:n])


def test_evidence_rows_and_blocks_are_those_of_one_machine(pair: Pair) -> None:
    now = pair.spread.current
    search, gallery = now.moment.search, now.gallery
    assert isinstance(search, ClusterSearch)
    assert gallery is not None
    local = GallerySearch.exact(gallery)
    numbers = np.array([5, 2999, 1024, 5])
    assert np.array_equal(search.rows(numbers), local.rows(numbers))
    blocks = list(search.blocks(1000))
    assert np.array_equal(np.concatenate([rows for _, rows in blocks]), gallery.directions)
    probes = now.moment.probes(PROBES).directions
    for link in ({}, {"link": power_link}):
        ours, theirs = (one.scan(probes, [3.0, 9.0], top_k=4, **link) for one in (search, local))
        for name in ("top_scores", "top_index", "log_mass", "mean_score", "n_subjects"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


def test_replicas_are_on_different_nodes(pair: Pair) -> None:
    status = cluster_of(pair.spread).status()
    assert sorted((row.shard, row.address) for row in status) == [
        (shard, address) for shard in (0, 1) for address in ("127.0.0.3", "127.0.0.4")
    ]
    assert sum(row.subjects or 0 for row in status) == 2 * len(pair.spread)


def test_a_change_is_seen_by_the_next_question(pair: Pair) -> None:
    gallery, new = pair.spread, RNG.standard_normal((2, D)).astype(np.float32)
    gallery.enroll(new, ["new 1", "new 2"])
    assert gallery.identify(new).subject.tolist() == ["new 1", "new 2"]
    pair.check()
    gallery.remove(["p3", "p1500", "new 1"])
    pair.check()
    gallery.add_samples(new[:1], ["p7"])
    gallery.merge(["p8"], into="p9")
    pair.check()
    gallery.undo()
    gallery.rename("p10", "ten")
    pair.check()
    gallery.enroll(RNG.standard_normal((1500, D)), [f"q{i}" for i in range(1500)])
    pair.check()


def test_an_erased_subject_is_on_no_node(pair: Pair, node_disk: Path) -> None:
    assert pair.spread.current.gallery is not None
    row = pair.spread.current.gallery.rows(np.array([22]))[0].tobytes()
    files = list(node_disk.rglob("*.npy"))
    assert sum(row in path.read_bytes() for path in files) == 2
    name = pair.spread.current.gallery.names(np.array([22])).item()
    receipt = pair.spread.erase([name])
    assert not any("shard" in what for what in receipt.not_searched)
    assert not any(row in path.read_bytes() for path in node_disk.rglob("*") if path.is_file())
    pair.check()


def test_a_killed_shard_is_replaced_by_its_replica_and_comes_back(pair: Pair) -> None:
    for _ in range(2):
        wait_until(lambda: all_ready(pair.spread))
        victim = cluster_of(pair.spread).status()[0]
        assert victim.pid is not None
        os.kill(victim.pid, signal.SIGKILL)
        for _ in range(5):
            pair.check()
    wait_until(lambda: all_ready(pair.spread))
    assert cluster_of(pair.spread).status()[0].pid != victim.pid
    pair.check()


def test_a_stopped_shard_is_overtaken(pair: Pair) -> None:
    victim = cluster_of(pair.spread).status()[0]
    assert victim.pid is not None
    os.kill(victim.pid, signal.SIGSTOP)
    try:
        begin = time.monotonic()
        pair.check()
        assert time.monotonic() - begin < 4.0  # below the deadline
    finally:
        os.kill(victim.pid, signal.SIGCONT)
    wait_until(lambda: all_ready(pair.spread))


def test_without_both_replicas_answers_are_incomplete_and_whole_again_afterwards(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holue.cluster.asking.DEADLINE", 1.0)
    monkeypatch.setattr("holue.cluster.asking.SLOW", 1.0)
    near = RNG.standard_normal((40, D)).astype(np.float32)  # strangers: a missing subject could be meant
    near[:20] = X[30:50] + 0.2 * near[:20]  # mates close to their subject: nobody else can be nearer
    near[20:30] = X[30:40] + 0.9 * near[20:30]  # mates far from it
    whole = pair.single.identify(near)
    gone = [row for row in cluster_of(pair.spread).status() if row.shard == 1]
    pids = [row.pid for row in gone if row.pid is not None]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        answers = pair.spread.identify(near)
        decided = ~answers.incomplete
        assert decided[:20].any()
        assert not decided[30:].any()
        assert np.array_equal(answers.subject[decided], whole.subject[decided])
        assert np.array_equal(answers.decision[decided], whole.decision[decided])
        assert set(answers.subject[~decided]) == {None}
        told = f"{gone[0].subjects} of {len(pair.spread)} enrolled subjects could not be read"
        assert set(answers.reason[~decided]) == {f"incomplete: {told}"}
        assert all(reason.startswith(f"{told}; none of them") for reason in answers.reason[decided])
        with pytest.raises(IncompleteSearchError):
            pair.spread.current.moment.best(PROBES, None)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not pair.spread.identify(PROBES[:1]).incomplete.any())
    wait_until(lambda: all_ready(pair.spread))
    pair.check()


def test_the_next_process_finds_the_shards(pair: Pair) -> None:
    pids = {row.pid for row in cluster_of(pair.spread).status()}
    pair.spread.close()
    pair.spread = holue.open(pair.home, cluster=pair.where.address)
    assert {row.pid for row in cluster_of(pair.spread).status()} == pids
    pair.check()


def test_calibration_by_probes_is_learned_through_the_cluster(pair: Pair) -> None:
    labels = np.array([*(f"p{i}" for i in range(30, 150)), *[holue.UNKNOWN] * 200], dtype=object)
    strangers = RNG.standard_normal((200, D)).astype(np.float32)
    probes = np.concatenate([X[30:150] + 0.4 * RNG.standard_normal((120, D)).astype(np.float32), strangers])
    asked = questions(pair.spread)
    entry = pair.spread.calibrate(probes, labels, activate=False)
    assert questions(pair.spread) >= asked + 2
    with holue.open(":memory:", dim=D, **SETTINGS) as local:
        names = [subject.id for subject in pair.spread.subjects(limit=10_000)]
        samples = [pair.spread.samples(name) for name in names]
        ids = [name for name, some in zip(names, samples) for _ in some]
        local.enroll(np.array([one.embedding for some in samples for one in some]), ids)
        other = local.calibrate(probes, labels)
        theirs = Calibrations(local.store).load(other, local.settings).learned["operating_point"]
    assert Calibrations(pair.spread.store).load(entry, pair.spread.settings).learned["operating_point"] == theirs
