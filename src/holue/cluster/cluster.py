"""Cluster: the shards of one gallery on Ray: placed, fed, watched and asked by this process, and by others at the same time.

Ray starts a process that died again on its node. Where a node is lost, joins or is drained, ``supervise`` starts and stops
replicas; two processes that do so at once come to the same names.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self

from holue.cluster.asking import UsualTime, ask_all
from holue.cluster.feeding import VersionToServe, bring
from holue.cluster.lost_neighbours import LostNeighbours
from holue.cluster.nodes import drain, nodes
from holue.cluster.placement import Place, Placement, placed
from holue.cluster.replica import Replica
from holue.cluster.replicas import Replicas
from holue.cluster.shards.shard import version_number
from holue.cluster.shards.shard_actor import ShardActor
from holue.cluster.status import ClusterHealth, ReplicaStatus
from holue.errors import IncompleteSearchError, InvalidParameterError
from holue.gallery.gallery import Gallery
from holue.recognition.search.choice import Choice, chosen
from holue.recognition.search.search import SearchKind

LOOK_EVERY = 0.25
PLACE_EVERY = 2.0
"""Seconds between looks at replicas that failed, and between looks at the nodes."""
PREPARED_WITHIN = 600.0
"""Seconds that codes or lists may take."""


class Cluster:
    """The shards of the gallery ``identity``; Ray must be connected.

    The number of shards is fixed by whoever starts them first, one for each processor of the nodes unless ``n_shards`` says
    otherwise. With fewer each reads with several threads: the processors of all nodes are shared among them.
    """

    def __init__(
        self,
        identity: str,
        *,
        kind: SearchKind = "exact",
        n_shards: int | None = None,
        replicas: int = 2,
        cache: str | None = None,
        actor: type[ShardActor] = ShardActor,
    ) -> None:
        self.identity, self.kind, self.n_replicas = identity, kind, replicas
        self._lock = threading.Lock()
        self._serving: VersionToServe | None = None
        self._usual: defaultdict[str, UsualTime] = defaultdict(UsualTime)
        self._given_up: set[int] = set()
        self.last_error = ""
        self.lost_neighbours = LostNeighbours()
        self.newest: int | None = None  # the version of the gallery, where none is served from here
        self._being_fed: dict[tuple[int, str], Future[bool]] = {}
        self._stopping = threading.Event()
        self._replicas = Replicas(identity, n_shards or _processors(), cache, actor)
        self.failures = self._replicas.failures
        self._supervisor = threading.Thread(target=self._watch, name="holue-cluster", daemon=True)

    # Serving

    def serve(self, version: VersionToServe) -> None:
        """From now on this version is the newest: every replica is brought to it, in the background."""
        self._serving = version
        for replica in self.replicas():
            self._feed_newest(replica)

    def start(self, version: VersionToServe, timeout: float = 600.0) -> None:
        """Start what is not there, and wait until one replica of every shard, or all that can, holds the version."""
        self._serving = version
        self.supervise()
        fed = [self.feed(replica, version) for replica in self.replicas()]
        for each in fed:
            try:
                each.result(timeout)
            except Exception:  # whatever Ray raises: the replica is suspect, and looked at again
                continue
        self._supervisor.start()

    def unreached(self, timeout: float = 60.0) -> list[tuple[int, str]]:
        """Wait until every replica holds the newest version; the shards and nodes of those that do not."""
        serving, left = self._serving, []
        if serving is None:
            return []
        addresses = {node.id: node.address for node in nodes()}
        under_way = [(replica, self.feed(replica, serving)) for replica in self.replicas()]
        for replica, future in under_way:
            try:
                done = future.result(timeout)
            except Exception:  # whatever Ray raises
                done = False
            if not done:
                left.append((replica.shard, addresses.get(replica.node, replica.node)))
        return left

    @property
    def n_shards(self) -> int:
        """Parts of the gallery."""
        return self._replicas.n_shards

    def ask(
        self, method: str, questions: Mapping[int, tuple[bytes, ...]], version: VersionToServe, work: int, way: str = ""
    ) -> dict[int, Any]:
        """The answers of the shards that gave one; questions that are asked the same ``way`` take equally long for equal work."""
        usual = self._usual[f"{method} {way}"]

        def fed(replica: Replica) -> Future[bool]:
            return self.feed(replica, version)

        return ask_all(method, questions, self._replicas.of, fed, version.name, usual, work, self._given_up)

    def chosen(self, kind: SearchKind, gallery: Gallery) -> Choice:
        """How all shards read a version: what was asked for, or what suits the rows of one of them."""
        return chosen(kind, gallery, parts=self.n_shards)

    def replicas(self) -> list[Replica]:
        """All of them, by shard and node."""
        return list(self._replicas)

    def feed(self, replica: Replica, version: VersionToServe) -> Future[bool]:
        """Bring a replica to a version in the background; the same step is under way once only."""
        key = id(replica), version.name
        with self._lock:
            under_way = self._being_fed.get(key)
            if under_way is not None and not under_way.done():
                return under_way
            self._being_fed = {known: each for known, each in self._being_fed.items() if not each.done()}
            self._being_fed[key] = future = replica.feeder.submit(self._bring, replica, version)
            return future

    def _feed_newest(self, replica: Replica) -> None:
        """Unless it is being fed already: it asks for the newest version itself when that is done."""
        serving = self._serving
        if serving is None or replica.suspect or serving.name in replica.known:
            return
        with self._lock:
            if any(number == id(replica) and not each.done() for (number, _), each in self._being_fed.items()):
                return
        self.feed(replica, serving)

    def _bring(self, replica: Replica, version: VersionToServe) -> bool:
        try:
            done = bring(replica, self.n_shards, version)
            kind = self.chosen(self.kind, version.gallery).kind
            if done and kind != "exact":
                replica.call("prepare", version.name, kind).result(PREPARED_WITHIN)
        except Exception as error:
            replica.failed(error)
            raise
        serving = self._serving
        if serving is not None and serving.name not in replica.known and not self._stopping.is_set():
            with contextlib.suppress(RuntimeError):  # it is gone
                self.feed(replica, serving)
        return done

    # Watching

    def supervise(self, *, level: bool = False) -> tuple[list[Place], list[Place]]:
        """Start and stop replicas as the nodes are now; returns what was started, and what was stopped."""
        plan = self._plan(level)
        threads = max(1, _processors() // self.n_shards)
        for place in plan.start:
            self._replicas.start(place, threads)
        stopped = [place for place in plan.stop if self._can_go(place)]
        for place in stopped:
            self._replicas.stop(place)
        return list(plan.start), stopped

    def drain(self, given: str) -> str:
        """Have no shard on a node, named by its address or the beginning of its id; returns the id."""
        there = nodes()
        found = [node for node in there if given == node.address or node.id.startswith(given)]
        if len(found) != 1:
            known = ", ".join(f"{node.address} ({node.id[:8]})" for node in there)
            raise InvalidParameterError(f"NODE must name one node, and {given!r} names {len(found)}; there are {known}")
        if all(node.drained or node is found[0] for node in there):
            raise InvalidParameterError(f"{given} is the last node that is not drained; add a node first")
        drain(found[0].id)
        return found[0].id

    def settle(self, *, level: bool = False, timeout: float) -> Placement:
        """Start and stop replicas until nothing is left to do and all hold the newest version; all that was done."""
        started: list[Place] = []
        stopped: list[Place] = []
        end = time.monotonic() + timeout
        while True:
            start, stop = self.supervise(level=level)
            started, stopped = started + start, stopped + stop
            behind = self.unreached(max(1.0, end - time.monotonic()))
            if not behind and not start and not stop and not self._planned(level):
                return Placement(tuple(started), tuple(stopped))
            if time.monotonic() > end:
                raise IncompleteSearchError(f"not settled after {timeout:g} s: {behind}; see `holue cluster status`")
            time.sleep(LOOK_EVERY)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def status(self) -> list[ReplicaStatus]:
        """Every replica, asked now."""
        addresses = {node.id: node.address for node in nodes()}
        if not self._replicas:
            self._replicas.find(set(addresses))
        asked = [(replica, replica.call("about")) for replica in self.replicas()]
        found = []
        for replica, future in asked:
            try:
                about: dict[str, Any] = future.result(2.0)
            except Exception as error:
                replica.failed(error)
                about = {}
            version = (about.get("versions") or [None])[-1]
            found.append(
                ReplicaStatus(
                    replica.shard,
                    replica.node,
                    addresses.get(replica.node, "lost"),
                    bool(about),
                    version,
                    self._behind(version),
                    about.get("subjects"),
                    about.get("pid"),
                    replica.failures,
                    replica.last_failure,
                )
            )
        return found

    def health(self) -> ClusterHealth:
        """As far as it is known without asking anybody."""
        replicas = self.replicas()
        answering = {one.shard for one in replicas if not one.suspect}
        lags = [self._behind(one.known[-1]) or 0 for one in replicas if not one.suspect and one.known]
        return ClusterHealth(
            self.n_shards,
            len(replicas),
            sum(one.suspect for one in replicas),
            self.n_shards - len(answering),
            max(lags, default=0),
            self.failures.count,
        )

    def down(self) -> int:
        """End all shards and delete their rows from the nodes; returns how many there were."""
        self.close()
        self._replicas.find({node.id for node in nodes()})
        places = self._replicas.places()
        for place in places:
            self._replicas.stop(place)
        return len(places)

    def close(self) -> None:
        """Stop watching; the shards stay."""
        self._stopping.set()
        if self._supervisor.is_alive():
            self._supervisor.join(10)
        for replica in self.replicas():
            replica.forget()

    # Inside

    def _behind(self, version: str | None) -> int | None:
        newest = self.newest if self._serving is None else version_number(self._serving.name)
        return None if version is None or newest is None else max(0, newest - version_number(version))

    def _plan(self, level: bool) -> Placement:
        there = nodes()
        self._replicas.find({node.id for node in there})
        now: dict[int, list[str]] = {}
        for shard, node in self._replicas.places():
            now.setdefault(shard, []).append(node)
        usable = [node.id for node in there if not node.drained]
        return placed(self.n_shards, usable, now, self.n_replicas, level=level)

    def _planned(self, level: bool) -> bool:
        plan = self._plan(level)
        return bool(plan.start or plan.stop)

    def _watch(self) -> None:
        turns = 0
        looks: dict[int, Future[Any]] = {}
        while not self._stopping.wait(LOOK_EVERY):
            turns += 1
            try:
                for replica in self.replicas():
                    self._look(replica, looks)
                if turns % int(PLACE_EVERY / LOOK_EVERY) == 0:
                    self.supervise()
                    for replica in self.replicas():
                        self._feed_newest(replica)
            except Exception as error:  # Ray may be away; the next look tries again
                self.last_error = f"{type(error).__name__}: {error}"

    def _look(self, replica: Replica, looks: dict[int, Future[Any]]) -> None:
        """Whether a replica that failed answers again; its answer is read at the next look."""
        look = looks.get(id(replica))
        if look is not None:
            if not look.done():
                return
            del looks[id(replica)]
            if look.exception() is None:
                replica.answered(tuple(look.result()["versions"]))
                self._given_up.discard(replica.shard)
                self._feed_newest(replica)
                return
        if replica.suspect:
            looks[id(replica)] = replica.call("about")

    def _can_go(self, place: Place) -> bool:
        """Whether enough other replicas of the shard hold the newest version."""
        serving = self._serving
        others = [one for one in self._replicas.of(place[0]) if one.node != place[1] and not one.suspect]
        ready = [one for one in others if serving is None or serving.name in one.known]
        return len(ready) >= min(self.n_replicas, sum(not node.drained for node in nodes()))


def _processors() -> int:
    """Processors of all nodes."""
    return max(1, sum(node.processors for node in nodes()))
