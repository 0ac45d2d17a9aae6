"""Placement: on which nodes the replicas of each shard belong; a function of what there is, the same for all who compute it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

Place = tuple[int, str]
"""A shard on a node."""


@dataclass(frozen=True)
class Placement:
    """Replicas to start, and replicas that can go once those are ready."""

    start: tuple[Place, ...]
    stop: tuple[Place, ...]


def placed(
    n_shards: int, nodes: Sequence[str], now: Mapping[int, Sequence[str]], replicas: int = 2, *, level: bool = False
) -> Placement:
    """What to start and to stop so that every shard is on ``replicas`` different nodes, or on all where there are fewer.

    What runs stays where it is, unless its node is not among ``nodes`` (a drained one). A new replica goes to the node with the
    fewest. With ``level`` replicas also move from the fullest node to the emptiest until those differ by one at most: shards are
    equally large, so this balances rows.

    >>> placed(2, ["a", "b", "c"], {0: ["a", "b"], 1: ["a"]})
    Placement(start=((1, 'c'),), stop=())
    >>> placed(1, ["b", "c"], {0: ["a", "b"]})
    Placement(start=((0, 'c'),), stop=((0, 'a'),))
    """
    usable = sorted(nodes)
    wanted = {shard: [node for node in sorted(now.get(shard, ())) if node in usable] for shard in range(n_shards)}
    load = {node: sum(node in places for places in wanted.values()) for node in usable}

    def emptiest(shard: int) -> str:
        return min((node for node in usable if node not in wanted[shard]), key=lambda node: (load[node], node))

    def move(shard: int, old: str | None, new: str | None) -> None:
        if old is not None:
            wanted[shard].remove(old)
            load[old] -= 1
        if new is not None:
            wanted[shard].append(new)
            load[new] += 1

    for shard in range(n_shards):
        while len(wanted[shard]) > replicas:
            move(shard, max(wanted[shard], key=lambda node: (load[node], node)), None)
        while len(wanted[shard]) < min(replicas, len(usable)):
            move(shard, None, emptiest(shard))
    while level and usable:
        low, high = (end(usable, key=lambda node: (load[node], node)) for end in (min, max))
        movable = [shard for shard in wanted if high in wanted[shard] and low not in wanted[shard]]
        if load[high] - load[low] < 2 or not movable:
            break
        move(movable[0], high, low)
    before = {(shard, node) for shard, places in now.items() for node in places}
    after = {(shard, node) for shard, places in wanted.items() for node in places}
    stop = before - after if usable else set()
    return Placement(tuple(sorted(after - before)), tuple(sorted(stop)))


def asked_first(places: Iterable[Place]) -> dict[int, list[str]]:
    """The nodes of each shard in the order in which they are asked; nodes come first for equally many shards, as far as can be.

    >>> asked_first([(0, "a"), (0, "b"), (1, "a"), (1, "b"), (2, "b")])
    {0: ['a', 'b'], 1: ['b', 'a'], 2: ['b']}
    """
    of: dict[int, list[str]] = {}
    for shard, node in sorted(places):
        of.setdefault(shard, []).append(node)
    first: Counter[str] = Counter()
    for some in of.values():
        some.sort(key=lambda node: (first[node], node))
        first[some[0]] += 1
    return of
