"""LocalRay: a Ray of its own on this machine, of a head and some nodes with addresses of their own; it ends with this process."""

from __future__ import annotations

import os
from itertools import count
from types import TracebackType
from typing import Any, Self

from holue.cluster.engine import connect, disconnect, ray

LOCAL = "local"
"""The address that stands for a Ray of one's own."""
FIRST_ADDRESS = 2
"""127.0.0.1 is taken for "any address" by parts of Ray; each node has the next loopback address."""
OBJECT_STORE = 100_000_000
"""Bytes of Ray's object store: only probes of large batches and their evidence pass through it."""


class LocalRay:
    """Started when it is made, and connected to."""

    def __init__(self, nodes: int = 2, *, processors: int = 1) -> None:
        ray()
        from ray.cluster_utils import Cluster as Nodes

        self._processors = processors
        self._addresses = (f"127.0.0.{last}" for last in count(FIRST_ADDRESS))
        # Shards import the code that this process runs.
        self._cluster: Any = Nodes(initialize_head=True, head_node_args=self._settings(0))
        self.head = self._cluster.head_node
        self.nodes = [self.add_node() for _ in range(nodes)]
        connect(self.address)

    @property
    def address(self) -> str:
        """What other processes of this machine connect to."""
        return str(self._cluster.address)

    def add_node(self) -> Any:
        """One node more."""
        return self._cluster.add_node(wait=False, **self._settings(self._processors))

    def kill(self, node: Any) -> None:
        """End a node at once, as if its machine had lost power."""
        self._cluster.remove_node(node, allow_graceful=False)

    def close(self) -> None:
        """End all of it."""
        disconnect()
        self._cluster.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _settings(self, processors: int) -> dict[str, Any]:
        return {
            "num_cpus": processors, "node_ip_address": next(self._addresses), "object_store_memory": OBJECT_STORE,
            "include_dashboard": False, "min_worker_port": 0, "max_worker_port": 0,
            # By itself Ray gives its workers less of the processor than other programs, and somebody waits for a shard's answer.
            "env_vars": {"PYTHONPATH": os.pathsep.join(_paths()), "RAY_worker_niceness": "0"},
        }  # fmt: skip


def _paths() -> list[str]:
    import sys

    return [path for path in sys.path if path]
