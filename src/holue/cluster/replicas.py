"""Replicas: all replicas of one gallery's shards that this process knows, started, found by name and stopped.

A shard is a detached actor of Ray with a name, so it outlives who started it, and everybody finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holue.cluster.engine import ray
from holue.cluster.placement import Place, asked_first
from holue.cluster.replica import Failures, Replica
from holue.cluster.shards.shard_actor import ShardActor

NAME = re.compile(r"shard (\d+) of (\d+) on ([0-9a-f]+)")


class Replicas:
    """Those of the gallery ``identity``; there are as many shards as the replicas there already say, else ``n_shards``."""

    def __init__(self, identity: str, n_shards: int, cache: str | None, actor: type[ShardActor]) -> None:
        self._namespace, self._identity, self._cache, self._actor = f"holue-{identity}", identity, cache, actor
        self._at: dict[Place, Replica] = {}
        self._of: dict[int, tuple[Replica, ...]] = {}
        self.failures = Failures()
        names = self._names()
        self.n_shards = names[0][1] if names else n_shards

    def __iter__(self) -> Iterator[Replica]:
        """By shard and node."""
        return iter([replica for _, replica in sorted(self._at.items())])

    def __len__(self) -> int:
        return len(self._at)

    def places(self) -> list[Place]:
        """Where they are."""
        return sorted(self._at)

    def of(self, shard: int) -> Sequence[Replica]:
        """The replicas of a shard, the one to ask first at the beginning."""
        return self._of.get(shard, ())

    def find(self, alive: set[str]) -> None:
        """Know the replicas there are: those of other processes too, and none on a node that is not ``alive``."""
        named = {(shard, node) for shard, _, node in self._names() if node in alive}
        for place in named - self._at.keys():
            try:
                handle = ray().get_actor(self._name(place), namespace=self._namespace)
            except ValueError:  # gone since
                continue
            self._at[place] = Replica(*place, handle, self.failures)
        for place in self._at.keys() - named:
            self._at[place].forget()
        self._at = {place: replica for place, replica in self._at.items() if place in named}
        self._sort()

    def start(self, place: Place, threads: int) -> None:
        """Start one that reads with so many threads, or find the one that somebody else has just started there."""
        shard, node = place
        engine = ray()
        affinity = engine.util.scheduling_strategies.NodeAffinitySchedulingStrategy(node_id=node, soft=False)
        actor = engine.remote(self._actor).options(
            name=self._name(place), namespace=self._namespace, lifetime="detached", get_if_exists=True,
            max_restarts=-1, max_task_retries=0, num_cpus=0, scheduling_strategy=affinity,
        )  # fmt: skip
        self._at[place] = Replica(shard, node, actor.remote(self._identity, shard, self._cache, threads), self.failures)
        self._sort()

    def stop(self, place: Place) -> None:
        """End one, and delete its rows."""
        replica = self._at.pop(place)
        self._sort()
        try:
            replica.call("leave").result(5.0)
        except Exception as error:  # it is dead already; its files go when the next shard starts on that machine
            replica.failed(error)
        ray().kill(replica.handle, no_restart=True)

    def _sort(self) -> None:
        at = dict(self._at)  # another thread may change it
        self._of = {shard: tuple(at[shard, node] for node in some) for shard, some in asked_first(at).items()}

    def _names(self) -> list[tuple[int, int, str]]:
        found = []
        for entry in ray().util.list_named_actors(all_namespaces=True):
            match = NAME.fullmatch(entry["name"]) if entry["namespace"] == self._namespace else None
            if match:
                found.append((int(match[1]), int(match[2]), match[3]))
        return sorted(found)

    def _name(self, place: Place) -> str:
        shard, node = place
        return f"shard {shard} of {self.n_shards} on {node}"
