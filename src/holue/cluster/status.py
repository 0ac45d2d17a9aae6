"""ClusterStatus: the shards of a gallery as one process sees them: who answers, who lags, and what failed last."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReplicaStatus:
    """One replica, as ``holue cluster status`` shows it."""

    shard: int
    node: str
    address: str
    answers: bool
    version: str | None
    behind: int | None  # versions until the newest; None where either is not known
    subjects: int | None
    pid: int | None
    failures: int
    last_failure: str


@dataclass(frozen=True)
class ClusterHealth:
    """What is known without asking anybody."""

    shards: int
    replicas: int
    silent: int  # replicas that did not answer when they were last asked
    missing: int  # shards without a replica that answers
    behind: int  # versions that the slowest answering replica is behind
    failures: int  # since this process opened the gallery
