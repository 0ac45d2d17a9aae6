"""Nodes: the machines of a Ray cluster that shards may run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holue.cluster.engine import ray

DRAINED = b"holue drained "


@dataclass(frozen=True)
class Node:
    """A node that is alive."""

    id: str
    address: str
    processors: int
    drained: bool


def nodes() -> list[Node]:
    """Nodes that are alive and have a processor to give; a head without one only directs."""
    out = drained()
    alive = [entry for entry in ray().nodes() if entry["Alive"]]
    found = [
        Node(
            entry["NodeID"], entry["NodeManagerAddress"], int(entry["Resources"].get("CPU", 0)), entry["NodeID"] in out
        )
        for entry in alive
    ]
    return sorted((node for node in found if node.processors), key=lambda node: node.id)


def drained() -> set[str]:
    """Nodes that are to be emptied, whoever said so."""
    prefix = len(DRAINED)
    return {key[prefix:].decode() for key in _kv()._internal_kv_list(DRAINED)}


def drain(node: str) -> None:
    """Have no shard on a node, from the next look on."""
    _kv()._internal_kv_put(DRAINED + node.encode(), b"1")


def undrain(node: str) -> None:
    """Let shards on a node again."""
    _kv()._internal_kv_del(DRAINED + node.encode())


def _kv() -> Any:
    ray()
    from ray.experimental import internal_kv  # what all who are connected see, kept by the head

    return internal_kv
